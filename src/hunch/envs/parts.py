"""Requests for training and requests that are held out from it, told apart by their texts alone.

A request is on one side whatever the run, its seed, and how often it is drawn, so that "held out" means never
seen in training.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from hunch.core import UsageError

Part: TypeAlias = Literal["train", "held-out", "all"]
"""Requests for training, those that no training sees, or both."""
TRIES: Final = 2_000
"""Number of requests that are drawn to find one of a part."""
Request = TypeVar("Request")


def check_part(part: str) -> None:
    """Check the name of a part.

    Raises:
        UsageError: if there is no such part.
    """
    if part not in get_args(Part):
        raise UsageError(f"part must be train, held-out or all, not {part!r}.")


def in_part(text: str, part: Part, share: float, draw: int) -> bool:
    """Return whether a request belongs to a part.

    Args:
        text: The request.
        part: The part.
        share: Share of all requests that are held out.
        draw: Seed of the parts.
    """
    if part == "all":
        return True
    digest = sha256(f"{draw}\n{text}".encode("utf-8", "replace")).digest()
    held_out = int.from_bytes(digest[:8], "big") < share * 2**64
    return held_out == (part == "held-out")


def drawn_from(
    part: Part, draw_one: Callable[[], Request], text_of: Callable[[Request], str], share: float, draw: int
) -> Request | None:
    """Draw requests until one belongs to a part; None if none of :data:`TRIES` does.

    Args:
        part: The part.
        draw_one: Draws a request.
        text_of: The text of a request; empty for one that must not be used.
        share: Share of all requests that are held out.
        draw: Seed of the parts.
    """
    for _ in range(TRIES):
        request = draw_one()
        text = text_of(request)
        if text and in_part(text, part, share, draw):
            return request
    return None
