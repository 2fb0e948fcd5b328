"""Rules that use only words and work in any environment: ``first`` and ``overlap``."""

from __future__ import annotations

import re

from hunch_studies.rules.model import rule


@rule("first", "7a50d00cf6b04afd")
def first(prompt: str, options: tuple[str, ...]) -> str:
    """Take the first option."""
    return options[0]


@rule("overlap", "c2766ee2a3386e3a")
def overlap(prompt: str, options: tuple[str, ...]) -> str:
    """Take the option that shares most words with the task, the earlier one of equals.

    The task is the last line of the form "... task ...: TASK", or else the prompt without its lists.
    """
    tasks = re.findall(r"(?im)^[^:\n]*\btask\b[^:\n]*:[ \t]*(\S.*)$", prompt)
    text = tasks[-1] if tasks else re.sub(r"(?m)^- .*$", "", prompt)
    words = _words(text)
    return max(options, key=lambda option: len(words & _words(option)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
