"""Two games of one move with a stated objective: matrix games and the Ultimatum Game.

Source: Kwon et al., "Reward Design with Language Models", ICLR 2023, and its released code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt

Payoffs = tuple[tuple[int, int], ...]
Game = Literal["battle", "prisoners", "stag", "chicken", "any"]
Concept = Literal["welfare", "equality", "rawlsian", "pareto", "any"]
Rule = Literal["percentage", "payoff", "equality"]

GAMES: Final[Mapping[Game, Payoffs]] = {
    "battle": ((2, 1), (0, 0), (0, 0), (1, 2)),
    "prisoners": ((3, 3), (0, 5), (5, 0), (1, 1)),
    "stag": ((2, 2), (-3, 1), (1, -3), (1, 1)),
    "chicken": ((2, 2), (1, 3), (3, 1), (0, 0)),
}
CONCEPTS: Final[Mapping[Concept, str]] = {
    "welfare": "an outcome with the greatest total welfare",
    "equality": "an outcome with equality of rewards",
    "rawlsian": "a Rawlsian fair outcome, in which the worse off has most",
    "pareto": "a Pareto-optimal outcome",
}
JOINT: Final = ("1 and 1", "1 and 2", "2 and 1", "2 and 2")


def good_outcomes(payoffs: Payoffs, concept: Concept) -> list[int]:
    """Return the good outcomes: largest total, equal rewards, largest minimum reward, or Pareto optimal."""
    totals, worst = [sum(pair) for pair in payoffs], [min(pair) for pair in payoffs]
    dominated = [any(o != p and o[0] >= p[0] and o[1] >= p[1] for o in payoffs) for p in payoffs]
    good = {
        "welfare": [total == max(totals) for total in totals],
        "equality": [one == other for one, other in payoffs],
        "rawlsian": [least == max(worst) for least in worst],
        "pareto": [not worse for worse in dominated],
    }
    return [i for i, fits in enumerate(good[concept]) if fits]


ROUNDING: Final = 1e-9
"""Difference of two amounts of money that rounding explains: 0.28 * 10 is above 2.8."""


def wanted(rule: Rule, threshold: float, proposer: float, responder: float) -> str:
    """Return the user's preferred answer to a proposal."""
    total = proposer + responder
    refused = {
        "percentage": responder < threshold * total - ROUNDING,
        "payoff": responder < threshold - ROUNDING,
        "equality": abs(proposer - responder) > 0.005,
    }
    return "reject" if refused[rule] else "accept"


class OneMove(TextEnv):
    """An episode of one move; the reward is 1, and a success, if the move meets the objective."""

    offers = ("events",)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"{type(self).__name__} has no reset option {next(iter(options))!r}.")
        return Outcome(self._deal(), self._choices)

    def _move(self, action: str) -> Outcome:
        good, event = self._outcome(action)
        return Outcome(event, self._choices, float(good), terminated=True, success=good, event=event)

    _choices: tuple[str, ...]

    def _deal(self) -> str:
        """Draw the episode; returns what it begins with."""
        raise NotImplementedError

    def _outcome(self, action: str) -> tuple[bool, str]:
        """Whether an action meets the objective, and its outcome in words."""
        raise NotImplementedError


