"""Parses replies of servers: single items, next-token probabilities, tokens of prompts and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.base import OptionScores, count_words

Tokens = list[tuple[str, float | None]]
ROUNDING = 1e-3
"""Largest value of a log-probability, which rounding may lift above 0."""


def one(items: Sequence[Any]) -> Any:
    """Return the only item.

    Raises:
        ValueError: if there is not exactly one.
    """
    if len(items) != 1:
        raise ValueError(f"{len(items)} items instead of one")
    return items[0]


def by_name(reply: Any) -> dict[str, Any]:
    """Return the entries of a list of models by name."""
    return {entry["id"]: entry for entry in reply["data"]}


def context_size(entry: Mapping[str, Any]) -> int | None:
    """Return the maximum number of tokens that a model reads, if its entry in the list states it."""
    more = entry.get("meta")
    stated = [entry.get("max_model_len"), entry.get("context_length")]
    stated += [more.get("n_ctx")] if isinstance(more, dict) else []
    return next((told for told in stated if type(told) is int and told > 0), None)


def whole(text: str) -> str:
    """Return a text with lone surrogates replaced by question marks, since files cannot store them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def tokens_of(logprobs: Mapping[str, Any]) -> Tokens:
    """Return tokens with their log-probabilities; the first token of a text has none."""
    return list(zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True))


def next_output(pairs: Sequence[tuple[str, float]], labels: Sequence[str]) -> FloatArray:
    """Return the log-probability of each label, shape (n_labels,), from the most likely next tokens.

    Several tokens may stand for a label, such as ``"A"`` and ``" A"``: their probabilities are added.
    """
    told = [[float(p) for token, p in pairs if token.strip() == label.strip()] for label in labels]
    if not all(p <= ROUNDING for own in told for p in own):  # nor nan
        raise ValueError("no log-probabilities")
    values = np.array([np.logaddexp.reduce(own) if own else -np.inf for own in told])
    capped: FloatArray = np.minimum(values, 0.0)
    return capped


def after_prompt(prompt: Tokens, rows: Sequence[Tokens], options: Sequence[str], name: str) -> OptionScores:
    """Return the scores of options, given the tokens of the prompt alone and of the prompt with each option.

    The tokens of an option are those after the prompt's own. This needs no offsets, which servers count in
    different ways (characters or bytes, with or without a start token).

    Raises:
        UsageError: if the tokenizer merges the end of the prompt and the beginning of an option.
    """
    own = [token for token, _ in prompt]
    tails: list[list[float]] = []
    for row, option in zip(rows, options, strict=True):
        tail = [value for _, value in row[len(own) :]]
        if [token for token, _ in row[: len(own)]] != own or not tail:
            raise UsageError(
                f"The tokenizer of {name} merges the end of the prompt with the option {option!r}, so the "
                "option has no probability of its own; end prompts without white space."
            )
        tails.append([float(value) for value in tail if value is not None])
        if len(tails[-1]) != len(tail) or not np.isfinite(tails[-1]).all() or max(tails[-1]) > ROUNDING:
            raise ValueError("a token without log-probability")
    sums = np.array([min(0.0, sum(tail)) for tail in tails])
    return OptionScores(sums, np.array([len(tail) for tail in tails]), count_words(options))
