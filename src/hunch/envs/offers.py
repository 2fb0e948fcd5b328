"""What environments may have beyond Gymnasium's: declared properties, and attributes for some uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import gymnasium

from hunch.core import PlainPrompt

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


# ---- attributes for some uses -----------------------------------------------------------------------------


@runtime_checkable
class AsksModels(Protocol):
    """An environment or wrapper that asks language models; a run counts them."""

    models: Mapping[str, Any]


@runtime_checkable
class HasForms(Protocol):
    """An environment whose actions have another form with another option.

    Attributes:
        forms: By the form, the option and its value, as in ``{"text": "whole true"}``.
    """

    forms: Mapping[str, str]


@runtime_checkable
class HasOption(Protocol):
    """A wrapper that an option of :func:`hunch.envs.make` stands for."""

    option: Mapping[str, Any]


@runtime_checkable
class HasSubtasks(Protocol):
    """An environment for skills: what is trained in it is a skill of a planner for each subtask."""

    subtasks: Sequence[Any]


@runtime_checkable
class HasMask(Protocol):
    """An environment whose texts may offend: pages show them as :meth:`masked` returns them."""

    def masked(self, text: str) -> str:
        """Return a text without what must not stand on a page."""
        ...


@runtime_checkable
class HasPool(Protocol):
    """An environment with a pool of games, which a model must not have been trained on."""

    pool: Sequence[Any]


@runtime_checkable
class HasOracle(Protocol):
    """An environment that knows a way to the goal, for recordings and references."""

    def oracle(self) -> Sequence[str]:
        """Return the best actions for the rest of the episode; empty if there are none."""


@runtime_checkable
class HasBest(Protocol):
    """An environment that knows the best action in any of its states, for labels only."""

    def best(self, raw: Any) -> str:
        """Return the best action in a state of ``info["raw"]``."""


@runtime_checkable
class HasExamples(Protocol):
    """An environment with demonstrations: texts of observations, or their chat messages, with answers."""

    examples: Sequence[tuple[PlainPrompt, Sequence[str]]]


@runtime_checkable
class CountsEpisodes(Protocol):
    """An environment that knows the number of its episode."""

    episode: int


@runtime_checkable
class HasWording(Protocol):
    """An environment that says how its states and actions are written in prompts; None if it does not."""

    wording: object | None
