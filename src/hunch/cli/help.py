"""Help texts: options in groups, the common ones first, each with its type, meaning and default.

tyro reads the options, but the help text that tyro makes would list forty of them in no useful order.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rich.console import Console
from rich.table import Table

from hunch.lm.settings import AskConfig
from hunch.methods import Method, find, names
from hunch.methods.registry import home

HELP = ("-h", "--help")
ALL = "--help-all"
GROUPS = {
    "Run": "config env lm data online steps seed seeds control blank_control task_seed lifetime",
    "Evaluation": "eval_every eval_episodes episodes_per_player",
    "Output and execution": "out dry_run keep_every keep_last board envs processes threads workers on",
    "Budget of model calls": "budget",
}
"""The common options by topic."""
BASIC = "config env lm data steps seed seeds eval_every eval_episodes out dry_run workers"
"""The common options that --help shows."""
ASKED = frozenset((*(entry.name for entry in fields(AskConfig)), "read")) - {"temperature"}
"""Names of the options that every role with a model has."""
NESTED = frozenset(("way", "temperature"))
"""Nested options that --help shows."""
LONGEST = 24
"""Maximum length, in characters, of choices shown next to an option; longer ones join its description."""


@dataclass(frozen=True)
class Option:
    """An option in a help text."""

    flag: str
    value: str
    meaning: str
    default: str
    basic: bool = True

    @property
    def about_asking(self) -> bool:
        """True if the option controls how a role asks its model."""
        return self.flag.rpartition(".")[2].replace("-", "_") in ASKED

    @property
    def line(self) -> tuple[str, str]:
        """The two columns of the help: flag with value, and meaning with default."""
        default = f" [{self.default}]" if self.default else ""
        return f"--{self.flag} {self.value}".rstrip(), f"{self.meaning}{default}"


def wants_help(arguments: Sequence[str]) -> bool:
    """Return whether short or full help is requested."""
    return any(token in (*HELP, ALL) for token in arguments)


def meanings(cls: type[Any]) -> dict[str, str]:
    """Return the text below each field of a dataclass, including its base classes."""
    return _meanings(cls)  # type: ignore[arg-type]


@cache  # a command asks several times
def _meanings(cls: type[Any]) -> dict[str, str]:
    meanings = dict[str, str]()
    for base in reversed(cls.__mro__):
        for entry, below in pairwise(_body(base)):
            text = getattr(getattr(below, "value", None), "value", None)
            if (
                isinstance(entry, ast.AnnAssign)
                and isinstance(entry.target, ast.Name)
                and isinstance(text, str)
            ):
                meanings[entry.target.id] = " ".join(text.split())
    return meanings


def _body(cls: type[Any]) -> list[ast.stmt]:
    """Return the statements of a class; ``inspect.getsource`` would parse its whole file for each class."""
    body = _statements(cls.__module__)
    for part in cls.__qualname__.replace("<locals>.", "").split("."):
        body = next((node.body for node in reversed(body) if getattr(node, "name", None) == part), [])  # type: ignore[attr-defined]
    return body


@cache
def _statements(module: str) -> list[ast.stmt]:
    try:
        return ast.parse(inspect.getsource(sys.modules[module])).body
    except (KeyError, OSError, TypeError):  # of a module without source
        return []


def options(
    cls: type[Any], prefix: str = "", basic: Callable[[str], bool] = lambda name: True
) -> Iterator[Option]:
    """Yield the options of a dataclass, nested ones with a dotted name.

    Args:
        cls: The dataclass.
        prefix: Prefix of the names.
        basic: Returns whether --help shows a field.
    """
    hints, meaning = get_type_hints(cls), meanings(cls)
    for entry in fields(cls):
        name, hint = entry.name, hints[entry.name]
        default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
        if is_dataclass(hint) and isinstance(hint, type):
            inner = NESTED.__contains__ if basic(name) else lambda _: False
            yield from options(hint, f"{prefix}{_typed(name)}.", inner)
            continue
        shown = "required" if default is MISSING else _default(default)
        flag = f"{prefix}{_typed(name)}"
        value, said = _value(hint), meaning.get(name, "")
        if len(value) > LONGEST:
            value, said = "NAME", f"{said} One of {value.replace('|', ', ')}."
        yield Option(flag, value, said, shown, basic(name))


def _typed(name: str) -> str:
    return name.replace("_", "-")


def _value(hint: Any) -> str:
    """Return the placeholder of an option's value."""
    words = {int: "N", float: "X", str: "TEXT", Path: "PATH", bool: "", type(None): "none"}
    if get_origin(hint) is Literal:
        return "|".join(map(str, get_args(hint)))
    if get_origin(hint) is tuple:
        return " ".join(_value(each) for each in get_args(hint) if each is not ...)
    if get_origin(hint) in (Union, UnionType):
        return "|".join(_value(each) for each in get_args(hint) if each is not type(None))
    return words.get(hint, "VALUE")


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "on; --no-... for off" if value else ""
    if isinstance(value, (tuple, list)):
        return " ".join(map(str, value))
    return "" if value is None or value == "" else str(value)


