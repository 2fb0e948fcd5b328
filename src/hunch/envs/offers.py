"""What environments declare that they offer, to be compared with what methods need."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import gymnasium

Acts: TypeAlias = Literal["listed", "text", "program"]
"""What an action is: one of a list, any text, or a program."""
Reads: TypeAlias = Literal["events", "raw", "pictures", "wording"]
"""What an agent may read besides texts and rewards: what happened in words, the environment's own state,
pictures, and how states and actions are written in prompts."""
Offer: TypeAlias = Literal["free_text", "programs"] | Reads
OFFERS = frozenset(name for part in get_args(Offer) for name in (get_args(part) or (part,)))
"""The names in ``offers`` of an environment."""


def declared(env: gymnasium.Env[Any, Any]) -> frozenset[str] | None:
    """Return what an environment declares in its attribute ``offers``; None if it declares nothing."""
    shown = hasattr(env, "has_wrapper_attr") and env.has_wrapper_attr("offers")  # a wrapper may offer more
    offers = env.get_wrapper_attr("offers") if shown else None
    return None if offers is None else frozenset(offers)


def acts(offers: frozenset[str] | None) -> Acts:
    """Return the kind of actions that an environment with these offers takes; listed ones by default."""
    if offers is None or not offers & {"free_text", "programs"}:
        return "listed"
    return "program" if "programs" in offers else "text"
