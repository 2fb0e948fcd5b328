"""Motif: intrinsic rewards from a language model's preferences between captions.

Algorithm (Klissarov, D'Oro et al., "Motif: Intrinsic Motivation from Artificial Intelligence Feedback", ICLR
2024)::

    collect captions of what happens, with any policy
    draw pairs of them; the model says which shows more progress: 1, 2 or none
    fit r, the mean of a few networks, by the cross-entropy of softmax(r1, r2)
    r      <- (r - mean) / standard deviation    over the captions, each as often as it occurred
    eps    <- the median of r                    over the distinct captions
    r_int  <- r if r > eps, else 0; divided by N(caption)^beta, where N counts within the episode
    learn from extrinsic * r_env + weight * r_int

The model fills one role, the reward source (:class:`Preference`); threshold and counts are those of
:class:`hunch.roles.reward.rewarded.Rewarded`. The reward depends only on the caption.

Departures: where the model gives the probability of each answer, the reward is fitted to it
(:attr:`PreferenceConfig.soft`); the paper's model writes its verdicts.

Without recorded data, captions are collected in the first steps of the run, with the environment's reward
only, so that these steps are counted. The published runs use a separate data set.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from hunch.core import EvidenceLevel, HunchError, HunchWarning, Transition, World
from hunch.lm import load
from hunch.lm.asking import AskConfig, Asking, listed
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure
from hunch.ranges import LATER, NonNegativeFloat, PositiveInt, Share
from hunch.rl.statistics import cycles
from hunch.roles.encoder.features import TextTable
from hunch.roles.reward.comparer import CHOICES, TARGETS, Comparer, CompareWay
from hunch.roles.reward.comparer import read_preference as read_preference
from hunch.roles.reward.rewarded import Rewarded, RewardSource, Shaping

if TYPE_CHECKING:
    from hunch.rl.bradley_terry import RewardEnsemble

PROGRESS: Final = "Which of the two shows more progress towards the goal?"
UNKNOWN: Final = "Two things that happened:"
"""The beginning of the prompt without a goal."""
LONGEST: Final = 10
"""Factor by which the collection of captions may be prolonged while all captions are equal."""
HELD_OUT: Final = 0.2
"""Share of the pairs on which the fit is measured and not made (released code)."""
ALIKE: Final = 20
"""Number of equal verdicts after which a warning says that the judge is uninformative."""


@dataclass(frozen=True, kw_only=True)
class PreferenceConfig(AskConfig):
    """Settings of the captions, the judge and the fitted reward."""

    prompt_fields = ("first", "second")
    goal: str | None = None
    """Goal in the judge's prompt. Default: the environment's task."""
    collect: PositiveInt = 1_000
    """Environment steps in which captions are collected, without recorded data (our choice)."""
    pairs: PositiveInt = 2_000
    """Number of pairs of captions to judge (ours; paper: 500,000)."""
    temperature: NonNegativeFloat = 0.1
    """Temperature of the verdicts (released code)."""
    max_tokens: PositiveInt | None = None
    """Maximum tokens per verdict; use more for models that explain first (released code: 512). Default: 16,
    or more for a chat model."""
    last: bool = False
    """Read the last verdict in an answer instead of the first, for models that explain before they decide."""
    way: CompareWay = field(default="auto", metadata=LATER)
    """Way of asking for a verdict: a written answer (text, paper), one restricted to 1, 2 or none
    (structured), or the probability of each: of a decision model (decision), by letters (label) or as text
    (likelihood). auto: decision, structured or text, the model's best of these; text with last."""
    soft: bool = field(default=True, metadata=LATER)
    """Where the probability of each answer is known, fit the reward to p(1) + p(none) / 2 (ours) instead of
    to the most probable answer. A written verdict (paper) has no probability."""


class Pair(NamedTuple):
    """Two captions and the verdict: 1 or 2 for the better one, 0 for a tie or no answer.

    The preference for the first, from 0 to 1, is None where it is that of the verdict.
    """

    first: str
    second: str
    verdict: int
    preference: float | None = None

    @property
    def target(self) -> float:
        """What p(the first is better) is fitted to."""
        return TARGETS[self.verdict] if self.preference is None else self.preference


