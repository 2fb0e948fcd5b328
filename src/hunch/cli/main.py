"""Entry point of the command: calls the subcommand, and prints each error as one sentence."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version

from hunch.core import HunchError, UsageError
from hunch.warned import warn

BUILT_IN = (
    *("run", "compare", "evaluate", "audition", "foretell", "report", "sandbox", "data", "serve", "play"),
    *("methods", "envs", "cache", "completion", "lm"),
)
"""The built-in commands; :mod:`hunch.cli.commands` describes each."""
PLAIN = ("methods", "envs", "lm", "completion")
"""Commands without options."""


def command(name: str) -> Callable[[Sequence[str]], None]:
    """Return the function behind a command.

    Raises:
        UsageError: if there is no such command; the message suggests similar names.
    """
    if name not in BUILT_IN:
        from hunch.cli import commands

        return commands.of_another_package(name)
    module = "lists" if name in ("methods", "envs", "lm") else name
    function: Callable[[Sequence[str]], None] = getattr(import_module(f"hunch.cli.{module}"), name)
    return function


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with a code: 0 done, 1 failed, 2 wrong use, 130 stopped by Ctrl-C."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = warn
    if not {"", os.getcwd()} & set(sys.path):  # for --env MODULE:ID; an installed script does not have it
        sys.path.append(os.getcwd())
    while arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        from hunch.cli.commands import usage

        print(usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] in ("-V", "--version"):
        print(f"hunch {version('hunch-rl')}")
        sys.exit(0)
    try:
        if arguments[0] in PLAIN and {"-h", "--help"} & set(arguments[1:]):
            from hunch.cli.commands import describe

            describe(arguments[0], str(command(arguments[0]).__doc__))
        else:
            command(arguments[0])(arguments[1:])
    except KeyboardInterrupt as stopped:
        _leave(str(stopped) or "stopped.", 130)
    except HunchError as error:
        from hunch.cli.unexpected import known

        _leave(known(error), 2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        if os.environ.get("HUNCH_DEBUG"):
            raise
        from hunch.cli.unexpected import sentence

        _leave(sentence(error), 1)


def _leave(sentence: str, code: int) -> None:
    print(f"hunch: {sentence}", file=sys.stderr)
    sys.exit(code)
