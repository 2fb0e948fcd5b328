"""ELLM: exploration with goals that a language model suggests.

Algorithm (Du et al., "Guiding Pretraining in Reinforcement Learning with Large Language Models", ICML
2023)::

    in every state
        the model suggests goals that are sensible there
        goals reached in this episode are dropped
        act; caption what happened
        reward: the largest cosine between the caption and a goal, if it reaches a threshold
    learn from these rewards only; another run may learn a task afterwards

The model fills one role, the goal source (:class:`Suggestions`). An encoder's
similarity of caption and goal decides whether a goal is reached, and is the reward
(:class:`hunch.roles.reward.similarity.Similarity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import State, UsageError, World
from hunch.lm import choose, load
from hunch.lm.answers.reading import read_items
from hunch.lm.asking import AskConfig, Asking, about
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, PROPOSES, Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, PositiveInt, Share
from hunch.roles.encoder.features import TextTable
from hunch.roles.goal.goaled import Goaled, GoalSource
from hunch.roles.reward.rewarded import Rewarded
from hunch.roles.reward.similarity import Similarity


@dataclass(frozen=True, kw_only=True)
class SuggestionConfig(AskConfig):
    """Settings of the requests for goals."""

    how: Literal["auto", "list", "ask", "alike"] = "auto"
    """Request for goals. list: the model writes goals, one per line (paper: open). ask: the model says yes
    or no to each candidate (paper: closed). alike: candidates most similar to the observation (ours; for
    encoders). auto: list if the model generates, else alike if it embeds, else ask."""
    goals: PositiveInt = 5
    """Maximum goals per state (our choice)."""
    samples: PositiveInt = 1
    """With list: number of answers that are combined."""
    threshold: Share = 0.5
    """With ask: minimum probability of yes for a candidate to become a goal (released code)."""
    temperature: NonNegativeFloat = 0.1
    """With list: temperature of the answers (released code)."""
    max_tokens: PositiveInt | None = None
    """With list: maximum tokens per answer. Default: 64, or more for a chat model."""
    free: bool = False
    """With list: also accept goals that are not admissible actions."""


class Suggestions(GoalSource):
    """Suggests goals that a model finds sensible in a state; the model is asked once per state.

    The candidates are the admissible actions. A line that is not a candidate is rejected, and counted
    as a fallback of the model. Checkpoints leave suggestions out: the model repeats them.

    Attributes:
        lines: Number of lines read so far.
        rejected: Number of lines that were not candidates.

    Args:
        lm: A model that generates, scores or embeds.
        config: How the model is asked.
        nonsense: Goals to suggest in all states instead, as a control.

    Raises:
        UsageError: if the model does not support the chosen kind of request.
    """

    wording = "2f027ed1"
    """Version of the words of :meth:`prompt` and of the question for a yes. Change it with them: runs with
    different words are different runs."""

    def __init__(
        self, lm: LanguageModel, config: SuggestionConfig | None = None, nonsense: Sequence[str] = ()
    ) -> None:
        self.config, self.lm, self.nonsense = config or SuggestionConfig(), lm, tuple(nonsense)
        self.models = {"lm": lm}
        kinds = {"list": {"generate"}, "alike": {"embed"}, "ask": {"score", "label"}}
        able = [kind for kind, verbs in kinds.items() if verbs & lm.verbs]
        self.how = self.config.how if self.config.how != "auto" else (able or ["list"])[0]
        if self.how not in able:
            needs = " or ".join(sorted(kinds[self.how]))
            raise UsageError(f"Goals by {self.how!r} need a model that can {needs}; {lm.name} cannot.")
        self._asking = Asking(lm, self.config, tokens=64, stop=(), role="goal")
        self.table = TextTable(lm) if self.how == "alike" else None

    @property
    def settings(self) -> dict[str, Any]:
        """The config, the model, and the version of the prompts."""
        own = {"suggests": self.lm.name, "nonsense": list(self.nonsense), "wording": self.wording}
        return {**asdict(self.config), **own}

    def begin(self, world: World, seed: int) -> None:
        """Forget all suggestions, and reset the random generator."""
        self.known: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
        self.lines = self.rejected = 0

    def suggest(self, states: Sequence[State]) -> list[tuple[str, ...]]:
        """Return the goals of each state; one model call for all new states."""
        if self.nonsense:
            return [self.nonsense] * len(states)
        keys = [(state.observation, state.options) for state in states]
        new = {key: state for key, state in zip(keys, states, strict=True) if key not in self.known}
        if new:
            found = {"list": self._written, "ask": self._approved, "alike": self._nearest}[self.how](new)
            self.known |= dict(zip(new, map(tuple, found), strict=True))
        return [self.known[key] for key in keys]

    def _written(self, new: dict[Any, State]) -> list[list[str]]:
        """Return the lines that a model wrote."""
        prompts = [self._asking.prompt(self.prompt(state), **about(state)) for state in new.values()]
        answers = self.lm.generate(prompts, self.config.samples, self._asking.sampling)
        return [self._read(own, s.options) for own, s in zip(answers, new.values(), strict=True)]

    def prompt(self, state: State) -> str:
        """Return the prompt that asks for goals in a state."""
        listed = "\n".join(f"- {option}" for option in state.options)
        return (
            f"{state.observation}\n\nWhat would be sensible and useful to do here and now? Name up to "
            f"{self.config.goals} things of this list, one per line.\n{listed}\nAnswer:"
        )

    def _read(self, answers: Sequence[str], candidates: Sequence[str]) -> list[str]:
        """Return the goals in the answers; lines may begin with a bullet or a number."""
        found = [read_items(text, candidates) for text in answers]
        named = [[item or line for line, item in own if item or self.config.free] for own in found]
        good, lines = list(chain.from_iterable(named)), sum(map(len, found))
        self.lines += lines
        self.rejected += lines - len(good)
        read = [
            goals if own or not self._asking.chats else None for goals, own in zip(named, found, strict=True)
        ]
        self._asking.hear(answers, read, rejected=lines - len(good))
        return list(dict.fromkeys(good))[: self.config.goals]

    def _approved(self, new: dict[Any, State]) -> list[list[str]]:
        """Return the candidates to which a model says yes, the most likely first."""
        pairs = [(state, option) for state in new.values() for option in state.options]
        prompts = [
            f"{s.observation}\n\nIs it sensible and useful to {option} here and now?\n- Yes\n- No\nAnswer:"
            for s, option in pairs
        ]
        chosen = iter(choose(self.lm, prompts, [("Yes", "No")] * len(prompts)))
        found = []
        for state in new.values():
            sure = {option: float(next(chosen).probabilities[0]) for option in state.options}
            ranked = sorted(sure, key=lambda option: -sure[option])
            found.append([o for o in ranked if sure[o] > self.config.threshold][: self.config.goals])
        return found

    def _nearest(self, new: dict[Any, State]) -> list[list[str]]:
        """Return the candidates with embeddings nearest to the observation's."""
        assert self.table is not None
        found = []
        for state in new.values():
            vectors = self.table.encode([" ".join(state.lines()), *state.options]).astype(np.float64)
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            order = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")[: self.config.goals]
            found.append([state.options[i] for i in order])
        return found


