"""The published systems, one file each, grouped by the role that the language model fills.

A method is a module with an agent class and ``build(agent, config, models)`` that fills its roles with
language models. It is registered by name in :mod:`hunch.methods.table`, so that listing the methods imports
none of them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hunch.core import Agent, HunchError, UsageError
from hunch.methods.method import Method as Method
from hunch.methods.table import METHODS as METHODS
from hunch.suggest import suggest

GROUP = "hunch.methods"
"""Entry-point group for packages that provide methods."""


@cache
def registered() -> dict[str, Method]:
    """Return all methods by name: built-in ones and those of the entry-point group ``hunch.methods``.

    An entry point names a :class:`Method`, as ``mine = "mypackage:METHOD"`` does in a ``pyproject.toml``.

    Raises:
        HunchError: if one cannot be imported, or is not a method.
    """
    return METHODS | {point.name: _plugin(point) for point in entry_points(group=GROUP)}


def _plugin(point: EntryPoint) -> Method:
    try:
        found = point.load()
    except Exception as error:  # the import of a package may raise anything
        problem = f"{type(error).__name__}: {error}"
        raise HunchError(
            f"The method {point.name} of {point.value} cannot be imported: {problem}."
        ) from error
    if not isinstance(found, Method) or point.name in METHODS or found.name != point.name:
        raise HunchError(f"{point.value} must be a new hunch.methods.Method called {point.name}.")
    return found


def find(name: str) -> Method:
    """Return the method of that name, or the one that ``module:NAME`` names in Python.

    Raises:
        UsageError: if there is none, with similar names.
        HunchError: if a package that provides methods cannot be imported.
    """
    if ":" in name:
        return _named(name)
    known = registered()
    if name in known:
        return known[name]
    raise UsageError(
        f"There is no method called {name!r}; {suggest(name, known.keys(), where='hunch methods')}"
    )


@cache
def _named(name: str) -> Method:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # importing a user's module may raise anything
        problem = f"{type(error).__name__}: {error}"
        raise UsageError(f"The method {name} cannot be imported: {problem}.") from error
    if not isinstance(found, Method):
        raise UsageError(f"{name} must be a hunch.methods.Method, not {found!r}.")
    return found


def of(agent: Agent) -> Method | None:
    """Return the registered method of exactly this agent's class; None if there is none."""
    kind = type(agent)
    home = f"{kind.__module__}:{kind.__qualname__}"
    return next((method for method in registered().values() if method.home == home), None)


def reads_raw(agent: Agent) -> bool:
    """Return whether an agent finds ``raw`` in its states: one of a method that reads it, or of your own."""
    method = of(agent)
    return method is None or "raw" in method.reads


def __getattr__(name: str) -> Any:
    if name in ("check", "AgentError"):
        return getattr(import_module(f"{__name__}.checker"), name)
    for method in METHODS.values():
        if name == method.agent.split(":")[1]:
            return method.agent_class
        if name.endswith("Config") and name == method.config_class.__name__:
            return method.config_class
    raise AttributeError(f"module 'hunch.methods' has no attribute {name!r}")
