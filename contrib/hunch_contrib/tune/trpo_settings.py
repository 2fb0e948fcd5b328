"""Settings of TRPO's update; this module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from hunch.rl.settings import UpdateConfig


@dataclass(frozen=True, kw_only=True)
class TrustRegionConfig(UpdateConfig):
    """Settings of TRPO's update."""

    step_kl: PositiveFloat = 0.01
    """Maximum KL divergence from the old policy per token, in nats (paper)."""
    cg_steps: PositiveInt = 15
    """Iterations of the conjugate gradient method (RL4LMs; paper: 10)."""
    damping: NonNegativeFloat = 0.1
    """Constant that is added to the diagonal of the Fisher matrix (paper)."""
    backtracks: PositiveInt = 10
    """Maximum steps of the line search (paper)."""
    shrink: Share = 0.8
    """Factor by which each step of the line search shortens the update (RL4LMs; paper's code: 0.5)."""
