"""The classes of methods and their configs, as names of :mod:`hunch.methods`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from hunch.methods import OURS, find, registered


def named(name: str) -> Any:
    """Return a class of a method, its config, or a part of the checker, by its name."""
    if name == "METHODS":
        return registered()
    if name in ("check", "AgentError"):
        return getattr(import_module("hunch.methods.checker"), name)
    plain = name.lower().removesuffix("config")
    for file in sorted(OURS, key=lambda file: file.replace("-", "") != plain):  # the likely one first
        for found in _classes(file):
            if found.__name__ == name:
                return found
    raise AttributeError(f"module 'hunch.methods' has no attribute {name!r}")


def of_all() -> Iterator[str]:
    """Yield the names of all classes of built-in methods."""
    for name in OURS:
        yield from (cls.__name__ for cls in _classes(name))


def _classes(name: str) -> tuple[type[Any], type[Any]]:
    method = find(name)
    return method.agent_class, method.config_class