class MatrixGame(OneMove):
    """Choose an outcome of a two-player game that is good by a concept of fairness.

    Four games (Battle of the Sexes, prisoner's dilemma, stag hunt, chicken) and four concepts; the agent
    chooses for both players. Reward 1 and success if the outcome is among the good ones, which are computed
    from the payoffs.

    Args:
        game: The game; ``any`` draws one per episode.
        concept: The concept of a good outcome; ``any`` draws one per episode.
        max_steps: Step limit of an episode, which always has one step.
        render_mode: ``"ansi"``.
    """

    _choices = JOINT

    def __init__(
        self,
        *,
        game: Game = "any",
        concept: Concept = "any",
        max_steps: PositiveInt = 1,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.games: list[Game] = [game] if game != "any" else list(GAMES)
        self.concepts: list[Concept] = [concept] if concept != "any" else list(CONCEPTS)
        self.payoffs, self.concept = GAMES[self.games[0]], self.concepts[0]

    def oracle(self) -> tuple[str, ...]:
        """Return a good choice, as a solution of one action."""
        return (JOINT[good_outcomes(self.payoffs, self.concept)[0]],)

    def _deal(self) -> str:
        rng = self.task_random
        self.payoffs = GAMES[self.games[int(rng.integers(len(self.games)))]]
        self.concept = self.concepts[int(rng.integers(len(self.concepts)))]
        self.task = f"choose {CONCEPTS[self.concept]}"
        lines = [_told(i, pair) for i, pair in enumerate(self.payoffs)]
        return "\n".join(["A game of two players, P1 and P2, each with actions 1 and 2.", *lines])

    def _outcome(self, action: str) -> tuple[bool, str]:
        i = JOINT.index(action)
        return i in good_outcomes(self.payoffs, self.concept), f"Outcome: {_told(i, self.payoffs[i])}"


def _told(i: int, pair: tuple[int, int]) -> str:
    first, second = JOINT[i].split(" and ")
    return f"P1 takes {first}, P2 takes {second}: P1 gets {pair[0]}, P2 gets {pair[1]}."


class Ultimatum(OneMove):
    """Accept or reject a split of money, as the user would.

    A proposer splits money between itself and the agent. The user rejects a proposal if the agent's part is
    below a share of the money (``percentage``, of $10), below an amount (``payoff``, of $0.10 to $1,000, with
    the larger part for the proposer), or not half (``equality``). Reward 1 and success if the agent does what
    the user would do. Splits are drawn from a pool; as in the released code, an agent is trained and
    evaluated on the same splits.

    Args:
        rule: The rule by which the user rejects proposals.
        threshold: The limit: a share for ``percentage``, dollars for ``payoff``.
        splits: Size of the pool (released code: 50).
        pool_seed: Seed of the pool.
        max_steps: Step limit of an episode, which always has one step.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if the threshold of ``percentage`` is above 1.
    """

    _choices = ("accept", "reject")

    def __init__(
        self,
        *,
        rule: Rule = "percentage",
        threshold: PositiveFloat = 0.3,
        splits: PositiveInt = 50,
        pool_seed: NonNegativeInt = 0,
        max_steps: PositiveInt = 1,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if rule == "percentage" and threshold > 1:
            raise UsageError(f"The threshold of a percentage is a share from 0 to 1, not {threshold:g}.")
        self.rule, self.threshold = rule, threshold
        rng = np.random.default_rng(pool_seed)
        self.pool = [_split(rule, rng) for _ in range(splits)]
        is_in_cents = abs(round(threshold, 2) - threshold) < ROUNDING
        refused = {
            "percentage": f"less than {100 * threshold:g}% of the money",
            "payoff": f"less than ${threshold:.2f}" if is_in_cents else f"less than ${threshold:g}",
            "equality": "not half of the money",
        }
        self.task = f"reject a proposal if what you get is {refused[rule]}, and accept any other"
        self._split = self.pool[0]

    def oracle(self) -> tuple[str, ...]:
        """Return the user's answer, as a solution of one action."""
        return (wanted(self.rule, self.threshold, *self._split),)

    def _deal(self) -> str:
        self._split = self.pool[int(self.np_random.integers(len(self.pool)))]
        proposer, responder = self._split
        return f"The proposal: the proposer keeps ${proposer:.2f} and you get ${responder:.2f}."

    def _outcome(self, action: str) -> tuple[bool, str]:
        return action == wanted(
            self.rule, self.threshold, *self._split
        ), f"Outcome: you {action} the proposal."


def _split(rule: Rule, rng: np.random.Generator) -> tuple[float, float]:
    """Draw a split; half of those that are judged by equality are equal."""
    share = round(float(rng.uniform()), 2)
    if rule == "equality" and rng.random() < 0.5:
        share = 0.5
    total = 10.0 if rule != "payoff" else float(rng.choice([0.1, 1, 10, 100, 1000]))
    kept = max(share, 1 - share) if rule == "payoff" else share
    return round(kept * total, 2), round((1 - kept) * total, 2)
