"""Sends metrics of a run to TensorBoard files and to other boards: W&B, Trackio, MLflow, or your own class.

No board can stop a run: a failure is reported once, and the run continues without that board.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from shutil import disk_usage
from typing import Any, Protocol, TypeAlias

from hunch.core import HunchWarning, UsageError
from hunch.extras import install
from hunch.lm.backends.secret import without_keys
from hunch.printable import printable
from hunch.runs.differences import leaves
from hunch.runs.files import read_json


class Board(Protocol):
    """Receives the metrics of a run. A custom class is called with the run's folder."""

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Log one line of metrics."""
        ...

    def flush(self) -> None:
        """Send or write buffered metrics."""
        ...

    def close(self) -> None:
        """Send or write buffered metrics, and close the board."""
        ...


Maker: TypeAlias = Callable[[Path], Board]
"""Makes a board for the run in a folder."""


class Boards:
    """All boards of a run; a board that fails is not used again.

    Args:
        folder: The run's folder.
        step: Step at which the run resumes.
        makers: Constructors of the boards besides TensorBoard, by their spec.
    """

    def __init__(self, folder: Path, step: int, makers: Mapping[str, Maker]) -> None:
        self.boards: list[Board] = []
        self._said: set[str] = set()
        if find_spec("tensorboard"):
            self._open("TensorBoard", lambda folder: TensorBoard(folder / "tensorboard", step), folder)
        for spec, maker in makers.items():
            self._open(spec, maker, folder)

    def _open(self, name: str, maker: Maker, folder: Path) -> None:
        """Add a board, if it can be made."""
        self._try(name, lambda: self.boards.append(maker(folder)))

    def show(self, line: Mapping[str, Any]) -> None:
        """Log one line of metrics; names of the model usage get a prefix."""
        scalars = {name: value for name, value in line.items() if name not in ("step", "usage", "models")}
        scalars |= {f"usage/{name}": value for name, value in line["usage"].items()}
        step = int(line["step"])
        self.boards = [
            board
            for board in self.boards
            if self._try(type(board).__name__, partial(board.show, scalars, step))
        ]

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
            said = without_keys(printable(f"{name} cannot be used ({type(error).__name__}: {error})"))
            if said not in self._said:
                warnings.warn(f"{said}; the run continues without it.", HunchWarning, stacklevel=3)
            self._said.add(said)
            return False
        return True


class TensorBoard:
    """Writes scalars to TensorBoard's event files in this thread; the package's writer uses another one.

    Args:
        folder: Folder of the event files.
        step: Step at which the run resumes; later entries of an earlier session become invalid.
    """

    def __init__(self, folder: Path, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # an optional package
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


class WandB:
    """A run at Weights & Biases, named after the folder; resuming the run in the folder resumes it.

    Args:
        folder: The run's folder.
        project: Name of the project at Weights & Biases.
    """

    package = "wandb"

    def __init__(self, folder: Path, project: str) -> None:
        about = {"name": _name(folder), "config": read_json(folder / "config.json") or {}, "resume": "allow"}
        self.run = import_module(self.package).init(project=project, **about, **self._place(folder))
        self.files = folder / self.package  # of W&B; Trackio has a folder of its own elsewhere

    def _place(self, folder: Path) -> dict[str, Any]:
        return {"id": _digest(folder), "dir": str(folder)}

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Log one line."""
        self.run.log(dict(figures), step=step)

    def flush(self) -> None:
        """Check that lines could be kept; they are sent at once.

        Raises:
            OSError: if the disk is full. The package's own process writes the file, and says nothing of it.
        """
        if self.files.is_dir() and not disk_usage(self.files).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.files))

    def close(self) -> None:
        """Send buffered metrics, and close the run."""
        self.run.finish()
        self.flush()


class Trackio(WandB):
    """A run of Trackio, which has the interface of Weights & Biases; resuming finds the run by its name."""

    package = "trackio"

    def _place(self, folder: Path) -> dict[str, Any]:
        return {"embed": False, "auto_log_cpu": False, "auto_log_gpu": False}


class MLflow:
    """A run of MLflow, named after the folder, at ``MLFLOW_TRACKING_URI``; resuming resumes the run.

    Args:
        folder: The run's folder.
        project: Name of the experiment at MLflow.
    """

    def __init__(self, folder: Path, project: str) -> None:
        from mlflow.entities import Metric, Param  # an optional package
        from mlflow.tracking import MlflowClient

        self.client, self._metric = MlflowClient(), Metric
        known = self.client.get_experiment_by_name(project)
        place = known.experiment_id if known else self.client.create_experiment(project)
        tags = {"hunch": _digest(folder)}
        earlier = self.client.search_runs([place], f"tags.hunch = '{tags['hunch']}'")
        run = earlier[0] if earlier else self.client.create_run(place, tags=tags, run_name=_name(folder))
        self.id = run.info.run_id
        self.client.update_run(self.id, "RUNNING")
        settings = leaves((read_json(folder / "config.json") or {}).get("run", {}))
        for name, value in {} if earlier else settings.items():
            self.client.log_batch(self.id, params=[Param(name, str(value)[:500])])

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Log one line."""
        now = int(time.time() * 1000)
        self.client.log_batch(self.id, [self._metric(*each, now, step) for each in figures.items()])

    def flush(self) -> None:
        """Do nothing: lines are sent at once."""

    def close(self) -> None:
        """Mark the run as finished at MLflow."""
        self.client.set_terminated(self.id)


def _name(folder: Path) -> str:
    return "/".join(folder.absolute().parts[-3:])


def _digest(folder: Path) -> str:
    return hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16]


KINDS: dict[str, Any] = {"wandb": WandB, "mlflow": MLflow, "trackio": Trackio}
"""The boards that are named ``KIND:PROJECT``, each with its class here; each needs a package."""


def board_of(spec: str) -> Maker:
    """Return the constructor of the board of a spec, such as ``mlflow:EXPERIMENT`` or ``MODULE:Class``.

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
        return partial(KINDS[kind], project=name)
    try:
        maker: Maker = resolve_name(spec)
    except Exception as error:  # the import of a module may raise anything
        raise UsageError(without_keys(f"The board {spec} cannot be imported: {error}.")) from error
    lacking = [name for name in ("show", "flush", "close") if not hasattr(maker, name)]
    if isinstance(maker, type) and not lacking:
        return maker
    what = f"has no method {lacking[0]}" if isinstance(maker, type) else "is not a class"
    raise UsageError(f"A board is a class with the methods show, flush and close, and {spec} {what}.")
