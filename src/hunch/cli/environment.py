"""Reads the options of an environment from the command line."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from hunch.core import UsageError


def split_environment(arguments: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Take the ``--env.NAME VALUE`` options out of the arguments; ``--env.no-NAME`` means false.

    ``--reader SPEC`` is short for ``--env.reader SPEC``, and ``--env.picture`` needs no value.

    Raises:
        UsageError: if an option has no value, or is ``--env.id``.
    """
    rest: list[str] = []
    options: dict[str, Any] = {}
    tokens = deque(arguments)
    while tokens:
        token = re.sub(r"^--reader(?=$|=)", "--env.reader", tokens.popleft())
        if not token.startswith("--env."):
            rest.append(token)
            continue
        name, given, text = token.removeprefix("--env.").partition("=")
        if not given and tokens and not tokens[0].startswith("--"):
            text = tokens.popleft()
        elif not given and name == "picture":
            text = "true"
        elif not given and name.startswith("no-"):
            name, text = name.removeprefix("no-"), "false"
        elif not given:
            raise UsageError(f"--env.{name} needs a value.")
        if name == "id":
            raise UsageError("The id of the environment is given with --env, not with --env.id.")
        options[name.replace("-", "_")] = literal(text)
    return rest, options


def literal(text: str) -> Any:
    """Read a number, a boolean, None or a quoted string; any other text is returned unchanged."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
