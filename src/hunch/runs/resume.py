"""Resumes a run from its last checkpoint, and saves a run that a budget ends during a step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from hunch.core import HunchError
from hunch.lm.budget import BudgetError
from hunch.lm.tally import Tally
from hunch.lm.usage import Heard
from hunch.runs.checkpoints import (
    CHECKPOINT,
    KEPT_AT,
    read_checkpoint,
    require_identity,
    restoring,
    write_checkpoint,
)
from hunch.runs.files import read_lines, writing
from hunch.runs.folder import STREAMS, RunFolder
from hunch.runs.stored import read_episodes
from hunch.runs.training import Training


def resume(training: Training, folder: RunFolder) -> None:
    """Resume a run from the last checkpoint in its folder, if there is one.

    Raises:
        UsageError: if agent, environment, settings, data set or seed of the checkpoint differ.
        HunchError: if the checkpoint or a file of lines is damaged.
    """
    state = read_checkpoint(folder.path)
    if state is None:
        shutil.rmtree(folder.path / KEPT_AT, ignore_errors=True)
        _cut_back(folder, {})
        return
    require_identity(folder.path, state, training.identity)  # before anything is cut
    metrics = read_lines(folder.path / "metrics.jsonl")
    with restoring(folder.path):  # a whole file of another program may hold any types
        training.agent.load_state_dict(state["agent"])
        if training.rollout:
            training.rollout.load_state_dict(state["rollout"])
        training.updates = int(state["updates"])
        training.pending = list(state["pending"])
        _cut_back(folder, state["offsets"])
        training.episodes, training.evaluations = read_episodes(read_lines(folder.path / "episodes.jsonl"))
        training.recorded = len(read_lines(folder.path / training.agent.records_file))
        for line in metrics:
            if line["step"] <= training.steps:  # later lines were cut off
                training.note_flat(line)
        # A killed session also spent what it asked after its last checkpoint; its last line of metrics
        # says how much.
        clock = max((state, *metrics[-1:]), key=lambda figures: figures["seconds"])
        training.earlier = float(clock["seconds"])
        spent = dict(state["models"])  # read in any case, so that wrong types are always found
        if clock is not state:
            spent = clock["models"]
        count_on(training.tally, spent, state.get("answered", {}))


def _cut_back(folder: RunFolder, offsets: Mapping[str, int]) -> None:
    """Cut the files of lines back to the lengths that a checkpoint states; without one, to nothing."""
    for name in STREAMS:
        if (folder.path / name).exists():
            _cut(folder, name, offsets.get(name, 0))


def _cut(folder: RunFolder, name: str, length: int) -> None:
    file = folder.lines(name)
    path = folder.path / name
    if file.seek(0, os.SEEK_END) < length:
        raise HunchError(f"{path} is shorter than its checkpoint says: the run cannot go on.")
    with writing(path):
        file.truncate(length)
        file.seek(length)


def count_on(
    tally: Tally, spent: Mapping[str, Mapping[str, float]], answered: Mapping[str, dict[str, Any]]
) -> None:
    """Restore the counts of a tally from a checkpoint.

    Args:
        tally: The tally.
        spent: All usage so far, including usage after the checkpoint.
        answered: The checkpoint's :meth:`hunch.lm.tally.Tally.answered`; later requests are made and
            counted again.
    """
    for name, figures in spent.items():
        row = dict(answered.get(name, {}))
        for model, heard in zip(tally.models.get(name, ()), row.pop("rows", ()), strict=False):
            model.heard = Heard(**heard)
        tally.earlier[name] = {**figures, **row}


def limited(training: Training, loop: Callable[[], str]) -> str:
    """Run the loop within the budget; return what ended the run early, or ""."""
    training.save()  # so that there is a checkpoint to resume from, whenever the budget is reached
    try:
        with training.tally.enforced():
            return loop()
    except BudgetError as reached:
        account(training)
        return str(reached)


def account(training: Training) -> None:
    """Add what was spent to the last checkpoint, after a step was interrupted.

    The run resumes from that checkpoint and finds the later answers in the cache, so their cost must be
    counted here. Agent and environments are unchanged.
    """
    if not training.folder:
        return
    training.write_best()
    state = read_checkpoint(training.folder.path)
    if state is not None:
        write_checkpoint(training.folder.path / CHECKPOINT, {**state, **training.clock()})
