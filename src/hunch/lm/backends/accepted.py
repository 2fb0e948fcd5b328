"""Which fields of a request a server accepts: found out with small requests when a model is loaded.

Some models refuse ``temperature``, ``top_p``, ``seed`` or ``stop``, some a value (a temperature of 0, or any
but 1), some two of them together, and some chat templates refuse a system message. What is refused is left
out of every request. It is part of the model's revision, because the answers are then drawn otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from hunch.core import UsageError
from hunch.lm.backends.http import ROLES, RequestError
from hunch.lm.speech import Sampling

SYSTEM: Final = "system"
"""Left out, instructions are put into the user's turn."""
FIELDS: Final = ("n", "seed", SYSTEM, "stop", "stop_sequences", "top_p", "temperature")
"""Fields that may be left out, what changes least first."""
WORDS: Final = {
    SYSTEM: r"system|roles?\b|alternate|template",
    "stop": r"\bstop\b(?! ?_)",
    "n": r"['\"`]n['\"`]|\bparameter n\b|^n\b|: n\b",
}
"""How messages of servers name a field, where that is not its name alone."""
REFUSED: Final = (400, 422)
QUESTION: Final = "The sky is"
"""What the small requests ask."""
USUAL: Final = Sampling(4, 1.0, 1.0, ())
"""What most roles send."""
JUDGES: Final = Sampling(4, 0.0, 0.7, ("\n\n\n",))
"""What judges send: the most likely answer, a part of the distribution, and a text that ends the answer."""
WARM: Final = Sampling(4, 0.5, 0.7, ("\n\n\n",))
"""As judges, with a temperature that is not 0."""

Ask = Callable[[Sampling], Awaitable[Any]]
"""Sends a small request with a sampling; returns the answer, or the error as a value."""


def chosen(without: str) -> frozenset[str]:
    """Return the fields that an option of a spec leaves out, such as ``temperature,top_p``.

    Raises:
        UsageError: for a field that a request needs or does not have.
    """
    fields = frozenset(field.strip() for field in str(without).split(",") if field.strip())
    if wrong := sorted(fields - {*FIELDS}):
        known = ", ".join(field for field in FIELDS if field != "stop_sequences")
        raise UsageError(f"without={wrong[0]} names no field that can be left out; there are {known}.")
    return fields | ({"stop_sequences"} if "stop" in fields else set())


def kept(body: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
    """Return a body without the fields, or values as ``temperature=0``, that the server refuses."""
    return {
        field: value
        for field, value in body.items()
        if field not in without and _valued(field, value) not in without
    }


def _valued(field: str, value: Any) -> str:
    return f"{field}={value:g}" if isinstance(value, float) else field


def refused(answer: Any) -> bool:
    """Return whether an answer is a refusal of the request's content, so that another content may pass."""
    if not isinstance(answer, RequestError):
        return False
    return answer.status in REFUSED or bool(answer.status >= 500 and ROLES.search(answer.says))


class Accepted:
    """What a server accepts.

    Attributes:
        without: Fields that are left out, and fields with a value, as ``temperature=0``.
        found: Those of them that the server refused; the others were chosen.
    """

    def __init__(self, without: str = "") -> None:
        self.without = self.chosen = chosen(without)

    @property
    def found(self) -> list[str]:
        """The fields, and fields with a value, that the server refused."""
        return sorted(self.without - self.chosen)

    @property
    def named(self) -> str:
        """What is left out, for a revision; empty if nothing is."""
        return " without " + ",".join(sorted(self.without)) if self.without else ""

    async def find(self, ask: Ask, answer: Any) -> Any:
        """Find out what the server refuses of what roles send.

        Args:
            ask: Sends a small request.
            answer: What it returned for :data:`USUAL`.

        Returns:
            The answer to the usual request, or its error if nothing that may be left out helps.
        """
        answer = await self._adapt(ask, USUAL, answer)
        if isinstance(answer, Exception):
            self.without = self.chosen
            return answer
        for field, value in (("temperature", "temperature=1"), ("top_p", "top_p=1")):
            if field in self.without - self.chosen:  # perhaps only this value is refused
                self.without = self.without - {field} | {value}
        usual = self.without
        if isinstance(await self._adapt(ask, JUDGES, await ask(JUDGES)), Exception):
            self.without = usual  # no field's fault: the request itself will say what is wrong
        elif "temperature" in self.without - usual:
            full = self.without
            self.without = full - {"temperature"} | {"temperature=0"}
            if isinstance(await ask(WARM), Exception):
                self.without = full
        for field in ("temperature", "top_p"):
            if field in self.without:
                self.without = frozenset(own for own in self.without if not own.startswith(f"{field}="))
        return answer

    async def _adapt(self, ask: Ask, sampling: Sampling, answer: Any) -> Any:
        """Leave out fields as long as the server refuses the request and that helps."""
        while refused(answer):
            before, others = self.without, [field for field in FIELDS if field not in self.without]
            for fields, named in _suspects(answer.says, others):
                self.without = before | fields
                again = await ask(sampling)
                # Another complaint is progress if this one named the field that is gone.
                if not refused(again) or (named and not _names(again.says, fields)):
                    answer = again
                    break
            else:
                self.without = before
                return answer
        return answer


def _suspects(says: str, fields: list[str]) -> Iterator[tuple[frozenset[str], bool]]:
    """Yield fields that may be what a server refuses, and whether its message names them."""
    named = [field for field in fields if _names(says, [field])]
    others = [field for field in fields if field not in named]
    for field in named:
        yield frozenset({field}), True
    if len(named) > 1:
        yield frozenset(named), True
    # A message may name none of the fields, or not all of them.
    for group in chain(([field] for field in others), [others]):
        yield frozenset({*named, *group}), False


def _names(says: str, fields: Any) -> bool:
    """Return whether a message names one of the fields."""
    words = (WORDS.get(field) or rf"\b{field.replace('_', '[_ -]?')}\b" for field in fields)
    return any(re.search(word, says, re.IGNORECASE) for word in words)
