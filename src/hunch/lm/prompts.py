"""Prompts: a text or a conversation that a model continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from hunch.core import UsageError

Role = Literal["system", "user", "assistant"]


class Message(NamedTuple):
    """One message of a conversation.

    Attributes:
        role: The speaker: ``system`` for instructions, ``user``, or ``assistant`` for the model.
        content: The text of the message.
        images: Pictures from :func:`hunch.lm.picture`, for models with the verb ``see``.
    """

    role: Role
    content: str
    images: tuple[str, ...] = ()


Prompt: TypeAlias = str | Sequence[Message]
"""A text or a list of messages. If the last message has the role ``assistant``, the model continues it."""


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
    """Return the pictures of a prompt as data URLs, in order."""
    return [] if isinstance(prompt, str) else [image for message in prompt for image in message.images]
