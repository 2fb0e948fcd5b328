"""Which rules there are for ``scripted:<name>``, and where each is.

A rule stands in the place of a language model (:mod:`hunch.lm.backends.scripted`). One that knows a world
lives beside that world, and is imported when it is first asked for. ``rule`` and ``writer`` register it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from hunch.core import UsageError
from hunch.extras import of_studies
from hunch.suggest import suggest

if TYPE_CHECKING:
    from hunch.lm.base import Model

GROUP: Final = "hunch.rules"
"""Entry-point group of packages that provide rules: a rule's name, and the module that registers it."""
HOMES: dict[str, str] = {}
"""The module that registers each rule that knows a world; ``hunch.envs`` fills this in."""
OF_STUDIES: Final = (
    "captions",
    "critic",
    "examiner",
    "explainer",
    "kitchen",
    "onlooker",
    "partner",
    "tabletop",
)
"""Rules that come with the studies."""

Rule: TypeAlias = Callable[[str, tuple[str, ...]], str]
"""Returns the best option, given a prompt and its options."""
Options: TypeAlias = Callable[[str], tuple[str, ...]]
"""Returns the possible answers to a prompt; empty if there are none."""
MakesWriter = TypeVar("MakesWriter", bound="Callable[..., Model]")


@dataclass(frozen=True)
class NamedRule:
    """A rule that chooses an option.

    Attributes:
        choose: The rule.
        version: Its version; empty for one that is still being written.
        options: Finds the answers among which it chooses; None for the last list in the prompt.
    """

    choose: Rule
    version: str = ""
    options: Options | None = None


@dataclass(frozen=True)
class NamedWriter:
    """A rule that answers a prompt as a whole.

    Attributes:
        make: Makes the model; its keywords are the dials.
        dials: The names of the dials.
    """

    make: Callable[..., Model]
    dials: tuple[str, ...]


RULES: dict[str, NamedRule] = {}
"""The rules that were registered so far."""
WRITERS: dict[str, NamedWriter] = {}
"""The writers that were registered so far."""


def rule(name: str, version: str = "", options: Options | None = None) -> Callable[[Rule], Rule]:
    """Register a rule, so that ``scripted:<name>`` loads it.

    Args:
        name: Name of the rule.
        version: Version of the rule; see :class:`~hunch.lm.backends.scripted.ScriptedModel`.
        options: Finds the answers among which ``generate`` chooses. Default: the last list in the prompt.
    """

    def register(function: Rule) -> Rule:
        RULES[name] = NamedRule(function, version, options)
        return function

    return register


def writer(name: str, dials: Sequence[str]) -> Callable[[MakesWriter], MakesWriter]:
    """Register what makes a model that answers as a whole, so that ``scripted:<name>`` loads it.

    Args:
        name: Name of the rule.
        dials: The keywords that it takes.
    """

    def register(make: MakesWriter) -> MakesWriter:
        WRITERS[name] = NamedWriter(make, tuple(dials))
        return make

    return register


def find(name: str) -> NamedRule | NamedWriter:
    """Return a rule by its name. What installed packages add to it is imported as well.

    Raises:
        UsageError: if there is no such rule; the message suggests similar names.
    """
    for module in (HOMES.get(name), *_added().get(name, ())):
        if module:
            import_module(module)
    if name in RULES:
        return RULES[name]
    if name in WRITERS:
        return WRITERS[name]
    if name in OF_STUDIES:
        raise of_studies(f"The rule 'scripted:{name}'")
    known = sorted({*RULES, *WRITERS, *HOMES, *_added()})
    raise UsageError(f"There is no rule {name!r} for scripted models; {suggest(name, known)}")


@cache
def _added() -> dict[str, list[str]]:
    """Return the modules that other packages name for each rule: of their own, or to add to one of ours."""
    modules: dict[str, list[str]] = {}
    for point in entry_points(group=GROUP):
        modules.setdefault(point.name, []).append(point.module)
    return modules
