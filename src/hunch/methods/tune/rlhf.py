"""RLHF: demonstrations, preferences, a reward model, and a policy that is trained on it.

Algorithm (Ouyang et al., "Training language models to follow instructions with human feedback", NeurIPS 2022;
``rounds``: Bai et al., "Training a Helpful and Harmless Assistant with Reinforcement Learning from Human
Feedback", 2022)::

    1. pi  <- likelihood of demonstrations              optional: --lm may name a model trained by sft
       ref <- pi
    repeat rounds times
        2. pairs  <- two texts of pi for each of some prompts, and which one is preferred
           r      <- a reward model, fitted to all pairs so far
           pi     <- ref                                   with renew; otherwise pi is trained further
        3. ascend on  r(text) - kl log(pi / ref)        by PPO, or by RLOO with advantage=leave_one_out
                      + ptx log pi(demonstration)

    PPO    a token is one action; A by GAE from a value per token; - min(rho A, clip(rho) A) + value error
    RLOO   a text is one action; A = R - mean R of the group's others; one step along log pi(text) A

All texts are written in the one loop, so the steps of all stages count. The environment's reward is the gold
reward. It may decide preferences (``labels=gold``), but the policy learns from the reward model only: the
return of the run is gold, the metric ``intrinsic`` the learned reward, and ``success`` is not used. Controls:
``labels=shuffled``, and :mod:`hunch.methods.decode.best_of_n` at the same number of texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hunch.core import Player, State, Transition, UsageError, World
from hunch.lm.base import LanguageModel
from hunch.lm.speech import text_of
from hunch.lm.tuning import require_trainable
from hunch.methods.method import Method
from hunch.methods.policy.glam import WALKS
from hunch.methods.settings import configure
from hunch.methods.tune.agent import GroupConfig, WritingAgent, require_weight_to_adapt
from hunch.methods.tune.recorded import examples
from hunch.methods.tune.text import TextConfig, Writer
from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from hunch.rl.policy import Decision
from hunch.rl.settings import UpdateConfig
from hunch.roles.policy.settings import TextPolicyConfig
from hunch.roles.reward.preferences import check_labels, preferences_of
from hunch.roles.reward.rewarded import Rewarded
from hunch.roles.reward.settings import RewardModelConfig

if TYPE_CHECKING:
    from hunch.roles.reward.model import RewardModel

SHOWN = 4
"""Number of texts per update that are recorded for readers."""
BATCH = 64
"""Demonstrations per update of stage 1 (our choice)."""
RATE = 3e-3
"""Adam's initial learning rate in stage 1, which falls linearly to 0 (our choice)."""


@dataclass(frozen=True, kw_only=True)
class PolicyStageConfig(GroupConfig, TextConfig):
    """Settings of stage 3, the training of the policy."""

    lm: str = ""
    """Causal model to train, hf:<name, folder or run>; or scratch, with demonstrations. Default: the small
    pocket?corpus=walks of this project."""
    advantage: Literal["gae", "leave_one_out"] = "gae"
    """Advantage in stage 3: by a value per token (gae, PPO), or less the mean of the group's others
    (leave_one_out, RLOO)."""
    group: PositiveInt = 1
    """With leave_one_out: answers to one prompt, at least 2; 1 with gae."""
    episodes: PositiveInt = 64
    """Texts per update of stage 3, in whole groups."""
    kl: NonNegativeFloat = 0.2
    """Weight of the KL divergence from the model before stage 3 (our choice; InstructGPT: 0.02)."""
    kl_aim: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """KL divergence per text, in nats, to which the weight kl is adapted after each update (Ziegler et al.,
    2019); 0 keeps the weight fixed."""
    ptx: NonNegativeFloat = 0.0
    """Weight of the log-likelihood of demonstrations, per token (InstructGPT: 27.8, at another scale)."""
    learning_rate: PositiveFloat = 3e-4
    """Adam learning rate of the policy, for under a million weights (our choice; InstructGPT: 9e-6)."""


@dataclass(frozen=True, kw_only=True)
class RLHFConfig(RewardModelConfig, PolicyStageConfig):
    """Settings of reinforcement learning from human feedback."""

    demonstrations: NonNegativeInt = 0
    """Updates on the environment's demonstrations in stage 1; 0 if the model was trained on them before."""
    rounds: PositiveInt = 1
    """Number of rounds; each collects new pairs from the newest policy (Bai et al.: weekly)."""
    renew: bool = field(default=False, metadata=LATER)
    """Train a new policy in each round, from the model of stage 1, as Bai et al. do; otherwise the policy of
    the round before is trained further."""


