"""Base class of environments whose world is a level of the package ``minigrid``."""

from __future__ import annotations

from typing import Any

from hunch.core import UsageError
from hunch.envs.base import TextEnv


class GridEnv(TextEnv):
    """A text environment around a level of ``minigrid``, in its attribute ``_level``."""

    _level: Any
    tile = 32
    """Pixels of a cell's side in a picture."""

    def render(self) -> Any:
        """Return the map of ``minigrid`` above the observation, or its image, (height, width, 3) ``uint8``.

        Raises:
            UsageError: before the first ``reset``, or if made without a ``render_mode``.
        """
        if not self.task:
            raise UsageError("No episode has begun: call reset before render.")
        return (
            self._level.get_frame(tile_size=self.tile)
            if self.render_mode == "rgb_array"
            else super().render()
        )

    def _grid(self) -> list[str]:
        rows: list[str] = self._level.pprint_grid().splitlines()
        return rows
