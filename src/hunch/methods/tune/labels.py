"""Who compares texts, from the options of a method that learns from preferences."""

from __future__ import annotations

from hunch.core import UsageError
from hunch.lm.base import LanguageModel
from hunch.roles.reward.preferences import (
    PRINCIPLES,
    Gold,
    Judged,
    Preferences,
    Shuffled,
    read_pairs,
    read_principles,
    require_contrast,
)
from hunch.roles.reward.settings import RewardModelConfig


def check_labels(config: RewardModelConfig) -> None:
    """Refuse files that cannot be used, before a model is loaded.

    Raises:
        UsageError: naming the file.
    """
    if config.principles and config.labels != "judge":
        raise UsageError("principles are for a judge: set labels to judge.")
    if config.principles:
        read_principles(config.principles)
    if config.labels not in ("gold", "shuffled", "judge"):
        require_contrast(read_pairs(config.labels))


def preferences_of(config: RewardModelConfig, judge: LanguageModel | None) -> Preferences | str:
    """Return who compares, or the file with what was compared."""
    if config.labels == "judge":
        if judge is None:
            raise UsageError("labels=judge needs a language model that compares.")
        return Judged(judge, read_principles(config.principles) if config.principles else PRINCIPLES)
    noisy = {"gold": Gold, "shuffled": Shuffled}.get(config.labels)
    return noisy(config.noise) if noisy else config.labels
