"""The end of an error message about an unknown name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def suggest(wrong: str, known: Iterable[str], listed: Iterable[str] | None = None, where: str = "") -> str:
    """Return the end of an error message: known names similar to a wrong one, or a list of known names.

    Args:
        wrong: The name that was given.
        known: The known names. For a mapping, keys are compared and values shown.
        listed: The names to list if none is similar. Default: all known names.
        where: The command that lists the names; the message refers to it if there are many.
    """
    shown = known if isinstance(known, Mapping) else {name: name for name in known}
    near = get_close_matches(wrong.lower(), shown, n=3, cutoff=0.6) or get_close_matches(wrong, shown, n=3)
    if near:
        return f"did you mean {' or '.join(repr(shown[name]) for name in near)}?"
    names = list(shown.values() if listed is None else listed)
    if where and len(names) > 20:
        return f"there are {len(names)}, such as {', '.join(names[:3])}; {where!r} lists them."
    return f"there are {', '.join(names)}." if names else "there are none."
