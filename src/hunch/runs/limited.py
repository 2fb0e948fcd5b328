"""A run under a budget, which may end in the middle of a step."""

from __future__ import annotations

from collections.abc import Callable

from hunch.lm.budget import BudgetError
from hunch.runs.files import read_checkpoint
from hunch.runs.training import Training
from hunch.runs.writing import CHECKPOINT, write_checkpoint


def limited(training: Training, loop: Callable[[], str]) -> str:
    """Run within the budget; return what ended the run early, if anything did."""
    training.save()  # so that there is a checkpoint to resume from, whenever the budget is reached
    try:
        with training.tally.enforced():
            return loop()
    except BudgetError as reached:
        _account(training)
        return str(reached)


def _account(training: Training) -> None:
    """Add what was spent to the last checkpoint, after a step was interrupted.

    The run resumes from that checkpoint and finds the later answers in the cache, so their cost must be
    counted here. Agent and environments are unchanged.
    """
    if training.folder:
        training.write_best()
        if (state := read_checkpoint(training.folder.path)) is not None:
            write_checkpoint(training.folder.path / CHECKPOINT, {**state, **training.clock()})
