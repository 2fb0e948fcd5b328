"""Keeps the agents of single steps in a run's folder."""

from __future__ import annotations

import shutil

from hunch.runs.files import file_of, kept_steps
from hunch.runs.training import Training
from hunch.runs.writing import write_checkpoint, writing


def keep(training: Training, every: int, last: int | None, before: int) -> None:
    """Keep the agent if the steps since ``before`` passed a multiple of ``every``, and only the ``last``."""
    folder, step = training.folder, training.steps
    if folder is None or step // every == before // every:
        return
    file = folder.path / file_of(step)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_checkpoint(file, training.state())
    for earlier in kept_steps(folder.path)[:-last] if last else ():
        shutil.rmtree((folder.path / file_of(earlier)).parent)
