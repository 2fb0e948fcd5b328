"""RL-VLM-F: rewards from a model's preferences between pictures.

Algorithm (Wang et al., "RL-VLM-F: Reinforcement Learning from Vision Language Foundation Model Feedback",
ICML 2024)::

    repeat
        act; the reward of a step is r(picture after the step), and 0 before the first fit
        every K steps:
            draw pairs of the pictures seen so far, and drop equal ones
            ask the model what both pictures show, and how they differ with regard to the goal
            given this answer, ask which is nearer to the goal: 1, 2 or none
            drop the pairs with none; fit r by the cross-entropy of softmax(r1, r2) on all pairs so far
            give the steps so far their new rewards, and let the learner learn from them again

The model fills one role, the reward source (:class:`PicturePreference`). The reward is the mean of three
small convolutional networks. The environment's reward is not used, but its ``success`` is reported.
Any learner can be used; PPO cannot learn from earlier steps again.

A model that embeds pictures and texts, such as CLIP, prefers the picture that is more similar to the goal.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hunch.core import EvidenceLevel, HunchWarning, Transition, UsageError, World
from hunch.lm import picture
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, Relearning, learner
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure
from hunch.ranges import LATER, NonNegativeFloat, PositiveInt, stated
from hunch.roles.reward.comparer import TARGETS
from hunch.roles.reward.picture_judge import PictureAsking, PictureJudge
from hunch.roles.reward.rewarded import Rewarded, RewardSource

if TYPE_CHECKING:
    from hunch.rl.bradley_terry import RewardEnsemble

SIDE: Final = 64
"""Height and width of a picture as the networks see it, in pixels."""
BILINEAR: Final = 2
"""Pillow's constant for bilinear resizing."""
REPLAYED: Final = 50_000
"""Number of latest steps that get new rewards; the size of DQN's replay buffer."""
Label: TypeAlias = tuple[str, str, int]
"""Digests of two pictures, and the verdict: 1 or 2 for the better one, 0 for none."""
EPOCHS: Final = 10
"""Passes over all pairs per fit (our choice); with more, the networks overfit wrong verdicts."""


@dataclass(frozen=True, kw_only=True)
class PicturesConfig(PictureAsking):
    """Settings of the pairs of pictures, the judge and the fitted reward."""

    every: PositiveInt = 1_000
    """Environment steps between two rounds of questions (ours; released code: 5,000)."""
    pairs: PositiveInt = 100
    """Pairs of pictures per round (ours; released code: 50)."""
    most: PositiveInt = 2_000
    """Maximum pairs in the whole run (ours; released code: 10,000)."""
    zero: Literal["best", "mean"] = "best"
    """Picture whose reward is 0: the best so far (best), so that all rewards are at most 0 and early success
    is best; or the mean of all pictures (mean), for episodes of fixed length."""
    scaled: bool = field(default=True, metadata=LATER)
    """Subtract ``zero`` and divide by the standard deviation. If off, the reward is the mean of the networks
    as it is (released code, for episodes of fixed length)."""


