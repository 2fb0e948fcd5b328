"""Tokens of texts: at the boundary of two, and where one holds that of a control token or half a character.

A text that the world or a user wrote may hold the text of a control token, such as ``<|im_end|>``. It has to
stay a text: otherwise an observation could end its turn and speak as the user or as the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from hunch.core import UsageError
from hunch.lm.backends.replies import whole

ANCHORS: Final = ("\n", ":")
"""Texts to put before another; a tokenizer that strips white space has no token for the first."""


def plain(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text without special tokens; a lone surrogate becomes a question mark."""
    ids: list[int] = tokenizer(whole(text), add_special_tokens=False, verbose=False)["input_ids"]
    return ids


def around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that a tokenizer adds before every text, and those that it adds after."""
    bare, whole = plain(tokenizer, "a"), list(tokenizer("a", verbose=False)["input_ids"])
    starts = [at for at in range(len(whole)) if bare and whole[at : at + len(bare)] == bare]
    return (whole[: starts[0]], whole[starts[0] + len(bare) :]) if starts else ([], [])


def after_break(tokenizer: Any, text: str) -> list[int]:
    """Tokenise a text as if it followed another, because some tokenizers add a space before every text."""
    for anchor in ANCHORS:
        alone, joined = plain(tokenizer, anchor), plain(tokenizer, anchor + text)
        if alone and joined[: len(alone)] == alone:
            return joined[len(alone) :]
    return plain(tokenizer, text)


def control_tokens(tokenizer: Any, frame: str = "") -> re.Pattern[str] | None:
    """Return what finds the texts of control tokens; None if the tokenizer has none.

    Args:
        tokenizer: The tokenizer.
        frame: What a chat template writes around messages; added tokens in it are control tokens, too.
    """
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    marks = {token.content for token in added if token.special or token.content in frame}
    marks |= set(tokenizer.all_special_tokens)
    longest_first = sorted((mark for mark in marks if len(mark) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def as_text(tokenizer: Any, text: str, control: re.Pattern[str] | None, begins: bool = True) -> list[int]:
    """Return the tokens of a text without special tokens, also where it holds texts of control tokens.

    Args:
        tokenizer: The tokenizer.
        text: The text.
        control: What finds the texts of control tokens; None if there are none.
        begins: True if the text begins a prompt; otherwise it follows another.
    """
    pieces = re.split(f"({control.pattern})", text) if control else [text]
    parts = [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]
    return joined(tokenizer, parts, begins)


def literal(tokenizer: Any, mark: str) -> list[int]:
    """Tokenise the text of a control token as a text, in two parts, so that the tokenizer does not see it."""
    return after_break(tokenizer, mark[:1]) + after_break(tokenizer, mark[1:])


def joined(tokenizer: Any, parts: Sequence[tuple[str, bool]], begins: bool = True) -> list[int]:
    """Return the tokens of a text in parts; those that are marked are texts of control tokens.

    Args:
        tokenizer: The tokenizer.
        parts: The parts, each with whether it is the text of a control token.
        begins: True if the first part begins the text.
    """
    ids: list[int] = []
    for part, is_mark in parts:
        if is_mark:
            ids += literal(tokenizer, part)
        else:
            ids += plain(tokenizer, part) if begins and not ids else after_break(tokenizer, part)
    return ids


def continuation(tokenizer: Any, last: int, ids: Sequence[int]) -> str:
    """Decode the tokens after a prompt; its last token is decoded too, to keep a leading space."""
    before = tokenizer.decode([last], skip_special_tokens=True)
    text: str = tokenizer.decode([last, *ids], skip_special_tokens=True)
    return text[len(before) :]


def writable(model: Any, option: str, tokens: list[int]) -> list[int]:
    """Return the tokens of an option.

    Raises:
        UsageError: if the model's tokenizer cannot write it.
    """
    if not tokens or model.tokenizer.unk_token_id in tokens:
        raise UsageError(f"The tokenizer of {model.name} cannot write the option {option!r}.")
    return tokens
