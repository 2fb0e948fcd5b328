"""What servers of chat models are sent: prompts as messages, and the schema of a choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hunch.lm.prompts import Message, Prompt

CONTINUE = "Continue the text of the user. Reply with the continuation alone, and do not repeat the text."


def messages_of(prompt: Prompt) -> Sequence[Message]:
    """Return a prompt as messages; a text is to be continued."""
    return (Message("system", CONTINUE), Message("user", prompt)) if isinstance(prompt, str) else prompt


def formatted(message: Message, picture: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return a message with its pictures first, each as ``picture`` writes it."""
    shown = [picture(image) for image in message.images]
    content: Any = [*shown, {"type": "text", "text": message.content}] if shown else message.content
    return {"role": message.role, "content": content}


def one_of(choices: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an object whose ``answer`` is one of some texts."""
    answer = {"type": "string", "enum": list(dict.fromkeys(choices))}
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    return {"name": "answer", "strict": True, "schema": schema | {"additionalProperties": False}}
