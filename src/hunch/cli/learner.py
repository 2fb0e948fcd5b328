"""Which learner a command line chooses, and the settings that are no options then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

from hunch.methods import Method


def chosen(method: Method, arguments: Sequence[str]) -> str:
    """Return the learner that a command line chooses, or else the default; empty if there are none."""
    found = getattr(method.config_class, "learner", "")
    for before, token in pairwise(["", *arguments]):
        flag, equals, value = token.partition("=")
        if (flag if equals else before) in ("--learner", f"--{method.prefix}.learner"):
            found = value if equals else token
    default = getattr(method.config_class, "learner", "")
    if not default:
        return ""
    from hunch.methods.learners import LEARNERS

    return found if found in LEARNERS else default


def unseen(method: Method, learner: str) -> list[str]:
    """Return the settings, with dotted names, that are no options: what is fixed, and other learners'."""
    found = [*method.agent_class.fixed, "lm"]
    if learner:
        from hunch.methods.learners import LEARNERS, OPTIONS

        found += [name for name in LEARNERS if name != learner]
        every = (entry.name for entry in fields(LEARNERS[learner].config_class))
        found += [f"{learner}.{name}" for name in every if name not in OPTIONS[learner]]
    return found
