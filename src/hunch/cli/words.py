"""The words of a command line: options with what follows them."""

from __future__ import annotations

from collections.abc import Sequence


def with_values(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return options with the words that follow them."""
    found: list[tuple[str, list[str]]] = []
    for token in arguments:
        if token.startswith("--") or not found:
            found.append((token, []))
        else:
            found[-1][1].append(token)
    return found


def last(arguments: Sequence[str], *flags: str) -> str:
    """Return the last value that a command line gives an option of several names; empty if it gives none."""
    found = ""
    for token, values in with_values(arguments):
        flag, equals, value = token.partition("=")
        if flag in flags:
            found = value if equals else "".join(values[:1])
    return found
