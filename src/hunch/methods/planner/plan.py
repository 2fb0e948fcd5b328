"""Settings of planners over skills, and the plan of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hunch.core import Player, State
from hunch.ranges import PositiveInt
from hunch.roles.planner.skills import Skill


@dataclass(frozen=True, kw_only=True)
class PlannerConfig:
    """Settings of every planner over skills."""

    skills: tuple[str, ...] = ()
    """Folders of runs whose agents are the skills. Default: every admissible action is a skill."""
    stop: str = "done"
    """Action that ends the episode. It counts as a skill if it is admissible."""
    longest: PositiveInt = 20
    """Maximum skills per episode; then the planner must stop (our choice; released notebook: 5)."""


@dataclass
class Plan:
    """The plan of a stream, with what happened so far.

    Attributes:
        task: The task as the planner knows it, possibly changed by a person.
        feedback: Feedback before each skill; the last entry is the newest feedback.
        names: Names of the skills so far.
        worked: Whether each finished skill worked.
        first: Values of the skills in the first state, if they are computed once.
        skill: The running skill; None between skills.
        player: The player that executes the skill.
        steps: Steps that the skill has taken.
        ahead: The remaining skills of a complete plan; None without one.
        problem: Why planning failed; empty if it did not.
        thought: The explanation of the task that comes before the plan; empty without one.
        explained: The task that it explains.
    """

    task: str = ""
    feedback: list[str] = field(default_factory=lambda: [""])
    names: list[str] = field(default_factory=list)
    worked: list[bool] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)
    skill: Skill | None = None
    player: Player | None = None
    steps: int = 0
    ahead: list[str] = field(default_factory=list)
    problem: str = ""
    thought: str = ""
    explained: str = ""

    def state(self, stream: int, names: Sequence[str], examples: Any) -> State:
        """Return the planner's state: the task, the transcript as history, and skills as actions."""
        history = tuple(zip(self.feedback, self.names, strict=False))
        task = f"{self.task}\nExplanation: {self.thought}" if self.thought else self.task
        return State(self.feedback[-1], task, tuple(names), history, raw=examples, stream=stream)

    def saved(self) -> dict[str, Any]:
        """Return the plan as plain values, with the state of its player if it has one."""
        return {
            "task": self.task,
            "told": list(self.feedback),  # the name in checkpoints of before
            "names": list(self.names),
            "worked": list(self.worked),
            "first": list(self.first.items()),
            "steps": self.steps,
            "ahead": list(self.ahead),
            "problem": self.problem,
            "thought": self.thought,
            "explained": self.explained,
            "skill": self.skill.name if self.skill else None,
            "player": self.player.state_dict() if self.player else {},
        }
