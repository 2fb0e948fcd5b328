"""Games of OpenSpiel, for environments that put them into words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hunch.extras import library


def load_game(name: str, options: Mapping[str, Any], needed_by: str) -> Any:
    """Load a game of OpenSpiel.

    Args:
        name: OpenSpiel's name of the game.
        options: The game's parameters.
        needed_by: What needs it, for the message.

    Raises:
        UsageError: if ``open_spiel`` is not installed.
    """
    spiel = library("pyspiel", f"{needed_by} needs the package open_spiel", "open-spiel")
    return spiel.load_game(name, dict(options))
