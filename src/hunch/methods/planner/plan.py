"""Settings of planners over skills, and the plan of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hunch.core import Player, State
from hunch.ranges import PositiveInt, Share
from hunch.roles.planner.skills import Channel, Skill
from hunch.roles.prior.kinds import PriorConfig


@dataclass(frozen=True, kw_only=True)
class PlannerConfig:
    """Settings of planners over skills."""

    skills: tuple[str, ...] = ()
    """Folders of runs whose agents are the skills. Default: every admissible action is a skill."""
    score: Literal["product", "say", "can"] = "product"
    """Score of a skill: say x can (paper), the planner's say only, or the skills' can only."""
    affordance: Literal["each", "once"] = "each"
    """Compute what skills can do in each state (paper), or once per episode (released notebook)."""
    pick: Literal["best", "draw"] = "best"
    """Take the skill with the best score (paper), or draw in proportion to the scores."""
    stop: str = "done"
    """Action that ends the episode; a skill of its own if it is admissible."""
    stop_can: Share = 0.2
    """Value of can for the stop skill (released notebook)."""
    longest: PositiveInt = 20
    """Skills per episode, after which the planner must stop (our choice; released notebook: 5)."""
    feedback: tuple[Channel, ...] = ()
    """Feedback channels: success, scene, question (answers of a person), person (changes of the task)."""
    false_positives: Share = 0.0
    """Share of failures that are reported as successes."""
    false_negatives: Share = 0.0
    """Share of successes that are reported as failures."""
    samples: PositiveInt = 5
    """Answers whose shares estimate the score 'say', for a model that can only generate (our choice)."""
    prior: PriorConfig = field(default_factory=lambda: PriorConfig(normalise="sum"))
    """How the language model becomes a planner."""


@dataclass
class Plan:
    """The plan of a stream.

    Attributes:
        task: The task as the planner knows it.
        told: Feedback before each skill, and now.
        names: Names of the skills so far.
        worked: Whether each finished skill worked.
        first: Values of can in the first state, if they are computed once.
        skill: The running skill.
        player: The player that executes it.
        steps: Steps that it has taken.
        ahead: The remaining skills of a complete plan, if there is one.
        problem: Why there was no plan, if the planner says so.
    """

    task: str = ""
    told: list[str] = field(default_factory=lambda: [""])
    names: list[str] = field(default_factory=list)
    worked: list[bool] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)
    skill: Skill | None = None
    player: Player | None = None
    steps: int = 0
    ahead: list[str] = field(default_factory=list)
    problem: str = ""

    def state(self, stream: int, names: Sequence[str], examples: Any) -> State:
        """Return the planner's state: the task, the transcript as history, and skills as actions."""
        history = tuple(zip(self.told, self.names, strict=False))
        return State(self.told[-1], self.task, tuple(names), history, raw=examples, stream=stream)

    def saved(self) -> dict[str, Any]:
        """Return the plan as plain values, with the state of its player if it has one."""
        return {
            "task": self.task,
            "told": list(self.told),
            "names": list(self.names),
            "worked": list(self.worked),
            "first": list(self.first.items()),
            "steps": self.steps,
            "ahead": list(self.ahead),
            "problem": self.problem,
            "skill": self.skill.name if self.skill else None,
            "player": getattr(self.player, "state_dict", dict)(),
        }
