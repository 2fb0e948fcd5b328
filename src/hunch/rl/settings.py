"""The settings of policy gradients; this module does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share

Kind: TypeAlias = Literal["gae", "returns", "group", "leave_one_out", "self_critical"]
"""Names of the advantages in :mod:`hunch.rl.advantages`."""
Divergence: TypeAlias = Literal["reverse", "forward"]
"""KL divergence of DPO from the reference: KL(pi || ref), its own, or KL(ref || pi)."""
GROUPED: Final = ("group", "leave_one_out", "self_critical")
"""Advantages that compare the episodes of a group."""


@dataclass(frozen=True, kw_only=True)
class UpdateConfig:
    """Settings of the policy gradient's update; the defaults are those of PPO.

    They are the objective and how it is optimised. Each method makes them from its own settings.
    """

    advantage: Kind = "gae"
    """Advantage: generalised estimates with a learnt value (gae), returns, returns standardised in groups
    (group, GRPO), less the others' mean (leave_one_out), or less the greedy one's (self_critical)."""
    unit: Literal["token", "text"] = "token"
    """Unit of one action: a token, or a whole text, whose log-probabilities are summed."""
    whiten: bool = True
    """Standardise the advantages of each batch (CleanRL)."""
    gamma: Share = 0.99
    """Discount per step, or per token of a text (CleanRL)."""
    gae: Share = 0.95
    """Lambda of generalised advantage estimation (CleanRL)."""
    epochs: PositiveInt = 4
    """Passes over the collected steps per update (CleanRL)."""
    batch_size: NonNegativeInt = 128
    """Steps per gradient step (CleanRL: a quarter of the update's steps); 0 for all steps of the update."""
    micro: PositiveInt = 128
    """Steps per forward and backward pass; gradients are accumulated over a batch, so batches may exceed the
    memory."""
    learning_rate: PositiveFloat = 2.5e-4
    """Adam learning rate (CleanRL)."""
    value_rate: NonNegativeFloat = 0.0
    """Adam learning rate of the weights that only the value uses; 0 for --learning-rate."""
    anneal: bool = False
    """Decrease the learning rates linearly to 0 over the run (CleanRL: yes)."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability (CleanRL)."""
    clip_high: PositiveFloat | None = None
    """Clipping range of ratios above 1; none for the same range as --clip."""
    clip_value: bool = True
    """Also clip the change of the value to the range --clip (CleanRL)."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value (CleanRL)."""
    entropy: NonNegativeFloat = 0.01
    """Weight of the policy's entropy (CleanRL)."""
    kl: NonNegativeFloat = 0.0
    """Weight of KL(policy || prior), if there is a prior; 0 for no such term."""
    kl_in: Literal["loss", "reward"] = field(default="loss", metadata=LATER)
    """Where the KL divergence counts: in the loss (GRPO), or in the reward of each token (InstructGPT)."""
    kl_aim: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """KL divergence per decision, in nats, to which the weight kl is adapted after each update (Ziegler et
    al., 2019); 0 keeps the weight fixed."""
    kl_end: NonNegativeFloat | None = None
    """Final value of the weight kl, which falls linearly over the run; none keeps it constant."""
    target_kl: NonNegativeFloat = 0.0
    """Stop an update when the KL divergence from the old policy exceeds this value in nats; 0 for never."""
    stop_kl: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """Stop the run before an update where the KL divergence from the reference exceeds this value, in nats
    per decision; 0 for never."""
    stop_entropy: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """Stop the run before an update where the entropy is below this value, in nats per token or choice; 0 for
    never."""
    max_norm: PositiveFloat = 0.5
    """Maximum gradient norm; larger gradients are scaled down (CleanRL)."""
    scale: PositiveFloat = 1.0
    """Factor applied to rewards."""
    confidence: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """Weight of the probability that the policy gave to its action, which is subtracted from the reward."""
    value_batch_size: PositiveInt = 128
    """Steps per gradient step of the value, where an update trains it in steps of its own (TWOSOME)."""


_ONE_PASS: Final[Mapping[str, Any]] = {"epochs": 1, "batch_size": 0, "clip_value": False, "whiten": False}
PRESETS: Final[Mapping[str, UpdateConfig]] = MappingProxyType(
    {
        "ppo": UpdateConfig(),
        "a2c": UpdateConfig(**_ONE_PASS, gae=1.0, learning_rate=7e-4),
        "reinforce": UpdateConfig(**_ONE_PASS, advantage="returns", gamma=1.0, entropy=0.0),
        "grpo": UpdateConfig(advantage="group", gamma=1.0, whiten=False, entropy=0.0, kl=0.04, epochs=1),
        "rloo": UpdateConfig(**_ONE_PASS, advantage="leave_one_out", unit="text", gamma=1.0, entropy=0.0),
    }
)
"""Settings of the algorithms as in their papers, but all with Adam.

A2C's learning rate, lambda and advantages as they are come from Stable-Baselines3; its weight of the entropy
is that of Mnih et al. (2016), and that of the value CleanRL's, as in PPO.

With one pass over one batch the ratio is 1, so the clipped surrogate has the gradient of A2C (Huang et
al., "A2C is a special case of PPO", 2022). GRPO's loss is divided by the tokens of the batch, not of each
text, which would favour long wrong texts. RLOO's paper puts the KL divergence into the reward (``kl_in``).
"""
