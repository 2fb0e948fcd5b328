"""Inner Monologue: SayCan with feedback, given which the planner continues.

    transcript = skill 1, feedback, skill 2, feedback, ...
    the next skill is chosen given the whole transcript, so it can be the same skill, another one, or stop

The feedback: whether a skill worked, what is visible (passive scene description), answers to the planner's
questions (active scene description: the planner asks where a thing is, and a person answers), and changes of
the instruction.
Source: Huang et al., "Inner Monologue: Embodied Reasoning through Planning with Language Models", CoRL 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hunch.core import State
from hunch.lm.base import LanguageModel
from hunch.methods.method import Method
from hunch.methods.planner.plan import Plan
from hunch.methods.planner.saycan import SCORED, SayCan, SayCanConfig
from hunch.ranges import LATER, Share
from hunch.roles.planner.skills import Channel, Detector, Skill, feedback
from hunch.roles.prior.base import ActionPrior


@dataclass(frozen=True, kw_only=True)
class InnerMonologueConfig(SayCanConfig):
    """Settings of Inner Monologue."""

    feedback: tuple[Channel, ...] = ("success", "scene")
    """Feedback channels: success, scene (what is visible), question (a person answers), person (new task)."""
    false_positives: Share = 0.0
    """Share of failures (0 to 1) that the feedback reports as successes."""
    false_negatives: Share = 0.0
    """Share of successes (0 to 1) that the feedback reports as failures."""
    examples_report: bool = field(default=False, metadata=LATER)
    """With --examples and the channel success: the examples of plans tell after each skill whether it worked,
    and in every second one a skill fails at first and is done again (ours). Off, a model that writes meets
    reports for the first time in its own transcript."""


class InnerMonologue(SayCan):
    """SayCan with feedback; arguments as for :class:`~hunch.methods.planner.saycan.SayCan`."""

    config_class: ClassVar[type[Any]] = InnerMonologueConfig

    def __init__(
        self,
        prior: ActionPrior,
        skills: Sequence[Skill] = (),
        config: Any = None,
        explainer: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        super().__init__(prior, skills, config, explainer, **options)
        self.channels = self.config.feedback
        self.examples_report = self.config.examples_report and "success" in self.channels
        self.detector = Detector(
            false_positives=self.config.false_positives, false_negatives=self.config.false_negatives
        )

    def tell(self, plan: Plan, state: State, event: str, worked: bool) -> str:
        """Return the feedback of the open channels on a skill that has ended."""
        said = self.detector(worked, self.rng_of(state.stream, 2))
        return feedback(self.channels, said, state, plan.names[-1], event)


METHOD = Method(
    "inner-monologue",
    InnerMonologue,
    "SayCan with feedback: whether skills worked, and what is visible",
    "Huang et al., Inner Monologue: Embodied Reasoning through Planning with Language Models, CoRL 2022",
    **SCORED,
    changeable=(
        "score",
        "affordance",
        "pick",
        "blank",
        "uninstructed",
        "prior",
        "feedback",
        "examples_report",
    ),
)
