"""Zero-shot: act by the language model alone, and learn nothing::

    a  ~  p_LM(. | s)

Where actions are listed, the model is an action prior, and a is drawn from it. A method with a prior must do
better than this for its learning to count. Where any text is an action, the model writes it: a game of
TextArena, an environment of OpenEnv, the user's prompts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from hunch.core import Agent, EvidenceLevel, Explanation, State, Transition, UsageError, World, wording_of
from hunch.envs.invalid import is_invalid
from hunch.lm.answers.lines import spoken
from hunch.lm.asking import Asking, about
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Message, Prompt
from hunch.lm.settings import AskConfig, ask_config
from hunch.methods.method import PROPOSES, Method
from hunch.methods.settings import configure, filled, models_of
from hunch.ranges import LATER, NonNegativeInt
from hunch.roles.prior.base import ActionPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior

Turn = tuple[str, str]
"""An earlier observation of the episode, and the action that followed."""


@dataclass(frozen=True, kw_only=True)
class ZeroShotConfig:
    """Settings of the zero-shot agent."""

    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior. Where any text is an action, only the settings of requests
    count: prompt, max_tokens, temperature, stop, effort, patience."""
    turns: NonNegativeInt | None = field(default=None, metadata=LATER)
    """Where any text is an action: number of earlier turns of the episode in the prompt. Default: all; what
    the model cannot read goes, the oldest first."""


