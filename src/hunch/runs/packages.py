"""Boards besides TensorBoard: Weights & Biases, Trackio, MLflow, or a custom class."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from hunch.core import UsageError
from hunch.extras import install
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


KINDS = {"wandb": "WandB", "mlflow": "MLflow", "trackio": "Trackio"}
"""The boards that are named ``KIND:PROJECT``, each with its class here; each needs a package."""


def board_of(spec: str) -> Callable[[Path], Board]:
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
        return partial(globals()[KINDS[kind]], project=name)
    try:
        own: Callable[[Path], Board] = resolve_name(spec)
    except Exception as error:  # the import of a module may raise anything
        raise UsageError(f"The board {spec} cannot be imported: {error}.") from error
    return own


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

    def _place(self, folder: Path) -> dict[str, Any]:
        return {"id": _digest(folder), "dir": str(folder)}

    def show(self, figures: Mapping[str, float], step: int) -> None:
        """Log one line."""
        self.run.log(dict(figures), step=step)

    def flush(self) -> None:
        """Do nothing: lines are sent at once."""

    def close(self) -> None:
        """Send buffered metrics, and close the run."""
        self.run.finish()


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
        from mlflow.entities import Metric, Param
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
