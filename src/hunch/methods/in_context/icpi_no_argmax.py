"""ICPI without the arg-max: imitates successful episodes, without planning.

The baseline "No ArgMax" of Brooks et al. (2023). It improves by imitation only: the prompt shows episodes,
and parts of them, whose discounted return exceeds the domain's threshold. Everything else is as in ICPI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hunch.core import Explanation, FloatArray, State
from hunch.envs.icpi.texts import Texts
from hunch.lm.base import LanguageModel
from hunch.methods.in_context.icpi import BROOKS, ICPI, PlanConfig
from hunch.methods.method import Method
from hunch.ranges import NonNegativeFloat
from hunch.roles.policy.in_context import InContextPolicy
from hunch.roles.world_model.experience import Episode, return_of
from hunch.roles.world_model.prompting import PromptConfig


@dataclass(frozen=True, kw_only=True)
class ICPINoArgMaxConfig(PlanConfig, PromptConfig):
    """Settings of ICPI without the arg-max."""

    policy_temperature: NonNegativeFloat | None = 0.0
    """Temperature at which the action is drawn (released code); none for the setting temperature."""


class ICPINoArgMax(ICPI):
    """The agent of "No ArgMax"; arguments of :class:`~hunch.methods.in_context.icpi.ICPI`, with one model."""

    config_class = ICPINoArgMaxConfig

    def __init__(self, lm: LanguageModel, config: ICPINoArgMaxConfig | None = None, **options: Any) -> None:
        super().__init__(lm, config, **options)
        self.policy = partial(InContextPolicy, self.completer, successful=True)

    def passes(self, episode: Episode, texts: Texts) -> bool:
        """Return whether the return exceeds the domain's threshold."""
        return return_of(episode, texts.gamma) > texts.success_threshold

    def q(self, states: Sequence[State], rng: np.random.Generator) -> list[FloatArray]:
        """Return 1 for the action that the policy writes, and 0 for the others."""
        seeds = rng.integers(2**63, size=len(states))
        policy = self.policy(self.experience, self.words)
        named = policy.choose(
            [state.observation for state in states], list(map(np.random.default_rng, seeds))
        )
        return [
            np.array([float(action == name) for action in state.options])
            for state, name in zip(states, named, strict=True)
        ]

    def explain(self, state: State) -> Explanation:
        """Return the probability of each action, from one answer of the policy; there is no Q."""
        return Explanation({}, super().explain(state).chosen)


METHOD = Method(
    "icpi-no-argmax",
    ICPINoArgMax,
    "imitate its own successes from examples, without planning; a baseline of icpi",
    BROOKS,
    leaf="LLM4RL / policy",
    environments="the domains of ICPI",
    reads={"wording"},
    models={"lm": ("generate",)},
    lm="pocket",
    roles=("in-context policy",),
)
