"""What other packages add to Hunch by entry points: kinds of models, weights, commands and environments.

The repository has two such packages beside this one: the studies, which are not published, and weights of
pocket models. Where one is missing, whoever asks for a part of it is told how to get it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from hunch.core import UsageError


@dataclass(frozen=True, slots=True)
class Command:
    """A command of another package, named by an entry point of the group ``hunch.commands``.

    Attributes:
        arguments: What follows its name, for ``hunch --help``.
        summary: What it does, in one line.
        loader: ``module:function``, imported only when the command is called.
    """

    arguments: str
    summary: str
    loader: str

    def load(self) -> Callable[[Sequence[str]], None]:
        """Import and return the function that takes the arguments of the command line."""
        module, _, name = self.loader.partition(":")
        function: Callable[[Sequence[str]], None] = getattr(import_module(module), name)
        return function


def found(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group that are installed, by name."""
    return {point.name: point for point in entry_points(group=group)}


def of_studies(part: str) -> UsageError:
    """Return the error for a part of the studies where they are not installed, with how to get them."""
    return UsageError(
        f"{part} comes with the studies, which are not in this package: "
        "get a checkout of Hunch and run 'make setup' there."
    )


def of_pocket(part: str) -> UsageError:
    """Return the error for weights whose package is not installed, with how to get it."""
    return UsageError(
        f"{part} comes with hunch-rl-pocket, which is not installed: "
        "get a checkout of Hunch and run 'pip install ./pocket' there."
    )