class Preference(RewardSource):
    """Rewards the caption of a step (its ``event``) with a network fitted to a model's comparisons.

    A step without a caption has reward 0 and is not compared.

    Captions are collected from recorded data, or from the first ``collect`` steps, in which the reward is 0.
    Then pairs of captions are drawn and judged in one call, and rewards are fitted by the cross-entropy of
    softmax(r1, r2) (Bradley and Terry, 1952), where a tie counts half for each. Identical captions are a tie
    without a question. An answer without a verdict is requested once more, and then counted as a tie. The
    reward has mean 0 and standard deviation 1 over the collected captions.

    Args:
        lm: A model that generates, or a decision model, whose probabilities are the preferences.
        encoder: Embeds captions.
        config: All settings.

    Raises:
        UsageError: if the model can do neither, or the encoder cannot embed.
    """

    saved = ("goal", "seed", "captions", "steps", "values", "scale", "known", "report")
    wording = "a4c058d7"
    """Version of the words of :meth:`prompt`. Change it with them: runs with different words are different
    runs."""
    known: tuple[float, ...] = ()  # rewards of the distinct collected captions, once they are fitted

    def __init__(
        self, lm: LanguageModel, encoder: LanguageModel, config: PreferenceConfig | None = None
    ) -> None:
        self.config = config or PreferenceConfig()
        self.lm = lm
        self.table = TextTable(encoder)
        self.models = {"judge": lm, "encoder": encoder}
        asking = Asking(lm, self.config, tokens=16, top_p=0.95, stop=(), role="preference")
        self.comparer = Comparer(lm, asking, self.config.last, PROGRESS, self.config.way)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the judge; the frozen encoder fills no role."""
        return self.lm.evidence

    @property
    def settings(self) -> dict[str, Any]:
        """The config, the names of judge and encoder, and the version of the prompt."""
        named = {"judge": self.lm.name, "encoder": self.table.lm.name}
        return {**asdict(self.config), **named, "wording": self.wording}

    def begin(self, world: World, seed: int) -> None:
        """Forget all captions and rewards; fit a new reward at once if there are recorded data."""
        self.seed = seed
        self.goal = self.config.goal if self.config.goal is not None else world.task
        self.captions: list[str] = []
        self.steps = 0
        self.fitted: RewardEnsemble | None = None
        self.values: dict[str, float] = {}  # by caption that was met: the networks' output, not standardised
        self.scale = (0.0, 1.0)  # mean and standard deviation of these outputs over the collected captions
        self.known = ()
        self.report: dict[str, Any] = {}  # see records
        if world.data:
            self.captions = [t.event for episode in world.data for t in episode if t.event]
            self.fit()
        elif 0 < world.steps <= self.config.collect:
            _warn(
                f"Captions are collected for {self.config.collect:,} steps, and the run has {world.steps:,}: "
                "no reward will be fitted."
            )

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the reward of each step's caption; 0 while captions are collected."""
        if self.fitted is None:
            self._collect(transitions)
            return [0.0] * len(transitions)
        captions = [t.event for t in transitions]
        unseen = [caption for caption in dict.fromkeys(captions) if caption and caption not in self.values]
        if unseen:
            self.values |= self._evaluate(unseen)
        mean, deviation = self.scale
        return [(self.values[caption] - mean) / deviation if caption else 0.0 for caption in captions]

    def _evaluate(self, captions: Sequence[str]) -> dict[str, float]:
        """Return what the fitted networks give each caption, before it is standardised."""
        assert self.fitted is not None
        vectors = self.table.encode(captions)  # (captions, dim)
        return dict(zip(captions, self.fitted(vectors).tolist(), strict=True))

    def _collect(self, transitions: Sequence[Transition]) -> None:
        """Collect captions, and fit once there are enough; warn where there is nothing to compare yet."""
        enough = self.config.collect
        before = self.steps
        self.steps += len(transitions)
        self.captions += [t.event for t in transitions if t.event]
        differ = any(caption != self.captions[0] for caption in self.captions)
        if self.steps >= enough and (differ or self.steps >= LONGEST * enough):
            self.fit()
        elif before < enough <= self.steps:
            _warn(
                f"All steps so far have the same caption or none, so the judge {self.lm.name} has nothing to "
                f"compare: captions are collected until step {LONGEST * enough:,}, and the reward is 0."
            )

    def fit(self) -> None:
        """Draw pairs, let the model judge them, and fit the networks.

        Raises:
            HunchError: if there are no two different captions to compare.
        """
        distinct = list(dict.fromkeys(self.captions))
        if len(distinct) < 2:
            raise HunchError(
                f"The only caption in {self.steps} steps was {distinct[0] if distinct else 'no event'!r}, so "
                "there is nothing to compare. Collect more steps, or choose an environment with events."
            )
        rng = np.random.default_rng(self.seed)

        # Draw pairs of captions, as often as they occurred; the model says which shows more progress.
        rows = rng.integers(len(self.captions), size=(self.config.pairs, 2))
        pairs = self.judged([(self.captions[i], self.captions[j]) for i, j in rows])
        n_training = int(len(pairs) * (1 - HELD_OUT))
        training, held_out = pairs[:n_training], pairs[n_training:]

        # Fit r: loss = cross-entropy of softmax(r(first), r(second)) with the preferences.
        first = self.table.encode([pair.first for pair in training])  # (pairs, dim)
        second = self.table.encode([pair.second for pair in training])  # (pairs, dim)
        preferred = [pair.target for pair in training]  # 1: the first is better, 0.5: a tie
        self.fitted = self._networks()
        self.fitted.fit(first, second, preferred, rng)

        # Standardise r over the collected captions, each as often as it occurred.
        self.values = self._evaluate(distinct)
        outputs = [self.values[caption] for caption in self.captions]
        mean = float(np.mean(outputs))
        deviation = float(np.std(outputs)) or 1.0
        self.scale = (mean, deviation)
        self.known = tuple((output - mean) / deviation for output in self.values.values())

        self._warn_of_uninformative(pairs)
        self.report = {
            "captions": dict(zip(distinct, self.known, strict=True)),
            **self._statistics(pairs, held_out),
        }
        self.captions = []

    def prompt(self, first: str, second: str) -> str:
        """Return the prompt that asks which of two captions is better."""
        known = f"An agent's goal: {self.goal}.\nTwo things that happened to it:" if self.goal else UNKNOWN
        pair = f"{known}\n1: {first}\n2: {second}"
        return pair if self.comparer.decides else f"{pair}\n{PROGRESS}\n- 1\n- 2\n- none\nAnswer:"

    def judged(self, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
        """Return the pairs with verdicts, asking the model about all of them in one call."""
        questions = [None if first == second else self._question(first, second) for first, second in pairs]
        compared = self.comparer.compared(questions)
        self.unread = self.comparer.unread
        is_soft = self.comparer.decides and self.config.soft
        return [
            Pair(*pair, verdict or 0, preference if is_soft else None)
            for pair, (verdict, preference) in zip(pairs, compared, strict=True)
        ]

    def _question(self, first: str, second: str) -> Prompt:
        fields = {"task": self.goal, "actions": listed(CHOICES), "first": first, "second": second}
        return self.comparer.asking.prompt(self.prompt(first, second), **fields)

    def _networks(self, weights: Sequence[Mapping[str, Any]] = ()) -> RewardEnsemble:
        """Return new networks, or those with the given weights."""
        from hunch.rl.bradley_terry import RewardEnsemble  # loads torch

        return RewardEnsemble(self.table.dim, self.seed, weights)

    def _warn_of_uninformative(self, pairs: Sequence[Pair]) -> None:
        """Warn of a judge that prefers nothing, or always the caption in the same place."""
        asked = [pair for pair in pairs if pair.first != pair.second]
        decided = [pair for pair in asked if pair.verdict]
        if not decided:
            _warn(
                f"The judge {self.lm.name} preferred neither caption in any of {len(asked)} pairs: its "
                "reward carries no information."
            )
        elif len(decided) >= ALIKE and len({pair.verdict for pair in decided}) == 1:
            _warn(
                f"The judge {self.lm.name} said {decided[0].verdict} to all of {len(decided)} pairs: its "
                "verdicts tell the order of the captions, and nothing else."
            )

    def _statistics(self, pairs: Sequence[Pair], held_out: Sequence[Pair]) -> dict[str, Any]:
        """Return statistics of the verdicts, and of the fit on held-out pairs; see :meth:`records`."""
        asked = [pair for pair in pairs if pair.first != pair.second]
        decided = [pair for pair in asked if pair.verdict]
        right = list[bool]()
        errors = list[float]()
        for pair in held_out:
            if pair.first == pair.second or not pair.verdict:
                continue
            # p = softmax(r1, r2)[0], the fitted probability that the first is preferred. It is that of the
            # outputs as they were fitted: a division by their deviation would change it.
            p = 1 / (1 + np.exp(self.values[pair.second] - self.values[pair.first]))
            right.append((p > 0.5) == (pair.verdict == 1))
            errors.append((p - pair.target) ** 2)
        return {
            "pairs": len(pairs),
            "sent": len(asked),
            "ties": (len(asked) - len(decided)) / max(1, len(asked)),
            "first": sum(pair.verdict == 1 for pair in decided) / max(1, len(decided)),
            "unread": self.unread / max(1, len(asked)),
            "cycles": cycles([pair[:3] for pair in pairs]),
            "accuracy": float(np.mean(right)) if right else None,
            "brier": float(np.mean(errors)) if errors else None,
        }

    def records(self) -> list[dict[str, Any]]:
        """Return one record when the reward has been fitted, else none.

        The record holds ``captions`` with their rewards; numbers of ``pairs`` drawn and ``sent``; shares of
        ``ties``, of ``first`` preferred (among decided pairs) and of ``unread`` answers; ``cycles``, the
        share of triples of captions with contradictory verdicts; and on held-out pairs the ``accuracy``
        against the judge and the ``brier`` score, the mean squared error of the fitted probability.
        """
        return [self.report] if self.report else []

    def learn(self) -> dict[str, float]:
        """Return the accuracy on held-out pairs, if the reward has been fitted."""
        accuracy = self.report.get("accuracy")
        return {} if accuracy is None else {"pair_accuracy": float(accuracy)}

    def state_dict(self) -> dict[str, Any]:
        """Return captions, rewards and networks."""
        return {**super().state_dict(), "networks": self.fitted.state_dict() if self.fitted else []}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.fitted = self._networks(state["networks"]) if state["networks"] else None


def _warn(text: str) -> None:
    warnings.warn(text, HunchWarning, stacklevel=4)


@dataclass(frozen=True, kw_only=True)
class MotifConfig(LearnerConfig):
    """Settings of Motif."""

    preference: PreferenceConfig = field(default_factory=PreferenceConfig)
    """How captions are compared, and how the reward is fitted."""
    quantile: Share | None = 0.5
    """Rewards up to this quantile over distinct captions become 0 (released code: 0.5); none for no limit."""
    beta: NonNegativeFloat = 3.0
    """Exponent beta: rewards are divided by N(caption)^beta, with N per episode (released code: 3)."""
    recall: bool = True
    """Show the learner the captions that were rewarded in this episode (paper: a recurrent learner)."""
    weight: NonNegativeFloat = 0.1
    """Weight of the fitted reward (released code: 0.1)."""
    extrinsic: NonNegativeFloat = 10.0
    """Weight of the environment's reward (released code: 10 for sparse rewards, 0.1 for the score)."""


class Motif(Rewarded):
    """The agent of Motif.

    Args:
        lm: A model that generates.
        config: All settings; ``options`` change single ones.
        encoder: Embeds captions, and states for the learner DQN. Default: that of the config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that cannot generate.
    """

    config_class: ClassVar[type[Any]] = MotifConfig

    def __init__(
        self,
        lm: LanguageModel,
        config: MotifConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        self.config = configure(type(self), config, options)
        encoder = load(self.config.encoder) if encoder is None else encoder
        super().__init__(
            learner(self.config, encoder),
            Preference(lm, encoder, self.config.preference),
            weight=self.config.weight,
            extrinsic=self.config.extrinsic,
            shaping=Shaping(  # r_int: r up to the quantile becomes 0, the rest is divided by N(caption)^beta
                quantile=self.config.quantile, beta=self.config.beta, recall=self.config.recall
            ),
        )


METHOD = Method(
    "motif",
    Motif,
    "fit a reward to a model's preferences between captions, and learn from it",
    "Klissarov et al., Motif: Intrinsic Motivation from Artificial Intelligence Feedback, ICLR 2024",
    leaf="LLM4RL / reward",
    environments="environments that tell events",
    reads={"events"},
    models={"lm": ("generate", "decide", "label", "score"), **ENCODER},
    suggested=("openai:gpt-4o-mini", "smollm2"),
    roles=("reward source",),
    control="uninformed judge",
)
