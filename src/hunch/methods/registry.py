"""All methods by name: built-in ones, those of other packages, and ``MODULE:NAME``.

Another package adds a method by an entry point of the group ``hunch.methods``. To list the names imports the
file of no method.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from typing import Any, Final

from hunch.core import Agent, HunchError, UsageError
from hunch.extras import of_contrib
from hunch.methods.method import Method
from hunch.plugins import installed
from hunch.suggest import suggest

GROUP: Final = "hunch.methods"
"""The entry-point group of methods."""
_FOLDERS: Final = (
    ("prior", "dqn dqn_prior zero_shot cql_prior cql bc bc_lm"),
    ("policy", "ppo glam twosome gflan_prior"),
    ("decode", "best_of_n"),
    ("tune", "sft rlhf offline_rlhf grpo ppo_text"),
    ("in_context", "icpi icpi_no_argmax matching tabular_q"),
    ("in_context", "algorithm_distillation nearest_history in_context_lm"),
    ("planner", "saycan inner_monologue"),
    ("program", "funsearch eureka gif_mcts worldcoder code_policy"),
    ("", "q_learning"),
    ("reward", "rewarded kwon motif count_bonus rnd"),
    ("goal", "ellm"),
    ("solver", "alpha_proof"),
)
OURS: Final = {
    file.replace("_", "-"): f"hunch.methods.{folder}.{file}".replace("..", ".")
    for folder, files in _FOLDERS
    for file in files.split()
}
"""The module of each built-in method."""
CONTRIB: Final = (
    *("dqn-prior-released", "instruct-q", "likelihood-value", "instruct-ppo"),
    *("rain", "prompt-oirl", "rlprompt", "tempera"),
    *("a2c-text", "trpo-text", "nlpo", "rloo", "gigpo", "rest"),
    *("compress", "constitutional", "context-distillation", "red-team", "syndicom"),
    *("decision-pretrained", "decision-transformer", "plan4mc", "planner-actor-reporter", "spring"),
    *("evotune", "song", "text2reward", "rl-vlm-f", "vlm-rm", "rl-adapter", "task-explore"),
)
"""The methods of the package hunch-rl-contrib: an error says which package to install for one of them."""


# ---- names ------------------------------------------------------------------------------------------------


def names() -> tuple[str, ...]:
    """Return the names of all methods, built-in ones first; imports the file of none."""
    return (*OURS, *points())


@cache
def points() -> Mapping[str, EntryPoint]:
    """Return the entry points of methods by name, without an import of what they name."""
    return installed(GROUP)


def home(name: str) -> str:
    """Return the module with the row of a method; empty if no method has the name."""
    point = points().get(name)
    return OURS.get(name) or (point.module if point else "")


def package_of(name: str) -> str:
    """Return the distribution whose entry point adds a method; empty for a method of Hunch itself."""
    point = points().get(name)
    return point.dist.name if point and point.dist else ""


# ---- methods ----------------------------------------------------------------------------------------------


@cache
def registered() -> dict[str, Method]:
    """Return all methods by name: built-in ones first, then those of the entry-point group ``hunch.methods``.

    An entry point names a :class:`Method`, as ``mine = "mypackage:METHOD"`` does in a ``pyproject.toml``.

    Raises:
        HunchError: if a method of another package cannot be imported, or is not a :class:`Method`.
    """
    return {name: _ours(name) for name in OURS} | _added()


def find(name: str) -> Method:
    """Return the method with this name, or the one at ``module:NAME``, which becomes the method's name.

    Raises:
        UsageError: if there is no such method; the message suggests similar names, or says what to install.
        HunchError: if the package that provides the method cannot be imported.
    """
    if name in OURS:
        return _ours(name)
    if ":" in name:
        method = _read(name, UsageError)
        return method if method.name == name else replace(method, name=name)
    if point := points().get(name):
        return plugin(point)
    if name in CONTRIB:
        raise of_contrib(name)
    if "," in name:
        separated = " ".join(filter(None, map(str.strip, name.split(","))))
        raise UsageError(f"Methods are named with blanks between them: write {separated}, not {name!r}.")
    if name.startswith("hunch/"):
        raise UsageError(f"{name} is an environment, and a method comes first: dqn, dqn-prior, zero-shot.")
    if name in ("dpo", "kto"):
        raise UsageError(
            f"There is no method called {name!r}; it is a loss: hunch run offline-rlhf --loss {name}."
        )
    known = dict.fromkeys((*names(), *CONTRIB))
    raise UsageError(
        f"There is no method called {name!r}; {suggest(name, list(known), where='hunch methods')}"
    )


def of(agent: Agent) -> Method | None:
    """Return the method of exactly this agent's class; None if there is none.

    The method comes from the file of the class, or from the entry-point group ``hunch.methods``: from the
    package of the class, or from a file that is imported already. Other packages are left alone, because one
    that cannot be imported would end a run that does not need it.
    """
    kind = type(agent)
    method = getattr(sys.modules.get(kind.__module__), "METHOD", None)
    if isinstance(method, Method) and method.agent_class is kind and home(method.name) == kind.__module__:
        return method
    package = kind.__module__.partition(".")[0]
    for point in points().values():
        is_near = point.module.partition(".")[0] == package or point.module in sys.modules
        if is_near and plugin(point).agent_class is kind:
            return plugin(point)
    return None


def reads_raw(agent: Agent) -> bool:
    """Return whether an agent gets ``State.raw``: its method reads it, or the agent belongs to no method."""
    method = of(agent)
    return method is None or "raw" in method.reads


def _ours(name: str) -> Method:
    method: Method = import_module(OURS[name]).METHOD
    return method


@cache
def _added() -> dict[str, Method]:
    """Return the methods that entry points add, by name."""
    return {name: plugin(point) for name, point in points().items()}


def plugin(point: EntryPoint) -> Method:
    """Import and return the method of an entry point; a HunchError if its name is already taken."""
    method = _read(point.value, HunchError)
    if point.name in OURS or method.name != point.name:
        raise HunchError(f"{point.value} must be a new hunch.methods.Method called {point.name}.")
    return method


def _read(place: str, error: type[HunchError]) -> Method:
    """Import and return the method at ``module:NAME``; ``module:`` is short for ``module:METHOD``."""
    try:
        method = resolve_name(f"{place}METHOD" if place.endswith(":") else place)
    except Exception as problem:  # the import of a package may raise anything
        cause = f"{type(problem).__name__}: {problem}"
        raise error(f"The method {place} cannot be imported: {cause}.") from problem
    if not isinstance(method, Method):
        raise error(f"{place} must be a new hunch.methods.Method, not {method!r}.")
    return method


# ---- classes ----------------------------------------------------------------------------------------------


def class_called(name: str) -> type[Any]:
    """Return the class of an agent or of its settings, of a built-in method, by the name of the class.

    Raises:
        AttributeError: if there is none; for a class of hunch-rl-contrib the message says where it is.
    """
    plain = name.lower().removesuffix("config")
    for method in sorted(OURS, key=lambda method: method.replace("-", "") != plain):  # the likely one first
        for cls in classes(method):
            if cls.__name__ == name:
                return cls
    elsewhere = [method for method in CONTRIB if method.replace("-", "") == plain]
    where = "; it is in the package hunch-rl-contrib" if elsewhere else ""
    raise AttributeError(f"module 'hunch.methods' has no attribute {name!r}{where}")


def classes(*methods: str) -> Iterator[type[Any]]:
    """Yield the classes of agents and settings of built-in methods."""
    for name in methods:
        method = _ours(name)
        yield from (method.agent_class, method.config_class)