@dataclass(frozen=True, kw_only=True)
class ELLMConfig(LearnerConfig):
    """Settings of ELLM: rewards for goals that a model suggests."""

    suggestions: SuggestionConfig = field(default_factory=SuggestionConfig)
    """How the model is asked for goals."""
    threshold: Share = 0.99
    """Minimum cosine of caption and goal for a goal to count as reached (released code: 0.99 in Crafter)."""
    weight: NonNegativeFloat = 1.0
    """Weight of the reward for reached goals."""
    extrinsic: NonNegativeFloat = 0.0
    """Weight of the environment's reward (paper: 0 while pretraining)."""
    nonsense: tuple[str, ...] = ()
    """Fixed goals for all states, which replace the model's goals; a control."""


class ELLM(Goaled):
    """The agent of ELLM.

    Args:
        lm: A model that writes, scores or embeds.
        config: All settings; ``options`` change single ones.
        encoder: Compares captions and goals, and embeds states for DQN. Default: that of the config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or an unsuitable model.
    """

    config_class: ClassVar[type[Any]] = ELLMConfig

    def __init__(
        self,
        lm: LanguageModel,
        config: ELLMConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        c: ELLMConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        achievement = Similarity(embeds, c.threshold)
        rewarded = Rewarded(learner(c, embeds), achievement, weight=c.weight, extrinsic=c.extrinsic)
        super().__init__(rewarded, Suggestions(lm, c.suggestions, c.nonsense), achievement, renew=True)


METHOD = Method(
    "ellm",
    ELLM,
    "learn by reaching goals that a model suggests in every state",
    "Du et al., Guiding Pretraining in Reinforcement Learning with LLMs, ICML 2023",
    leaf="LLM4RL / goal",
    environments="environments that tell events",
    reads={"events"},
    models={"lm": PROPOSES, **ENCODER},
    lm="minilm",
    suggested=("openai:gpt-4o-mini", "scripted:suggest"),
    roles=("goal source",),
    control="uniform goals",
)
