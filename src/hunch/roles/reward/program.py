"""A program as a reward source: it runs in the sandbox and returns the reward of a step.

The program may be one that WorldCoder wrote, or your own. Eureka's reward programs, for many worlds at once,
belong to design problems (:mod:`hunch.envs.design.reward`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

from hunch.core import EvidenceLevel, Transition, UsageError, World
from hunch.envs.design.code import flaw
from hunch.envs.design.program_model import Patient
from hunch.envs.design.running import box
from hunch.numbers import number
from hunch.rl.world_model import frozen
from hunch.roles.reward.rewarded import RewardSource
from hunch.sandbox import ProgramError

PARAMETERS = ("state", "action", "next_state")


class CodedReward(RewardSource):
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

    saved: ClassVar[tuple[str, ...]] = ("asked", "failed")

    def __init__(self, program: str, evidence: EvidenceLevel | None = None) -> None:
        self.program, self.writer = program, evidence
        if wrong := flaw(program, "reward", PARAMETERS):
            raise UsageError(f"This program is no reward: {wrong}")
        try:
            self.called = Patient(box().load(program, "reward"))
        except ProgramError as error:
            raise UsageError(f"This reward cannot be run: {error}.") from error

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the program's writer."""
        return self.writer

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
        found = [_reward(answer) for answer in self.called.map(calls)]
        self.asked += len(found)
        self.failed += sum(value is None for value in found)
        return [value or 0.0 for value in found]

    def learn(self) -> dict[str, float]:
        """Return the share of steps since the last call on which the program failed."""
        told = {"reward_failed": self.failed / self.asked} if self.asked else {}
        self.asked = self.failed = 0
        return told


def _reward(answer: Any) -> float | None:
    return number(answer[0] if isinstance(answer, tuple | list) and len(answer) == 2 else answer)
