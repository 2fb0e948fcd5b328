"""Planner, actor and reporter: the reporter learns what is worth reporting.

    planner     frozen; names the next skill, given the task and the reports so far
    actor       trained beforehand; executes the skill
    reporter    sends one of two messages about what happened; trained on the episode's reward

Dasgupta et al., "Collaborating with language models for embodied reasoning", 2023, with the variant in which
the reporter is trained with the planner in the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hunch.core import State, Transition, World
from hunch.methods.planner.agent import Planner, build
from hunch.methods.planner.plan import Plan, PlannerConfig
from hunch.ranges import PositiveFloat, Share
from hunch.roles.planner import Skill
from hunch.roles.prior import ActionPrior
from hunch.roles.reporter import Reporter, Scripted, WordReporter

__all__ = ["PlannerActorReporter", "PlannerActorReporterConfig", "build"]


@dataclass(frozen=True, kw_only=True)
class PlannerActorReporterConfig(PlannerConfig):
    """Planner, actor, reporter."""

    score: Literal["product", "say", "can"] = "say"
    """Score of a skill; the paper's planner does not know what skills can do."""
    reporter: Literal["trained", "untrained", "scripted"] = "trained"
    """Trained on the reward (paper's variant), random, or a rule (paper)."""
    messages: tuple[str, str] = ("It is good.", "It is bad.")
    """The two messages of the reporter (our choice)."""
    truth: str = "warm"
    """scripted: word in an event for which the first message is true (our choice)."""
    lies: Share = 0.0
    """scripted: share of wrong reports (our choice)."""
    learning_rate: PositiveFloat = 0.5
    """trained: learning rate of REINFORCE (our choice)."""


class PlannerActorReporter(Planner):
    """The agent; arguments as for :class:`~hunch.methods.planner.agent.Planner`."""

    config_class: ClassVar[type[Any]] = PlannerActorReporterConfig

    def __init__(
        self, prior: ActionPrior, skills: Sequence[Skill] = (), config: Any = None, **options: Any
    ) -> None:
        self.learns = True
        super().__init__(prior, skills, config, **options)

    def begin(self, world: World, seed: int) -> None:
        """Forget all plans and what the reporter has learnt."""
        super().begin(world, seed)
        self.trained = WordReporter(self.config.learning_rate)
        self.reports: dict[int, list[tuple[str, bool]]] = {}
        self.returns: dict[int, float] = {}

    @property
    def reporter(self) -> Reporter:
        """Make the reporter; an untrained one never learns."""
        if self.config.reporter == "scripted":
            return Scripted(self.config.truth, self.config.lies)
        return self.trained

    def tell(self, plan: Plan, state: State, event: str, worked: bool) -> str:
        """Return the feedback of the channels, and the report of an event, if there is one."""
        told = super().tell(plan, state, event, worked)
        if not event:
            return told
        p = self.reporter.probability(event)
        first = bool(self._rng(state.stream, 3).random() < p) if self._samples else p >= 0.5
        self.reports.setdefault(state.stream, []).append((event, first))
        message = self.config.messages[0 if first else 1]
        return f"{told}\n{message}".strip()

    @property
    def _samples(self) -> bool:
        """True if messages are drawn; a player of a trained reporter sends the more likely one."""
        return self.learns or self.config.reporter != "trained"

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Inform the skills and the planner; the reporter learns from the return of a finished episode."""
        transitions = sorted(transitions, key=lambda t: t.stream)
        super().observe(transitions)
        for t in transitions:
            self.returns[t.stream] = self.returns.get(t.stream, 0.0) + t.reward
            if t.done:
                gained, reports = self.returns.pop(t.stream), self.reports.pop(t.stream, [])
                if self.learns and self.config.reporter == "trained":
                    self.trained.learn(reports, gained)

    def player(self, seed: int) -> PlannerActorReporter:
        """Return a player with the same planner, skills and reporter, which no longer learns."""
        twin = super().player(seed)
        assert isinstance(twin, PlannerActorReporter)
        twin.learns = False
        twin.trained.load_state_dict(self.trained.state_dict())
        return twin

    def state_dict(self) -> dict[str, Any]:
        """Return the planner's state, the reporter, and its messages in unfinished episodes."""
        return {
            **super().state_dict(),
            "reporter": self.trained.state_dict(),
            "reports": [[s, [list(report) for report in own]] for s, own in self.reports.items()],
            "returns": list(self.returns.items()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.trained.load_state_dict(state["reporter"])
        self.reports = {s: [(event, said) for event, said in own] for s, own in state["reports"]}
        self.returns = dict(state["returns"])
