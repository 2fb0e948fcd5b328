"""Converts pictures for messages to a model that reads pictures."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any, Final

from hunch.core import UsageError
from hunch.extras import library
from hunch.lm.prompts import Message

PICTURES: Final = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}


def picture(source: str | Path | bytes | Any) -> str:
    """Return a picture as a data URL, for a message.

    Args:
        source: A file or the bytes of a PNG, JPEG, GIF or WebP picture, or a uint8 array of shape
            (height, width, 3), which becomes a PNG.

    Raises:
        UsageError: if ``source`` is none of these, or the file does not exist.
    """
    if isinstance(source, str | Path):
        try:
            source = Path(source).expanduser().read_bytes()
        except OSError as error:
            raise UsageError(f"The picture {str(source)!r} cannot be read.") from error
    data = source if isinstance(source, bytes) else png(source)
    kind = next((kind for kind, marks in PICTURES.items() if data[:12].startswith(marks)), None)
    if kind is None:
        raise UsageError(f"A picture must be one of {', '.join(PICTURES)}, and these bytes are not.")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def message(source: str | Path | bytes | Any) -> tuple[Message]:
    """Return a message that is one picture, for a model that embeds pictures."""
    return (Message("user", "", (picture(source),)),)


def png(pixels: Any) -> bytes:
    """Return a uint8 array of shape (height, width, 3) as a PNG file.

    Raises:
        UsageError: if ``pixels`` is something else.
    """
    images = library("PIL.Image", "Pictures from arrays need Pillow", "plot")
    shape: tuple[int, ...] = getattr(pixels, "shape", ())
    if getattr(pixels, "dtype", None) != "uint8" or len(shape) != 3 or shape[2] != 3 or not pixels.size:
        raise UsageError("A picture as an array must be uint8 of shape (height, width, 3).")
    images.fromarray(pixels).save(file := io.BytesIO(), "PNG")
    return file.getvalue()
