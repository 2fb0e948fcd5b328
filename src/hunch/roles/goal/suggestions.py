"""Goals that a language model suggests: which of the admissible actions are sensible in a state.

Source: Du et al., "Guiding Pretraining in Reinforcement Learning with Large Language Models", ICML 2023
(:class:`hunch.methods.goal.ellm.ELLM`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from hunch.core import State, UsageError, World
from hunch.lm import DecisionQuestion, choose, decide
from hunch.lm.answers.reading import read_items
from hunch.lm.asking import AskConfig, Asking, about
from hunch.lm.base import LanguageModel
from hunch.lm.scoring.choose import Choice, way_of_choosing
from hunch.ranges import LATER, NonNegativeFloat, PositiveInt, Share
from hunch.roles.encoder.features import TextTable
from hunch.roles.goal.goaled import GoalSource

GoalWay = Literal["auto", "decision", "likelihood", "label", "structured", "text"]


@dataclass(frozen=True, kw_only=True)
class SuggestionConfig(AskConfig):
    """Settings of the requests for goals."""

    how: Literal["auto", "list", "ask", "alike"] = "auto"
    """Request for goals. list: the model writes goals, one per line (paper: open). ask: the model says yes
    or no to each candidate (paper: closed); a decision model to all in one request. alike: candidates most
    similar to the observation (ours; for encoders). auto: list if the model generates, else alike if it
    embeds, else ask."""
    way: Literal["auto", "decision", "likelihood", "label", "structured", "text"] = field(
        default="auto", metadata=LATER
    )
    """With ask: way of asking for yes or no; auto takes the first of decision, likelihood, label, structured
    and text that the model has."""
    objective: str = field(default="sensible and useful", metadata=LATER)
    """What the goals should be, in the request of list and ask. Empty: the control that asks for any of the
    candidates, without an objective (ours)."""
    goals: PositiveInt = 5
    """Maximum goals per state (our choice)."""
    samples: PositiveInt = 1
    """With list: number of answers that are combined."""
    threshold: Share = 0.5
    """With ask: probability of yes above which a candidate becomes a goal (released code)."""
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
        lm: A model that generates, scores, embeds or decides.
        config: How the model is asked.
        nonsense: Goals to suggest in all states instead, as a control.

    Raises:
        UsageError: if the model does not support the chosen kind of request, or a prompt file has no use.
    """

    wording = "2f027ed1"
    """Version of the words of :meth:`prompt` and of the question for a yes. Change it with them: runs with
    different words are different runs."""

    def __init__(
        self, lm: LanguageModel, config: SuggestionConfig | None = None, nonsense: Sequence[str] = ()
    ) -> None:
        self.config = config or SuggestionConfig()
        self.lm = lm
        self.nonsense = tuple(nonsense)
        self.models = {"lm": lm}
        kinds = {
            "list": {"generate"},
            "alike": {"embed"},
            "ask": {"score", "label", "decide", "generate"},
        }
        able = [kind for kind, verbs in kinds.items() if verbs & lm.verbs]
        self.how = self.config.how if self.config.how != "auto" else (able or ["list"])[0]
        if self.how not in able:
            needs = " or ".join(sorted(kinds[self.how]))
            raise UsageError(f"Goals by {self.how!r} need a model that can {needs}; {lm.name} cannot.")
        if self.config.prompt and self.how != "list":
            raise UsageError(f"Goals by {self.how!r} read no prompt file: leave it out, or set how to list.")
        if self.how == "ask":
            way_of_choosing(lm, self.config.way, "goal")  # refuses a way that the model lacks
        self._asking = Asking(lm, self.config, tokens=64, stop=(), role="goal")
        self.table = TextTable(lm) if self.how == "alike" else None

    @property
    def settings(self) -> dict[str, Any]:
        """The config, the model, and the version of the prompts."""
        return {
            **asdict(self.config),
            "suggests": self.lm.name,
            "nonsense": list(self.nonsense),
            "wording": self.wording,
        }

    def begin(self, world: World, seed: int) -> None:
        """Forget all suggestions."""
        self.known: dict[Hashable, tuple[str, ...]] = {}
        self.lines = 0
        self.rejected = 0

    def suggest(self, states: Sequence[State]) -> list[tuple[str, ...]]:
        """Return the goals of each state; one model call for all new states."""
        if self.nonsense:
            return [self.nonsense] * len(states)
        keys = [self._read_of(state) for state in states]
        new = {key: state for key, state in zip(keys, states, strict=True) if key not in self.known}
        if new:
            suggest = {"list": self._written, "ask": self._approved, "alike": self._nearest}[self.how]
            goals = suggest(list(new.values()))
            self.known |= {key: tuple(suggested) for key, suggested in zip(new, goals, strict=True)}
        return [self.known[key] for key in keys]

    def _read_of(self, state: State) -> Hashable:
        """Return what goals depend on: states that are equal in it have the same ones."""
        reads_all = self.how == "alike" or (self.how == "list" and self._asking.template is not None)
        # The history is in the text that is embedded, and may be in a prompt from a file, as the task may.
        return state if reads_all else (state.observation, state.options)

    def _written(self, states: Sequence[State]) -> list[list[str]]:
        """Return the goals that a model wrote for each state."""
        prompts = [self._asking.prompt(self.prompt(state), **about(state)) for state in states]
        answers = self._asking.generate(prompts, self.config.samples)
        return [self._read(samples, state.options) for samples, state in zip(answers, states, strict=True)]

    def prompt(self, state: State) -> str:
        """Return the prompt that asks for goals in a state."""
        listed = "\n".join(f"- {option}" for option in state.options)
        objective = self.config.objective
        asked = f"What would be {objective} to do here and now? " if objective else ""
        return (
            f"{state.observation}\n\n{asked}Name up to {self.config.goals} things of this list, one per line."
            f"\n{listed}\nAnswer:"
        )

    def approval(self, option: str) -> str:
        """Return the question whether a candidate should be a goal."""
        objective = self.config.objective
        return f"Is it {objective} to {option} here and now?" if objective else f"{option} here and now?"

    def _read(self, answers: Sequence[str], candidates: Sequence[str]) -> list[str]:
        """Return the goals in the answers; lines may begin with a bullet or a number."""
        goals = list[str]()
        readings: list[list[str] | None] = []  # of each answer; None if it cannot be read
        lines = 0
        for answer in answers:
            items = read_items(answer, candidates)  # each line, with the candidate that it names
            accepted = [candidate or line for line, candidate in items if candidate or self.config.free]
            unreadable = not items and self._asking.chats  # others may fall silent
            readings.append(None if unreadable else accepted)
            goals += accepted
            lines += len(items)
        rejected = lines - len(goals)
        self.lines += lines
        self.rejected += rejected
        self._asking.hear(answers, readings, rejected=rejected)
        return list(dict.fromkeys(goals))[: self.config.goals]

    def _approved(self, states: Sequence[State]) -> list[list[str]]:
        """Return the candidates of each state to which a model says yes, the most likely first."""
        way = way_of_choosing(self.lm, self.config.way, "goal")
        if way == "decision":
            return self._decided(states)
        pairs = [(state, option) for state in states for option in state.options]
        prompts = [f"{s.observation}\n\n{self.approval(option)}\n- Yes\n- No\nAnswer:" for s, option in pairs]
        answers = iter(
            choose(
                self.lm,
                prompts,
                [("Yes", "No")] * len(prompts),
                way=way,
                patience=self.config.patience,
                role="goal",
            )
        )
        return [self._ranked(self._yes(state, [next(answers) for _ in state.options])) for state in states]

    def _decided(self, states: Sequence[State]) -> list[list[str]]:
        """Return the candidates to which a decision model says yes; all of a state are one request."""
        questions = [
            [DecisionQuestion("yes_no", self.approval(option)) for option in state.options]
            for state in states
        ]
        observations = [state.observation for state in states]
        patience = self.config.patience
        answered = decide(self.lm, observations, questions, patience=patience, role="goal")
        return [self._ranked(self._yes(*of_state)) for of_state in zip(states, answered, strict=True)]

    @staticmethod
    def _yes(state: State, answers: Sequence[Choice]) -> dict[str, float]:
        """Return the probability of yes of each candidate; one without an answer is none."""
        return {
            option: float(answer.probabilities[0])
            for option, answer in zip(state.options, answers, strict=True)
            if answer.answered > 0
        }

    def _ranked(self, p_yes: Mapping[str, float]) -> list[str]:
        """Return the candidates above the threshold, the most likely first."""
        ranked = sorted(p_yes, key=lambda option: -p_yes[option])
        approved = [option for option in ranked if p_yes[option] > self.config.threshold]
        return approved[: self.config.goals]

    def _nearest(self, states: Sequence[State]) -> list[list[str]]:
        """Return the candidates of each state whose embeddings are nearest to the observation's."""
        assert self.table is not None
        self.table.add(text for state in states for text in (" ".join(state.lines()), *state.options))
        goals = []
        for state in states:
            texts = [" ".join(state.lines()), *state.options]
            vectors = self.table.encode(texts).astype(np.float64)  # (1 + candidates, dim)
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            cosines = vectors[1:] @ vectors[0]  # (candidates,)
            order = np.argsort(-cosines, kind="stable")
            goals.append([state.options[i] for i in order[: self.config.goals]])
        return goals
