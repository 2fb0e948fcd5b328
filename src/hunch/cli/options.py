"""Reads the command line; a method's options are the fields of its config dataclass."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
from collections import deque
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Annotated, Any

import tyro

from hunch import methods
from hunch.cli.help import of_method
from hunch.core import UsageError
from hunch.lm.budget import Budget
from hunch.methods import Method
from hunch.runs.config import RunConfig, Setting


def read(cls: Any, **options: Any) -> Any:
    """Read a command line with tyro, but report an error in one sentence.

    Raises:
        UsageError: on an unknown option, a missing one, an empty value, or one that cannot be read.
    """
    arguments = list(options.get("args") or ())
    _refuse_empty(arguments)
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(cls, **options)
    except SystemExit as end:
        if not end.code:
            raise
        lines = [line.strip("│|╭╮╰╯─ ") for line in said.getvalue().splitlines()[1:]]
        words = (
            " ".join(line for line in lines if line.strip("-"))
            .partition("For full helptext")[0]
            .rstrip(" .-─")
        )
        problem = _plainly(words, arguments)
        raise UsageError(f"{problem}. '{options.get('prog', 'hunch')} --help' lists the options.") from None


MAY_BE_EMPTY = ("objective", "goal", "instruction", "question")
"""Ends of the names of options for which an empty text is meaningful: texts for prompts."""
TYPES = {"INT": "a whole number", "FLOAT": "a number", "STR": "a text", "PATH": "a path", "{None}": "None"}
"""Names of value types in error messages of the reader, in words."""


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse an empty value; mostly it comes from an unset variable of the shell.

    Raises:
        UsageError: naming the option.
    """
    for before, token in pairwise(["", *arguments]):
        flag, equals, value = token.partition("=") if token.startswith("--") else (before, "=", token)
        if equals and not value and not flag.endswith(MAY_BE_EMPTY):
            raise UsageError(f"{flag} is empty." if flag.startswith("--") else "An argument is empty.")


def _plainly(words: str, arguments: Sequence[str]) -> str:
    """Return tyro's message about an unreadable value in plain words."""
    words = re.sub(r"^Error parsing \w+Options: ", "", words)
    if chosen := re.match(r"invalid choice '(.*)' for argument '(--\S+)'. Expected one of \((.*)\)", words):
        return f"{chosen[2]} must be one of {chosen[3].replace(chr(39), '')}, not {chosen[1]!r}"
    lacking = re.match(r"Missing from [^:]*: (--\S+|[A-Z]{3,})|Missing value for argument '(\S+)'", words)
    if lacking:
        name = lacking[1] or lacking[2]
        return f"{name if name.startswith('--') else f'The argument {name.upper()}'} is missing"
    if words.startswith("Unrecognized options: "):
        near = re.findall(r"(?<=\s)(--\S+)(?= [A-Z{\[])", words.partition("Perhaps you meant:")[2])
        hint = f"; similar are {', '.join(dict.fromkeys(near))}" if near else ""
        unknown = [word for word in words.partition("Perhaps")[0].split() if word.startswith("--")]
        if unknown:
            return f"There is no option {unknown[0].rstrip(',')}{hint}"
    found = re.match(
        r"Error parsing (--\S+): .*Argument helptext: --\S+ ((?:[A-Z]{3,}|{\S+)\S*(?: [A-Z]{3,})*)", words
    )
    if not found or found[1] not in arguments:
        return words.partition(" Argument helptext:")[0]
    flag, types = (
        found[1],
        [" or ".join(TYPES.get(t, t) for t in each.split("|")) for each in found[2].split()],
    )
    after = arguments[len(arguments) - arguments[::-1].index(flag) :]
    given = " ".join(takewhile(lambda token: not token.startswith("--"), after))
    takes = types[0] if len(types) == 1 else f"{len(types)} values ({', '.join(types)})"
    return f"{flag} takes {takes}, not {given!r}"


