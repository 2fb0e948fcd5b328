"""Parses the text of a state: its domain and its numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from hunch.envs.icpi.base import Domain
from hunch.envs.icpi.chain import Chain
from hunch.envs.icpi.maze import Maze

Numbers: TypeAlias = Any
"""A state in the form of ``info["state"]``; it differs between the domains."""


@dataclass(frozen=True)
class Form:
    """How the states of a domain are read.

    Attributes:
        pattern: A regular expression of the text.
        numbers: Returns the state that a match stands for.
        gist: Returns the relevant numbers of a state, which the hints also show.
        rewards: Number of different rewards, from 0.
    """

    pattern: str
    numbers: Callable[[re.Match[str]], Numbers]
    gist: Callable[[Numbers], list[float]] = list
    rewards: int = 2


def whole_numbers(match: re.Match[str]) -> list[int]:
    """Return the groups of a match as whole numbers."""
    return [int(group) for group in match.groups()]


FORMS: dict[type[Domain[Any]], Form] = {
    Chain: Form(r"assert state == \[(\d)\]", whole_numbers),
    Maze: Form(r"assert state == C\(i=(\d), j=(\d)\)", whole_numbers),
}
"""The domains that can be read. Packages that bring domains add theirs."""


@lru_cache(maxsize=1 << 14)
def read(text: str) -> tuple[type[Domain[Any]], Numbers] | None:
    """Parse the text of a state.

    Returns:
        The domain and the state in the form of ``info["state"]``, with the text's rounded numbers; ``None``
        if it is not a state of a known domain.
    """
    for domain, form in FORMS.items():
        if match := re.match(form.pattern, text):
            return domain, form.numbers(match)
    return None
