"""Where one text ends and the next one begins, in tokens: prompt and option, prompt and continuation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

ANCHORS: Final = ("\n", ":")
"""Texts after which another is tokenised; a tokenizer that strips its texts has no token for the first."""


def plain(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text without those that a tokenizer puts around every text."""
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return ids


def around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the tokens that a tokenizer puts before every text, and those that it puts after it."""
    bare, whole = plain(tokenizer, "a"), list(tokenizer("a", verbose=False)["input_ids"])
    starts = [at for at in range(len(whole)) if bare and whole[at : at + len(bare)] == bare]
    return (whole[: starts[0]], whole[starts[0] + len(bare) :]) if starts else ([], [])


def after_break(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text as if after another, as some tokenizers put a space before every text."""
    for anchor in ANCHORS:
        alone, joined = plain(tokenizer, anchor), plain(tokenizer, anchor + text)
        if alone and joined[: len(alone)] == alone:
            return joined[len(alone) :]
    return plain(tokenizer, text)


def continuation(tokenizer: Any, last: int, ids: Sequence[int]) -> str:
    """Return the text of tokens that follow a prompt, of which the last token keeps a leading space."""
    before = tokenizer.decode([last], skip_special_tokens=True)
    text: str = tokenizer.decode([last, *ids], skip_special_tokens=True)
    return text[len(before) :]
