"""GiGPO: a model that acts in many turns learns from episodes of a group, and from equal states in them.

Algorithm (Feng et al., "Group-in-Group Policy Optimization for LLM Agent Training", NeurIPS 2025)::

    group streams play the same episode, each with its own texts
        r    <- r - invalid  where the environment refused the text
        A_E  <- (return - mean of the group) / standard deviation of the group        per episode
        for each state that several of their steps were taken in (an anchor)
            R_t  <- rewards from there on, discounted by gamma per step
            A_S  <- (R_t - mean among these steps) / their standard deviation          per step
    maximise  min(ratio A, clip(ratio) A) - kl KL(pi || reference)   with A = A_E + anchors A_S

As in the authors' code, two states are equal if their observations are; mean and deviation of the group count
an episode once for each of its steps; and a refused text is penalised. Departure: the penalty is part of the
reward, so it lowers the return of the whole episode, and R_t of the steps before; their code takes it from
the two returns of the refused step alone. With ``anchors=0``, ``average="episodes"`` and ``invalid=0`` it is
:mod:`hunch.methods.tune.grpo` exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hunch.core import Transition, UsageError
from hunch.envs.wrappers import REFUSED
from hunch.methods.tune.grpo import GRPO, GRPOConfig
from hunch.methods.tune.grpo import METHOD as GRPO_METHOD
from hunch.ranges import NonNegativeFloat, Share
from hunch.rl.settings import UpdateConfig

if TYPE_CHECKING:
    from hunch.rl.policy_gradient import PolicyGradient


@dataclass(frozen=True, kw_only=True)
class GiGPOConfig(GRPOConfig):
    """Settings of group-in-group policy optimisation."""

    kl: NonNegativeFloat = 0.01
    """Weight of the KL divergence from the reference (paper)."""
    gamma: Share = 0.95
    """Discount per step in the comparison of equal states (paper)."""
    anchors: NonNegativeFloat = 1.0
    """Weight of the advantages from equal states (paper: omega, 1)."""
    average: Literal["steps", "episodes"] = "steps"
    """Mean and deviation of a group's returns are over its steps (released code), so that long episodes weigh
    more, or over its episodes (the paper's equation)."""
    invalid: NonNegativeFloat = 0.1
    """Penalty of a text that the environment refuses, taken from the reward of its step (0.1 is that of the
    released code, which takes it from the returns of this step alone)."""


class GiGPO(GRPO):
    """The agent of GiGPO: GRPO with another advantage."""

    config_class: ClassVar[type[Any]] = GiGPOConfig

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before a model is loaded that no groups are dropped: equal states teach, too."""
        super().check(config, specs)
        if config.drop_flat:
            raise UsageError(
                "gigpo also learns from equal states of groups with equal returns: leave out drop_flat."
            )

    def objective(self) -> UpdateConfig:
        """Return GRPO's objective, with the discount of the comparison of steps."""
        return replace(super().objective(), gamma=self.config.gamma)

    def make_learner(self) -> PolicyGradient:
        """Return the update, with advantages of episodes and of steps: A = A_E + anchors A_S."""
        from hunch.rl.advantages import anchored  # loads torch

        learner: PolicyGradient = super().make_learner()
        over_steps = self.config.average == "steps"
        learner.advantage = partial(anchored, weight=self.config.anchors, over_steps=over_steps)
        return learner

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep the steps; those whose text was refused with the penalty."""
        penalty = self.config.invalid
        super().observe(
            [replace(t, reward=t.reward - penalty) if t.event == REFUSED else t for t in transitions]
        )


METHOD = replace(
    GRPO_METHOD,
    name="gigpo",
    agent_class=GiGPO,
    summary="a model that acts over many steps learns from comparing episodes of a group, and equal states",
    paper="Feng et al., Group-in-Group Policy Optimization for LLM Agent Training, NeurIPS 2025",
)
