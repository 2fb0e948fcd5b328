"""Draws a map of characters as an image, for ``render_mode="rgb_array"``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hunch.core import UsageError
from hunch.extras import install

CELL = 32
INK, PAPER, WALL, LINE = (32, 32, 32), (250, 250, 247), (120, 120, 120), (216, 216, 210)


def draw(rows: Sequence[str]) -> NDArray[np.uint8]:
    """Draw a map with one tile of 32 x 32 pixels per character, and return the image.

    ``#`` is a wall, a full stop or blank is bare floor, and any other character is drawn on a tile with its
    own colour.

    Returns:
        Image of shape (32 height, 32 width, 3), ``uint8``.

    Raises:
        UsageError: if Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise UsageError(f"Drawing needs Pillow: {install('plot')}.") from None
    width = max(map(len, rows))
    image = Image.new("RGB", (CELL * width, CELL * len(rows)), PAPER)
    brush = ImageDraw.Draw(image)
    font: Any = ImageFont.load_default(CELL * 2 // 3)
    for y, row in enumerate(rows):
        for x, mark in enumerate(row):
            left, top = CELL * x, CELL * y
            box = (left, top, left + CELL - 1, top + CELL - 1)
            brush.rectangle(box, fill=_colour(mark), outline=LINE)
            if mark not in "#. ":
                brush.text((left + CELL / 2, top + CELL / 2), mark, fill=INK, font=font, anchor="mm")
    return np.asarray(image, dtype=np.uint8)


def _colour(mark: str) -> tuple[int, int, int]:
    if mark in ". ":
        return PAPER
    if mark == "#":
        return WALL
    red, green, blue = hashlib.sha256(mark.encode()).digest()[:3]
    # Pale, so that the dark letter on it stays readable.
    return 160 + red % 90, 160 + green % 90, 160 + blue % 90
