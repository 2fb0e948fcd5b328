"""Properties that environments declare, for comparison with what methods need."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import gymnasium

Acts: TypeAlias = Literal["listed", "text", "program"]
"""Form of an action: one from a list, any text, or a program."""
Reads: TypeAlias = Literal["events", "raw", "pictures", "wording"]
"""Information that an agent may read besides texts and rewards: events, the environment's raw state,
pictures, and the wording of states and actions in prompts."""
Offer: TypeAlias = Literal["free_text", "programs"] | Reads
OFFERS = frozenset(name for part in get_args(Offer) for name in (get_args(part) or (part,)))
"""All names that an environment may list in ``offers``."""


def declared(env: gymnasium.Env[Any, Any]) -> frozenset[str] | None:
    """Return the properties in an environment's attribute ``offers``; None if it has none."""
    shown = hasattr(env, "has_wrapper_attr") and env.has_wrapper_attr("offers")  # a wrapper may offer more
    offers = env.get_wrapper_attr("offers") if shown else None
    texts = isinstance(offers, (tuple, list, set, frozenset)) and all(isinstance(o, str) for o in offers)
    if offers is None or not texts:  # an environment of others may mean something else by it
        return None
    return frozenset(offers)


def acts(offers: frozenset[str] | None) -> Acts:
    """Return the form of the actions of an environment with these properties; listed ones by default."""
    if offers is None or not offers & {"free_text", "programs"}:
        return "listed"
    return "program" if "programs" in offers else "text"
