"""The blank prompt of priors and policies: what is there and what is possible, and not what is wanted.

A model that chooses as well after the blank prompt does not use what the task says. So it is the control that
stands beside every model in these roles.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hunch.core import State


def aimless(state: State, manual: str | None = None) -> State:
    """Return a state without task and goals, and without what observations say of them.

    Args:
        state: The state.
        manual: Pattern of the task and the rules in observations, "" if they say nothing. By default the
            lines that repeat the task or a goal, so that rules which do not name it stay.
    """
    wanted = tuple(text for text in (state.task, *state.goals) if text)

    def cut(observation: str) -> str:
        if manual is None:
            return without_lines(observation, wanted)
        return re.sub(manual, "", observation) if manual else observation

    history = tuple((cut(observation), action) for observation, action in state.history)
    return replace(state, task="", goals=(), observation=cut(state.observation), history=history)


def without_lines(text: str, wanted: tuple[str, ...]) -> str:
    """Return a text without the lines that contain one of these texts; as it is if none does.

    Capital letters and the mark at the end of a sentence do not matter, as texts repeat a task in a sentence
    of their own. Of a text of several lines the same lines are sought, one below the other.
    """
    lines = text.splitlines(keepends=True)
    plain = [_plain(line) for line in lines]
    cut: set[int] = set()
    for words in wanted:
        sought = [_plain(line) for line in words.splitlines()]
        if not any(sought):
            continue
        for first in range(len(plain) - len(sought) + 1):
            block = plain[first : first + len(sought)]
            if all(part in line for part, line in zip(sought, block, strict=True)):
                cut |= {*range(first, first + len(sought))}
    return "".join(line for place, line in enumerate(lines) if place not in cut) if cut else text


def _plain(line: str) -> str:
    """Return a line in small letters, without white space around it and marks at its end."""
    return line.strip().rstrip(".!?").casefold()
