"""Games of OpenSpiel, for environments that put them into words."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from hunch.core import UsageError


def load_game(name: str, options: Mapping[str, Any], needed_by: str) -> Any:
    """Load a game of OpenSpiel.

    Args:
        name: OpenSpiel's name of the game.
        options: The game's parameters.
        needed_by: What needs it, for the message.

    Raises:
        UsageError: if ``open_spiel`` is not installed.
    """
    try:
        spiel = import_module("pyspiel")
    except ImportError:
        raise UsageError(
            f"{needed_by} needs the package open_spiel: pip install 'hunch-rl[open-spiel]'."
        ) from None
    return spiel.load_game(name, dict(options))
