"""Entry point: dispatch, and one clear sentence for every error."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from hunch.core import HunchError, HunchWarning, UsageError, suggest

_SHOW = warnings.showwarning

COMMANDS: dict[str, tuple[str, str]] = {
    "run": (
        "METHOD --env ID --lm SPEC --steps N --seed S --out DIR",
        "train one agent; the same command resumes it",
    ),
    "compare": ("METHOD METHOD... --env ID --lm SPEC --steps N --seeds K --out DIR", "several side by side"),
    "study": ("NAME [--smoke]", "run a published table or figure again"),
    "evaluate": (
        "RUN --lm SPEC --k N --env.NAME VALUE --out DIR",
        "a trained agent with another model, other proposals or other tasks",
    ),
    "foretell": (
        "MODEL... --env ID --examples N --depth K",
        "how well world models foretell: one step, several, calibration, speed",
    ),
    "report": ("DIR... --out FILE.html", "one page of curves, costs and recorded episodes, and a picture"),
    "sandbox": ("", "how far programs that a model wrote are kept in here, and what it costs"),
    "data": ("collect | import | show", "recorded data, for methods that learn from it"),
    "pretrain": ("pocket --out DIR", "train the small causal model that comes with hunch"),
    "play": ("ENV [--run DIR]", "step by hand, or beside a trained agent"),
    "methods": ("[NAME]", "the published systems that there are"),
    "envs": ("[ID]", "the environments that there are; of one its options, and how an episode begins"),
    "cache": ("stats | export FILE | clear", "what the answer cache holds; for replay:FILE; begin anew"),
    "lm": ("SPEC", "whether a language model answers, how fast, with which verbs"),
}

PLAIN = ("methods", "envs", "lm")
"""Commands without options of their own."""
USAGE = """usage: hunch COMMAND ...

  put a language model into a role of a reinforcement-learning loop, and measure what it buys

{commands}

  'hunch COMMAND --help' or 'hunch help COMMAND' tells more, 'hunch run METHOD --help' lists a method's
  options, 'hunch --version' the version."""


def usage() -> str:
    """The overview of all commands."""
    lines = [
        f"  hunch {name} {arguments}\n      {summary}" for name, (arguments, summary) in COMMANDS.items()
    ]
    return USAGE.format(commands="\n".join(lines))


def command_help(name: str) -> None:
    """Print what a command without options of its own does.

    Raises:
        UsageError: if there is no such command.
    """
    does = (command(name).__doc__ or "").strip()
    print(f"usage: hunch {name} {COMMANDS[name][0]}".rstrip() + f"\n\n{does}")
    if name == "lm":
        from rich.console import Console

        from hunch.cli import help, lists

        help.lines(Console(highlight=False), "SPEC is one of", lists.kinds())


def command(name: str) -> Callable[[Sequence[str]], None]:
    """Return the function behind a command.

    Raises:
        UsageError: if there is no such command, naming near matches.
    """
    if name not in COMMANDS:
        raise UsageError(f"There is no command called {name!r}; {suggest(name, COMMANDS.keys())}")
    module = "lists" if name in ("methods", "envs", "lm") else name
    function: Callable[[Sequence[str]], None] = getattr(import_module(f"hunch.cli.{module}"), name)
    return function


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 failed, 2 wrong use, 130 stopped by Ctrl-C."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = _warn
    arguments = ["--help"] if arguments in (["help"], ["help", "help"]) else arguments
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] in ("-V", "--version"):
        print(f"hunch {version('hunch-rl')}")
        sys.exit(0)
    try:
        if arguments[0] in PLAIN and {"-h", "--help"} & set(arguments[1:]):
            command_help(arguments[0])
        else:
            command(arguments[0])(arguments[1:])
    except KeyboardInterrupt as stopped:
        _leave(str(stopped) or "stopped.", 130)
    except HunchError as error:
        _leave(str(error), 2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        if os.environ.get("HUNCH_DEBUG"):
            raise
        _leave(_unexpected(error), 1)


def _unexpected(error: Exception) -> str:
    """A sentence for what nobody foresaw: a file, too little memory, a mistake of ours."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"Cannot use {str(error.filename)!r}: {error.strerror}."
    if isinstance(error, MemoryError) or re.search("allocate memory|out of memory", str(error)):
        return "These settings need more memory than there is."
    return f"{type(error).__name__}: {error} (HUNCH_DEBUG=1 shows where)"


def _warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Say our own warnings as sentences; leave the others as they are."""
    if issubclass(category, HunchWarning):
        print(f"hunch: {message}", file=sys.stderr)
    else:
        _SHOW(message, category, *place, **more)


def _leave(sentence: str, code: int) -> None:
    print(f"hunch: {sentence}", file=sys.stderr)
    sys.exit(code)
