"""Resumes a run from its last checkpoint, and saves a run that a budget ends during a step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from hunch.core import HunchError, UsageError
from hunch.lm.budget import BudgetError
from hunch.lm.tally import Tally
from hunch.lm.usage import Heard
from hunch.runs.differences import differences, leaves
from hunch.runs.files import read_checkpoint, read_lines, restoring
from hunch.runs.folder import STREAMS, RunFolder
from hunch.runs.result import read_episode
from hunch.runs.training import Training
from hunch.runs.writing import CHECKPOINT, KEPT_AT, write_checkpoint, writing


def resume(training: Training, folder: RunFolder) -> None:
    """Resume a run from the last checkpoint in its folder, if there is one.

    Raises:
        UsageError: if agent, environment, settings, data set or seed of the checkpoint differ.
        HunchError: if the checkpoint or a file of lines is damaged.
    """
    state = _restored(folder)
    if state is None:
        return
    if state["identity"] != training.identity:
        what = differences(leaves(state["identity"]), leaves(training.identity))
        raise UsageError(f"{folder.path} holds another run ({what}): choose another folder.")
    with restoring(folder.path):
        training.agent.load_state_dict(state["agent"])
    if training.rollout:
        training.rollout.load_state_dict(state["rollout"])
    training.updates, training.pending = state["updates"], state["pending"]
    for record in read_lines(folder.path / "episodes.jsonl"):
        kept = training.evaluations if record["evaluation"] else training.episodes
        kept.append(read_episode(record))
    training.recorded = len(read_lines(folder.path / training.records_file))
    # A killed session also spent what it asked after its last checkpoint.
    clock = max((state, *state["seen"]), key=lambda figures: figures["seconds"])
    training.earlier = clock["seconds"]
    count_on(training.tally, clock["models"], state.get("answered", {}))


def _restored(folder: RunFolder) -> dict[str, Any] | None:
    """Read the last checkpoint and cut the files back to it; None if there is none yet.

    The last line of metrics, from before the cut, is in the state as ``"seen"``.
    """
    state = read_checkpoint(folder.path)
    offsets = state["offsets"] if state else {}
    if state is None:
        shutil.rmtree(folder.path / KEPT_AT, ignore_errors=True)
    else:
        state["seen"] = read_lines(folder.path / "metrics.jsonl")[-1:]
    for name in STREAMS:
        if (folder.path / name).exists():
            _cut(folder, name, offsets.get(name, 0))
    return state


def _cut(folder: RunFolder, name: str, length: int) -> None:
    file, path = folder.lines(name), folder.path / name
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
    if training.folder:
        training.write_best()
        if (state := read_checkpoint(training.folder.path)) is not None:
            write_checkpoint(training.folder.path / CHECKPOINT, {**state, **training.clock()})
