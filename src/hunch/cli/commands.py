"""The list of commands: the overview, the help of each command, and commands that other packages add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name

from hunch import extras, plugins
from hunch.core import UsageError
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
        "ask models the questions of each role, and say in which role a model helps",
    ),
    "foretell": (
        "MODEL... --env ID --examples N --depth K",
        "measure world models: accuracy after one step and several, calibration, speed",
    ),
    "report": ("DIR... --out FILE.html", "make a page, a picture and a table of curves, costs and episodes"),
    "sandbox": ("", "show how this machine isolates programs that a model wrote, and the time it costs"),
    "data": ("collect | histories | import | show", "record, import or show recorded data to learn from"),
    "serve": (
        "ENV --host ADDRESS --port N",
        "serve an environment to other trainers by the protocol of OpenEnv",
    ),
    "play": ("ENV [--run DIR]", "step an environment by hand, or together with a trained agent"),
    "methods": ("[NAME]", "list the published systems, or describe one"),
    "envs": (
        "[ID] [--check]",
        "list the environments, show the options of one and how an episode begins, or check its contract",
    ),
    "models": (
        "[get NAME | serve NAME | export RUN]",
        "list the language models that can be had by name, fetch or serve one, or export a trained one",
    ),
    "cache": (
        "stats | export FILE | import FILE | clear",
        "show, export (for replay:FILE), import or clear the answer cache",
    ),
    "completion": ("bash | zsh | fish", "print a script that completes commands and options in a shell"),
    "lm": (
        "SPEC [--ask ROLE --env ID]",
        "test whether and how fast a language model answers, or show how a role asks it",
    ),
}
GROUP = "hunch.commands"
"""Entry-point group for packages that add commands."""
USAGE = """usage: hunch COMMAND ...

  put a language model into a role of a reinforcement-learning loop, and measure how much it helps

{commands}

  'hunch COMMAND --help' or 'hunch help COMMAND' describes a command, 'hunch run METHOD --help' lists a
  method's options, 'hunch --version' prints the version. With --module NAME, a command may import this
  module of the current folder for a run whose settings name it, with --program COMMAND start this program,
  with --server HOST reach this server."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of another package, named by an entry point of the group ``hunch.commands``.

    Attributes:
        arguments: The arguments after its name, as ``hunch --help`` shows them.
        summary: What the command does, in one line.
        loader: ``module:function``, imported only when the command is called.
    """

    arguments: str
    summary: str
    loader: str

    def load(self) -> Callable[[Sequence[str]], None]:
        """Import and return the function that takes the arguments of the command line."""
        function: Callable[[Sequence[str]], None] = resolve_name(self.loader)
        return function


def added() -> dict[str, Command]:
    """Return the commands of other packages."""
    return {name: point.load() for name, point in plugins.installed(GROUP).items()}


ELSEWHERE = {
    "train": "run METHOD",
    "learn": "run METHOD",
    "fit": "run METHOD",
    "resume": "run METHOD --out FOLDER",
    "eval": "evaluate",
    "test": "evaluate",
    "benchmark": "compare",
    "sweep": "compare",
    "plot": "report",
    "list": "methods",
    "download": "models get",
    "install": "models get",
    "pull": "models get",
}
"""Names that other programs have for our commands."""


def usage() -> str:
    """Return the overview of all commands, as ``hunch --help`` prints it."""
    every = COMMANDS | {name: (one.arguments, one.summary) for name, one in added().items()}
    lines = [f"  hunch {name} {arguments}\n      {summary}" for name, (arguments, summary) in every.items()]
    return USAGE.format(commands="\n".join(lines))


def describe(name: str, does: str) -> None:
    """Print the help of a command without options: its usage and what it does."""
    print(f"usage: hunch {name} {COMMANDS[name][0]}".rstrip() + f"\n\n{does.strip()}")
    if name == "lm":
        from rich.console import Console

        from hunch.cli import help, lists  # only for help

        help.lines(Console(highlight=False), "SPEC is one of", lists.kinds())


def of_another_package(name: str) -> Callable[[Sequence[str]], None]:
    """Return the function behind a command of another package.

    Raises:
        UsageError: if there is no such command; the message suggests similar names.
    """
    there = plugins.installed(GROUP)
    if name not in there:
        if name in ("pretrain", "study"):
            raise extras.of_studies(f"The command 'hunch {name}'")
        hint = suggest(name, [*COMMANDS, *there])
        if name in ELSEWHERE:
            hint = f"did you mean 'hunch {ELSEWHERE[name]}'?"
        raise UsageError(f"There is no command called {name!r}; {hint}")
    command: Command = there[name].load()
    return command.load()