class ZeroShot(Agent):
    """The agent that draws each action from the model.

    Args:
        prior: Proposes actions where they are listed; frozen.
        config: Settings with which the prior was made; ``options`` change single ones.
        lm: The model that writes where any text is an action; None if there is no such environment.
    """

    config_class: ClassVar[type[Any]] = ZeroShotConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "fallbacks", "past", "invalid")

    def __init__(
        self,
        prior: ActionPrior,
        config: ZeroShotConfig | None = None,
        *,
        lm: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        self.config = configure(type(self), config, options)
        self.prior = filled(prior, "propose")
        self.models = models_of(lm=prior)
        self.lm = lm
        self._speaker: Speaker | None = None  # made when it is first needed: most models need none

    @classmethod
    def build(cls, config: ZeroShotConfig, models: Mapping[str, LanguageModel]) -> ZeroShot:
        """Make the prior from the model ``lm``."""
        return cls(build_prior(config.prior, models["lm"]), config, lm=models["lm"])

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior."""
        return self.prior.evidence

    @property
    def wording(self) -> str:
        """The version of the prior's prompts."""
        return wording_of(self.prior)

    def begin(self, world: World, seed: int) -> None:
        """Reset the random generator, and forget the episodes."""
        self.rng = np.random.default_rng(seed)
        self.fallbacks: list[float] = []
        self.invalid: list[float] = []  # 1 for each written action that the environment refused, else 0
        self.past: dict[int, list[Turn]] = {}  # by stream: the turns of the episode, oldest first

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw one action from p(a|s) for each state, or write one where any text is an action."""
        if any(state.actions is None for state in states):
            return self._write(states)
        actions = []
        for state, proposal in zip(states, self.prior.propose(states, 1, self.rng), strict=True):
            (index,) = proposal.indices  # one draw is one candidate
            actions.append(state.options[int(index)])
            if not np.isnan(proposal.fallbacks):  # nan if the prior always names an action
                self.fallbacks.append(proposal.fallbacks)
        return actions

    def _write(self, states: Sequence[State]) -> list[str]:
        turns = [self._turns(state) for state in states]
        actions = self.speaker.write(states, turns, int(self.rng.integers(2**31)))
        self.fallbacks += [float(not action) for action in actions]
        return actions

    def _turns(self, state: State) -> list[Turn]:
        """Return the earlier turns that the prompt shows: those of the environment, or the agent's own."""
        turns = [*(state.history or self.past.get(state.stream, ()))]
        kept = len(turns) if self.config.turns is None else self.config.turns
        return turns[max(0, len(turns) - kept) :]

    @property
    def speaker(self) -> Speaker:
        """Writes actions.

        Raises:
            UsageError: if the agent has no model, or one that cannot write.
        """
        if self._speaker is None:
            if self.lm is None or "generate" not in self.lm.verbs:
                named = "this agent was made without a model" if self.lm is None else f"{self.lm.name} cannot"
                raise UsageError(
                    f"Any text is an action here, so zero-shot needs a model that writes as --lm; {named}."
                )
            self._speaker = Speaker(self.lm, self.config.prior)
        return self._speaker

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember the turns of an episode where any text is an action; nothing where actions are listed."""
        for transition in transitions:
            state = transition.state
            if state.actions is not None:
                continue
            self.invalid.append(float(is_invalid(transition)))
            self.past.setdefault(state.stream, []).append((state.observation, transition.action))
            if transition.done:
                del self.past[state.stream]

    def learn(self) -> dict[str, float]:
        """Return metrics; nothing is learnt.

        ``fallback_rate`` is the share of answers that named no action, or, where any text is an action, that
        were empty. ``invalid_rate`` is the share of written actions that the environment refused.
        """
        metrics = {}
        if self.fallbacks:
            metrics["fallback_rate"] = float(np.mean(self.fallbacks))
        if self.invalid:
            metrics["invalid_rate"] = float(np.mean(self.invalid))
        self.fallbacks = []
        self.invalid = []
        return metrics

    def figures(self) -> dict[str, float]:
        """Return the share of refused actions for an evaluation; nothing where actions are listed."""
        return {"invalid_rate": float(np.mean(self.invalid))} if self.invalid else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; one of an earlier version knows no written actions."""
        super().load_state_dict({"past": {}, "invalid": [], **state})

    def player(self, seed: int) -> ZeroShot:
        """Return a player with the same model and a separate random generator."""
        twin = ZeroShot(self.prior, self.config, lm=self.lm)
        twin.begin(World(), seed)
        return twin

    def explain(self, state: State) -> Explanation:
        """Return the prior, estimated from 32 draws; nothing where any text is an action."""
        if state.actions is None:
            return Explanation()
        (proposal,) = self.prior.propose([state], 32, np.random.default_rng(0))
        prior = np.zeros(len(state.options))
        prior[proposal.indices] = proposal.weights
        return Explanation({"prior": prior}, prior)


# ---- writing ----------------------------------------------------------------------------------------------

INSTRUCTIONS: Final = (
    "You act in an environment that answers in text. Reply with your next action alone, exactly in the form "
    "that the environment asks for, without an explanation."
)
TOKENS: Final = 256
"""Default maximum tokens of an action of a model that does not think (ours)."""
GAP: Final = "[...]"
"""Stands in an earlier observation for what the present one repeats."""
REPEATED: Final = 200
"""Characters from which a common beginning of two observations, such as the rules, is shown once (ours)."""
_MARK: Final = re.compile(r"\A(?:>|\**action\**\s*:\**)[ \t]*", re.IGNORECASE)


class Speaker:
    """Writes the next action of an episode, where any text is an action.

    A chat model gets the episode as a conversation: observations are the user's turns, actions are its own. A
    model that continues text gets a transcript in which an action follows ``>``, and its line is the action.

    Args:
        lm: The model.
        config: How it is asked.
    """

    def __init__(self, lm: LanguageModel, config: AskConfig) -> None:
        self.lm = lm
        self.asking = Asking(lm, ask_config(config), tokens=TOKENS, role="actor")

    def write(self, states: Sequence[State], turns: Sequence[Sequence[Turn]], first: int) -> list[str]:
        """Write an action for each state, after its earlier turns.

        Args:
            states: The states, in which any text is an action.
            turns: The earlier turns of each episode.
            first: Number of the sample; equal prompts get this number and the following ones.
        """
        prompts = [self.prompt(state, past) for state, past in zip(states, turns, strict=True)]
        seen: Counter[Any] = Counter()
        rounds: list[list[int]] = []  # places of the prompts by the number of equal ones before them
        for place, prompt in enumerate(prompts):
            if seen[prompt] == len(rounds):
                rounds.append([])
            rounds[seen[prompt]].append(place)
            seen[prompt] += 1
        answers = [""] * len(prompts)
        for number, places in enumerate(rounds):
            asked = [prompts[place] for place in places]
            written = self.asking.generate(asked, 1, first + number)
            for place, (answer,) in zip(places, written, strict=True):
                answers[place] = answer
        actions = [action_in(answer) for answer in answers]
        self.asking.hear(answers, [action or None for action in actions])
        return actions

    def prompt(self, state: State, turns: Sequence[Turn]) -> Prompt:
        """Return the prompt for an action."""
        past = without_repeats(turns, state.observation)
        if self.asking.chats:
            task = f"\n\nYour task is to: {state.aim}" if state.aim else ""
            messages = [Message("system", INSTRUCTIONS + task)]
            for observation, action in past:
                messages += [Message("user", observation or GAP), Message("assistant", action or GAP)]
            default: Prompt = (*messages, Message("user", state.observation or GAP))
        else:
            task = f"Your task is to: {state.aim}\n" if state.aim else ""
            lines = "".join(f"{observation}\n> {action}\n" for observation, action in past)
            default = f"{task}{lines}{state.observation}\n>"
        history = "\n".join(f"{observation}\n> {action}" for observation, action in past)
        return self.asking.prompt(default, **{**about(state), "history": history})


def action_in(answer: str) -> str:
    """Return the action in an answer: without thoughts, a mark before it, a fence or quotes around it."""
    text = _MARK.sub("", spoken(answer).strip()).strip()
    fenced = re.fullmatch(r"```[\w+-]*\n(.*?)\n?```", text, re.DOTALL)
    if fenced:
        return fenced[1].strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" and text[0] not in text[1:-1]
    return text[1:-1].strip() if quoted else text


def without_repeats(turns: Sequence[Turn], observation: str) -> list[Turn]:
    """Return earlier turns without what the present observation repeats.

    Some environments show the whole episode in each observation, others the rules before each news.
    """
    kept = []
    for seen, action in turns:
        if observation.startswith(seen) and action.strip() and action.strip() in observation[len(seen) :]:
            continue  # the observation is a transcript that holds this turn
        same = _common(seen, observation)
        kept.append((f"{GAP}\n{seen[same:].lstrip()}".rstrip() if same >= REPEATED else seen, action))
    return kept


def _common(one: str, other: str) -> int:
    """Return the length of the whole lines with which two texts begin alike."""
    length = 0
    for line, twin in zip(one.splitlines(keepends=True), other.splitlines(keepends=True), strict=False):
        if line.rstrip("\n") != twin.rstrip("\n"):
            break
        length += len(line)
    return length


METHOD = Method(
    "zero-shot",
    ZeroShot,
    "act by the language model only, without learning",
    "Yan et al., Efficient Reinforcement Learning with Large Language Model Priors, ICLR 2025",
    leaf="LLM4RL / policy",
    acts="any",
    models={"lm": PROPOSES},
    lm="minilm",
    roles=("action prior", "policy"),
    data="none",
    changeable=("prior", "turns"),
)
