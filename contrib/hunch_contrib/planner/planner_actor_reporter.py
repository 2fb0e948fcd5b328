"""Planner, actor and reporter: the reporter learns what is worth reporting.

    planner     frozen; names the next skill, given the task and the reports so far
    actor       trained beforehand; executes the skill
    reporter    sends one of two messages about what happened; trained on the episode's reward

Dasgupta et al., "Collaborating with language models for embodied reasoning", 2023, in the variant in which
the reporter is trained with the planner in the loop. It is a logistic policy on the words of the event, with
initial weights 0::

    p(first message | words) = sigmoid(w . words + b)

It is trained by REINFORCE (Williams, 1992) on the return of the episode: a message is good if it leads
the planner to a higher return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from hunch.core import Saved, State, Transition, UsageError, World
from hunch.lm.backends.bag_of_words import words
from hunch.lm.base import LanguageModel
from hunch.methods.method import Method
from hunch.methods.planner.inner_monologue import InnerMonologue, InnerMonologueConfig
from hunch.methods.planner.plan import Plan
from hunch.methods.planner.saycan import SCORED
from hunch.ranges import PositiveFloat, Share
from hunch.roles.planner.skills import Channel, Skill
from hunch.roles.prior.base import ActionPrior


class Reporter(Protocol):
    """Sends one of two messages about an event."""

    def probability(self, event: str) -> float:
        """Return the probability of the first message."""


class Scripted:
    """Sends the first message if a word occurs in the event, with a given error rate.

    Args:
        word: Word that makes the first message true, if it occurs in the event.
        lies: Share of wrong reports, from 0 to 1.

    Raises:
        UsageError: if it is not exactly one word, since then no event could hold it.
    """

    def __init__(self, word: str, lies: float = 0.0) -> None:
        read = words(word)
        if len(read) != 1:
            raise UsageError(f"The setting truth has to be one word, not {word!r}.")
        self.word = read[0]
        self.lies = lies

    def probability(self, event: str) -> float:
        """Return the probability of the first message: 1 or 0, apart from errors."""
        return 1 - self.lies if self.word in words(event) else self.lies


class WordReporter(Saved):
    """The trained policy; with its initial weights both messages are equally likely.

    The feature of a word is how much more often it occurs in the event than in all events so far. Words in
    every event therefore have no influence.

    Args:
        learning_rate: Learning rate of the gradient steps.
    """

    saved = ("weights", "counts", "bias", "baseline", "events", "episodes")

    def __init__(self, learning_rate: float = 0.5) -> None:
        self.learning_rate = learning_rate
        self.weights: dict[str, float] = {}  # w, by word
        self.bias = 0.0  # b
        self.baseline = 0.0  # mean return
        self.counts: dict[str, int] = {}  # events with each word
        self.events = 0
        self.episodes = 0

    def features(self, event: str) -> dict[str, float]:
        """Return the feature of each known word in an event."""
        present = set(words(event))
        return {word: (word in present) - n / self.events for word, n in self.counts.items()}

    def probability(self, event: str) -> float:
        """Return the probability of the first message, sigmoid(w . x + b)."""
        logit = self.bias + sum(x * self.weights.get(word, 0.0) for word, x in self.features(event).items())
        return float(1 / (1 + np.exp(-np.clip(logit, -30, 30))))

    def learn(self, reports: Sequence[tuple[str, bool]], episode_return: float) -> None:
        """Make the sent messages more likely if the return exceeds the mean of earlier ones, else less.

        Args:
            reports: The events of one episode, and whether the first message was sent for each.
            episode_return: The return of the episode.
        """
        for event, _ in reports:
            self.events += 1
            for word in sorted(set(words(event))):
                self.counts[word] = self.counts.get(word, 0) + 1

        # d log p(message) / d logit = 1[first message] - p, at the weights before the update. The events of
        # the episode count among all so far here; they did not when the messages were drawn (a departure).
        gradients = []
        for event, first in reports:
            gradients.append((self.features(event), float(first) - self.probability(event)))

        # REINFORCE: w <- w + rate (R - mean R) d log p / d w
        advantage = episode_return - self.baseline
        for features, gradient in gradients:
            step = self.learning_rate * advantage * gradient
            self.bias += step
            for word, x in features.items():
                self.weights[word] = self.weights.get(word, 0.0) + step * x
        self.episodes += 1
        self.baseline += advantage / min(self.episodes, 100)


@dataclass(frozen=True, kw_only=True)
class PlannerActorReporterConfig(InnerMonologueConfig):
    """Settings of planner, actor and reporter."""

    score: Literal["product", "say", "can"] = "say"
    """Score of a skill: say (paper) uses the planner only; can and product also use the skills' values."""
    feedback: tuple[Channel, ...] = ()
    """Feedback channels besides the reporter: success, scene (what is visible), question (a person answers),
    person (new task)."""
    reporter: Literal["trained", "untrained", "scripted"] = "trained"
    """Reporter: trained on the reward (paper's variant), untrained (random), or scripted, a rule (paper)."""
    messages: tuple[str, str] = ("It is good.", "It is bad.")
    """The two messages of the reporter (our choice)."""
    truth: str = "warm"
    """With a scripted reporter: word in an event that makes the first message true (our choice)."""
    lies: Share = 0.0
    """With a scripted reporter: share of wrong reports, 0 to 1 (our choice)."""
    learning_rate: PositiveFloat = 0.5
    """With a trained reporter: learning rate of REINFORCE (our choice)."""


class PlannerActorReporter(InnerMonologue):
    """The agent of this method; arguments as for :class:`~hunch.methods.planner.saycan.SayCan`."""

    config_class: ClassVar[type[Any]] = PlannerActorReporterConfig
    saved = (*InnerMonologue.saved, "trained", "reports", "returns")

    def __init__(
        self,
        prior: ActionPrior,
        skills: Sequence[Skill] = (),
        config: Any = None,
        explainer: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        self.learns = True
        super().__init__(prior, skills, config, explainer, **options)
        if self.config.reporter == "scripted":
            Scripted(self.config.truth)  # refuses a truth that could never be one

    def begin(self, world: World, seed: int) -> None:
        """Forget all plans, and what the reporter has learnt."""
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
        """Return the feedback of the channels, and the report of the event, if there is one."""
        feedback = super().tell(plan, state, event, worked)
        if not event:
            return feedback
        p = self.reporter.probability(event)
        first = bool(self.rng_of(state.stream, 3).random() < p) if self._samples else p >= 0.5
        self.reports.setdefault(state.stream, []).append((event, first))
        message = self.config.messages[0 if first else 1]
        return f"{feedback}\n{message}".strip()

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
                episode_return = self.returns.pop(t.stream)
                reports = self.reports.pop(t.stream, [])
                if self.learns and self.config.reporter == "trained":
                    self.trained.learn(reports, episode_return)

    def player(self, seed: int) -> PlannerActorReporter:
        """Return a player with the same planner, skills and reporter, which does not learn."""
        twin = super().player(seed)
        assert isinstance(twin, PlannerActorReporter)
        twin.learns = False
        twin.trained.load_state_dict(self.trained.state_dict())
        return twin


METHOD = Method(
    "planner-actor-reporter",
    PlannerActorReporter,
    "a frozen planner, a trained actor, and a reporter that learns what to report from the reward",
    "Dasgupta et al., Collaborating with language models for embodied reasoning, 2023",
    **SCORED,
    suggested=("minilm", "smollm2"),
    changeable=("score", "affordance", "pick", "prior"),
)