def split_environment(arguments: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Take the ``--env.NAME VALUE`` options out of the arguments; ``--env.no-NAME`` means false.

    Raises:
        UsageError: if one has no value, or is the environment's id.
    """
    rest: list[str] = []
    options: dict[str, Any] = {}
    tokens = deque(arguments)
    while tokens:
        token = tokens.popleft()
        if not token.startswith("--env."):
            rest.append(token)
            continue
        name, given, text = token.removeprefix("--env.").partition("=")
        if not given and tokens and not tokens[0].startswith("--"):
            text = tokens.popleft()
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


def parse(name: str, description: str, parts: dict[str, Any], arguments: Sequence[str]) -> Any:
    """Read the command line into an object with one attribute per part.

    Args:
        name: The command, for the help text.
        description: Description of the command.
        parts: Type of each part; the options of a part whose name ends in "_" have no prefix.
        arguments: The arguments after the command.
    """
    entries = [(part, _flat(cls) if part.endswith("_") else cls) for part, cls in parts.items()]
    cls = make_dataclass(
        "Options", [(part, cls, _default(parts[part])) for part, cls in entries], kw_only=True
    )
    return read(cls, prog=f"hunch {name}", description=description, args=list(arguments))


@dataclass(frozen=True, kw_only=True)
class Limits(Budget):
    """A budget from the command line; :meth:`budget` checks it."""

    def __post_init__(self) -> None:
        """Check nothing yet: an error here would name internal classes."""

    def budget(self) -> Budget:
        """Return the checked budget.

        Raises:
            UsageError: if a limit is negative.
        """
        return Budget(**asdict(self))


def split_shared(arguments: Sequence[str], found: Sequence[Method]) -> list[str]:
    """Give options without a method's name to all methods of a comparison that have them.

    ``--hidden 16`` becomes ``--dqn.hidden 16 --dqn-prior.hidden 16``; an option of a single method comes
    later and overrides it.
    """
    names = {method.name: {option.flag for option in of_method(method)} for method in found}
    shared, rest = list[str](), list[str]()
    for token, values in _with_values(arguments):
        name, equals, value = token.removeprefix("--").partition("=")
        flag = name.replace("_", "-")
        plain = re.sub(r"(^|\.)no-(?=[^.]*$)", r"\1", flag)
        having = [m for m, own in names.items() if flag in own or plain in own]
        for method in having if token.startswith("--") else ():
            shared += [f"--{method}.{flag}{equals}{value}", *values]
        if not (having and token.startswith("--")):
            rest += [token, *values]
    return [*shared, *rest]


def _with_values(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return options with the words that follow them."""
    found: list[tuple[str, list[str]]] = []
    for token in arguments:
        if token.startswith("--") or not found:
            found.append((token, []))
        else:
            found[-1][1].append(token)
    return found


def options_of(method: Method) -> Any:
    """Return the type of a method's options, without fixed settings and the model of --lm."""
    cls, agent = method.config_class, method.agent_class
    hidden = dict(agent.fixed)
    if "lm" in cls.__dataclass_fields__:
        hidden["lm"] = ""
    # Suppressed with the value's own type: tyro caches by type and value, and False equals 0.0.
    entries = [
        (name, Annotated[type(value), tyro.conf.Suppress], field(default=value))
        for name, value in hidden.items()
    ]
    return make_dataclass(cls.__name__, entries, bases=(cls,), frozen=True, kw_only=True)


def run_config(
    method: str, setting: Setting, env_options: dict[str, Any], options: Any, **changes: Any
) -> RunConfig:
    """Make the settings of a run from the parts of the command line, with changes to the shared ones."""
    common = {entry.name: getattr(setting, entry.name) for entry in fields(Setting)} | changes
    cls = methods.find(method).config_class
    own = cls(**{entry.name: getattr(options, entry.name) for entry in fields(cls)})
    return RunConfig(method=method, env_options=env_options, options=own, **common)


def default_folder(configs: Sequence[RunConfig], more: object = None) -> Path:
    """Return a folder under ``runs/`` that is the same for the same command only."""
    text = json.dumps([[asdict(config) for config in configs], more], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    env = re.sub(r"[/:]", "-", configs[0].env.removeprefix("hunch/"))
    return Path("runs") / f"{'+'.join(config.method for config in configs)}_{env}_{digest}"


def _flat(cls: Any) -> Any:
    return Annotated[cls, tyro.conf.arg(name="")]


def _default(cls: Any) -> Any:
    """Return the default of a part; a part with a required option has none."""
    required = any(entry.default is entry.default_factory for entry in fields(cls))
    return field() if required else field(default_factory=cls)
