"""Zero-shot prior: act by the language model alone, and learn nothing::

    a  ~  p_LM(. | s)

A method with a prior must do better than this for its learning to count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hunch.core import Agent, Explanation, State, Transition, World
from hunch.lm.base import LanguageModel
from hunch.methods.method import PROPOSES, Method
from hunch.methods.settings import configure, filled, models_of
from hunch.roles.prior.base import ActionPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior


@dataclass(frozen=True, kw_only=True)
class ZeroShotConfig:
    """Settings of the zero-shot prior."""

    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""


class ZeroShot(Agent):
    """The agent that draws each action from the prior.

    Args:
        prior: Proposes actions; frozen.
        config: Settings with which the prior was made; ``options`` change single ones.
    """

    config_class: ClassVar[type[Any]] = ZeroShotConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "fallbacks")

    def __init__(self, prior: ActionPrior, config: ZeroShotConfig | None = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)
        self.prior = filled(prior, "propose")
        self.models = models_of(lm=prior)

    @classmethod
    def build(cls, config: ZeroShotConfig, models: Mapping[str, LanguageModel]) -> ZeroShot:
        """Make the prior from the model ``lm``."""
        return cls(build_prior(config.prior, models["lm"]), config)

    def begin(self, world: World, seed: int) -> None:
        """Reset the random generator."""
        self.rng = np.random.default_rng(seed)
        self.fallbacks: list[float] = []

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw one action from p(a|s) for each state."""
        actions = []
        for state, proposal in zip(states, self.prior.propose(states, 1, self.rng), strict=True):
            (index,) = proposal.indices  # one draw is one candidate
            actions.append(state.options[int(index)])
            if not np.isnan(proposal.fallbacks):  # nan if the prior always names an action
                self.fallbacks.append(proposal.fallbacks)
        return actions

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: the agent has no memory."""

    def learn(self) -> dict[str, float]:
        """Return the share of answers that named no action, if the prior counts it; nothing is learnt."""
        if not self.fallbacks:
            return {}
        metrics = {"fallback_rate": float(np.mean(self.fallbacks))}
        self.fallbacks = []
        return metrics

    def player(self, seed: int) -> ZeroShot:
        """Return a player with the same prior and a separate random generator."""
        twin = ZeroShot(self.prior, self.config)
        twin.begin(World(), seed)
        return twin

    def explain(self, state: State) -> Explanation:
        """Return the prior, estimated from 32 draws."""
        (proposal,) = self.prior.propose([state], 32, np.random.default_rng(0))
        prior = np.zeros(len(state.options))
        prior[proposal.indices] = proposal.weights
        return Explanation({"prior": prior}, prior)


METHOD = Method(
    "zero-shot",
    ZeroShot,
    "act by the language model's prior only, without learning",
    "Yan et al., Efficient Reinforcement Learning with Large Language Model Priors, ICLR 2025",
    leaf="LLM4RL / policy",
    models={"lm": PROPOSES},
    lm="minilm",
    roles=("action prior",),
    data="none",
    changeable=("prior",),
)
