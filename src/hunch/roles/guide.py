"""Guides of a search for proofs: priors over the tactics of a goal, and the value of the goal.

A guide is an :class:`~hunch.rl.evaluator.Evaluator` of goals: the uniform one, a rule, the small network of
:mod:`hunch.roles.guide_network`, a language model that scores the names of tactics, or a decision model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hunch.core import FloatArray
from hunch.envs.proofs.logic import Goal
from hunch.envs.proofs.tactics import SAFE, named, shown, tactics
from hunch.lm.base import LanguageModel
from hunch.lm.decision import DecisionQuestion
from hunch.lm.scoring.choose import decide
from hunch.numbers import softmax
from hunch.rl.evaluator import Evaluator, Uniform

VALUE: Final = 0.5
"""The value of every goal under guides that do not evaluate goals."""


class Rule:
    """A rule that prefers safe tactics, and the use of a hypothesis whose left side is known."""

    def evaluate(self, states: Sequence[Goal]) -> tuple[list[FloatArray], list[float]]:
        """Return priors in which preferred tactics have 100 times the weight, and the constant value."""
        return [self._priors(goal) for goal in states], [VALUE] * len(states)

    def _priors(self, goal: Goal) -> FloatArray:
        safe = [tactic.name in SAFE or (tactic.name == "use" and s[0].closed) for tactic, s in tactics(goal)]
        weights = np.where(safe, 100.0, 1.0)
        return np.asarray(weights / max(1.0, weights.sum()))


UNTRAINED: Final[Mapping[str, Evaluator]] = {
    "rule": Rule(),
    "uniform": Uniform(tactics, VALUE),
    "breadth": Uniform(tactics, VALUE),
}
"""The guides without a model, by the name of the option; ``breadth`` also changes the order of expansion."""


class PolicyOnly:
    """The priors of a guide with the constant value: the control of the guide's value."""

    def __init__(self, guide: Evaluator) -> None:
        self.guide = guide

    def evaluate(self, states: Sequence[Goal]) -> tuple[Sequence[FloatArray], list[float]]:
        """Return the guide's priors and the constant value."""
        return self.guide.evaluate(states)[0], [VALUE] * len(states)


class LanguageGuide:
    """A language model that scores the names of tactics as continuations of the goal.

    Args:
        lm: A model that scores.
        blank: Leave out the goal, as a control of what the model makes of it.
    """

    def __init__(self, lm: LanguageModel, *, blank: bool = False) -> None:
        self.lm = lm
        self.blank = blank

    def evaluate(self, states: Sequence[Goal]) -> tuple[list[FloatArray], list[float]]:
        """Return the softmax of each tactic's log-probability per token, and the constant value."""
        names = [[named(goal, tactic) for tactic, _ in tactics(goal)] for goal in states]
        asked = [i for i, tactic_names in enumerate(names) if tactic_names]
        prompts = [prompt(None if self.blank else states[i], names[i]) for i in asked]
        scores = self.lm.score(prompts, [names[i] for i in asked])
        priors: list[FloatArray] = [np.zeros(0) for _ in states]
        for i, score in zip(asked, scores, strict=True):
            priors[i] = softmax(score.normalised("token"))
        return priors, [VALUE] * len(states)


class DecisionGuide:
    """A decision model that chooses among the tactics of a goal, and says whether the goal can be proved.

    Both questions about a goal are one request.
    """

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = lm

    def evaluate(self, states: Sequence[Goal]) -> tuple[list[FloatArray], list[float]]:
        """Return the probability of each tactic, and that of yes as the value."""
        asked = [i for i, goal in enumerate(states) if tactics(goal)]
        questions = []
        for i in asked:
            names = tuple(named(states[i], tactic) for tactic, _ in tactics(states[i]))
            questions.append([DecisionQuestion("choice", TACTIC, names), PROVABLE])
        answered = decide(self.lm, [situation(states[i]) for i in asked], questions)

        priors: list[FloatArray] = [np.zeros(0) for _ in states]
        values = [VALUE] * len(states)
        for i, (tactic, provable) in zip(asked, answered, strict=True):
            priors[i] = tactic.probabilities
            values[i] = float(provable.probabilities[0])
        return priors, values


TACTIC: Final = "Which tactic is best?"
PROVABLE: Final = DecisionQuestion("yes_no", "Can this goal be proved?")


def situation(goal: Goal | None) -> str:
    """Return what a model reads of a goal; without one, of what kind it is."""
    told = "" if goal is None else f":\n{shown(goal)}"
    return f"A goal of a proof in intuitionistic logic{told}"


def prompt(goal: Goal | None, names: Sequence[str]) -> str:
    """Return the prompt that a language model continues with a tactic."""
    listed = "\n".join(f"- {name}" for name in names)
    return f"{situation(goal)}\n\nTactics:\n{listed}\n\nBest tactic: "
