"""Reads the command line; a method's options are the fields of its config dataclass."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field, fields, is_dataclass, make_dataclass
from difflib import get_close_matches
from inspect import getdoc
from itertools import pairwise, takewhile
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_origin, get_type_hints

from hunch import methods
from hunch.cli.words import last, with_values
from hunch.core import UsageError
from hunch.envs import creator
from hunch.lm.settings import Limits
from hunch.methods import Method
from hunch.ranges import check_settings
from hunch.renamed import Renamed
from hunch.runs.config import RunConfig, Setting

if TYPE_CHECKING:
    from hunch.lm.budget import Budget


def read(cls: Any, **options: Any) -> Any:
    """Read a command line with tyro; errors are reported in one sentence.

    The options of a part whose name ends in "_" have no prefix.

    Raises:
        UsageError: on an unknown option or environment, a missing option, or a value that cannot be read.
    """
    arguments, help_text = list(options.get("args") or ()), f"'{options.get('prog', 'hunch')} --help'"
    _refuse_empty(arguments)
    if not options.get("return_unknown_args") and (unknown := _unknown(cls, arguments)):
        raise UsageError(f"{unknown}. {help_text} lists the options.")
    if named := last(arguments, "--env"):
        creator(named)
    arguments = _without_truth(cls, arguments)
    options["args"] = arguments
    import tyro  # late, since it is slow

    bare = [(e.name, Annotated[e.type, tyro.conf.arg(name="")], e) for e in fields(cls) if e.name[-1] == "_"]
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(make_dataclass(cls.__name__, bare, bases=(cls,)) if bare else cls, **options)
    except SystemExit as end:
        if not end.code:
            raise
        from hunch.cli.wrong import problem  # it reads these options, too

        wrong = problem(cls, arguments) or _plain(said.getvalue())
        raise UsageError(f"{wrong}. {help_text} lists the options.") from None


def _plain(boxed: str) -> str:
    """Return what tyro says in a box, as one sentence without its full stop."""
    text = " ".join("".join(" " if c in "╭╮╰╯│─" else c for c in boxed).split())
    return text.partition(" For full helptext")[0].partition(": ")[2].rstrip(" .") or text


def _unknown(cls: Any, arguments: Sequence[str]) -> str:
    """Say that a command line has an option that a dataclass lacks; empty if it has none."""
    names, given = ["help", *_names(cls)], (token for token in arguments if token.startswith("--"))
    for flag in (token.partition("=")[0] for token in given):
        if (name := flag[2:].replace("_", "-")) not in names:
            if replacement := _renamed(cls).get(name):
                return f"{flag} is now --{replacement}"
            near = ", ".join(f"--{each}" for each in get_close_matches(name, names))
            return f"There is no option {flag}" + (f"; similar are {near}" if near else "")
    return ""


def _names(cls: Any) -> Iterator[str]:
    """Yield the names of options, nested ones with a dotted name; one that is on or off has two."""
    for prefix, name, hint in _typed_names(cls):
        yield prefix + name
        if hint is bool:
            yield f"{prefix}no-{name}"


def _typed_names(cls: Any, prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the prefix of each option, which ends in a dot if it is nested, its name, and its type."""
    for name, hint in get_type_hints(cls).items():
        dashed = name.replace("_", "-")
        if is_dataclass(hint):
            yield from _typed_names(hint, prefix if name[-1] == "_" else f"{prefix}{dashed}.")
        elif get_origin(hint) is not ClassVar:
            yield prefix, dashed, hint


