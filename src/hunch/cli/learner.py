"""Methods with a choice of learners: the chosen learner, and the options that do not apply to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from hunch.cli.words import last
from hunch.core import UsageError
from hunch.methods import Method
from hunch.methods.learners import LEARNERS, OPTIONS


def chosen(method: Method, arguments: Sequence[str]) -> str:
    """Return the learner that a command line chooses, or else the default."""
    learner = last(arguments, "--learner", f"--{method.prefix}.learner")
    return learner if learner in LEARNERS else str(method.config_class.learner)


def unseen_by(method: Method, arguments: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """Return the settings that do not apply to a command line, given the settings of a file.

    Raises:
        UsageError: if it has an option of another learner.
    """
    picked = ["--learner", str(given["learner"])] if "learner" in given else []
    learner = chosen(method, [*picked, *arguments])
    for token in arguments:
        other, dot, _ = token.removeprefix("--").removeprefix(f"{method.prefix}.").partition(".")
        if token.startswith("--") and dot and other in LEARNERS and other != learner:
            raise UsageError(
                f"{token.partition('=')[0]} belongs to the learner {other}, and the learner is {learner}: "
                f"add --learner {other}."
            )
    return unseen(learner)


def unseen(learner: str) -> list[str]:
    """Return the settings of learners, with dotted names, that this learner does not use as options."""
    every = (entry.name for entry in fields(LEARNERS[learner].config_class))
    hidden = [f"{learner}.{name}" for name in every if name not in OPTIONS[learner]]
    return [*(name for name in LEARNERS if name != learner), *hidden]
