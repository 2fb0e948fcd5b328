"""Inner Monologue: SayCan with feedback, given which the planner continues.

    transcript = skill 1, feedback, skill 2, feedback, ...
    the next skill is chosen given the whole transcript, so it can be the same skill, another one, or stop

The feedback: whether a skill worked, what is visible, answers of a person, and changes of the instruction.
Source: Huang et al., "Inner Monologue: Embodied Reasoning through Planning with Language Models", CoRL 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hunch.methods.method import Method
from hunch.methods.planner.agent import PLANNER, Planner
from hunch.methods.planner.plan import PlannerConfig
from hunch.roles.planner.skills import Channel


@dataclass(frozen=True, kw_only=True)
class InnerMonologueConfig(PlannerConfig):
    """Settings of Inner Monologue."""

    feedback: tuple[Channel, ...] = ("success", "scene")
    """Feedback channels: success, scene (what is visible), question (a person answers), person (new task)."""


class InnerMonologue(Planner):
    """The planner with feedback; arguments as for :class:`~hunch.methods.planner.agent.Planner`."""

    config_class: ClassVar[type[Any]] = InnerMonologueConfig


METHOD = Method(
    "inner-monologue",
    InnerMonologue,
    "SayCan with feedback: whether skills worked, and what is visible",
    "Huang et al., Inner Monologue: Embodied Reasoning through Planning with Language Models, CoRL 2022",
    **PLANNER,
    changeable=("score", "affordance", "pick", "prior", "feedback"),
)