# ---- the options of runs ----------------------------------------------------------------------------------


def common(cls: type[Any]) -> dict[str, list[Option]]:
    """Return the options that all methods share, by group."""
    listed = list(options(cls, basic=BASIC.split().__contains__))
    by_group = {
        title: [
            o for name in names.split() for o in listed if o.flag.replace("-", "_").partition(".")[0] == name
        ]
        for title, names in GROUPS.items()
    }
    by_group["Run"].insert(2, Option("env.NAME", "VALUE", "An option of the environment.", ""))
    return by_group


def of_method(method: Method, arguments: Sequence[str] = ()) -> list[Option]:
    """Return a method's options and those of the learner that the command line chooses.

    Options that the method's config inherits from an algorithm are advanced: --help leaves them out.
    """
    cls = method.config_class
    basic = set(vars(cls).get("__annotations__", ()))
    if len(basic) < 4:  # a variant of another method
        basic |= {name for base in cls.__mro__[1:2] for name in vars(base).get("__annotations__", ())}
    basic |= {"gamma", "learning_rate", "hidden"}
    unseen = ["lm"]
    if hasattr(cls, "learner"):
        from hunch.cli import learner  # only for methods with a choice of learner

        unseen += learner.unseen(learner.chosen(method, arguments))
    hidden = set(map(_typed, unseen))
    listed = options(cls, basic=basic.__contains__)
    return [o for o in listed if not hidden & set(accumulate(o.flag.split("."), "{}.{}".format))]


def groups_of(method: Method, arguments: Sequence[str] = ()) -> dict[str, list[Option]]:
    """Return the options of :func:`of_method` in two groups: the method's, and how it asks its model."""
    listed = of_method(method, arguments)
    return {
        f"Options of {method.name}": [option for option in listed if not option.about_asking],
        "How its model is asked": [option for option in listed if option.about_asking],
    }


def method_lines() -> list[tuple[str, str]]:
    """Return each method with its summary, read from the source if the row is written as ours are."""
    return [(name, _summary(home(name)) or find(name).summary) for name in names()]


def _summary(module: str) -> str:
    """Return the summary in a method's row, ``Method(name, class, summary, ...)`` or ``replace(...)``.

    An import of every method would take longer. Empty if the module has no such row.
    """
    try:
        spec = find_spec(module)
    except Exception:  # a package around the module may raise anything; finding the method says what
        return ""
    if spec is None or not str(spec.origin).endswith(".py"):
        return ""
    _, _, row = Path(str(spec.origin)).read_text(encoding="utf-8").partition("\nMETHOD = ")
    match ast.parse(row).body[:1]:
        case [ast.Expr(value=ast.Call(keywords=keywords, args=arguments))]:
            named = {entry.arg: entry.value for entry in keywords}
            match named.get("summary") or (*arguments, None, None, None)[2]:
                case ast.Constant(value=str(summary)):
                    return summary
    return ""


def of_run(cls: type[Any], about: str, arguments: Sequence[str]) -> None:
    """Print the options that all methods share, and those of a method, if one is named."""
    usage = "hunch run METHOD --env ID [options]"
    if arguments[0].startswith("-"):
        show(usage, about, common(cls), arguments)
        lines(Console(highlight=False), "METHOD is one of", method_lines())
        return
    method = find(arguments[0])
    groups = {**common(cls), **groups_of(method, arguments)}
    show(usage.replace("METHOD", method.name), f"{method.summary} ({method.paper})", groups, arguments)


# ---- printing ---------------------------------------------------------------------------------------------


def show(usage: str, about: str, groups: Mapping[str, Sequence[Option]], arguments: Sequence[str]) -> None:
    """Print help; without --help-all, advanced options are only counted."""
    console, everything = Console(highlight=False), ALL in arguments
    console.print(f"usage: {usage}\n\n{about}", markup=False, soft_wrap=True)
    left = 0
    for title, listed in groups.items():
        shown = [option for option in listed if everything or option.basic]
        left += len(listed) - len(shown)
        if shown:
            lines(console, title, [option.line for option in shown])
    if left:
        console.print(f"\n{left} more options: use {ALL} to see them.", markup=False, soft_wrap=True)


def lines(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a titled list of two columns."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    grid.add_column(overflow="fold", max_width=34)
    grid.add_column(overflow="fold")
    for left, right in rows:
        grid.add_row(left, right)
    console.print(f"\n{title}", markup=False)
    console.print(grid, markup=False)
