"""RLAdapter (AdaRefiner): a large model sets sub-goals, and a small trained model reports on the player.

Algorithm (Zhang and Lu, "AdaRefiner: Refining Decisions of Language Models with Adaptive Feedback", NAACL
Findings 2024; first called RLAdapter)::

    at the beginning of an episode
        score    <- sigmoid(10 (cos(what was done, the last sub-goals) - 0.1))
        summary  <- the adapter, given what was done and the score
        goals    <- the large model picks three of a list, given the observation and the summary
        the agent sees them next to its observation
    after each stage
        train the adapter on the stage's prompts and summaries

Two models fill the goal source: the frozen one of ``--lm``, and the adapter, which is trained here. The
released code trains the adapter on all its outputs regardless of the outcome, so that the score reaches it
only as a number in the prompt; ``--mentor.keep 1`` does the same. By default only outputs that led to better
scores are used. Departures: the adapter chooses among a few summaries; an episode here corresponds to 100
steps in the paper. ``--weight 1`` also rewards reached sub-goals.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from hunch.core import EvidenceLevel, Player, State, Transition, World, weakest
from hunch.lm import load
from hunch.lm.answers.reading import read_items
from hunch.lm.asking import AskConfig, Asking, about
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.roles.encoder.features import TextTable
from hunch.roles.goal.goaled import Goaled, GoaledPlayer, Goals, GoalSource
from hunch.roles.prior.similarity import cosines
from hunch.roles.reward.rewarded import Rewarded
from hunch.roles.reward.similarity import Similarity
from hunch_contrib.goal.adapter import Adapter, Sayer

SUMMARIES = (
    "The player is new here.",
    "The player knows the basics.",
    "The player is experienced now.",
    "The player is an expert.",
)


@dataclass(frozen=True, kw_only=True)
class MentorConfig(AskConfig):
    """Settings of the choice of sub-goals."""

    prompt_fields = ("player", "summary")
    adapter: Literal["trained", "frozen", "none"] = "trained"
    """Train the adapter between stages (paper), keep its random weights, or leave it out."""
    start: str = ""
    """Causal model to fine-tune, hf:<name or folder>; empty for a new one with about a million weights."""
    summaries: tuple[str, ...] = SUMMARIES
    """Summaries from which the adapter chooses (our choice; paper: any text). Their lengths should be equal,
    because a longer text is less likely."""
    keep: Share = 0.5
    """Share of a stage's summaries, those with the best scores, used for training (our choice; released code:
    1, which is all)."""
    stages: PositiveInt = 5
    """Number of stages of the run; the adapter is trained after each (released code)."""
    updates: NonNegativeInt = 20
    """Updates of the adapter per stage (our choice; released code: one pass over the stage's summaries)."""
    adapter_rate: PositiveFloat = 1e-3
    """Learning rate of the adapter; about 1e-5 suits a pretrained model (released code: 2e-4 with LoRA)."""
    goals: PositiveInt = 3
    """Number of sub-goals per episode (paper)."""
    temperature: NonNegativeFloat = 1.0
    """Temperature of the large model's answers (released code)."""


def comprehension(cosine: float) -> float:
    """Return how well a player follows its sub-goals: sigmoid(10 (cosine of events and goals - 0.1))."""
    return float(1 / (1 + np.exp(-10 * (cosine - 0.1))))


@dataclass
class Lesson:
    """The sub-goals of a stream in one episode, and the events since then.

    Attributes:
        prompt: The adapter's prompt.
        summary: The adapter's summary.
        goals: The large model's sub-goals.
        did: Events since the goals were set, oldest first.
        score: How well the previous sub-goals were followed, from 0 to 1; nan at first.
        number: Number of earlier lessons of the stream.
    """

    prompt: str = ""
    summary: str = ""
    goals: tuple[str, ...] = ()
    did: tuple[str, ...] = ()
    score: float = float("nan")
    number: int = 0


class Mentor(GoalSource):
    """Suggests sub-goals at the beginning of an episode, and detects which ones are reached.

    Args:
        lm: Suggests sub-goals from the list of admissible actions, given the observation and the summary.
        encoder: Compares events with sub-goals.
        config: All settings.
        threshold: Minimum cosine of event and sub-goal for a sub-goal to count as reached.

    Raises:
        UsageError: if the encoder cannot embed.
    """

    saved = ("adapter", "finished", "recent_scores", "steps", "stage")
    wording = "41036d23"
    """Version of the words of :meth:`question`. Change it with them: runs with different words are different
    runs."""

    def __init__(
        self, lm: LanguageModel, encoder: LanguageModel, config: MentorConfig, threshold: float
    ) -> None:
        self.lm, self.config = lm, config
        self._asking = Asking(lm, config, tokens=64, stop=(), role="goal")
        self.table = TextTable(encoder)
        self.achievement = Similarity(encoder, threshold, of_task=False)  # the task is no sub-goal
        self.models: dict[str, Any] = {"lm": lm, "encoder": encoder}
        self.adapter = self._adapter(0)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weaker evidence level of the adapter and the large model."""
        return weakest((self.lm.evidence, *(() if self.adapter is None else (self.adapter.evidence,))))

    @property
    def settings(self) -> dict[str, Any]:
        """The config and the names of the models."""
        named = {"suggests": self.lm.name, "compares": self.table.lm.name}
        return {**asdict(self.config), **named, "wording": self.wording}

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained adapter and no lessons."""
        self.seed = seed
        self.length = max(1, world.steps // self.config.stages)
        self.adapter = self._adapter(seed)
        if isinstance(self.adapter, Adapter):
            self.models = {**self.models, "adapter": self.adapter.model}
        self.lessons: dict[int, Lesson] = {}  # by stream
        self.finished: list[tuple[str, str, float]] = []  # prompts, summaries, scores of this stage
        self.recent_scores: list[float] = []  # scores since the last call of learn
        self.steps = self.stage = 0

    def _adapter(self, seed: int) -> Sayer | None:
        c = self.config
        return None if c.adapter == "none" else Adapter(c.summaries, c.start, c.adapter_rate, seed)

    def twin(self, seed: int) -> Self:
        """Return a mentor for players: the same adapter, separate sub-goals, no training."""
        other = copy.copy(self)
        other.seed, other.lessons, other.finished, other.recent_scores = seed, {}, [], []
        return other

    # ---- suggesting -----------------------------------------------------------------------------------

    def suggest(self, states: Sequence[State]) -> list[tuple[str, ...]]:
        """Return sub-goals for each state; one call of the large model for all new episodes."""
        before = [self.lessons.get(state.stream, Lesson(number=-1)) for state in states]
        new = [self._lesson(state, old) for state, old in zip(states, before, strict=True)]
        prompts = []
        for state, lesson in zip(states, new, strict=True):
            question = self.question(state, lesson)
            prompts.append(
                self._asking.prompt(question, **about(state), player=lesson.prompt, summary=lesson.summary)
            )
        answers = self._asking.generate(prompts)
        for state, lesson, (answer,) in zip(states, new, answers, strict=True):
            lesson.goals = tuple(self._read(answer, state.options))
            self.lessons[state.stream] = lesson
        return [lesson.goals for lesson in new]

    def _lesson(self, state: State, old: Lesson) -> Lesson:
        """Return the adapter's summary of a player, given its earlier events."""
        lesson = Lesson(score=old.score, number=old.number + 1)
        did = ", ".join(dict.fromkeys(old.did)) or "nothing"
        score = "none yet" if np.isnan(lesson.score) else f"{round(10 * lesson.score)} of 10"
        suggested = "\n".join(old.goals) or "do nothing"
        lesson.prompt = f"The player did {did}. Told to {suggested}, it followed: {score}."
        if self.adapter is not None:
            rng = np.random.default_rng([self.seed, state.stream, lesson.number])
            lesson.summary = self.adapter.say(lesson.prompt, rng)
        return lesson

    def question(self, state: State, lesson: Lesson) -> str:
        """Return the large model's prompt, which asks for sub-goals."""
        listed = "\n".join(f"- {option}" for option in state.options)
        summary = f"Summary: {lesson.summary}\n" if lesson.summary else ""
        return (
            f"{state.observation}\n{lesson.prompt}\n{summary}\nWhich {self.config.goals} things of this list "
            f"should the player try next? One per line.\n{listed}\nAnswer:"
        )

    def _read(self, answer: str, options: Sequence[str]) -> list[str]:
        """Return the sub-goals that an answer names; other lines are counted."""
        lines = read_items(answer, options)
        good = [item for _, item in lines if item]
        named = good if lines or not self._asking.chats else None
        self._asking.hear([answer], [named], rejected=len(lines) - len(good))
        return list(dict.fromkeys(good))[: self.config.goals]

    # ---- what came of it ------------------------------------------------------------------------------

    def reached(self, transitions: Sequence[Transition]) -> list[list[str]]:
        """Return the sub-goals that each step reached, and store the event of the step."""
        self.steps += len(transitions)
        for t in transitions:
            lesson = self.lessons.get(t.stream)
            if lesson is not None:
                lesson.did += (t.event,) if t.event else ()
                if t.done:
                    self._close(t.stream, lesson)
        return self.achievement.reached(transitions)

    def _close(self, stream: int, lesson: Lesson) -> None:
        """Score how well the sub-goals were followed in a finished episode."""
        done = self.table.encode([", ".join(lesson.did)])  # (1, dim)
        suggested = self.table.encode([", ".join(lesson.goals)])  # (1, dim)
        likeness = float(cosines(done, suggested)[0, 0])
        score = comprehension(likeness)
        self.finished.append((lesson.prompt, lesson.summary, score))
        self.recent_scores.append(score)
        self.lessons[stream] = replace(lesson, score=score)

    def learn(self) -> dict[str, float]:
        """Train the adapter if a stage has ended; return the loss, and the mean score of the stage."""
        scores, self.recent_scores = self.recent_scores, []
        figures = {"comprehension": float(np.mean(scores))} if scores else {}
        if self.steps // self.length > self.stage:
            self.stage = self.steps // self.length
            if isinstance(self.adapter, Adapter) and self.config.adapter == "trained":
                rng = np.random.default_rng([self.seed, 1, self.stage])
                figures["adapter_loss"] = self.adapter.train(self.best(), self.config.updates, rng)
            self.finished = []
        return figures

    def best(self) -> list[tuple[str, str]]:
        """Return this stage's prompts and summaries with the best scores, at least one if there is any."""
        ranked = sorted(self.finished, key=lambda one: -one[2])
        kept = max(1, round(self.config.keep * len(ranked)))
        return [(prompt, summary) for prompt, summary, _ in ranked[:kept]]

    def state_dict(self) -> dict[str, Any]:
        """Return adapter, lessons and counters."""
        lessons = {stream: asdict(lesson) for stream, lesson in self.lessons.items()}
        return {**super().state_dict(), "lessons": lessons}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.lessons = {stream: Lesson(**values) for stream, values in state["lessons"].items()}


@dataclass(frozen=True, kw_only=True)
class RLAdapterConfig(LearnerConfig):
    """Settings of RLAdapter."""

    mentor: MentorConfig = field(default_factory=MentorConfig)
    """How sub-goals are chosen."""
    threshold: Share = 0.99
    """Minimum cosine of event and sub-goal for a sub-goal to count as reached (ours)."""
    weight: NonNegativeFloat = 0.0
    """Weight of the reward for reached sub-goals (paper: 0)."""
    extrinsic: NonNegativeFloat = 1.0
    """Weight of the environment's reward (paper: 1)."""
    learner: Literal["table", "dqn", "ppo"] = "ppo"
    """Inner learner: ppo (paper) or dqn on embeddings, or a table, whose rows depend on the sub-goals."""


class RLAdapter(Goaled):
    """The agent of RLAdapter.

    Args:
        lm: A model that writes.
        config: All settings; ``options`` change single ones.
        encoder: Compares events with sub-goals, and embeds states for the learner. Default: that of the
            config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or an unsuitable model.
    """

    config_class: ClassVar[type[Any]] = RLAdapterConfig
    mentor_class: ClassVar[type[Mentor]] = Mentor

    def __init__(
        self,
        lm: LanguageModel,
        config: RLAdapterConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        c: RLAdapterConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        self.mentor = self.mentor_class(lm, embeds, c.mentor, c.threshold)
        rewarded = Rewarded(
            learner(c, embeds), self.mentor.achievement, weight=c.weight, extrinsic=c.extrinsic
        )
        super().__init__(rewarded, self.mentor, self.mentor)

    def player(self, seed: int) -> Player:
        """Return a player with separate sub-goals."""
        mentor = self.mentor.twin(seed)
        return GoaledPlayer(self.agent.player(seed), Goals(mentor, mentor, renew=False))


METHOD = Method(
    "rl-adapter",
    RLAdapter,
    "pursue sub-goals of a model to which a small trained model reports the player's progress",
    "Zhang and Lu, AdaRefiner: Refining Decisions of Language Models with Adaptive Feedback, NAACL 2024",
    leaf="LLM4RL / goal",
    environments="environments that tell events",
    reads={"events"},
    models={"lm": ("generate",), **ENCODER},
    suggested=("openai:gpt-4o-mini", "scripted:mentor"),
    roles=("goal source",),
    control="random sub-goals",
)
