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
    rest, options = _shared(rest, compared), _by_method(compared, given.pop("options", {}))
    given.pop("seed", None)  # of a single run
    method_options = {m.prefix.replace("-", "_"): options_of(m, rest, options[m.name]) for m in compared}
    parts = {"where_": with_defaults(CompareOptions, given), **method_options}
    parsed = parse(f"compare {' '.join(names)}", "methods side by side, with paired seeds", parts, rest)
    where: CompareOptions = parsed.where_
    if where.lm and not any(m.takes_lm for m in compared):
        raise UsageError(f"None of {', '.join(names)} uses a language model; leave --lm out.")
    configs = [
        run_config(m.name, where, env_options, getattr(parsed, m.prefix.replace("-", "_")), lm=model)
        for m in compared
        for model in (where.lm if m.takes_lm and where.lm else ("",))
    ]
    from hunch.cli.arms import run  # a wrong option is told before this is read

    run(configs, where)


def _shared(arguments: Sequence[str], compared: Sequence[Method]) -> list[str]:
    """Give options without a method's name to all methods of a comparison that have them.

    ``--hidden 16`` becomes ``--dqn.hidden 16 --dqn-prior.hidden 16``; an option of a single method comes
    later and overrides it.
    """
    names = {m.prefix: {option.flag for option in help.of_method(m, arguments)} for m in compared}
    shared, rest = list[str](), list[str]()
    for token, values in with_values(arguments):
        name, equals, value = token.removeprefix("--").partition("=")
        flag = name.replace("_", "-")
        plain = re.sub(r"(^|\.)no-(?=[^.]*$)", r"\1", flag)
        having = [m for m, flags in names.items() if flag in flags or plain in flags]
        for method in having if token.startswith("--") else ():
            shared += [f"--{method}.{flag}{equals}{value}", *values]
        if not (having and token.startswith("--")):
            rest += [token, *values]
    return [*shared, *rest]


def _by_method(compared: Sequence[Method], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options in a file by method: those of one under its name, the others of all that have them.

    Raises:
        UsageError: if no method has an option.
    """
    single = {m.name: dict(options.get(m.name, {})) for m in compared}
    shared = {name: value for name, value in options.items() if name not in single}
    for name in shared:
        if not any(name in m.config_class.__dataclass_fields__ for m in compared):
            raise UsageError(f"None of {', '.join(single)} has an option {name}.")
    having = {
        m.name: [name for name in shared if name in m.config_class.__dataclass_fields__] for m in compared
    }
    return {
        name: {each: shared[each] for each in having[name]} | single_options
        for name, single_options in single.items()
    }


def _help(compared: Sequence[Method], arguments: Sequence[str]) -> None:
    """Print the common options, those that several methods share, and each method's own."""
    names = " ".join(method.name for method in compared) or "METHOD METHOD..."
    usage = f"hunch compare {names} --env ID [options]"
    groups: dict[str, Sequence[Option]] = dict(help.common(CompareOptions))
    options_of_each = {method.name: help.of_method(method, arguments) for method in compared}
    shared = {
        o.flag: o
        for a in options_of_each
        for o in options_of_each[a]
        if any(o in options_of_each[b] for b in options_of_each if b != a)
    }
    groups["Options that several methods share (--METHOD.NAME VALUE for one of them)"] = list(shared.values())
    for name, listed in options_of_each.items():
        groups[f"Further options of {name}"] = [o for o in listed if shared.get(o.flag) != o]
    help.show(usage, str(compare.__doc__), groups, arguments)
    if not compared:
        help.lines(Console(highlight=False), "METHOD is one of", help.method_lines())
