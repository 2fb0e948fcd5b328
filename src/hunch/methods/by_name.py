"""Finds what a program imports from :mod:`hunch.methods` by name: classes of methods, and the checker."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from hunch.methods import OURS, registered


def named(name: str) -> Any:
    """Return a class of a method, its config, or a part of the checker, by its name."""
    if name == "METHODS":
        return registered()
    if name in ("check", "AgentError"):
        return getattr(import_module("hunch.methods.checker"), name)
    plain = name.lower().removesuffix("config")
    for file in sorted(OURS, key=lambda file: file.replace("-", "") != plain):  # the likely one first
        for found in classes(file):
            if found.__name__ == name:
                return found
    raise AttributeError(f"module 'hunch.methods' has no attribute {name!r}")


def classes(*files: str) -> Iterator[type[Any]]:
    """Yield the classes of agents and configs of built-in methods."""
    for file in files:
        method = import_module(OURS[file]).METHOD
        yield from (method.agent_class, method.config_class)
