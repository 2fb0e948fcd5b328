"""Sends metrics of a run to TensorBoard files and to other boards: W&B, MLflow, Trackio, or a custom one.

No board can stop a run: a failure is reported once, and the run continues without that board.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hunch.core import HunchWarning

if TYPE_CHECKING:
    from hunch.runs.packages import Board

BOARDS = "HUNCH_BOARDS"
"""Environment variable with specs of boards, separated by spaces; workers of a comparison inherit it."""


class TensorBoard:
    """Writes scalars to TensorBoard's event files in this thread; the package's writer uses another one.

    Args:
        folder: Folder of the event files.
        step: Step at which the run resumes; later entries of an earlier session become invalid.
    """

    def __init__(self, folder: Path, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        folder.mkdir(exist_ok=True)
        self._event, self._summary = Event, Summary
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self.writer = RecordWriter(open(folder / name, "wb"))  # noqa: SIM115
        self._write(file_version="brain.Event:2")
        self._write(step=step + 1, session_log=SessionLog(status=SessionLog.START))

    def _write(self, **entries: Any) -> None:
        self.writer.write(self._event(wall_time=time.time(), **entries).SerializeToString())

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Write scalars."""
        values = [self._summary.Value(tag=name, simple_value=float(value)) for name, value in figures.items()]
        self._write(step=step, summary=self._summary(value=values))

    def flush(self) -> None:
        """Write buffered scalars to disk; they are not logged again after resuming from a checkpoint."""
        self.writer.flush()

    def close(self) -> None:
        """Write buffered scalars and close the file; a full disk was reported before."""
        with suppress(OSError):
            self.writer.close()


class Boards:
    """All boards of a run; a board that fails is not used again.

    Args:
        folder: The run's folder.
        step: Step at which the run resumes.
        specs: Boards besides TensorBoard. Default: those in the environment variable.
    """

    def __init__(self, folder: Path, step: int, specs: Sequence[str] = ()) -> None:
        self.boards: list[Board] = []
        if find_spec("tensorboard"):
            self._try("TensorBoard", lambda: self.boards.append(TensorBoard(folder / "tensorboard", step)))
        named = specs or os.environ.get(BOARDS, "").split()
        if named:
            from hunch.runs.packages import board_of
        for spec in named:
            make = board_of(spec)
            self._try(spec, lambda make=make: self.boards.append(make(folder)))  # type: ignore[misc]

    def show(self, line: Mapping[str, Any]) -> None:
        """Log one line of metrics; names of the model usage get a prefix."""
        figures = {**line, **{f"usage/{name}": value for name, value in line["usage"].items()}}
        scalars = {name: value for name, value in figures.items() if name not in ("step", "usage", "models")}
        step = int(line["step"])
        self.boards = [b for b in self.boards if self._try(type(b).__name__, partial(b.show, scalars, step))]

    def flush(self) -> None:
        """Write the buffered metrics of all boards."""
        for board in self.boards:
            self._try(type(board).__name__, board.flush)

    def close(self) -> None:
        """Close all boards."""
        for board in self.boards:
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
