"""Calls of tools: as models write them in texts, and as chat servers return them.

Everywhere in this library a call is a text, one JSON object, so that it can be an action, be stored and be
shown::

    {"name": "add", "arguments": {"a": 1, "b": 2}}

Several calls at once are a list of such objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

LONGEST_CALLS: Final = 64_000
"""Characters of the longest text that is read as calls."""
_TAGGED: Final = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCED: Final = re.compile(r"\A```(?:json)?(.*?)(?:```|\Z)", re.DOTALL)


_LINE_OF_JSON: Final = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
MOST_LINES: Final = 64
"""Largest number of lines of a text with other words at which a call may begin."""


class ToolCall(NamedTuple):
    """A call as it was written.

    Attributes:
        name: Name of the tool, which need not exist.
        arguments: Its arguments as JSON gives them; the text itself where it is no JSON.
    """

    name: str
    arguments: Any


def read_calls(text: str) -> list[ToolCall]:
    """Return the calls that a text makes, in order; none if it is another text.

    Understood are a JSON object or a list of them, alone or in a fenced block, with ``name`` and
    ``arguments`` (or ``parameters``), or with ``function`` that holds them, as in OpenAI's messages, whose
    arguments are JSON again; also the tags of Qwen and Hermes, ``<tool_call>…</tool_call>``. Words before and
    after are left alone, as small models explain what they do: then a call begins a line, and its arguments
    are given.
    """
    body = text.strip()
    if len(body) > LONGEST_CALLS:
        return []
    bodies = [body]
    if "<tool_call>" in body:
        bodies = _TAGGED.findall(body)
    elif fenced := _FENCED.match(body):
        bodies = [fenced[1]]
    calls: list[ToolCall] = []
    for part in bodies:
        values = _json(part)
        for value in values if isinstance(values, list) else [values]:
            call = _call(value)
            if call is None:
                return _calls_between_words(body)
            calls.append(call)
    return calls


def _calls_between_words(text: str) -> list[ToolCall]:
    """Return the calls that stand in a text on lines of their own; none if one of them is no call."""
    decoder = json.JSONDecoder()
    calls: list[ToolCall] = []
    end = 0
    for line in list(islice(_LINE_OF_JSON.finditer(text), MOST_LINES)):
        if line.end() < end:
            continue  # within the one before
        try:
            value, end = decoder.raw_decode(text, line.end())
        except (ValueError, RecursionError):
            continue
        for part in value if isinstance(value, list) else [value]:
            call = _call(part)
            if call is None or not part.keys() & {"arguments", "parameters", "function"}:
                return []
            calls.append(call)
    return calls


def calls_of(message: Mapping[str, Any]) -> list[ToolCall]:
    """Return the calls in a chat message of a server; none if it calls no tool.

    Raises:
        ValueError: if a call has no name.
    """
    entries = message.get("tool_calls") or ()
    if not entries and message.get("function_call"):  # the form of before 2024, which some servers keep
        entries = [message["function_call"]]
    calls = []
    for entry in entries:
        call = _call(entry)
        if call is None:
            raise ValueError("a call of a tool without a name")
        calls.append(call)
    return calls


def text_of_calls(calls: Sequence[ToolCall]) -> str:
    """Return calls as one text, which :func:`read_calls` reads."""
    objects = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return json.dumps(objects[0] if len(objects) == 1 else objects, ensure_ascii=False)


def _json(text: str) -> Any:
    """Return the value of a text in JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _call(value: Any) -> ToolCall | None:
    """Return the call that a value of JSON is; None if it is none."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        read = _json(arguments) if arguments.strip() else {}
        arguments = arguments if read is None else read
    return ToolCall(value["name"], {} if arguments is None else arguments)
