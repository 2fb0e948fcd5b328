"""The settings of policy gradients, without their code, which imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share

Kind: TypeAlias = Literal["gae", "returns", "group", "leave_one_out", "self_critical"]
"""Names of the advantages in :mod:`hunch.rl.advantages`."""
GROUPED: Final = ("group", "leave_one_out", "self_critical")
"""Kinds that compare the episodes of a group."""


@dataclass(frozen=True, kw_only=True)
class UpdateConfig:
    """The update of a policy gradient; the defaults are PPO."""

    advantage: Kind = "gae"
    """Advantage: generalised estimation with a learnt value, plain returns, returns standardised in groups
    (GRPO), returns minus those of the group's others (RLOO), or minus that of its first, greedy one."""
    unit: Literal["token", "text"] = "token"
    """What counts as one action: a token, or a whole text, whose log-probabilities are summed."""
    whiten: bool = True
    """Standardise the advantages of each batch (CleanRL)."""
    gamma: Share = 0.99
    """Discount per step (CleanRL); of a text, per token."""
    gae: Share = 0.95
    """Lambda of generalised advantage estimation (CleanRL)."""
    horizon: PositiveInt = 128
    """Steps per stream between updates (CleanRL)."""
    epochs: PositiveInt = 4
    """Passes over these steps per update (CleanRL)."""
    batch_size: NonNegativeInt = 128
    """Steps per gradient step (CleanRL: a quarter of the steps of an update); 0 for all of them."""
    micro: PositiveInt = 128
    """Steps computed at once; gradients are accumulated over a batch, which may be larger than memory
    allows."""
    learning_rate: PositiveFloat = 2.5e-4
    """Adam learning rate (CleanRL)."""
    value_rate: NonNegativeFloat = 0.0
    """Adam learning rate of the value's own weights; 0 for the same rate."""
    anneal: bool = False
    """Decrease the learning rates linearly to 0 over the run (CleanRL: yes)."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability (CleanRL)."""
    clip_high: PositiveFloat | None = None
    """Clipping range above 1; none for the same range."""
    clip_value: bool = True
    """Also clip the change of the value by this range (CleanRL)."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value (CleanRL)."""
    entropy: NonNegativeFloat = 0.01
    """Weight of the policy's entropy (CleanRL)."""
    kl: NonNegativeFloat = 0.0
    """Weight of KL(policy || prior), if there is a prior."""
    kl_in: Literal["loss", "reward"] = field(default="loss", metadata=LATER)
    """Where the divergence counts: in the loss (GRPO), or in the reward of each token (InstructGPT)."""
    kl_aim: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """Divergence of a whole decision, in nats, towards which ``kl`` is adapted after each update (Ziegler et
    al., 2019); 0 keeps it fixed."""
    kl_end: NonNegativeFloat | None = None
    """Value to which ``kl`` falls linearly over the run; none keeps it constant."""
    target_kl: NonNegativeFloat = 0.0
    """Stop an update once the KL divergence from the old policy exceeds this; 0 for never."""
    max_norm: PositiveFloat = 0.5
    """Maximum gradient norm; larger gradients are scaled down (CleanRL)."""
    scale: PositiveFloat = 1.0
    """Factor applied to rewards."""
    separate: bool = False
    """Learn values first and then actions, in separate batches, instead of both at once."""
    value_batch_size: PositiveInt = 128
    """separate: steps per gradient step of the value."""
    warmup: NonNegativeInt = 0
    """separate: environment steps during which only values are learnt."""


_ONE_PASS: Final[Mapping[str, Any]] = {"epochs": 1, "batch_size": 0, "clip_value": False, "whiten": False}
PRESETS: Final[Mapping[str, UpdateConfig]] = MappingProxyType(
    {
        "ppo": UpdateConfig(),
        "a2c": UpdateConfig(**_ONE_PASS, gae=1.0, horizon=5, learning_rate=7e-4),
        "reinforce": UpdateConfig(**_ONE_PASS, advantage="returns", gamma=1.0, entropy=0.0),
        "grpo": UpdateConfig(advantage="group", gamma=1.0, whiten=False, entropy=0.0, kl=0.04, epochs=1),
        "rloo": UpdateConfig(**_ONE_PASS, advantage="leave_one_out", unit="text", gamma=1.0, entropy=0.0),
    }
)
"""Settings of the algorithms as in their papers, but all with Adam; A2C's are Stable-Baselines3's.

With one pass over one batch the ratio is 1, so the clipped surrogate has the gradient of A2C (Huang et
al., "A2C is a special case of PPO", 2022). GRPO's loss is divided by the tokens of the batch, not of each
text, which would favour long wrong texts. RLOO's paper has the divergence in the reward (``kl_in``).
"""


@dataclass(frozen=True, kw_only=True)
class TrustRegionConfig(UpdateConfig):
    """The update of TRPO."""

    step_kl: PositiveFloat = 0.01
    """Largest divergence from the old policy per token, in nats (paper)."""
    cg_steps: PositiveInt = 15
    """Steps of the conjugate gradient (RL4LMs; paper: 10)."""
    damping: NonNegativeFloat = 0.1
    """Added to the diagonal of the Fisher matrix (paper)."""
    backtracks: PositiveInt = 10
    """Most steps of the line search (paper)."""
    shrink: Share = 0.8
    """Factor of the step at each step of the line search (RL4LMs; paper's code: 0.5)."""
