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
DEEPEST = 50
"""Maximum nesting of an object or list that is read (ours)."""
BEGINNING = 4_000
END = 8_000
"""Characters of a longer answer that are read as prose: more of its end, where answers decide (ours)."""
LONGEST_RUN = 200
"""Maximum characters of a run of signs and spaces that is read as prose (ours)."""
_SIGNS: Final = re.compile(rf"[\W_]{{{LONGEST_RUN + 1},}}")
_THINKS: Final = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad"
_OPENS: Final = rf"(?:<(?:{_THINKS})>|\[THINK\])"
_CLOSES: Final = rf"(?:</(?:{_THINKS})>|\[/THINK\])"
_THOUGHT: Final = re.compile(rf"{_OPENS}(?:(?!{_CLOSES}).)*+(?:{_CLOSES}|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT: Final = re.compile(_CLOSES, re.IGNORECASE)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*final\s*<\|message\|>", re.IGNORECASE)
_CONTROL: Final = re.compile(r"<\|(?:im_)?start(?:_header_id)?\|>\s*\w*|<\|[^|<>]{1,40}\|>")
_FENCE: Final = re.compile(
    r"(?:`{3,}+|^[ \t>]*+~{3,}+)[ \t]*+(?:[\w+.-]*+|\{[^}\n]{0,80}\})[ \t]*+\r?\n|"
    r"`{3,}+|^[ \t>]*+~{3,}+[ \t]*+\r?$",
    re.MULTILINE,
)
QUOTES: Final = "\"'`*_“”‘’«» \t\n"
_STRESSED: Final = re.compile(
    r"\*\*([^*\n]+)\*\*|`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]{1,1000})”"  # limited: “ may never be closed
)
_QUOTES_AT_END: Final = re.compile(r"(?<![\"'`*_”’])[\"'`*_”’]++([.,;:!]*)\s*$")
BULLET: Final = re.compile(r"^\s*(?:[*•>#]+\s*|[-–]\s+|\(?(?:\d{1,2}|[A-Za-z])[.):]\s+)+")


def spoken(answer: str) -> str:
    """Return an answer without thoughts and control tokens; empty if it ends in the middle of a thought."""
    if "<" not in answer and "[" not in answer:
        return answer
    text = _CHANNEL.split(answer)[-1]
    text = _END_OF_THOUGHT.split(_THOUGHT.sub("", text))[-1]
    return _CONTROL.sub("", text)


def bounded(text: str) -> str:
    """Return a text that can be read in little time: its beginning and end, with long runs of signs cut.

    The patterns that read prose try every place where something may begin, so that the time grows with the
    square of a text that repeats such places, as a model in a loop writes it. Answers of people are shorter.
    """
    if len(text) > BEGINNING + END:
        text = f"{text[:BEGINNING]}\n{text[-END:]}"
    half = LONGEST_RUN // 2
    return _SIGNS.sub(lambda run: run[0][:half] + run[0][-half:], text)


def read_line(answer: str, read: Callable[[str], T | None], stop: str = "\n") -> T | None:
    """Return the first line, or text in bold, code or quotes, of an answer that ``read`` accepts, or None.

    The whole answer is tried first.
    """
    text = unfenced(spoken(answer)).lstrip()
    for line in (text, *text.splitlines(), *stressed(text)):
        for candidate in (line, stripped(line)):
            value = read(cut(candidate, (stop,)))
            if value is not None:
                return value
    return None


def stressed(text: str) -> list[str]:
    """Return the passages in bold, in code or in quotes."""
    return ["".join(passage) for passage in _STRESSED.findall(text)]


def stripped(line: str) -> str:
    """Return a line without bullet or number, and without quotes or punctuation around it."""
    return _QUOTES_AT_END.sub(r"\1", BULLET.sub("", line)).strip(QUOTES)


def as_json(text: str) -> Any:
    """Return the object or list in a text that is JSON or a Python literal.

    None without one, or if it is nested more than :data:`DEEPEST` times.
    """
    bare = text.strip()
    if bare.startswith("[") and bare.endswith("]"):
        literal = bare
    elif "{" in bare:
        literal = bare[bare.find("{") : bare.rfind("}") + 1]
    else:
        return None
    value = _parsed(literal)
    return None if _is_deep(value) else value


def _parsed(literal: str) -> Any:
    """Return the value of a text in JSON or of a Python literal; None if it is neither."""
    try:
        return json.loads(literal)
    except (ValueError, RecursionError):
        pass
    if len(literal) >= LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _is_deep(value: Any) -> bool:
    """Return whether a value is nested more than :data:`DEEPEST` times; its readers call themselves."""
    level = [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                inside += part.values()
            elif isinstance(part, list | tuple | set):
                inside += part
        if not inside:
            return False
        level = inside
    return True


def unfenced(text: str) -> str:
    """Return a text without the markers of code fences."""
    return _FENCE.sub("\n", text) if "```" in text or "~~~" in text else text
