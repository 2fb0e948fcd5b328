"""Texts of actions as people type them, and whether two of them can be told apart."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

_QUOTES = str.maketrans("‘’‚‛`´“”„‟«»", "''''''\"\"\"\"\"\"")
"""Typographic quotes, with those that a keyboard has."""


def visible(text: str) -> str:
    """Return what a reader sees of a text.

    Two texts with the same result cannot be told apart: they differ in spaces, in characters that are not
    printed, or in how Unicode composes their letters.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    composed = unicodedata.normalize("NFC", text)
    # Cf: marks without a width; Cc: control characters, of which some are spaces
    printed = [sign for sign in composed if sign.isspace() or unicodedata.category(sign) not in ("Cf", "Cc")]
    return unicodedata.normalize("NFC", " ".join("".join(printed).split()))


def same_to_a_reader(actions: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two actions that cannot be told apart; None if all can."""
    seen: dict[str, str] = {}
    for action in actions:
        other = seen.setdefault(visible(action), action)
        if other is not action:
            return other, action
    return None


def shown_as(text: str, actions: Sequence[str]) -> str | None:
    """Return the action that looks like a text; None if there is none."""
    if text in actions:
        return text
    looks = visible(text)
    return next((action for action in actions if visible(action) == looks), None)


def typed(text: str, actions: Sequence[str]) -> list[str]:
    """Return the actions that a person may mean by a text, or by the beginning of one.

    The first of these comparisons that fits decides: what looks the same; the same but for capitals and the
    form of quotes; without quotes around it; without accents. Then the last three for a beginning.
    """
    if not visible(text):
        return []
    for form in (visible, *_LOOSER):
        if meant := [action for action in actions if form(action) == form(text)]:
            return meant
    for form in _LOOSER:
        beginning = form(text)
        if meant := [action for action in actions if beginning and form(action).startswith(beginning)]:
            return meant
    return []


def _plain(text: str) -> str:
    """Return a text without the difference of capitals, compatible characters and forms of quotes."""
    return visible(unicodedata.normalize("NFKC", text.translate(_QUOTES))).casefold()


def _unquoted(text: str) -> str:
    plain = _plain(text)
    quoted = len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'"
    return plain[1:-1].strip() if quoted else plain


def _unaccented(text: str) -> str:
    letters = unicodedata.normalize("NFD", _unquoted(text))
    return "".join(sign for sign in letters if not unicodedata.combining(sign))


_LOOSER: tuple[Callable[[str], str], ...] = (_plain, _unquoted, _unaccented)
"""Forms in which a typed text is compared with actions that look different, the strictest first."""