def _without_truth(cls: Any, arguments: Sequence[str]) -> list[str]:
    """Write switches with a value as those without one: ``--blank false`` becomes ``--no-blank``."""
    switches = {prefix + name: (prefix, name) for prefix, name, hint in _typed_names(cls) if hint is bool}
    written: list[str] = []
    for token, values in with_values(arguments):
        flag, equals, value = token.partition("=")
        following = [value, *values] if equals else values
        name = flag.removeprefix("--").replace("_", "-")
        is_switch = token.startswith("--") and name in switches
        if not is_switch or not following or following[0].lower() not in ("true", "false"):
            written += [token, *values]
            continue
        prefix, last_part = switches[name]
        is_on = following[0].lower() == "true"
        written += [f"--{prefix}{last_part}" if is_on else f"--{prefix}no-{last_part}", *following[1:]]
    return written


def _renamed(cls: Any, prefix: str = "") -> dict[str, str]:
    """Return options of before, each with the option that replaces it; nested ones with a dotted name."""
    new_names: dict[str, str] = {}
    own_names = cls.renamed if isinstance(cls, type) and issubclass(cls, Renamed) else {}
    for old, new in own_names.items():
        dashed = old.replace("_", "-")
        new_names |= dict.fromkeys(
            (f"{prefix}{dashed}", f"{prefix}no-{dashed}"), prefix + new.replace("_", "-")
        )
    for name, hint in get_type_hints(cls).items():
        if is_dataclass(hint):
            inner = prefix if name[-1] == "_" else f"{prefix}{name.replace('_', '-')}."
            new_names |= _renamed(hint, inner)
    return new_names


