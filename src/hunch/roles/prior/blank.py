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
    """Return a text without the lines that contain one of these texts; as it is if none does."""
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not any(words in line for words in wanted)]
    return text if len(kept) == len(lines) else "".join(kept)
