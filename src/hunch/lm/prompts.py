"""Prompts: a text or a conversation that a model continues."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from hunch.core import UsageError
from hunch.plugins import library

Role = Literal["system", "user", "assistant"]


class Message(NamedTuple):
    """One message of a conversation.

    Attributes:
        role: The speaker: ``system`` for instructions, ``user``, or ``assistant`` for the model.
        content: The text of the message.
        images: Pictures from :func:`picture`, for models with the verb ``see``.
    """

    role: Role
    content: str
    images: tuple[str, ...] = ()


Prompt: TypeAlias = str | Sequence[Message]
"""A text or a list of messages. If the last message is the model's own, the model continues it."""
PICTURES: Final = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}
SPEAKERS: Final = {"user": "User", "assistant": "Assistant"}


def as_prompt(prompt: Prompt) -> str | tuple[Message, ...]:
    """Return a prompt in its hashable form: a text, or a tuple of messages.

    Raises:
        UsageError: if there is no message, only system messages, or an item that is not a message.
    """
    if isinstance(prompt, str):
        return prompt
    said = tuple(prompt)
    for message in said:
        if not (isinstance(message, tuple) and len(message) in (2, 3) and message[0] in get_args(Role)):
            raise UsageError(
                "A prompt is a text or a list of messages such as Message('user', 'What now?'), with the "
                f"roles {', '.join(get_args(Role))}; {message!r} is not a message."
            )
        if not isinstance(message[1], str):
            raise UsageError(f"The content of a message must be text, not {message[1]!r}.")
        images = message[2] if len(message) == 3 else ()
        if not all(isinstance(image, str) and image.startswith("data:image/") for image in images):
            raise UsageError("The images of a message must be a tuple of results of hunch.lm.picture.")
    if not any(message[0] != "system" for message in said):
        raise UsageError("A conversation needs at least one message of the user.")
    return tuple(Message(message[0], message[1], *map(tuple, message[2:])) for message in said)


def shown(prompt: Prompt) -> list[str]:
    """Return the pictures of a prompt, in order."""
    return [] if isinstance(prompt, str) else [image for message in prompt for image in message.images]


def picture(source: str | Path | bytes | Any) -> str:
    """Return a picture as a data URL, for a message.

    Args:
        source: A file or the bytes of a PNG, JPEG, GIF or WebP picture, or a uint8 array of shape
            (height, width, 3), which becomes a PNG.

    Raises:
        UsageError: if it is none of these, or the file does not exist.
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


def png(pixels: Any) -> bytes:
    """Return a uint8 array of shape (height, width, 3) as a PNG file.

    Raises:
        UsageError: if it is something else.
    """
    images = library("PIL.Image", "Pictures from arrays need Pillow", "plot")
    if (
        getattr(pixels, "dtype", None) != "uint8"
        or pixels.ndim != 3
        or pixels.shape[2] != 3
        or not pixels.size
    ):
        raise UsageError("A picture as an array must be uint8 of shape (height, width, 3).")
    images.fromarray(pixels).save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def text_of(prompt: Prompt) -> str:
    """Return a prompt as one text, for models that only continue text.

    Instructions and a single request are joined with a blank line. In a conversation the speakers are named,
    and the text ends where the model's turn begins.
    """
    if isinstance(prompt, str):
        return prompt
    if all(message.role != "assistant" for message in prompt):
        return "\n\n".join(message.content for message in prompt)
    lines = [m.content if m.role == "system" else f"{SPEAKERS[m.role]}: {m.content}" for m in prompt]
    return "\n\n".join(lines if prompt[-1].role == "assistant" else [*lines, f"{SPEAKERS['assistant']}:"])


def extended(prompt: Prompt, more: str) -> Prompt:
    """Return a prompt with text added at the end, or at the end of its last message."""
    if isinstance(prompt, str):
        return prompt + more
    *before, last = prompt
    return (*before, last._replace(content=last.content + more))
