"""Requests for training and requests that are held out from it, told apart by their texts alone.

A request is on one side whatever the run, its seed, and how often it is drawn, so that "held out" means never
seen in training.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal, TypeAlias, get_args

from hunch.core import UsageError

Part: TypeAlias = Literal["train", "held-out", "all"]
"""Requests for training, those that no training sees, or both."""


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
