"""Requests for training and requests that are held out from it, told apart by their texts alone.

A request is on one side whatever the run, its seed, and how often it is drawn, so that "held out" means never
seen in training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar, get_args

from hunch.core import UsageError
from hunch.envs.base import TextEnv

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


class RequestEnv(TextEnv):
    """An environment whose episodes are one text each, to a request of a part.

    Args:
        part: Requests for training, those that are held out from it, or all.
        held_out: Share of the requests that are held out.
        draw: Seed of the parts.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such part.
    """

    offers = ("free_text", "events")
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 0}  # type: ignore[misc]
    called: ClassVar[str] = "request"
    """What the requests are called in messages."""

    def __init__(self, part: Part, held_out: float, draw: int, render_mode: str | None) -> None:
        super().__init__(1, render_mode)
        check_part(part)
        self.part: Part = part
        self.held_out = held_out
        self.draw = draw

    def drawn(
        self,
        options: Mapping[str, Any],
        draw_one: Callable[[], Request],
        text_of: Callable[[Request], str] = str,
    ) -> Request:
        """Return the request of a new episode; see :func:`drawn_from`.

        Raises:
            UsageError: if there are reset options, or no request is in the part.
        """
        if options:
            raise UsageError(f"{type(self).__name__} has no reset option {next(iter(options))!r}.")
        request = drawn_from(self.part, draw_one, text_of, self.held_out, self.draw)
        if request is None:
            raise UsageError(f"No {self.called} is in the part {self.part!r}: change held_out or draw.")
        return request

    def unshare(self, memo: dict[int, Any]) -> None:
        """Share everything: a step only replaces attributes."""
