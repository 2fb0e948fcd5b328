"""Reads the options of an environment from the command line."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hunch.core import UsageError
from hunch.envs import options_of
from hunch.ranges import fits


def split_environment(arguments: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Take the ``--env.NAME VALUE`` options out of the arguments; ``--env.no-NAME`` means false.

    ``--reader SPEC`` is short for ``--env.reader SPEC``, and ``--env.picture`` needs no value. Where the
    environment declares a text, a number stays the text that was written.

    Raises:
        UsageError: if an option has no value, or is ``--env.id``.
    """
    rest: list[str] = []
    texts: dict[str, str] = {}
    tokens = deque(arguments)
    while tokens:
        token = re.sub(r"^--reader(?=$|=)", "--env.reader", tokens.popleft())
        if not token.startswith("--env."):
            rest.append(token)
            continue
        name, given, text = token.removeprefix("--env.").partition("=")
        if not given and name.startswith("no-"):
            name, text = name.removeprefix("no-"), "false"
        elif not given and name == "picture" and not (tokens and tokens[0].lower() in ("true", "false")):
            text = "true"
        elif not given and tokens and not tokens[0].startswith("--"):
            text = tokens.popleft()
        elif not given:
            raise UsageError(f"--env.{name} needs a value.")
        if name == "id":
            raise UsageError("The id of the environment is given with --env, not with --env.id.")
        texts[name.replace("-", "_")] = text
    hints = _declared(rest) if texts else {}
    return rest, {name: _read(text, hints.get(name, Any)) for name, text in texts.items()}


def _declared(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the types of the options of the environment that is named; none if they are not known.

    It is named by ``--env``, or comes first or last, as in ``hunch play ENV --seed 3``. Of the environment of
    a run's folder or of a file of settings the types are not known here.
    """
    named = []
    for token, following in pairwise([*arguments, ""]):
        if token.startswith("--env="):
            named = [token.removeprefix("--env=")]
        elif token == "--env":
            named = [following]
    if not named and arguments:
        named = [arguments[0]]
        before_last = arguments[-2] if len(arguments) > 1 else "--"
        if "=" in before_last or not before_last.startswith("--"):  # else the last is the value of an option
            named.append(arguments[-1])
    for env in named:
        try:
            parameters = options_of(env)
        except UsageError:  # no environment; an error of one is told where it is made
            continue
        return {name: parameter.annotation for name, parameter in (parameters or {}).items()}
    return {}


def _read(text: str, hint: Any) -> Any:
    """Read a value: as a literal, unless only the text itself has the declared type."""
    value = literal(text)
    return text if not fits(value, hint) and fits(text, hint) else value


def literal(text: str) -> Any:
    """Read a literal of Python, or true and false in any case; any other text is returned unchanged."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = ast.literal_eval(text)
        return text if value is ... else value
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
