"""Any learner with a reward source of your own: ``--reward module:Class``.

The class implements :class:`hunch.roles.reward.rewarded.RewardSource`. The constructor takes nothing, or with
``--lm`` the language model as ``lm``; it then has the attributes ``models`` and ``evidence``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

from hunch.core import UsageError
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, PROPOSES, Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat
from hunch.roles.reward.rewarded import Rewarded, RewardSource, named_source


@dataclass(frozen=True, kw_only=True)
class RewardedLearnerConfig(LearnerConfig):
    """Settings of a learner with a reward source."""

    reward: str = ""
    """The reward source, as module:Class; the module may be a file in the current folder."""
    weight: NonNegativeFloat = 1.0
    """Weight of the source's rewards."""
    extrinsic: NonNegativeFloat = 0.0
    """Weight of the environment's reward."""


class RewardedLearner(Rewarded):
    """The agent with a reward source.

    Args:
        source: The reward source.
        config: All settings; ``options`` change single ones.
        encoder: Embeds states for the learners DQN and PPO. Default: that of the config.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = RewardedLearnerConfig

    def __init__(
        self, source: RewardSource, config: Any = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: RewardedLearnerConfig = configure(type(self), config, options)
        self.config = c
        super().__init__(learner(c, encoder), source, weight=c.weight, extrinsic=c.extrinsic)

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that the source can be imported and takes the models that are named."""
        lm = signature(named_source(config.reward)).parameters.get("lm")
        if lm is None and "lm" in specs:
            raise UsageError(f"The reward source {config.reward} takes no language model; leave --lm out.")
        if lm is not None and lm.default is lm.empty and "lm" not in specs:
            raise UsageError(f"The reward source {config.reward} needs a language model: name one with --lm.")

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> RewardedLearner:
        """Make the source, with the model of ``--lm`` if one is named, and the agent."""
        named = {name: models[name] for name in models if name == "lm"}
        return cls(named_source(config.reward)(**named), config, models["encoder"])


METHOD = Method(
    "rewarded",
    RewardedLearner,
    "learn from a reward source of your own",
    "yours",
    leaf="LLM4RL / reward",
    reads={"events", "raw", "pictures"},
    optional={"events", "raw", "pictures"},
    models={"lm": PROPOSES, **ENCODER},
    unnamed={"lm"},
    roles=("reward source",),
)
