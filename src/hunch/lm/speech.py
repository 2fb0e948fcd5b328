"""Sampling of text, and the common checks of prompts and options, for models that write or score texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar, cast

from hunch.core import UsageError
from hunch.lm.prompts import Prompt, as_prompt

P = TypeVar("P", bound=Prompt)
SPEAKERS: Final = {"user": "User", "assistant": "Assistant"}
_PIECE: Final = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How text is sampled; part of the request, so part of the cache key.

    Attributes:
        max_tokens: Maximum number of tokens to generate, at least 1.
        temperature: Divides the logits; 0 takes the most likely token each time (greedy).
        top_p: Sample from the most likely tokens that together reach this probability, in (0, 1].
        stop: The text ends before the first of these strings; the default keeps one line.
        effort: How long a model may think, for servers that support ``reasoning_effort``; empty for none.
        choices: If not empty, the server restricts the answer to one of these (JSON, key ``answer``).
        tools: Tools that a chat model may call, each as JSON in the form of OpenAI's chat API. A call is
            returned as a text (:mod:`hunch.lm.answers.calls`).

    Raises:
        UsageError: if a value is out of range.
    """

    max_tokens: int = 32
    temperature: float = 1.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ("\n",)
    effort: str = ""
    choices: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # 1 and 1.0 must be one request: they are equal in memory, but not as JSON.
        stop = _texts(self.stop)
        whole = self.max_tokens >= 1 and self.max_tokens % 1 == 0
        object.__setattr__(self, "max_tokens", int(self.max_tokens) if whole else self.max_tokens)
        object.__setattr__(self, "temperature", float(self.temperature))
        object.__setattr__(self, "top_p", float(self.top_p))
        object.__setattr__(self, "stop", stop)
        object.__setattr__(self, "choices", _texts(self.choices))
        object.__setattr__(self, "tools", _texts(self.tools))
        if not whole or not self.temperature >= 0 or not 0 < self.top_p <= 1 or "" in stop:
            raise UsageError(
                "Sampling needs a whole max_tokens >= 1, temperature >= 0, 0 < top_p <= 1 and no empty stop "
                f"string, but got {self}."
            )

    def key(self) -> tuple[Any, ...]:
        """Return the settings as part of a request; unused new ones are left out, as in old requests."""
        settings = (self.max_tokens, self.temperature, self.top_p, self.stop)
        newer = (self.effort, self.choices, self.tools)
        used = [number for number, setting in enumerate(newer, 1) if setting]
        return (*settings, *newer[: max(used, default=0)])

    def named(self) -> dict[str, Any]:
        """Return the same settings by name, for the seed of a sample."""
        return dict(zip(self.__slots__, self.key(), strict=False))


def _texts(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return texts as a tuple; a single text is one, not its letters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


ONE_LINE = Sampling()


class Uncached(str):
    """A text that is not cached, because it is empty or was cut at the maximum number of tokens."""

    __slots__ = ()


class Cut(Uncached):
    """A text that was cut at the maximum number of tokens, perhaps before its first word."""

    __slots__ = ()


class UncachedNumbers(NamedTuple):
    """Numbers that are not cached, because the model read only a part of the prompt.

    Attributes:
        numbers: The log-probabilities of labels, or a vector.
    """

    numbers: Any


def choices(prompts: Sequence[P], options: Sequence[Sequence[str]]) -> list[tuple[P, tuple[str, ...]]]:
    """Pair each prompt with its options.

    Raises:
        UsageError: if the numbers of prompts and lists differ, a list is empty, or an option is blank.
    """
    if any(isinstance(listed, str) for listed in options):
        raise UsageError("Each prompt needs a list of options, not a single text.")
    if len(prompts) != len(options):
        raise UsageError(f"Each prompt needs its own options: {len(prompts)} prompts, {len(options)} lists.")
    pairs: list[tuple[P, tuple[str, ...]]] = []
    for prompt, listed in zip(prompts, options, strict=True):
        if not listed:
            raise UsageError("A prompt has no options to score.")
        if not all(map(str.strip, listed)):
            raise UsageError(f"A blank option cannot be scored: {tuple(listed)}.")
        pairs.append((cast("P", as_prompt(prompt)), tuple(listed)))
    return pairs


def text_of(prompt: Prompt) -> str:
    """Return a prompt as one text, for models that only continue text.

    Instructions and a single request are joined with a blank line. In a conversation the speakers are named,
    and the text ends where the model's turn begins.
    """
    if isinstance(prompt, str):
        return prompt
    if all(message.role != "assistant" for message in prompt):
        return "\n\n".join(message.content for message in prompt)
    lines = [m.content if m.role == "system" else f"{SPEAKERS[m.role]}: {m.content}" for m in prompt]
    return "\n\n".join(lines if prompt[-1].role == "assistant" else [*lines, f"{SPEAKERS['assistant']}:"])


@lru_cache(maxsize=1 << 16)
def estimate_tokens(text: str) -> int:
    """Estimate the number of GPT-2 tokens of a text by the number of pieces before merging.

    Rare words consist of several tokens, so the true number is a little higher.
    """
    return len(_PIECE.findall(text))
