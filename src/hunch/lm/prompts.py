"""Prompts: a text or a conversation that a model continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

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


BEGIN: Final = "Begin."
"""The user's first turn where a conversation begins with an answer and the model demands a question."""
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


def alternating(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages in which user and assistant take turns and the user begins, as some models demand.

    Messages of one speaker in a row become one message. Instructions stay in front; a later one joins the
    user's turn, where it stands.
    """
    front = 0
    while front < len(messages) and messages[front].role == "system":
        front += 1
    turns: list[Message] = []
    if front:
        turns.append(_joined(messages[:front], "system"))
    for message in messages[front:]:
        said = message._replace(role="user") if message.role == "system" else message
        if turns and turns[-1].role == said.role:
            said = _joined([turns.pop(), said], said.role)
        elif said.role == "assistant" and all(turn.role == "system" for turn in turns):
            turns.append(Message("user", BEGIN))
        turns.append(said)
    return tuple(turns)


def without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages without the role of instructions: each joins the user's turn, where it stands."""
    users = [message._replace(role="user") if message.role == "system" else message for message in messages]
    return alternating(users)


def forms(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """Return the forms in which a model may accept a conversation, the given one first.

    Some chat templates refuse instructions (``system``), two messages of one speaker in a row, or an answer
    before a question. All forms hold all texts, in the same order.
    """
    return list(dict.fromkeys((tuple(messages), alternating(messages), without_system(messages))))


def _joined(messages: Sequence[Message], role: Role) -> Message:
    """Return messages of one speaker as one, its texts apart by a blank line."""
    texts = [message.content for message in messages if message.content]
    return Message(role, "\n\n".join(texts), tuple(image for message in messages for image in message.images))


def shown(prompt: Prompt) -> list[str]:
    """Return the pictures of a prompt as data URLs, in order."""
    return [] if isinstance(prompt, str) else [image for message in prompt for image in message.images]
