"""TensorBoard files beside the lines of metrics, where the package is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any


class Board:
    """Writes the figures of each line of metrics as scalars.

    Args:
        folder: Where the event files go.
        step: Where the run goes on; what an earlier sitting wrote beyond it is hidden.
    """

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def show(self, line: dict[str, Any]) -> None:
        """Write one line of metrics."""
        figures = {**line, **{f"usage/{name}": value for name, value in line["usage"].items()}}
        for name, value in figures.items():
            if name not in ("step", "usage"):
                self.writer.add_scalar(name, value, line["step"])

    def close(self) -> None:
        """Write what is still in memory."""
        self.writer.close()


def open_board(folder: Path, step: int) -> Board | None:
    """Open the TensorBoard files of a run's folder; None where TensorBoard is not installed."""
    return Board(folder / "tensorboard", step) if find_spec("tensorboard") else None