class Policy(WritingAgent):
    """The policy of stage 3, regularised towards the model of stage 1 and by demonstrations."""

    config_class: ClassVar[type[Any]] = PolicyStageConfig
    saved = ("words", *WritingAgent.saved)

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Do nothing: :class:`RLHF` has checked everything."""

    def reference_spec(self) -> str:
        """Return the reference: the model itself, at the end of stage 1."""
        return "start"

    def policy_settings(self) -> TextPolicyConfig:
        """Return the settings of the policy, which has a value."""
        return TextPolicyConfig(max_tokens=self.config.max_tokens, width=128)

    def objective(self) -> UpdateConfig:
        """Return the objective of stage 3, of PPO or RLOO, and how it is optimised."""
        c = self.config
        # The reward of each token is  - kl (log pi - log ref),  plus r(text) at the last one.
        common = UpdateConfig(
            gamma=1.0,
            kl=c.kl,
            kl_in="reward",
            kl_aim=c.kl_aim,
            entropy=0.0,
            micro=c.micro,
            learning_rate=c.learning_rate,
            max_norm=1.0,
        )
        if c.advantage == "leave_one_out":
            return replace(
                common, advantage="leave_one_out", unit="text", whiten=False, epochs=1, batch_size=0
            )
        return replace(
            common,
            advantage="gae",
            unit="token",
            gae=0.95,
            whiten=True,
            clip=0.2,
            clip_value=True,
            value=0.5,
            epochs=4,
            batch_size=32,
        )

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights; a model with a growing vocabulary adds the demonstrations' words."""
        super().begin(world, seed)
        known = examples(world)
        prompts = [self.policy.prompt(example.state) for example in known]
        texts = [example.text for example in known]
        pairs = list(zip(prompts, texts, strict=True))
        self.texts = [*pairs]
        self.lm.take(part for prompt, text in pairs for part in (text_of(prompt), text))
        if self.config.ptx:
            self.learner.extra = self.likelihood_of_texts

    def renew(self) -> None:
        """Begin a new policy: the weights of stage 1 and a new optimiser; the value stays."""
        with self.lm.with_weights(self.policy.reference_state):
            weights = {name: weight.clone() for name, weight in self.lm.state_dict().items()}
        self.lm.load_state_dict(weights)
        updates = self.learner.updates
        self.learner = self.make_learner()
        self.learner.updates = updates
        if self.config.ptx:
            self.learner.extra = self.likelihood_of_texts
        self.kept.clear()


