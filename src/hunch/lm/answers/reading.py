"""Reads answers as people would: the option on which an answer decides, or the options that it lists.

Understands thoughts, code fences, quotes, prose around the answer, "Action: ...", markdown, numbering, other
case and JSON. An answer that denies an option, or names several without deciding, decides on none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from hunch.lm.answers.lines import as_json, spoken, unfenced

_ITEM: Final = re.compile(r"\A\s*(?:[-–*•](?!\d)\s*|\(?\d{1,3}[.)](?!\d)\s*)*")
"""Bullets and the number of an item, but not the number with which its text begins."""
_MINUS: Final = re.compile(r"\s*[-–—−]\s*\.?\d")
"""The beginning of a line that is a number below 0 or an item that is a number."""
MOST_ITEMS: Final = 1_000
"""Maximum items of a list that are read; a model in a loop writes more (ours)."""


def read_option(answer: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that an answer decides on; None if it decides on none.

    Args:
        answer: A model's answer.
        options: The possible options. A text that only resembles an option is not read as this option.
    """
    if not options:
        return None
    if answer in options:  # the quick way for models that answer to the letter
        return options.index(answer)
    return _reader(tuple(options))(answer)


def read_items(answer: str, options: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the first lines of an answer, or texts of its list, each with its option or None."""
    text = unfenced(spoken(answer))
    parsed = as_json(text)
    candidates = parsed.values() if isinstance(parsed, dict) else [parsed]
    listed = next((value for value in candidates if isinstance(value, list)), text.splitlines())
    items: list[tuple[str, str | None]] = []
    for line in map(str, listed[:MOST_ITEMS]):
        bare = _ITEM.sub("", line).strip().rstrip(".")
        if bare:
            items.append((bare, _named(line, bare, options)))
    return items


def _named(line: str, bare: str, options: Sequence[str]) -> str | None:
    if bare in options and not _MINUS.match(line):
        return bare
    index = read_option(line, options)
    return None if index is None else options[index]


@lru_cache(maxsize=4096)
def _reader(options: tuple[str, ...]) -> Callable[[str], int | None]:
    from hunch.lm.answers.deciding import Reader  # start-up: its patterns take 0.1 s, which no help waits for

    read = Reader(options).read
    return lambda answer: read(unfenced(spoken(answer)))
