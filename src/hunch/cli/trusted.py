"""Which code of the current folder the command may import: only a module that the command line names.

The settings of a run may name modules (``--env MODULE:ID``, a method's ``module:NAME``, ``--reward
MODULE:CLASS``). Those of a run's folder or of ``--config`` may be a stranger's, whose module may lie beside
them. So the current folder is on the import path only if the person at the command line names a module in it.
Likewise a program that settings name (``mcp:COMMAND``) is started, and a server that they name is reached,
only if the command line names it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from hunch import admitted
from hunch.core import UsageError

_NAMED = {
    "--module": "the name of a module",
    "--program": "the command of a program",
    "--server": "the name of a host",
}
NAMES_MODULES = re.compile(r"--([\w-]+\.)*(env|reward|board)")
"""Options whose values name modules."""


def admit(arguments: Sequence[str], *, own_process: bool) -> list[str]:
    """Put the current folder on the import path if the command line names a module in it.

    Args:
        arguments: The command line; ``--module NAME`` names a module that only the settings of a run name,
            ``--program COMMAND`` a program, ``--server HOST`` a server.
        own_process: Whether this process is the command's alone. Then the folder is also taken off the path,
            where ``python -m`` and a relative entry of ``PYTHONPATH`` put it.

    Returns:
        The arguments without ``--module NAME``, ``--program COMMAND`` and ``--server HOST``.

    Raises:
        UsageError: if one of the three has no value, or there is no such module.
    """
    rest, modules = _split(arguments, "--module")
    rest, programs = _split(rest, "--program")
    rest, servers = _split(rest, "--server")
    if own_process:
        variables = [value for name, value in os.environ.items() if name.endswith("_BASE_URL")]
        admitted.admit_servers([*rest, *variables], servers)
        stated = [token.partition("mcp:")[2] for token in rest if "mcp:" in token]
        admitted.admit([*programs, *stated])
    try:
        here = os.getcwd()
    except OSError:  # the folder was removed
        return rest
    if own_process:
        _leave_here()
    if missing := [name for name in modules if not (_lies_here(name) or _is_installed(name))]:
        raise UsageError(
            f"--module {missing[0]}: no such module is installed, and there is no file {missing[0]}.py in "
            "the current folder."
        )
    named = [name for name in (*modules, *_heads(rest)) if _lies_here(name)]
    if named and not any(map(_is_here, sys.path)):
        sys.path.append(here)
    return rest


def hint(error: BaseException) -> str:
    """Return what to do if an error comes from a module that lies in the current folder; otherwise ""."""
    cause: BaseException | None = error
    seen: set[int] = set()  # an error that is raised again may be its own cause
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        name = cause.name if isinstance(cause, ModuleNotFoundError) else None
        if name and (advice := admission(name)):
            return advice
        cause = cause.__cause__
    return ""


def admission(module: str) -> str:
    """Return how to admit a module that lies in the current folder and was not admitted; otherwise ""."""
    if not _lies_here(module) or any(map(_is_here, sys.path)):
        return ""
    top = module.partition(".")[0]
    return (
        f" {top} lies in the current folder, whose code is not run unless you name it: if you trust "
        f"it, add --module {top}."
    )


def _leave_here() -> None:
    """Take the current folder off the import path, unless it is installed there or PYTHONPATH names it."""
    standard = os.path.dirname(os.__file__)  # what is installed comes after the standard library
    library = sys.path.index(standard) if standard in sys.path else len(sys.path)
    named = {path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)}
    before = [entry for entry in sys.path[:library] if entry in named or not _is_here(entry)]
    sys.path[:library] = before


def _split(arguments: Sequence[str], option: str) -> tuple[list[str], list[str]]:
    """Take an option and its values out of the arguments."""
    rest: list[str] = []
    values: list[str] = []
    tokens = iter(arguments)
    for token in tokens:
        flag, equals, value = token.partition("=")
        if flag != option:
            rest.append(token)
            continue
        value = value if equals else next(tokens, "")
        if not value or value.startswith("-"):
            raise UsageError(f"{option} needs {_NAMED[option]}.")
        values.append(value)
    return rest, values


def _heads(arguments: Sequence[str]) -> Iterator[str]:
    """Yield what stands before a colon in positional arguments and in values that name modules."""
    option, values = "", 0
    for token in arguments:
        if token.startswith("--"):
            option, equals, value = token.partition("=")
            values = 0
            if equals and NAMES_MODULES.fullmatch(option):
                yield value.partition(":")[0]
            if equals:
                option = ""
            continue
        values += 1
        positional = not option or (values > 1 and not option.endswith("lm"))
        if ":" in token and (positional or NAMES_MODULES.fullmatch(option)):
            yield token.partition(":")[0]


def _lies_here(module: str) -> bool:
    """Return whether a module, or the package around it, is a file or folder of the current folder."""
    top = module.partition(".")[0]
    return top.isidentifier() and (Path(f"{top}.py").is_file() or Path(top).is_dir())


def _is_installed(module: str) -> bool:
    """Return whether a module can be imported; of a module in a package, the package decides."""
    top = module.partition(".")[0]
    return top in sys.modules or (top.isidentifier() and find_spec(top) is not None)


def _is_here(entry: str) -> bool:
    return os.path.realpath(entry) == os.path.realpath(os.getcwd())
