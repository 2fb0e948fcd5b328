"""Goals that a language model suggests in every state.

Source: Du et al., "Guiding Pretraining in Reinforcement Learning with Large Language Models", ICML 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from hunch.core import EvidenceLevel, State, UsageError, World
from hunch.lm import Sampling, choose
from hunch.lm.base import LanguageModel
from hunch.lm.usage import count_fallbacks
from hunch.ranges import NonNegativeFloat, PositiveInt, Share
from hunch.roles.encoder import TextTable
from hunch.roles.goal import GoalSource


@dataclass(frozen=True, kw_only=True)
class SuggestionConfig:
    """How a model is asked for goals."""

    how: Literal["auto", "list", "ask", "alike"] = "auto"
    """list: the model writes goals, one per line (paper: open). ask: it says yes or no to each candidate
    (paper: closed). alike: the candidates with embeddings nearest to the observation (our choice; for
    encoders). auto: list if the model generates, else alike if it embeds, else ask."""
    goals: PositiveInt = 5
    """Maximum goals per state (our choice)."""
    samples: PositiveInt = 1
    """list: number of answers that are combined."""
    threshold: Share = 0.5
    """ask: probability of yes at which a candidate becomes a goal (released code)."""
    temperature: NonNegativeFloat = 0.1
    """list: temperature of the answers (released code)."""
    max_tokens: PositiveInt = 64
    """list: maximum tokens per answer."""
    free: bool = False
    """list: also accept goals that are not candidates."""


class Suggestions(GoalSource):
    """Suggests goals that a model finds sensible in a state; each state is asked about once.

    The candidates are the admissible actions. A written line that is not a candidate is rejected, and counted
    as a fallback of the model. Suggestions are not saved, because the model gives them again.

    Attributes:
        lines: Number of lines read so far.
        rejected: Number of lines that were not candidates.

    Args:
        lm: A model that generates, scores or embeds.
        config: How the model is asked.
        nonsense: Fixed goals to suggest instead in all states: a control.

    Raises:
        UsageError: if the model cannot answer in this way.
    """

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
        self.table = TextTable(lm) if self.how == "alike" else None

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the model."""
        return self.lm.evidence

    @property
    def settings(self) -> dict[str, Any]:
        """The config and the model."""
        return {**asdict(self.config), "suggests": self.lm.name, "nonsense": list(self.nonsense)}

    def begin(self, world: World, seed: int) -> None:
        """Forget all suggestions."""
        self.known: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
        self.lines = self.rejected = 0

    def suggest(self, states: Sequence[State]) -> list[tuple[str, ...]]:
        """Return the goals of each state, with one call for all new states."""
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
        c = self.config
        prompts = [self.prompt(state) for state in new.values()]
        answers = self.lm.generate(prompts, c.samples, Sampling(c.max_tokens, c.temperature, 1.0, ()))
        return [self._read(own, s.options) for own, s in zip(answers, new.values(), strict=True)]

    def prompt(self, state: State) -> str:
        """Return the prompt for goals."""
        listed = "\n".join(f"- {option}" for option in state.options)
        return (
            f"{state.observation}\n\nWhat would be sensible and useful to do here and now? Name up to "
            f"{self.config.goals} things of this list, one a line.\n{listed}\nAnswer:"
        )

    def _read(self, answers: Sequence[str], candidates: Sequence[str]) -> list[str]:
        """Return the goals in the answers; lines may begin with a bullet or a number."""
        lines = [
            line.strip().lstrip("-*0123456789.) ").strip() for text in answers for line in text.splitlines()
        ]
        lines = [line.rstrip(".") for line in lines if line]
        good = [line for line in lines if self.config.free or line in candidates]
        self.lines += len(lines)
        self.rejected += len(lines) - len(good)
        count_fallbacks(self.lm, len(lines) - len(good))
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
