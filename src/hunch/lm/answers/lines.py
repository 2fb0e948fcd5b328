"""The text of an answer without thoughts and code fences, and its lines without bullets and quotes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hunch.lm.backends.sampling import cut

T = TypeVar("T")
LONGEST_LITERAL = 2000
"""Maximum characters of an object in almost-JSON (a Python literal) that is parsed."""
_I: Final = re.IGNORECASE
_THINKS: Final = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad"
_OPENS: Final = rf"(?:<(?:{_THINKS})>|\[THINK\])"
_CLOSES: Final = rf"(?:</(?:{_THINKS})>|\[/THINK\])"
_THOUGHT: Final = re.compile(rf"{_OPENS}(?:(?!{_CLOSES}).)*+(?:{_CLOSES}|\Z)", re.S | _I)
_END_OF_THOUGHT: Final = re.compile(_CLOSES, _I)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*final\s*<\|message\|>", _I)
_CONTROL: Final = re.compile(r"<\|(?:im_)?start(?:_header_id)?\|>\s*\w*|<\|[^|<>]{1,40}\|>")
_FENCE: Final = re.compile(
    r"(?:`{3,}+|^[ \t>]*+~{3,}+)[ \t]*+(?:[\w+.-]*+|\{[^}\n]{0,80}\})[ \t]*+\r?\n|"
    r"`{3,}+|^[ \t>]*+~{3,}+[ \t]*+\r?$",
    re.MULTILINE,
)
QUOTES: Final = "\"'`*_“”‘’«» \t\n"
BULLET: Final = re.compile(r"^\s*(?:[*•>#]+\s*|[-–]\s+|\(?(?:\d{1,2}|[A-Za-z])[.):]\s+)+")


def spoken(answer: str) -> str:
    """Return an answer without thoughts and control tokens; empty if it ends in the middle of a thought."""
    if "<" not in answer and "[" not in answer:
        return answer
    text = _CHANNEL.split(answer)[-1]
    text = _END_OF_THOUGHT.split(_THOUGHT.sub("", text))[-1]
    return _CONTROL.sub("", text)


def read_line(answer: str, read: Callable[[str], T | None], stop: str = "\n") -> T | None:
    """Return the first line, or text in bold, code or quotes, of an answer that ``read`` accepts, or None.

    The whole answer is tried first.
    """
    text = unfenced(spoken(answer)).lstrip()
    for line in (text, *text.splitlines(), *stressed(text)):
        for bare in (line, stripped(line)):
            if (found := read(cut(bare, (stop,)))) is not None:
                return found
    return None


def stressed(text: str) -> list[str]:
    """Return the passages in bold, in code or in quotes."""
    spans = re.findall(r"\*\*([^*\n]+)\*\*|`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”", text)
    return ["".join(span) for span in spans]


def stripped(line: str) -> str:
    """Return a line without bullet or number, and without quotes or punctuation around it."""
    ends = re.sub(r"[\"'`*_”’]+([.,;:!]*)\s*$", r"\1", BULLET.sub("", line))
    return ends.strip(QUOTES)


def as_json(text: str) -> Any:
    """Return the object or list in a text that is JSON or a Python literal; None without one."""
    bare = text.strip()
    start, end = bare.find("{"), bare.rfind("}")
    held = bare if bare[:1] + bare[-1:] == "[]" else bare[start : end + 1] if start >= 0 else ""
    try:
        return json.loads(held)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(held) if len(held) < LONGEST_LITERAL else None
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def unfenced(text: str) -> str:
    """Return a text without the markers of code fences."""
    return _FENCE.sub("\n", text) if "```" in text or "~~~" in text else text
