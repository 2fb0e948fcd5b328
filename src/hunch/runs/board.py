"""Sends a run's metrics to TensorBoard files and, optionally, to Weights & Biases.

Neither may stop a run: a failure is reported once, and the run continues without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from hunch.core import HunchWarning

PROJECT = "HUNCH_WANDB"
"""Environment variable with the project of Weights & Biases; the workers of a comparison inherit it."""


class Board(Protocol):
    """A place to which metrics are logged."""

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Log one line of metrics."""
        ...

    def flush(self) -> None:
        """Write what is still in memory."""
        ...

    def close(self) -> None:
        """Write what is still in memory, and close."""
        ...


class TensorBoard:
    """Scalars in event files.

    Args:
        folder: Folder of the event files.
        step: Step at which the run resumes; later entries of an earlier session are hidden.
    """

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=step + 1)

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Write scalars."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, step)

    def flush(self) -> None:
        """Write what is still in memory, since it is not written again after resuming from a checkpoint."""
        self.writer.flush()

    def close(self) -> None:
        """Write what is still in memory, and close."""
        self.writer.close()


class WandB:
    """A run at Weights & Biases, named after the folder; resuming the folder resumes it.

    Args:
        folder: The run's folder.
        project: The project there.
    """

    def __init__(self, folder: Path, project: str) -> None:
        import wandb

        config = folder / "config.json"
        self.run = wandb.init(
            project=project,
            name="/".join(folder.absolute().parts[-3:]),
            id=hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16],
            resume="allow",
            dir=str(folder),
            config=json.loads(config.read_text()) if config.exists() else {},
        )

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Log one line."""
        self.run.log(dict(figures), step=step)

    def flush(self) -> None:
        """Do nothing: lines are sent at once."""

    def close(self) -> None:
        """Send what is still in memory, and close."""
        self.run.finish()


class Boards:
    """All boards of a run; one that fails is no longer used."""

    def __init__(self, folder: Path, step: int) -> None:
        self.boards: list[Board] = []
        if find_spec("tensorboard"):
            self._try("TensorBoard", lambda: self.boards.append(TensorBoard(folder / "tensorboard", step)))
        if project := os.environ.get(PROJECT):
            self._try("Weights & Biases", lambda: self.boards.append(WandB(folder, project)))

    def show(self, line: Mapping[str, Any]) -> None:
        """Log one line of metrics; the numbers of usage get a prefix."""
        figures = {**line, **{f"usage/{name}": value for name, value in line["usage"].items()}}
        scalars = {name: value for name, value in figures.items() if name not in ("step", "usage", "models")}
        step = int(line["step"])
        self.boards = [b for b in self.boards if self._try(type(b).__name__, partial(b.show, scalars, step))]

    def flush(self) -> None:
        """Write what is still in memory of all boards."""
        for board in self.boards:
            self._try(type(board).__name__, board.flush)

    def close(self) -> None:
        """Close all boards. Closing them again does nothing."""
        while self.boards:
            board = self.boards.pop()
            self._try(type(board).__name__, board.close)

    def _try(self, name: str, work: Callable[[], Any]) -> bool:
        try:
            work()
        except Exception as error:  # a package or a network may raise anything
            warnings.warn(
                f"{name} cannot be used ({type(error).__name__}: {error}); the run continues without it.",
                HunchWarning,
                stacklevel=3,
            )
            return False
        return True
