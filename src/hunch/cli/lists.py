"""``hunch methods``, ``hunch envs`` and ``hunch lm``: list what is available."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from hunch import envs as environments
from hunch import lm as models
from hunch.cli.environment import split_environment
from hunch.core import HunchError, State, UsageError
from hunch.extras import install_contrib
from hunch.methods import Method, find, registered
from hunch.methods.registry import CONTRIB, package_of


def methods(arguments: Sequence[str]) -> None:
    """Print the methods as trees by their place in the taxonomy, those of Hunch first, or describe one."""
    if arguments:
        _one(arguments, "method", "hunch methods dqn-prior")
        name = arguments[0]
        package = package_of(name)
        where = f"\nfrom the package {package}" if package else ""
        text = f"{_described(find(name))}{where}\n'hunch run {name} --help' lists its options."
        Console().print(text, markup=False, highlight=False, soft_wrap=True)
        return
    console = Console()
    by_package = dict[str, list[Method]]()
    for name, method in registered().items():
        by_package.setdefault(package_of(name), []).append(method)
    for package, members in by_package.items():
        title = f"methods of the package {package}" if package else "methods"
        tree = Tree(f"{title}, by their place in the RL/LLM taxonomy tree")
        ordered = sorted(members, key=lambda method: method.leaf)
        for leaf, group in groupby(ordered, key=lambda method: method.leaf):
            branch = tree.add(leaf)
            for method in group:
                branch.add(_described(method))
        console.print(tree, markup=False, highlight=False)
    missing = [name for name in CONTRIB if name not in registered()]
    if missing:
        text = f"\n{len(missing)} more are in the package hunch-rl-contrib: {install_contrib()}."
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def _described(method: Method) -> str:
    roles = f"the model is the {', '.join(method.roles)}" if method.roles else "no model in a role"
    verbs = method.models.get("lm", ())
    needs = f"; needs a model that can {' or '.join(verbs)}" if verbs else ""
    return f"{method.name}: {method.summary}\n{roles}{needs}; {method.environments}\n{method.paper}"


# ---- environments -----------------------------------------------------------------------------------------


def envs(arguments: Sequence[str]) -> None:
    """Print the environments with their tasks, or one with its options and how an episode begins."""
    if arguments:
        ids = [token for token in arguments if token != "--check"]
        rest, options = split_environment(ids)
        _one(rest, "environment", "hunch envs hunch/FrozenLake-v0")
        if ids != list(arguments):
            return _checked(rest[0], options)
        return _environment(rest[0], Console(highlight=False))
    grid = Table(box=None, pad_edge=False)
    grid.add_column("environment", no_wrap=True)
    grid.add_column("task")
    for name in environments.names():
        grid.add_row(name, environments.describe(name))
    Console().print(grid)
    print("\n'hunch envs ID' tells more of one; 'module:id' names one that a module of yours registers.")


def _checked(id: str, options: dict[str, Any]) -> None:
    """Check the contract of an environment, :data:`hunch.envs.checker.RULES`, in three episodes."""
    env = environments.make(id, **options)
    environments.check(env)
    some = "" if env.metadata.get("reproducible", True) else ", but for the rules of seeds and copies"
    print(f"{id} keeps the contract in three random episodes{some}.")


def _environment(id: str, console: Console) -> None:
    """Print an environment's options, with defaults and meaning, and an example observation."""
    declared, meaning = environments.options_of(id), _meanings(id)
    env = environments.make(id)
    console.print(f"{id.rpartition(':')[2]}: {environments.describe(id)}\n", markup=False, soft_wrap=True)
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column()
    if declared is None:
        grid.add_row("--env.NAME VALUE", "It takes any option.")
    for name, parameter in (declared or {}).items():
        required = parameter.default is inspect.Parameter.empty
        default = "required" if required else f"default {parameter.default!r}"
        grid.add_row(f"--env.{name}", f"{meaning.get(name, '')} [{default}]".strip())
    grid.add_row("--env.history", f"Earlier steps to show above. [default {env.metadata.get('history', 0)}]")
    grid.add_row("--env.written", "Take any text; one that is not admissible costs a step. [default False]")
    grid.add_row("--env.picture", "Draw each state, for models with eyes. [default False]")
    grid.add_row("--reader", "Model that reads the picture; the agent sees its words. [default '']")
    console.print(grid, markup=False)
    _example(env, console)