class RLHF(Rewarded):
    """The agent of RLHF.

    Args:
        config: All settings; ``options`` change single ones.
        judge: The model that compares two texts, if ``labels`` is judge.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that cannot be trained to write.
        HunchError: if a model cannot be loaded.
    """

    config_class: ClassVar[type[Any]] = RLHFConfig
    rate: ClassVar[float] = RATE
    saved = (*Rewarded.saved, "imitated", "played", "round", "rng", "samples", "imitation", "settled")
    agent: Policy
    source: RewardModel

    def __init__(self, config: Any = None, judge: LanguageModel | None = None, **options: Any) -> None:
        from hunch.roles.reward.model import RewardModel  # loads torch

        c: RLHFConfig = configure(type(self), config, options)
        self.check(c, {})
        self.config = c
        source = RewardModel(c.lm or WALKS, preferences_of(c, judge), c, c.micro)
        policy_settings = {entry.name: getattr(c, entry.name) for entry in fields(PolicyStageConfig)}
        super().__init__(Policy(PolicyStageConfig(**policy_settings)), source, extrinsic=0.0)
        if c.paired:
            self.group = max(2, self.group)

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> RLHF:
        """Make the agent with its judge."""
        return cls(config, models.get("judge"))

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that the settings and models allow learning."""
        require_trainable(specs.get("lm", "") or config.lm or WALKS)
        if (config.advantage == "leave_one_out") != (config.group > 1):
            raise UsageError("leave_one_out compares a group: set group to at least 2; gae needs group 1.")
        require_weight_to_adapt(config.kl, config.kl_aim)
        check_labels(config)

    # ---- the stages -----------------------------------------------------------------------------------

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and begin the first stage."""
        from hunch.lm.training import Learner  # loads torch

        super().begin(replace(world, data=()), seed)
        self.streams = world.streams
        self.rng = np.random.default_rng([seed, 4])
        self.imitated = 0  # updates of stage 1
        self.played = 0  # texts of all stages
        self.round = 1
        self.samples: list[dict[str, Any]] = []
        self.latest: list[dict[str, Any]] = []
        self.all_steps = world.steps
        self.round_steps = max(1, world.steps // self.config.rounds)
        self.imitation = Learner.adam(self.agent.lm.parameters()) if self.config.demonstrations else None
        self.settled: dict[str, Any] | None = None
        self.require(world.steps)

    def require(self, steps: int) -> None:
        """Check that the run is long enough for the last stage, and that demonstrations exist and fit."""
        needed = 0 if isinstance(self.source.preferences, str) else 2 * self.config.pairs * self.config.rounds
        needed += self.config.demonstrations * max(1, self.streams)  # stage 1 makes an update in each step
        if 0 < steps <= needed:
            raise UsageError(
                f"Demonstrations and pairs need {needed:,} steps, and the run has {steps:,}: set more."
            )
        if self.config.demonstrations and not self.agent.texts:
            raise UsageError("The environment has no demonstrations: set demonstrations to 0.")
        if self.config.ptx and not self.agent.texts:
            raise UsageError("ptx needs demonstrations, and the environment has none: set ptx to 0.")
        if self.config.demonstrations or self.config.ptx:
            self.agent.require_room_for_texts()

    @property
    def imitating(self) -> bool:
        """True during stage 1."""
        demonstrations: int = self.config.demonstrations
        return self.imitated < demonstrations

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Collect pairs, or pass texts with the learned reward to the policy."""
        self.played += len(transitions)
        if not self.imitating and not self.source.fitted:
            self.source.rewards(transitions)
        elif not self.imitating:
            super().observe(transitions)

    def learn(self) -> dict[str, float]:
        """Make an update of the current stage, and return its metrics."""
        if self.imitating:
            return self.imitate()
        if not self.source.fitted:
            # Stage 2: fit the reward model once there are enough pairs.
            metrics = self.source.learn()
            if self.source.fitted:
                self.samples += self.source.records()[-1:]
                if self.config.renew and self.round > 1:
                    self.agent.renew()
            elif self.played >= self.all_steps > 0:
                self.source.warn_unfitted(self.played)
            return metrics
        # Stage 3: an update of the policy on the learned reward.
        before = self.agent.learner.updates
        metrics = super().learn()
        updates = self.agent.learner.updates
        is_power_of_two = updates & (updates - 1) == 0
        if updates > before and is_power_of_two:
            self.samples.append({"update": updates, "texts": self.latest})
        # The next round begins with new pairs.
        if self.round < self.config.rounds and self.played >= self.round * self.round_steps:
            self.round += 1
            self.source.collect()
            self.agent.kept.clear()  # these texts have rewards of the former reward model
        return metrics

    def imitate(self) -> dict[str, float]:
        """Maximise the likelihood of demonstrations; after the last update the model is the reference."""
        assert self.imitation is not None
        rows = self.rng.integers(len(self.agent.texts), size=BATCH)
        prompts, texts = zip(*[self.agent.texts[i] for i in rows], strict=True)
        remaining = 1 - self.imitated / self.config.demonstrations
        loss = self.agent.learn_likelihood(prompts, texts, self.imitation, self.rate * remaining)
        metrics = {"loss": loss}
        self.imitated += 1
        if not self.imitating:
            self.settled = self.agent.policy.set_reference()
        return metrics

    def _relabelled(self, transitions: Sequence[Transition]) -> list[Transition]:
        relabelled = super()._relabelled(transitions)
        self.latest = [
            {"prompt": t.state.observation, "text": t.action, "reward": t.reward, "learned": learned.reward}
            for t, learned in list(zip(transitions, relabelled, strict=True))[:SHOWN]
        ]
        return relabelled

    def records(self) -> list[dict[str, Any]]:
        """Return fits of the reward model, and texts with both rewards at updates 1, 2, 4, 8 and so on."""
        return self.samples

    # ---- acting ---------------------------------------------------------------------------------------

    def player(self, seed: int) -> Player:
        """Return a player that writes with the same weights, and reports the learned reward."""
        return Writer(self.agent.write, self.text_metrics, seed)

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the mean KL divergence and the mean learned reward of texts."""
        if not self.source.fitted:
            return self.agent.text_metrics(states, decisions)
        proxy = self.source.score(states, [decision.text for decision in decisions])
        return {**self.agent.text_metrics(states, decisions), "proxy": float(proxy.mean())}

    # ---- state ----------------------------------------------------------------------------------------

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.agent.policy.reference_state = self.settled


METHOD = Method(
    "rlhf",
    RLHF,
    "a reward model is fitted to preferences, and a model that writes is trained on it",
    "Ouyang et al., Training language models to follow instructions with human feedback, NeurIPS 2022; "
    "Bai et al., Training a Helpful and Harmless Assistant with RL from Human Feedback, 2022",
    leaf="RL4LLM / fine-tuning",
    environments="free text of one step",
    acts="text",
    reads={"raw"},
    optional={"raw"},
    models={"judge": ("generate", "decide")},
    lm=WALKS,
    roles=("policy", "reward source"),
    control="shuffled preferences",
    data="none",
    changeable=("temperature",),
)
