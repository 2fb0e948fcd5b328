"""Which fields of a request a server accepts: found out with small requests when a model is loaded.

Some models refuse ``temperature``, ``top_p``, ``seed`` or ``stop``, some a value (a temperature of 0, or any
but 1), some two of them together, and some chat templates refuse a system message. What is refused is left
out of every request. It is part of the model's revision, because the answers are then drawn otherwise.

Servers of one's own draw with settings of their own unless told otherwise, such as a ``top_k`` of 40, so
they are told (:data:`EVERY_SETTING`). Hosted services refuse such fields, and their requests have none.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from hunch.core import UsageError
from hunch.lm.backends.http import ROLES, RequestError
from hunch.lm.prompts import Message, Prompt
from hunch.lm.speech import Sampling

SYSTEM: Final = "system"
"""Left out, instructions are put into the user's turn."""
EVERY_SETTING: Final[Mapping[str, float]] = {
    "top_k": 0,
    "min_p": 0.0,
    "repeat_penalty": 1.0,
    "repetition_penalty": 1.0,
}
"""Settings of servers of one's own, turned off. llama.cpp, Ollama and LM Studio call the last one
``repeat_penalty``, vLLM and SGLang ``repetition_penalty``."""
ALSO_OFF: Final[Mapping[str, float]] = {"top_k": -1}
"""Values that turn a setting off where that of :data:`EVERY_SETTING` is refused. SGLang refuses ``top_k=0``,
and without the field the ``top_k`` of the model's ``generation_config.json`` holds."""
RESTRICTED: Final = "response_format"
"""The field that restricts an answer to given texts."""
EFFORT: Final = "reasoning_effort"
"""The field that says how long a model may think."""
TOOLS: Final = "tools"
"""The field that names tools, which the model may call."""
FIELDS: Final = ("n", "seed", SYSTEM, "stop", "stop_sequences", "top_p", "temperature")
"""Fields that may be left out, what changes least first."""
WORDS: Final = {
    SYSTEM: r"system|roles?\b|alternate|template",
    "stop": r"\bstop\b(?! ?_)",
    "n": r"['\"`]n['\"`]|\bparameter n\b|^n\b|: n\b",
}
"""How messages of servers name a field, where that is not its name alone."""
REFUSED: Final = (400, 422)
NOT_THERE: Final = (400, 404, 422, 500, 501)
"""HTTP statuses of a request that has an optional field, if the server lacks what the field asks for."""
QUESTION: Final = "The sky is"
"""What the small requests ask."""
USUAL: Final = Sampling(4, 1.0, 1.0, ())
"""What most roles send."""
JUDGES: Final = Sampling(4, 0.0, 0.7, ("\n\n\n",))
"""What judges send: the most likely answer, a part of the distribution, and a text that ends the answer."""
WARM: Final = Sampling(4, 0.5, 0.7, ("\n\n\n",))
"""As judges, with a temperature that is not 0."""

ADD: Final = (
    '{"type": "function", "function": {"name": "add", "description": "Add two numbers.", "parameters": '
    '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, '
    '"required": ["a", "b"]}}}'
)
"""A tool, for the small request."""
CALLED: Final = (
    Message("user", "What is 1 + 2?"),
    Message("assistant", '{"name": "add", "arguments": {"a": 1, "b": 2}}'),
    Message("user", "3"),
)
"""A conversation in which the tool was called and returned: some chat templates refuse such messages."""
OPTIONAL: Final[Mapping[str, tuple[Prompt, Sampling]]] = {
    RESTRICTED: (QUESTION, Sampling(8, 1.0, 1.0, (), choices=("blue", "red"))),
    EFFORT: (QUESTION, Sampling(4, 1.0, 1.0, (), effort="low")),
    TOOLS: (CALLED, Sampling(4, 1.0, 1.0, (), tools=(ADD,))),
}
"""The small request for each field that only some roles send."""

Ask = Callable[[Sampling], Awaitable[Any]]
"""Sends a small request with a sampling; returns the answer, or the error as a value."""
AskPrompt = Callable[[Sampling, Prompt], Awaitable[Any]]
"""The same with a prompt."""