def _meanings(id: str) -> dict[str, str]:
    """Return the meaning of each option, from the docstrings of an environment's class and its bases."""
    creator: Any = environments.creator(id)
    described = reversed(inspect.getmro(creator)) if inspect.isclass(creator) else [creator]
    meanings: dict[str, str] = {}
    for source in described:  # a class overrides what its bases say
        if "__doc__" not in vars(source):
            continue
        section = re.search(r"^Args:\n((?: +.*\n?|\n)+)", inspect.getdoc(source) or "", re.MULTILINE)
        if section is None:
            continue
        for part in re.split(r"^    (?=\w)", section[1], flags=re.MULTILINE)[1:]:
            name, _, meaning = part.partition(":")
            meanings[name.partition(" ")[0]] = " ".join(meaning.replace("``", "").split())
    return meanings


def _example(env: Any, console: Console) -> None:
    """Print how an episode begins."""
    observation, info = env.reset(seed=0)
    state = State.read(observation, info)
    task = f"Task: {state.task}\n" if state.task else ""
    said = "any text" if state.actions is None else ", ".join(state.actions)
    console.print(f"\nAn episode begins like this:\n\n{task}{observation}\n", markup=False, soft_wrap=True)
    console.print(f"Actions: {said}", markup=False, soft_wrap=True)


# ---- language models --------------------------------------------------------------------------------------


def lm(arguments: Sequence[str]) -> None:
    """Probe a language model and print what it can do.

    With --ask ROLE --env ID it prints instead how a role asks the model, what it answers, and how that is
    read. ROLE is prior, judge, preference, goal, planner, policy, world-model, writer, encoder, or a method.
    Options of the role's method follow, such as --prior.prompt FILE or --judge.max-tokens N.
    """
    if any(argument.partition("=")[0] == "--ask" for argument in arguments):
        from hunch.cli.ask import ask  # only with --ask

        ask(arguments)
        return
    _one(arguments, "model", "hunch lm minilm")
    grid = Table(box=None, show_header=False, pad_edge=False)
    description = models.describe(arguments[0])
    if not description.answers:
        raise HunchError(f"{description.name} does not answer: {description.problem}")
    for entry in fields(description):
        if entry.name == "next":
            continue
        value = getattr(description, entry.name)
        if value or value is False:
            plain = Text(_readable(value))  # what a server says is not markup
            grid.add_row(entry.name.replace("_", " "), plain)
    console = Console()
    console.print(grid)
    if description.next:
        console.print(f"\nTo run next:\n  {description.next}", markup=False, highlight=False, soft_wrap=True)


def kinds() -> list[tuple[str, str]]:
    """Return the spec pattern of each kind of model, such as ``hf:NAME``, with a summary."""
    return [(backend.pattern, backend.summary) for backend in models.kinds().values()]


def _readable(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, dict):  # requests per second by verb
        return ", ".join(f"{verb} {_speed(speed)}/s" for verb, speed in value.items())
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _speed(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.2g}"


def _one(arguments: Sequence[str], what: str, example: str) -> None:
    """Refuse arguments that are not one name."""
    unknown = next((word for word in arguments if word.startswith("-")), "")
    if unknown and len(arguments) > 1:
        raise UsageError(f"There is no option {unknown} here: name one {what}, as in '{example}'.")
    if len(arguments) != 1 or unknown:
        raise UsageError(f"Name one {what}, as in '{example}'.")
