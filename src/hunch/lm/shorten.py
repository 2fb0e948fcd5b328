"""Makes a prompt shorter that is longer than the model reads: the oldest history goes first.

In a run the history grows, and an observation may be longer than any before. A run does not end for that.
What is left out, in this order, until the prompt fits:

1. the oldest turns of a conversation; instructions, the first question (where there are no instructions) and
   the last stay;
2. the oldest steps of a transcript, which are the lines up to one that begins with ``>``; what stands before
   the first action stays;
3. the middle of the longest text: its first third and last two thirds of what fits stay, so that the task
   and the question at the end are kept.

The result depends on the prompt and on what fits only, so that equal requests stay equal.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from hunch.lm.prompts import Message, Prompt

GAP: Final = "[...]"
"""Stands where something was left out."""
SHORTEST: Final = 64
"""Characters of a text that are kept, however little fits."""
ACTION: Final = re.compile(r"> ?\S")

Fits = Callable[[Prompt], bool]


def shortened(prompt: Prompt, fits: Fits) -> Prompt:
    """Return a prompt that fits, or the shortest one if none does.

    Args:
        prompt: A text or messages.
        fits: Returns whether the model can read a prompt. A part of a prompt that fits must fit as well.
    """
    is_text = isinstance(prompt, str)
    messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)

    def fitting(now: Sequence[Message]) -> bool:
        return fits(now[0].content if is_text else tuple(now))

    def least(most: int, without: Callable[[int], list[Message]]) -> list[Message]:
        """Leave out as little as possible, at most ``most``, so that the rest fits."""
        amount = bisect_left(range(most), True, key=lambda some: fitting(without(some)))
        return without(amount)

    if not fitting(messages):
        messages = least(len(_turns(messages)), partial(_without_turns, messages))
    for leave_out, most in ((_without_steps, _steps), (_without_middle, _spare)):
        for place in _longest_first(messages):
            if not fitting(messages):
                text = messages[place].content
                messages = least(most(text), partial(_with, messages, place, leave_out))
    return messages[0].content if is_text else tuple(messages)


def _turns(messages: Sequence[Message]) -> list[int]:
    """Return the places of the turns that may go, oldest first."""
    spoken = [place for place, message in enumerate(messages) if message.role != "system"]
    begins = 0 if any(message.role == "system" for message in messages) else 1
    # The last question stays, and so does an answer that was begun after it.
    ends = 2 if messages[-1].role == "assistant" else 1
    return spoken[begins : max(begins, len(spoken) - ends)]


def _without_turns(messages: Sequence[Message], some: int) -> list[Message]:
    gone = _turns(messages)[:some]
    return [message for place, message in enumerate(messages) if place not in gone]


def _steps(text: str) -> int:
    """Return how many steps of a transcript may go: all but the first."""
    return max(0, sum(bool(ACTION.match(line)) for line in text.split("\n")) - 1)


def _without_steps(text: str, some: int) -> str:
    """Return a transcript without ``some`` steps after the first one."""
    if not some:
        return text
    lines = text.split("\n")
    ends = [at for at, line in enumerate(lines) if ACTION.match(line)]
    return "\n".join([*lines[: ends[0] + 1], GAP, *lines[ends[some] + 1 :]])


def _spare(text: str) -> int:
    """Return how many characters of a text may go."""
    return max(0, len(text) - SHORTEST)


def _without_middle(text: str, some: int) -> str:
    """Return a text without ``some`` characters after its first third."""
    if not some:
        return text
    kept = max(0, len(text) - some - len(GAP) - 2)
    first = kept // 3
    return f"{text[:first]} {GAP} {text[len(text) - (kept - first) :]}"


def _with(
    messages: Sequence[Message], place: int, leave_out: Callable[[str, int], str], some: int
) -> list[Message]:
    """Return messages, of which one is without a part of its text."""
    message = messages[place]
    text = leave_out(message.content, some)
    return [*messages[:place], message._replace(content=text), *messages[place + 1 :]]


def _longest_first(messages: Sequence[Message]) -> list[int]:
    """Return the places of messages by the length of their texts, the longest first; ties by place."""
    return sorted(range(len(messages)), key=lambda place: -len(messages[place].content))
