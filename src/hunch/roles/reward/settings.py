"""The settings of a reward model; this module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt


@dataclass(frozen=True, kw_only=True)
class RewardModelConfig:
    """Settings of a reward model that is fitted to compared texts."""

    pairs: PositiveInt = 600
    """Pairs of texts to compare, written by the policy in the first steps of the run (InstructGPT: 33,000
    prompts)."""
    labels: str = "gold"
    """Source of comparisons: gold (the environment's reward with noise), shuffled (control), judge (language
    model), mixed (gold and judge, half each), or a file in TRL's columns prompt, chosen and rejected, which
    replaces the pairs."""
    paired: bool = field(default=False, metadata=LATER)
    """Neighbouring streams get the same prompts, so that each prompt has two texts to compare. Needed where
    prompts hardly repeat; then the number of streams is even."""
    noise: NonNegativeFloat = 0.5
    """With labels gold: temperature of the preferences; 0 always prefers the higher reward (our choice)."""
    judge: str = "uniform"
    """With labels judge or mixed: the model that compares."""
    principles: str = ""
    """With labels judge or mixed: file of principles, one per line; one is drawn for each pair."""
    ensemble: PositiveInt = 1
    """Number of reward models, trained with different seeds (Coste et al., ICLR 2024: 5)."""
    combine: Literal["mean", "worst"] = "mean"
    """Reward of an ensemble: the mean of its rewards, or the lowest."""
    head_l2: PositiveFloat | None = field(default=None, metadata=LATER)
    """Weight of the squared length of the head, over standardised features. None: for a model of more than 50
    million weights, whose features may outnumber the pairs, by cross-validation on the pairs; for a smaller
    one 0.003 (our choice)."""
    reward_epochs: NonNegativeInt = 0
    """Passes over the pairs in which all weights are fitted, after the head alone (our choice; InstructGPT:
    1)."""
    reward_rate: PositiveFloat = 1e-3
    """Adam learning rate of these passes, which falls linearly to 0, for a model under a million weights
    (our choice; InstructGPT: 9e-6)."""
