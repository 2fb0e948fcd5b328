"""A program as a source of rewards: what a model wrote says what a step is worth, in the sandbox.

Such as the rewards that WorldCoder writes, or one of your own. Reward programs for many worlds at once, which
Eureka writes, are design problems (:mod:`hunch.envs.design.reward`).
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
    """Rewards a step by a program ``reward(state, action, next_state)`` of raw states.

    The program returns a number, or (number, whether the episode ends), of which the number counts. All steps
    of a batch are one call. Where it fails, or returns something else, a step is worth 0 and counted.

    Args:
        program: Its text.
        evidence: Of whoever wrote it; None where no model did.

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
        """Which program."""
        return {"program": hashlib.sha256(self.program.encode()).hexdigest()[:16]}

    def begin(self, world: World, seed: int) -> None:
        """Count anew."""
        self.asked = self.failed = 0

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """What the program says of each step; 0 where it says nothing.

        Raises:
            UsageError: if a state has no numbers to show.
        """
        calls = [(frozen(t.state.raw), t.action, frozen(t.next_state.raw)) for t in transitions]
        found = [_number(answer) for answer in self.called.map(calls)]
        self.asked += len(found)
        self.failed += sum(value is None for value in found)
        return [value or 0.0 for value in found]

    def metrics(self) -> dict[str, float]:
        """The share of steps on which the program failed, since the last call."""
        told = {"reward_failed": self.failed / self.asked} if self.asked else {}
        self.asked = self.failed = 0
        return told

    def state_dict(self) -> dict[str, Any]:
        """What was counted since metrics were told."""
        return {"counted": (self.asked, self.failed)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        self.asked, self.failed = state["counted"]


def _number(answer: Any) -> float | None:
    value = answer[0] if isinstance(answer, tuple | list) and len(answer) == 2 else answer
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if fits else None
