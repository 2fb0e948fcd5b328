"""Proofs as Gymnasium environments: tactic by tactic, or a whole proof at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.proofs import kernel
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import Goal, World, read
from hunch.envs.proofs.statements import Statements
from hunch.envs.proofs.tactics import named, shown, tactics
from hunch.ranges import NonNegativeInt, PositiveInt
from hunch_studies.worlds.proofs.decide import witness
from hunch_studies.worlds.proofs.theorems import Pool, pool

MANUAL: Final = "A proof is an expression of these rules:\n" + (kernel.__doc__ or "").partition(":\n\n")[2]


class Proof(TextEnv):
    """Prove theorems of intuitionistic propositional logic.

    The observation is the first open goal; an action is a tactic, at reward -1. The episode is a success when
    no goal is open. Where no tactic is left, it ends, at the price of all remaining steps. Theorems are drawn
    from a pool, or chosen by ``reset(options={"theorem": i})``.

    With ``whole`` the action is a whole proof as text, which :mod:`hunch.envs.proofs.kernel` judges: reward 1
    if it proves the statement, 0 if not. The last observation is the proof as a tree, or why it is none.
    Episode number k has theorem number k of the pool, from the beginning again after the last.

    Args:
        pool: easy (3 to 5 hypotheses), hard (5 to 8), mixed (a third easy), large (8 to 12) or textbook.
        theorems: Number of theorems in the pool.
        pool_seed: Seed of the pool.
        held_out: Take theorems of the half that no pool for training has.
        statement: A theorem to prove instead of a pool, such as ``p -> q, ~q |- ~p``.
        whole: An action is a whole proof.
        english: State the theorems in English; only with ``whole``. The kernel judges what is meant.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if the statement cannot be parsed, has more than eight atoms, or is no theorem.
    """

    offers = ("events", "raw")
    forms: ClassVar[Mapping[str, str]] = {"text": "whole true", "listed": "whole false"}

    def __init__(
        self,
        *,
        pool: Pool = "easy",
        theorems: PositiveInt = 100,
        pool_seed: NonNegativeInt = 0,
        held_out: bool = False,
        statement: str = "",
        whole: bool = False,
        english: bool = False,
        max_steps: PositiveInt = 40,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(1 if whole else max_steps, render_mode)
        if english and not whole:
            raise UsageError("Statements are in English only with whole proofs: add --env.whole true.")
        self.whole, self.english = whole, english
        self.theorems = (_theorem(statement),) if statement else _pool(pool, theorems, pool_seed, held_out)
        if whole:
            self.offers, self.manual = ("free_text", "events"), MANUAL  # type: ignore[misc, assignment]
            self.problem = Statements(tuple(map(self._stated, self.theorems)))
        self.goal, self.goals = self.theorems[0], self.theorems[:1]

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if unknown := set(options) - {"theorem"}:
            raise UsageError(f"Proof has no reset option {unknown.pop()!r}; there is: theorem.")
        n = len(self.theorems)
        number = options["theorem"] if options else self._next(n)
        if number not in range(n):
            raise UsageError(f"There is no theorem {number!r}: there are theorems 0 to {n - 1}.")
        self.goal = self.theorems[number]
        self.goals = (self.goal,)
        self.task = f"Prove: {self._stated(self.goal)}"
        return Outcome(self._stated(self.goal), None) if self.whole else self._outcome()

    def _next(self, n: int) -> int:
        return self.episode % n if self.whole else int(self.task_random.integers(n))

    def _stated(self, goal: Goal) -> str:
        return english(goal) if self.english else str(goal)

    def _move(self, action: str) -> Outcome:
        if self.whole:
            return self._judged(action)
        goal = self.goals[0]
        left = next(subgoals for tactic, subgoals in tactics(goal) if named(goal, tactic) == action)
        self.goals = (*(subgoal for subgoal in left if not subgoal.closed), *self.goals[1:])
        return self._outcome(-1.0)

    def _judged(self, action: str) -> Outcome:
        try:
            kernel.check(self.goal, action)
        except kernel.ProofError as error:
            return Outcome(str(error), None, 0.0, True, event=str(error))
        told = f"Proved:\n{kernel.outline(action)}"
        return Outcome(told, None, 1.0, True, True, event=told)

    def _outcome(self, reward: float = 0.0) -> Outcome:
        if not self.goals:
            return Outcome("No goal is open.", (), reward, True, True, event="The theorem is proved.")
        goal = self.goals[0]
        others = f"\nGoals after this one: {len(self.goals) - 1}."
        actions = tuple(named(goal, tactic) for tactic, _ in tactics(goal))
        if not actions:
            left = float(self.max_steps - self._steps - 1)
            return Outcome(shown(goal) + others, (), reward - left, True, event="No tactic is left.")
        return Outcome(shown(goal) + others, actions, reward)

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy nothing: a step only replaces attributes."""

    def _raw(self) -> tuple[str, ...] | None:
        return None if self.whole else tuple(map(str, self.goals))

    def _place(self, raw: Any) -> Outcome:
        if self.whole:
            raise UsageError("A whole proof is one step: there is no state to continue from.")
        self.goals = tuple(map(read, raw))
        return self._outcome()


def _pool(kind: Pool, n: int, seed: int, held_out: bool) -> tuple[Goal, ...]:
    return pool(kind, n, seed, held_out=held_out)


def _theorem(text: str) -> Goal:
    goal = read(text)
    if goal.closed:
        raise UsageError(
            f"There is nothing to prove in {text!r}: the conclusion is a hypothesis, or false is."
        )
    if (world := witness(goal)) is not None:
        raise UsageError(f"{text!r} cannot be proved: {refutation(world)}.")
    return goal


def refutation(world: World) -> str:
    """Say that a model refutes a statement."""
    if world.above:
        return f"it is no theorem: it fails in the Kripke model {world}"
    return f"it is no theorem: it fails where {world} is true and all else false"
