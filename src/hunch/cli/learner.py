"""Methods with a choice of learners: the chosen learner, and the options that do not apply to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from hunch.cli.words import last
from hunch.core import UsageError
from hunch.methods import Method
from hunch.methods.learners import LEARNERS, OPTIONS


def chosen(method: Method, arguments: Sequence[str]) -> str:
    """Return the learner that a command line chooses, or else the default."""
    found = last(arguments, "--learner", f"--{method.prefix}.learner")
    return found if found in LEARNERS else str(method.config_class.learner)


def unseen(learner: str) -> list[str]:
    """Return the settings, with dotted names, that belong to other learners and do not apply to this one."""
    every = (entry.name for entry in fields(LEARNERS[learner].config_class))
    hidden = [f"{learner}.{name}" for name in every if name not in OPTIONS[learner]]
    return [*(name for name in LEARNERS if name != learner), *hidden]


def refuse_other_learners(method: Method, learner: str, arguments: Sequence[str]) -> None:
    """Refuse an option of another learner than the one that a command line chooses.

    Raises:
        UsageError: if there is such an option; the message names it.
    """
    for token in arguments:
        other, dot, _ = token.removeprefix("--").removeprefix(f"{method.prefix}.").partition(".")
        if token.startswith("--") and dot and other in LEARNERS and other != learner:
            raise UsageError(
                f"{token.partition('=')[0]} belongs to the learner {other}, and the learner is {learner}: "
                f"add --learner {other}."
            )