def chosen(without: str, known: Sequence[str] = FIELDS) -> frozenset[str]:
    """Return the fields that an option of a spec leaves out, such as ``temperature,top_p``.

    Args:
        without: The option.
        known: The fields that can be left out.

    Raises:
        UsageError: for a field that a request needs or does not have.
    """
    fields = frozenset(field.strip() for field in str(without).split(",") if field.strip())
    wrong = sorted(fields - {*known})
    if wrong:
        listed = ", ".join(field for field in known if field != "stop_sequences")
        raise UsageError(f"without={wrong[0]} names no field that can be left out; there are {listed}.")
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
        settings: Settings of the server's own that requests turn off.

    Args:
        without: Fields to leave out, as an option of a spec names them.
        settings: Settings to turn off, as far as the server knows them.
    """

    def __init__(self, without: str = "", settings: Mapping[str, float] | None = None) -> None:
        self._settings = dict(settings or {})
        self._fields = (*FIELDS, *self._settings)
        self.without = self.chosen = chosen(without, self._fields)

    @property
    def settings(self) -> dict[str, float]:
        """The settings that requests turn off, each with the value that does."""
        return {name: value for name, value in self._settings.items() if name not in self.without}

    @property
    def found(self) -> list[str]:
        """The fields, and fields with a value, that the server refused."""
        return sorted(self.without - self.chosen)

    @property
    def named(self) -> str:
        """What is left out and what is turned off, for a revision; empty if nothing is.

        What a server refuses to turn off is not named, as its requests are then those of before.
        """
        turned_off = " with " + ",".join(sorted(self.settings)) if self.settings else ""
        left_out = sorted(self.without - {*self._settings, EFFORT, TOOLS})
        return turned_off + (" without " + ",".join(left_out) if left_out else "")

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
        await self._try_other_values(ask)
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
                taken = f"{field}="
                self.without = frozenset(name for name in self.without if not name.startswith(taken))
        return answer

    async def _try_other_values(self, ask: Ask) -> None:
        """Turn settings off by another value where the server refuses the first."""
        for name, value in ALSO_OFF.items():
            if name not in self._settings or name not in self.without - self.chosen:
                continue
            before, first = self.without, self._settings[name]
            self.without = before - {name}
            self._settings[name] = value
            if isinstance(await ask(USUAL), Exception):
                self.without = before
                self._settings[name] = first

    async def find_optional(self, ask: AskPrompt) -> None:
        """Find out whether the server restricts answers, takes a reasoning effort, and has calls of tools."""
        for field, (prompt, sampling) in OPTIONAL.items():
            answer = await ask(sampling, prompt)
            if isinstance(answer, RequestError) and answer.status in NOT_THERE:
                self.without = self.without | {field}

    async def _adapt(self, ask: Ask, sampling: Sampling, answer: Any) -> Any:
        """Leave out fields as long as the server refuses the request and that helps."""
        while refused(answer):
            before, others = self.without, [field for field in self._fields if field not in self.without]
            for fields, named in _suspects(answer.says, others, frozenset(self.settings)):
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


def _suspects(
    says: str, fields: list[str], settings: frozenset[str]
) -> Iterator[tuple[frozenset[str], bool]]:
    """Yield fields that may be what a server refuses, and whether its message names them.

    Args:
        says: The server's words.
        fields: The fields that may be left out.
        settings: Those of them that not every server knows: likely, and all of them at once.
    """
    named = [field for field in fields if _names(says, [field])]
    others = [field for field in fields if field not in named]
    for field in named:
        yield frozenset({field}), True
    if len(named) > 1:
        yield frozenset(named), True
    if settings:
        yield settings | frozenset(named), False
    # A message may name none of the fields, or not all of them.
    for group in chain(([field] for field in others), [others]):
        yield frozenset({*named, *group}), False


def _names(says: str, fields: Any) -> bool:
    """Return whether a message names one of the fields."""
    words = (WORDS.get(field) or rf"\b{field.replace('_', '[_ -]?')}\b" for field in fields)
    return any(re.search(word, says, re.IGNORECASE) for word in words)
