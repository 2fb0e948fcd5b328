"""Splits the words of a command line into options and their values."""

from __future__ import annotations

from collections.abc import Sequence


def with_values(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return each option with the words between it and the next option."""
    tokens: list[tuple[str, list[str]]] = []
    for token in arguments:
        if token.startswith("--") or not tokens:
            tokens.append((token, []))
        else:
            tokens[-1][1].append(token)
    return tokens


def last(arguments: Sequence[str], *flags: str) -> str:
    """Return the last value of an option, given by all its names (``flags``); empty if it is not given."""
    latest = ""
    for token, values in with_values(arguments):
        flag, equals, value = token.partition("=")
        if flag in flags:
            latest = value if equals else "".join(values[:1])
    return latest
