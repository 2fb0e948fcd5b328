"""Sends a run's metrics to TensorBoard files and to other boards: W&B, MLflow, Trackio, or one of your own.

None may stop a run: a failure is reported once, and the run continues without that board.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from hunch.core import HunchWarning, UsageError
from hunch.plugins import install

BOARDS = "HUNCH_BOARDS"
"""Environment variable with boards, separated by spaces; the workers of a comparison inherit it."""


class Board(Protocol):
    """A place to which metrics are logged. A class of your own is called with the run's folder."""

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
    """Scalars in event files, written by this thread: the package's own writer fails in a thread of its own.

    Args:
        folder: Folder of the event files.
        step: Step at which the run resumes; later entries of an earlier session are hidden.
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
        """Write what is still in memory, since it is not written again after resuming from a checkpoint."""
        self.writer.flush()

    def close(self) -> None:
        """Write what is still in memory, and close; a full disk has been reported before."""
        with suppress(OSError):
            self.writer.close()


KINDS = {"wandb": "WandB", "mlflow": "MLflow", "trackio": "Trackio"}
"""The boards that are named as ``KIND:PROJECT``, in :mod:`hunch.runs.packages`; each needs its package."""


def board_of(spec: str) -> Callable[[Path], Board]:
    """Return what makes the board of a spec, such as ``mlflow:EXPERIMENT`` or ``MODULE:Class``.

    Raises:
        UsageError: if there is no such board, or its package is not installed.
    """
    kind, _, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if not name:
        known = ", ".join(f"{kind}:PROJECT" for kind in KINDS)
        raise UsageError(f"A board is {known} or MODULE:Class, not {spec!r}.")
    if kind in KINDS and find_spec(kind) is None:
        raise UsageError(f"The board {spec} needs {kind}: {install(kind)}.")
    if kind in KINDS:
        return partial(getattr(import_module("hunch.runs.packages"), KINDS[kind]), project=name)
    try:
        own: Callable[[Path], Board] = getattr(import_module(kind), name)
    except Exception as error:  # the import of a module may raise anything
        raise UsageError(f"The board {spec} cannot be imported: {error}.") from error
    return own


class Boards:
    """All boards of a run; one that fails is no longer used.

    Args:
        folder: The run's folder.
        step: Step at which the run resumes.
        specs: The boards besides TensorBoard. Default: those in the environment variable.
    """

    def __init__(self, folder: Path, step: int, specs: Sequence[str] = ()) -> None:
        self.boards: list[Board] = []
        if find_spec("tensorboard"):
            self._try("TensorBoard", lambda: self.boards.append(TensorBoard(folder / "tensorboard", step)))
        for spec in specs or os.environ.get(BOARDS, "").split():
            self._try(spec, partial(self._add, board_of(spec), folder))

    def _add(self, make: Callable[[Path], Board], folder: Path) -> None:
        self.boards.append(make(folder))

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
