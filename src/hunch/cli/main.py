"""Entry point of the command: calls the subcommand, and prints each error as one sentence."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from hunch import plugins
from hunch.core import HunchError, UsageError
from hunch.plugins import install
from hunch.runs.processes import warn
from hunch.suggest import suggest

COMMANDS: dict[str, tuple[str, str]] = {
    "run": (
        "METHOD --env ID --lm SPEC --steps N --seed S --out DIR",
        "train one agent; the same command resumes it",
    ),
    "compare": (
        "METHOD METHOD... --env ID --lm SPEC --steps N --seeds K --out DIR",
        "compare several methods",
    ),
    "evaluate": (
        "RUN --lm SPEC --k N --env.NAME VALUE --out DIR",
        "evaluate a trained agent, also with another model, other proposals or other tasks",
    ),
    "audition": (
        "--lm SPEC... --roles ROLE... --env ID --questions N",
        "ask models the questions of each role, and say which role pays",
    ),
    "foretell": (
        "MODEL... --env ID --examples N --depth K",
        "measure world models: accuracy after one step and several, calibration, speed",
    ),
    "report": ("DIR... --out FILE.html", "make a page of curves, costs and recorded episodes, and a picture"),
    "sandbox": ("", "show how programs written by a model are isolated on this machine, and the cost"),
    "data": ("collect | import | show", "record, import or show data, for methods that learn from them"),
    "serve": (
        "ENV --host ADDRESS --port N",
        "serve an environment to other people's trainers, by the protocol of OpenEnv",
    ),
    "play": ("ENV [--run DIR]", "step an environment by hand, or together with a trained agent"),
    "methods": ("[NAME]", "list the published systems, or describe one"),
    "envs": (
        "[ID] [--check]",
        "list the environments, show the options of one and how an episode begins, or check its contract",
    ),
    "cache": ("stats | export FILE | clear", "show, export (for replay:FILE) or clear the answer cache"),
    "completion": ("bash | zsh | fish", "print a script that completes commands and options in a shell"),
    "lm": (
        "SPEC [--ask ROLE --env ID]",
        "test whether a language model answers, how fast, with which verbs, or how a role asks it",
    ),
}

GROUP = "hunch.commands"
"""Entry-point group for packages that add commands."""
EXTRAS = {
    "torch": "torch",
    "transformers": "hf",
    "tokenizers": "hf",
    "safetensors": "hf",
    "matplotlib": "plot",
}
"""The extras that bring packages which any command may need."""
MEMORY = "These settings need more memory than there is."
PLAIN = ("methods", "envs", "lm", "completion")
"""Commands without options."""
USAGE = """usage: hunch COMMAND ...

  put a language model into a role of a reinforcement-learning loop, and measure how much it helps

{commands}

  'hunch COMMAND --help' or 'hunch help COMMAND' describes a command, 'hunch run METHOD --help' lists a
  method's options, 'hunch --version' prints the version."""


def added() -> dict[str, plugins.Command]:
    """Return the commands of other packages."""
    return {name: point.load() for name, point in plugins.installed(GROUP).items()}


def usage() -> str:
    """The overview of all commands."""
    every = COMMANDS | {name: (one.arguments, one.summary) for name, one in added().items()}
    lines = [f"  hunch {name} {arguments}\n      {summary}" for name, (arguments, summary) in every.items()]
    return USAGE.format(commands="\n".join(lines))


def command_help(name: str) -> None:
    """Print what a command without options does.

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
        UsageError: if there is no such command, with similar names.
    """
    if name not in COMMANDS:
        return _added(name)
    module = "lists" if name in ("methods", "envs", "lm") else name
    function: Callable[[Sequence[str]], None] = getattr(import_module(f"hunch.cli.{module}"), name)
    return function


def _added(name: str) -> Callable[[Sequence[str]], None]:
    """Return the function behind a command of another package."""
    there = plugins.installed(GROUP)
    if name not in there:
        if name in ("pretrain", "study"):
            raise plugins.of_studies(f"The command 'hunch {name}'")
        raise UsageError(f"There is no command called {name!r}; {suggest(name, [*COMMANDS, *there])}")
    brought: plugins.Command = there[name].load()
    return brought.load()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 failed, 2 wrong use, 130 stopped by Ctrl-C."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = warn
    if not {"", os.getcwd()} & set(sys.path):  # for --env MODULE:ID; an installed script does not have it
        sys.path.append(os.getcwd())
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
        said = MEMORY if _is_memory(error.__cause__) else str(error)
        _leave(said, 2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        if os.environ.get("HUNCH_DEBUG"):
            raise
        _leave(_unexpected(error), 1)


def _unexpected(error: Exception) -> str:
    """Return a sentence for an unexpected error: an unusable file, too little memory, or a bug in Hunch."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"Cannot use {str(error.filename)!r}: {error.strerror}."
    if _is_memory(error):
        return MEMORY
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"This needs {error.name}: {install(EXTRAS[error.name])}."
    return f"{type(error).__name__}: {error} (HUNCH_DEBUG=1 shows where)"


def _is_memory(error: BaseException | None) -> bool:
    """Return whether memory ran out; on a CPU torch raises a RuntimeError with the system's own words."""
    torch: Any = sys.modules.get("torch")
    on_device = torch is not None and isinstance(error, torch.cuda.OutOfMemoryError)
    return on_device or isinstance(error, MemoryError) or os.strerror(errno.ENOMEM) in str(error)


def _leave(sentence: str, code: int) -> None:
    print(f"hunch: {sentence}", file=sys.stderr)
    sys.exit(code)
