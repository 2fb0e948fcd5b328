"""The settings of the authors' code for DQN-Prior that differ from our defaults.

Source: the code released with Yan et al., "Efficient Reinforcement Learning with Large Language Model
Priors", ICLR 2025. It has different scripts for ALFWorld and for the kitchens of Overcooked. Differences that
are not settings of an agent are listed in ``docs/methods/dqn_prior.md``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final, Literal, TypeVar

Preset = Literal["own", "released", "released-kitchen"]
Config = TypeVar("Config", bound=Any)

_BOTH: Final[dict[str, Any]] = {
    "gamma": 0.99,
    "epsilon": (0.2, 0.2, 1),
    "warmup": 0,
    "optimiser": "adamw",
    "clip": 1.0,
    "reduction": "sum",
    "surplus": 100,
    "hidden": 64,
    "joint": True,
}
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "own": {},
    "released": {**_BOTH, "explore": "epsilon", "target": "hard", "target_every": 20, "round": 10},
    "released-kitchen": {**_BOTH, "explore": "mixed", "alpha": 0.1, "round": 5, "round_updates": 40},
}
BASELINE: Final[dict[str, Any]] = {"explore": "epsilon", "copies": 2}
"""Additional settings of the released baseline without a prior: it acts epsilon-greedily, and a failed
episode enters its replay buffer twice."""


def preset(config: Config, fixed: Collection[str], baseline: bool) -> Config:
    """Apply a config's preset to all settings that have our default and are not fixed by the method."""
    values = {**PRESETS[config.preset], **(BASELINE if baseline and config.preset != "own" else {})}
    ours = type(config)()
    free = [name for name in values if name not in fixed and getattr(config, name) == getattr(ours, name)]
    chosen: Config = replace(config, **{name: values[name] for name in free})
    return chosen
