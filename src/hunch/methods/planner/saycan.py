"""SayCan: multiplies a skill's usefulness, from a language model, by its probability to work.

    score(skill) = p_say(skill | instruction, skills so far) x p_can(skill | state)

The planner gets no feedback on a skill; only the affordances see the state. Source: Ahn et al., "Do As I
Can, Not As I Say: Grounding Language in Robotic Affordances", CoRL 2022, and the released tabletop notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hunch.methods.method import Method
from hunch.methods.planner.agent import PLANNER, Planner


class SayCan(Planner):
    """The planner without feedback; arguments as for :class:`~hunch.methods.planner.agent.Planner`."""

    fixed: ClassVar[Mapping[str, Any]] = {
        "feedback": (),
        "false_positives": 0.0,
        "false_negatives": 0.0,
    }


METHOD = Method(
    "saycan",
    SayCan,
    "choose a skill by its usefulness, from a language model, times its probability of success",
    "Ahn et al., Do As I Can, Not As I Say: Grounding Language in Robotic Affordances, CoRL 2022",
    **PLANNER,
    changeable=("score", "affordance", "pick", "prior"),
)