class PicturePreference(RewardSource):
    """Rewards the picture after a step with networks fitted to a model's comparisons.

    Rewards have standard deviation 1 over the pictures seen until the last fit, unless ``scaled`` is off. An
    answer without a verdict is requested once more, and then the pair is dropped.

    Args:
        lm: A model that reads pictures, and generates or embeds.
        config: All settings.

    Raises:
        UsageError: if the model cannot do this.
    """

    saved = ("rng", "goal", "steps", "due", "fits", "pictures", "labels", "scale", "rounds")

    def __init__(self, lm: LanguageModel, config: PicturesConfig | None = None) -> None:
        self.config = config or PicturesConfig()
        self.judge = PictureJudge(lm, self.config)
        self.models = {"judge": lm}

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the judge."""
        return self.judge.lm.evidence

    @property
    def settings(self) -> dict[str, Any]:
        """The config, the name of the judge, and the version of the questions."""
        return {**stated(self.config), "judge": self.judge.lm.name, "wording": self.judge.wording}

    def begin(self, world: World, seed: int) -> None:
        """Forget all pictures and rewards."""
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.goal = self.config.goal or world.task
        self.steps = 0
        self.due = self.config.every  # the step of the next questions
        self.fits = 0
        self.pictures: dict[str, bytes] = {}  # by digest, in the order in which they were first seen
        self.labels: list[Label] = []
        self.scale = (0.0, 1.0)  # the reward 0, and the standard deviation
        self.rounds: list[dict[str, Any]] = []  # see records
        self.values: dict[str, float] = {}  # what the networks give pictures
        self.fitted: RewardEnsemble | None = None

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the reward of each picture after a step; 0 before the first fit.

        Raises:
            UsageError: if a state has no picture, or if tasks differ and no goal is set.
        """
        if any(not t.next_state.pictures for t in transitions):
            raise UsageError("A state has no picture: add --env.picture.")
        shown = [t.next_state.pictures[-1] for t in transitions]
        self.pictures.update((picture.digest, picture.data) for picture in shown)
        self.steps += len(transitions)
        self._know({t.state.aim for t in transitions})
        return self.given([picture.digest for picture in shown])

    def _know(self, tasks: set[str]) -> None:
        """Take the goal from the task."""
        if self.config.goal or not tasks:
            return
        self.goal = self.goal or min(tasks)
        if tasks != {self.goal}:
            raise UsageError(
                f"The tasks are {self.goal!r} and {min(tasks - {self.goal})!r}: a fitted reward "
                "knows one goal. Name it with --pictures.goal."
            )
        if not self.goal:
            raise UsageError("The environment states no task: name the goal with --pictures.goal.")

    def given(self, digests: Sequence[str]) -> list[float]:
        """Return the reward of each picture, given by its digest."""
        values = self._valued(digests)
        if self.fitted is None or not self.config.scaled:
            return values
        zero, deviation = self.scale
        ceiling = 0.0 if self.config.zero == "best" else np.inf
        return [min(ceiling, (value - zero) / deviation) for value in values]

    def _valued(self, digests: Sequence[str]) -> list[float]:
        """Return what the networks give each picture, as it is; 0 before the first fit."""
        if self.fitted is None:
            return [0.0] * len(digests)
        new = [digest for digest in dict.fromkeys(digests) if digest not in self.values]
        if new:
            self.values.update(zip(new, self.fitted(self._pixels(new)).tolist(), strict=True))
        return [self.values[digest] for digest in digests]

    def learn(self) -> dict[str, float]:
        """Every ``every`` steps, ask about new pairs and fit the reward; return the metrics of the round."""
        drawn_before = sum(figures["pairs"] for figures in self.rounds)
        if self.steps < self.due or drawn_before >= self.config.most or len(self.pictures) < 2:
            return {}
        # As in the released code a round comes some steps after the last one: missed ones are not made up.
        missed = (self.steps - self.due) // self.config.every
        self.due += (1 + missed) * self.config.every

        # Draw pairs of all pictures so far; a picture is not compared with itself.
        known = list(self.pictures)
        n = min(self.config.pairs, self.config.most - drawn_before)
        drawn = self.rng.integers(len(known), size=(n, 2))
        pairs = [(known[i], known[j]) for i, j in drawn if i != j]

        # The judge says which of the two shows more of the goal: 1, 2, or neither.
        shown = [(self.pictures[one], self.pictures[other]) for one, other in pairs]
        verdicts = self.judge.verdicts(self.goal, shown)
        labels = [(*pair, verdict or 0) for pair, verdict in zip(pairs, verdicts, strict=True)]
        decided = [label for label in labels if label[2] != 0]

        # The figures are of the reward before it is fitted to these pairs.
        self.rounds.append(self._figures(len(drawn), labels, decided))
        self.labels += decided
        if decided:
            self._fit()
        return {f"pair_{name}": value for name, value in self.rounds[-1].items() if value is not None}

    def _figures(self, drawn: int, labels: Sequence[Label], decided: Sequence[Label]) -> dict[str, Any]:
        """Return the figures of a round, and warn if the judge never decides."""
        if labels and not decided:
            warnings.warn(
                f"The judge {self.judge.lm.name} preferred neither picture in any of {len(labels)} pairs: "
                "its verdicts carry no information.",
                HunchWarning,
                stacklevel=3,
            )
        right = []
        for first, second, verdict in decided:
            # Not the rewards: those of pictures that are better than the best so far are equal.
            first_value, second_value = self._valued([first, second])
            ahead = first_value - second_value if verdict == 1 else second_value - first_value
            right.append(0.5 * (1 + np.sign(ahead)))  # of equal values either one may be meant
        return {
            "pairs": drawn,
            "asked": len(labels),
            "abstained": 1 - len(decided) / max(1, len(labels)),
            "first": sum(verdict == 1 for *_, verdict in decided) / max(1, len(decided)),
            "accuracy": float(np.mean(right)) if self.fitted and right else None,
        }

    def _fit(self) -> None:
        """Go on fitting the networks, to all pairs so far, and value all pictures anew."""
        if self.fitted is None:
            self.fitted = self._new()
        self.fits += 1
        first, second, verdicts = zip(*self.labels, strict=True)
        targets = [TARGETS[verdict] for verdict in verdicts]
        self.fitted.fit(self._pixels(first), self._pixels(second), targets, self.rng, EPOCHS)
        self._value_all()
        # The reward is a preference's logit: only differences mean something, so its zero is set here.
        values = list(self.values.values())
        zero = max(values) if self.config.zero == "best" else float(np.mean(values))
        self.scale = (zero, float(np.std(values)) or 1.0)

    def _value_all(self) -> None:
        """Let the networks value all pictures so far."""
        self.values = {}
        self._valued(list(self.pictures))

    def _new(self, weights: Sequence[Mapping[str, Any]] = ()) -> RewardEnsemble:
        from hunch.rl.bradley_terry import RewardEnsemble  # loads torch

        return RewardEnsemble((3, SIDE, SIDE), self.seed, weights)

    def _pixels(self, digests: Sequence[str]) -> NDArray[np.float32]:
        """Return pictures as numbers from 0 to 1, shape (n, 3, SIDE, SIDE)."""
        by_digest = {digest: pixels(self.pictures[digest]) for digest in dict.fromkeys(digests)}
        return np.stack([by_digest[digest] for digest in digests]).astype(np.float32) / np.float32(255)

    def records(self) -> list[dict[str, Any]]:
        """Return one record per round of questions.

        A record holds the numbers of ``pairs`` drawn and ``asked`` about (different pictures), the share with
        the judge ``abstained``, the share of ``first`` preferred among the others, and the ``accuracy`` on
        them of the networks before they were fitted to them, None in the first round. Where two values are
        equal, it is half right.
        """
        return list(self.rounds)

    def state_dict(self) -> dict[str, Any]:
        """Return pictures, verdicts and networks, and what these give the pictures.

        Computed again, all pictures at once, their rewards would differ in the last bits.
        """
        networks = self.fitted.state_dict() if self.fitted else []
        return {**super().state_dict(), "networks": networks, "values": dict(self.values)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.fitted = self._new(state["networks"]) if state["networks"] else None
        if "values" in state:
            self.values = dict(state["values"])
        else:  # a checkpoint of before
            self._value_all()


@lru_cache(maxsize=10_000)
def pixels(data: bytes) -> NDArray[np.uint8]:
    """Return the pixels of a picture file, shape (3, SIDE, SIDE); results are cached."""
    from hunch.lm.backends.seeing import opened  # loads torch

    return np.asarray(opened(picture(data)).resize((SIDE, SIDE), BILINEAR)).transpose(2, 0, 1)


@dataclass(frozen=True, kw_only=True)
class RLVLMFConfig(LearnerConfig):
    """Settings of RL-VLM-F."""

    pictures: PicturesConfig = field(default_factory=PicturesConfig)
    """How pictures are compared, and how the reward is fitted."""
    weight: NonNegativeFloat = 1.0
    """Weight of the fitted reward."""
    extrinsic: NonNegativeFloat = 0.0
    """Weight of the environment's reward (paper: none)."""


class RLVLMF(Rewarded):
    """The agent of RL-VLM-F.

    Args:
        lm: A model that reads pictures, and generates or embeds.
        config: All settings; ``options`` change single ones.
        encoder: Embeds texts, for the learners DQN and PPO.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that cannot read pictures.
    """

    config_class: ClassVar[type[Any]] = RLVLMFConfig
    source: PicturePreference

    def __init__(
        self, lm: LanguageModel, config: Any = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: RLVLMFConfig = configure(type(self), config, options)
        self.config = c
        source = PicturePreference(lm, c.pictures)
        super().__init__(learner(c, encoder), source, weight=c.weight, extrinsic=c.extrinsic)

    def begin(self, world: World, seed: int) -> None:
        """Forget everything, and read recorded data, whose pictures count as seen."""
        # Steps without their pictures, and the picture after each by its digest.
        self.past: list[tuple[Transition, str]] = []
        super().begin(world, seed)
        self.past = [(of_stream(t, 0), digest) for t, digest in self.past]  # one episode after the other

    def _relabelled(self, transitions: Sequence[Transition]) -> list[Transition]:
        """Note the steps; see :class:`~hunch.roles.reward.rewarded.Rewarded` for their rewards."""
        joined = super()._relabelled(transitions)
        self.past += [(of_stream(t, t.stream), t.next_state.pictures[-1].digest) for t in transitions]
        del self.past[:-REPLAYED]
        return joined

    def learn(self) -> dict[str, float]:
        """Train learner and source; if the rewards have changed, train the learner again on earlier steps."""
        fits = self.source.fits
        metrics = super().learn()
        if self.source.fits > fits and isinstance(self.agent, Relearning):
            rewards = self.source.given([digest for _, digest in self.past])
            self.agent.relearn([self.paid(t, r) for (t, _), r in zip(self.past, rewards, strict=True)])
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Return the state of learner and source, and the steps so far."""
        past = [(t.plain(), digest) for t, digest in self.past]
        return {**super().state_dict(), "past": past}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.past = [(Transition.of(plain), digest) for plain, digest in state["past"]]


def of_stream(t: Transition, stream: int) -> Transition:
    """Return a step as a step of another stream, without pictures."""
    states = {name: replace(getattr(t, name), pictures=(), stream=stream) for name in ("state", "next_state")}
    return replace(t, **states)


METHOD = Method(
    "rl-vlm-f",
    RLVLMF,
    "fit a reward to a model's preferences between pictures, and learn from it",
    "Wang et al., RL-VLM-F: RL from Vision Language Foundation Model Feedback, ICML 2024",
    leaf="LLM4RL / reward",
    environments="text environments that can be drawn, with --env.picture",
    reads={"pictures"},
    models={"lm": ("see",), **ENCODER},
    suggested=("openai:gpt-4o-mini?see=true", "pocket?corpus=clip"),
    roles=("reward source",),
)
