"""The checkpoints of agents in a run's folder: the last one, the best one, and those that are kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge

from hunch.runs.writing import BEST, CHECKPOINT, KEPT_AT, write_checkpoint, writing

Checkpoint: TypeAlias = Literal["last", "best"] | Annotated[int, Ge(1)]
"""Which checkpoint: the last one, that of the best evaluation, or that of a step (a number)."""


def file_of(checkpoint: Checkpoint) -> Path:
    """Return the file of a checkpoint in a run's folder."""
    return {"last": CHECKPOINT, "best": BEST}.get(str(checkpoint), KEPT_AT / str(checkpoint) / "agent.pt")


def kept_steps(folder: Path) -> list[int]:
    """Return the steps whose checkpoints a run has kept, in ascending order."""
    there = (file.parent.name for file in (folder / KEPT_AT).glob("*/agent.pt"))
    return sorted(int(name) for name in there if name.isdecimal())


def keep(folder: Path, step: int, state: dict[str, Any], last: int | None) -> None:
    """Keep the agent of a step in a separate folder, and only the ``last`` latest of these."""
    file = folder / file_of(step)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_checkpoint(file, state)
    for earlier in kept_steps(folder)[:-last] if last else ():
        shutil.rmtree((folder / file_of(earlier)).parent)