MAY_BE_EMPTY = ("objective", "goal", "instruction", "question")
"""Endings of names of options that may be empty: texts for prompts."""


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse an empty value; mostly it comes from an unset variable of the shell.

    Raises:
        UsageError: naming the option.
    """
    for before, token in pairwise(["", *arguments]):
        flag, equals, value = token.partition("=") if token.startswith("--") else (before, "=", token)
        if equals and not value and not flag.endswith(MAY_BE_EMPTY):
            raise UsageError(f"{flag} is empty." if flag.startswith("--") else "An argument is empty.")


def parse(name: str, description: str, parts: dict[str, Any], arguments: Sequence[str]) -> Any:
    """Read the command line into an object with one attribute per part.

    Args:
        name: The command, for the help text.
        description: Description of the command.
        parts: Type of each part; the options of a part whose name ends in "_" have no prefix.
        arguments: The arguments after the command.
    """
    entries = [(part, cls, _default(cls)) for part, cls in parts.items()]
    options = make_dataclass("Options", entries, kw_only=True)
    return read(options, prog=f"hunch {name}", description=description, args=list(arguments))


def budget_of(limits: Limits) -> Budget | None:
    """Return the checked budget; None without limits.

    Raises:
        UsageError: if a limit is negative.
    """
    if not limits:
        return None
    from hunch.lm.budget import Budget  # most runs have none

    return Budget(**asdict(limits))


@dataclass(frozen=True, kw_only=True)
class Launch(Setting):
    """Options of a run or of a comparison: the settings file, folder, budget, boards and dry run."""

    config: Path | None = None
    """File with settings, YAML, TOML or JSON, such as the config.json of a run, which repeats it. Options
    of the command line override those of the file."""
    out: Path | None = None
    """Folder for the results. Default: a folder under runs/ named after these options."""
    budget: Limits = field(default_factory=Limits)
    """Limits on model calls, over all sessions, and over all runs of a comparison together."""
    board: tuple[str, ...] = ()
    """Boards for metrics besides TensorBoard: wandb:PROJECT, mlflow:EXPERIMENT, trackio:PROJECT, or
    MODULE:Class for a custom board."""
    dry_run: bool = False
    """Only estimate the model calls; no model is asked."""


def split_config(arguments: Sequence[str]) -> tuple[list[str], list[str], dict[str, Any]]:
    """Take ``--config FILE`` and the names of methods out of the arguments.

    Returns:
        The names, by default those in the file; the other arguments; and the settings in the file.
    """
    names = list(takewhile(lambda token: not token.startswith("-"), arguments))
    if not any(token.partition("=")[0] == "--config" for token in arguments):
        return names, list(arguments[len(names) :]), {}
    from hunch.cli.config_file import read_line  # only with --config

    return read_line(names, arguments[len(names) :])


def with_defaults(cls: Any, values: Mapping[str, Any]) -> Any:
    """Return a dataclass of options with values of a file as defaults."""
    if not values:
        return cls
    from hunch.cli.config_file import with_values_of  # only with --config

    return with_values_of(cls, values)


def options_of(method: Method, arguments: Sequence[str] = (), given: Mapping[str, Any] | None = None) -> Any:
    """Return the dataclass of a method's options, without --lm and other learners.

    Args:
        method: The method.
        arguments: The command line.
        given: The options in a file of settings, which become defaults.

    Raises:
        UsageError: if the arguments have an option of another learner than the one that they choose, or the
            file has an option that the method lacks.
    """
    given = given or {}
    hidden = ["lm"]
    if hasattr(method.config_class, "learner"):
        from hunch.cli.learner import unseen_by  # it reads these options, too

        hidden += unseen_by(method, arguments, given)
    start = usual = method.config_class()
    if given:
        from hunch.runs.settings_file import changed  # only with --config

        start = changed(usual, given, method.name)
        check_settings(start)
    for name in hidden:
        if name != "lm" and attrgetter(name)(start) != attrgetter(name)(usual):
            raise UsageError(f"{method.name} has no option {name}.")
    return _without(start, hidden)


def _without(start: Any, hidden: Sequence[str]) -> Any:
    """Return the dataclass of settings with these as defaults, without options for the hidden ones."""
    cls, usual, entries = type(start), type(start)(), []
    hints = get_type_hints(cls, include_extras=True)
    for entry in fields(cls):
        name, value = entry.name, getattr(start, entry.name)
        inner = [path.partition(".")[2] for path in hidden if path.startswith(f"{name}.")]
        if name in hidden:
            value = "" if name == "lm" else value
            entries.append((name, ClassVar[hints[name]], field(default=value)))
        elif is_dataclass(value) and (inner or value != getattr(usual, name)):
            less = _without(value, inner)
            entries.append((name, less, field(default=less())))
        elif value != getattr(usual, name):
            entries.append((name, hints[name], field(default=value)))
    return make_dataclass(cls.__name__, entries, bases=(cls,), frozen=True, kw_only=True)


def _again(cls: Any, options: Any) -> Any:
    """Return options of a derived type as their dataclass, with those inside."""
    usual, values = cls(), {entry.name: getattr(options, entry.name) for entry in fields(cls)}
    for name, value in values.items():
        if is_dataclass(inner := getattr(usual, name)):
            values[name] = _again(type(inner), value)
    return cls(**values)


def run_config(
    method: str, setting: Setting, env_options: dict[str, Any], options: Any, **changes: Any
) -> RunConfig:
    """Make the settings of a run from the parts of the command line, with changes to the shared ones."""
    common = {entry.name: getattr(setting, entry.name) for entry in fields(Setting)} | changes
    cls = methods.find(method).config_class
    return RunConfig(method=method, env_options=env_options, options=_again(cls, options), **common)


def default_folder(configs: Sequence[RunConfig], more: object = None) -> Path:
    """Return a folder under ``runs/`` that is the same for the same command only."""
    text = json.dumps([[asdict(config) for config in configs], more], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    parts = "+".join(config.method for config in configs), configs[0].env.removeprefix("hunch/"), digest
    return Path("runs") / re.sub(r"[/:]", "-", "_".join(parts))


def _default(cls: Any) -> Any:
    """Return the default of a part; a part with a required option has none.

    Its help is that of its class, which tyro would look for in the source of a class that has none.
    """
    required = any(entry.default is entry.default_factory for entry in fields(cls))
    said = {"help": getdoc(cls) or ""}
    return field(metadata=said) if required else field(default_factory=cls, metadata=said)
