"""``hunch compare``: reads the options and prints the help; :mod:`hunch.cli.arms` runs the comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from hunch import methods
from hunch.cli import help
from hunch.cli.comparison import CompareOptions
from hunch.cli.environment import split_environment
from hunch.cli.help import Option
from hunch.cli.options import options_of, parse, run_config, split_config, with_defaults
from hunch.cli.words import with_values
from hunch.core import UsageError
from hunch.methods import Method


def compare(arguments: Sequence[str]) -> None:
    """Train several methods with paired seeds. The same command resumes a stopped comparison."""
    names, rest, given = split_config(arguments)
    if help.wants_help(arguments):
        return _help([methods.find(name) for name in names], rest)
    if not names:
        raise UsageError("Name the methods to compare, as in 'hunch compare dqn dqn-prior'.")
    compared = [methods.find(name) for name in names]
    rest, env_options = split_environment(rest)
    env_options = given.pop("env_options", {}) | env_options
    rest = _shared(rest, compared)
    options = _by_method(compared, given.pop("options", {}))
    given.pop("seed", None)  # of a single run
    parts = {"where_": with_defaults(CompareOptions, given)}
    for method in compared:
        parts[_part(method)] = options_of(method, rest, options[method.name])
    parsed = parse(f"compare {' '.join(names)}", "methods side by side, with paired seeds", parts, rest)
    where: CompareOptions = parsed.where_
    if where.lm and not any(m.takes_lm for m in compared):
        raise UsageError(f"None of {', '.join(names)} uses a language model; leave --lm out.")
    configs = []
    for method in compared:
        models = where.lm if method.takes_lm and where.lm else ("",)
        for model in models:
            options_of_method = getattr(parsed, _part(method))
            configs.append(run_config(method.name, where, env_options, options_of_method, lm=model))
    from hunch.cli.arms import run  # a wrong option is told before this is read

    run(configs, where)


def _part(method: Method) -> str:
    """Return the name of the part of the command line that holds a method's options."""
    return method.prefix.replace("-", "_")


def _shared(arguments: Sequence[str], compared: Sequence[Method]) -> list[str]:
    """Give options without a method's name to all methods of a comparison that have them.

    ``--hidden 16`` becomes ``--dqn.hidden 16 --dqn-prior.hidden 16``; an option of a single method comes
    later and overrides it.
    """
    flags_of = {m.prefix: {option.flag for option in help.of_method(m, arguments)} for m in compared}
    shared: list[str] = []
    rest: list[str] = []
    for token, values in with_values(arguments):
        name, equals, value = token.removeprefix("--").partition("=")
        flag = name.replace("_", "-")
        turned_on = re.sub(r"(^|\.)no-(?=[^.]*$)", r"\1", flag)  # the option without its "no-"
        having = []
        if token.startswith("--"):
            having = [m for m, flags in flags_of.items() if flag in flags or turned_on in flags]
        for method in having:
            shared += [f"--{method}.{flag}{equals}{value}", *values]
        if not having:
            rest += [token, *values]
    return [*shared, *rest]


def _by_method(compared: Sequence[Method], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options in a file by method: those of one under its name, the others of all that have them.

    Raises:
        UsageError: if no method has an option.
    """
    names = [method.name for method in compared]
    shared = {name: value for name, value in options.items() if name not in names}
    for name in shared:
        if not any(name in method.config_class.__dataclass_fields__ for method in compared):
            raise UsageError(f"None of {', '.join(names)} has an option {name}.")
    by_method: dict[str, dict[str, Any]] = {}
    for method in compared:
        known = method.config_class.__dataclass_fields__
        from_shared = {name: value for name, value in shared.items() if name in known}
        by_method[method.name] = from_shared | dict(options.get(method.name, {}))
    return by_method


def _help(compared: Sequence[Method], arguments: Sequence[str]) -> None:
    """Print the common options, those that several methods share, and each method's own."""
    names = " ".join(method.name for method in compared) or "METHOD METHOD..."
    usage = f"hunch compare {names} --env ID [options]"
    groups: dict[str, Sequence[Option]] = dict(help.common(CompareOptions))
    options_of_each = {method.name: help.of_method(method, arguments) for method in compared}
    shared: dict[str, Option] = {}
    for name, listed in options_of_each.items():
        others = [options_of_each[other] for other in options_of_each if other != name]
        for option in listed:
            if any(option in options for options in others):
                shared[option.flag] = option
    groups["Options that several methods share (--METHOD.NAME VALUE for one of them)"] = list(shared.values())
    for name, listed in options_of_each.items():
        groups[f"Further options of {name}"] = [o for o in listed if shared.get(o.flag) != o]
    help.show(usage, str(compare.__doc__), groups, arguments)
    if not compared:
        help.lines(Console(highlight=False), "METHOD is one of", help.method_lines())
