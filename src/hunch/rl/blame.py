"""Error messages for exceptions in a user's code, with the part that raised them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from traceback import walk_tb
from typing import Any

from hunch.core import HunchError, InadmissibleActionError, UsageError


def blamed(what: str, error: BaseException) -> str:
    """Return what failed, and the class and method that raised the error, if these belong to another part."""
    own = _raiser(error)
    return what if not own or what.startswith(own[0]) else f"{what}, in {'.'.join(own)}"


def _raiser(error: BaseException) -> tuple[str, str] | None:
    """Return class and method in which an error came up, where they are neither ours nor a library's."""
    for frame, _ in reversed(list(walk_tb(error.__traceback__))):
        package, me = frame.f_globals.get("__name__", "").partition(".")[0], frame.f_locals.get("self")
        foreign = package.startswith("hunch") or package in sys.stdlib_module_names
        if me is not None and not foreign and "site-packages" not in frame.f_code.co_filename:
            return type(me).__name__, frame.f_code.co_name
    return None


def raised(error: BaseException, calls: Sequence[tuple[Any, ...]]) -> BaseException:
    """Return the error to raise in place of an environment's exception, with the calls that led to it."""
    if isinstance(error, InadmissibleActionError):  # of an action that the environment listed
        return UsageError(f"The environment refused an action that it lists as admissible: {error}")
    if isinstance(error, HunchError):
        return error
    asked = ", ".join(dict.fromkeys(f"{verb}({', '.join(map(repr, rest))})" for verb, *rest in calls))
    told = f"The environment raised {type(error).__name__} in {asked}"
    said = " ".join(str(error).split())[:300]
    return HunchError(f"{told}: {said}" if said else told)
