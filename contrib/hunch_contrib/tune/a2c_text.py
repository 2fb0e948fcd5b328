"""A2C on texts: as PPO on texts, with one gradient step on each batch of texts and without clipping.

Algorithm (Ramamurthy et al., ICLR 2023; Mnih et al., ICML 2016): the advantages of
:mod:`hunch.methods.tune.ppo_text` with a decay of 1, and one step along ``log pi A`` per update. At the first
step the ratio is 1, so PPO's clipped surrogate has this gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hunch.methods.tune.ppo_text import METHOD as PPO_TEXT
from hunch.methods.tune.ppo_text import VALUED, PPOText, PPOTextConfig
from hunch.ranges import PositiveInt, Share


@dataclass(frozen=True, kw_only=True)
class A2CTextConfig(PPOTextConfig):
    """Settings of A2C over the tokens of texts."""

    episodes: PositiveInt = 16
    """Episodes per update (our choice)."""
    gae: Share = 1.0
    """Lambda of generalised advantage estimation; 1 gives the returns minus the values (paper)."""


class A2CText(PPOText):
    """The agent of A2C on texts."""

    config_class: ClassVar[type[Any]] = A2CTextConfig
    fixed: ClassVar[Mapping[str, Any]] = {
        **{**VALUED, "epochs": 1, "batch_size": 0, "clip_value": False, "whiten": False, "clip": 0.2}
    }


METHOD = replace(
    PPO_TEXT,
    name="a2c-text",
    agent_class=A2CText,
    summary="a model that writes is trained by one step of the policy gradient per batch of texts",
)
