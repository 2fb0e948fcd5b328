"""Begins an agent or a source, as the loop does, for tests that call its methods one by one."""

from typing import Any

from hunch.core import World


def begun(thing: Any, world: World | None = None, seed: int = 0) -> Any:
    """Begin and return an agent or a source."""
    thing.begin(world or World(), seed)
    return thing
