"""A program as a reward source: it runs in the sandbox and returns the reward of a step.

The program may be one that WorldCoder wrote, or your own. Eureka's reward programs, for many worlds at once,
belong to design problems (:mod:`hunch.envs.design.reward`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import isfinite
from typing import Any

from hunch.core import EvidenceLevel, Transition, UsageError, World
from hunch.envs.design.code import flaw
from hunch.envs.design.program_model import Patient
from hunch.envs.design.running import box
from hunch.rl.world_model import frozen
from hunch.sandbox import ProgramError

PARAMETERS = ("state", "action", "next_state")


class CodedReward:
    """Rewards a step with a program ``reward(state, action, next_state)`` over raw states.

    The program returns a number, or (number, whether the episode ends), of which only the number is used. All
    steps of a batch are one call. If it fails or returns anything else, the reward is 0, and the failure is
    counted.

    Args:
        program: The text of the program.
        evidence: Evidence level of the model that wrote it; None if no model did.

    Raises:
        UsageError: if it cannot be run.
    """

    def __init__(self, program: str, evidence: EvidenceLevel | None = None) -> None:
        self.program, self.evidence = program, evidence
        if wrong := flaw(program, "reward", PARAMETERS):
            raise UsageError(f"This program is no reward: {wrong}")
        try:
            self.called = Patient(box().load(program, "reward"))
        except ProgramError as error:
            raise UsageError(f"This reward cannot be run: {error}.") from error
        self.begin(World(), 0)

    @property
    def settings(self) -> dict[str, Any]:
        """The program."""
        return {"program": hashlib.sha256(self.program.encode()).hexdigest()[:16]}

    def begin(self, world: World, seed: int) -> None:
        """Reset the counts."""
        self.asked = self.failed = 0

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the program's reward of each step; 0 if it fails.

        Raises:
            UsageError: if a state has no ``raw``.
        """
        calls = [(frozen(t.state.raw), t.action, frozen(t.next_state.raw)) for t in transitions]
        found = [_number(answer) for answer in self.called.map(calls)]
        self.asked += len(found)
        self.failed += sum(value is None for value in found)
        return [value or 0.0 for value in found]

    def metrics(self) -> dict[str, float]:
        """Return the share of steps since the last call on which the program failed."""
        told = {"reward_failed": self.failed / self.asked} if self.asked else {}
        self.asked = self.failed = 0
        return told

    def state_dict(self) -> dict[str, Any]:
        """Return the counts since the last call of :meth:`metrics`."""
        return {"counted": (self.asked, self.failed)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.asked, self.failed = state["counted"]


def _number(answer: Any) -> float | None:
    value = answer[0] if isinstance(answer, tuple | list) and len(answer) == 2 else answer
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if fits else None
