"""Online bin packing: a program chooses the bin for the next item (FunSearch, Nature 2023)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.envs.design.problem import DesignProblem, Trial
from hunch.envs.design.running import TOTAL, box
from hunch.text_files import read_text

Priorities: TypeAlias = Callable[[Sequence[tuple[float, FloatArray]]], Sequence[Any]]
"""Function that takes (item, room left in the bins that it fits into) of instances; returns priorities."""

ASK = "Write the function that gives every bin a priority."
TASK = (
    "Pack items into as few bins as possible. The items come one by one, and each has to be put into a bin "
    "that has room for it before the next is seen. Write the function that gives every such bin a priority: "
    "the item goes into the bin of highest priority."
)
BEST_FIT = '''import numpy as np

def priority(item, bins):
    """Best fit: the fullest bin that has room."""
    return -(bins - item)
'''
INTERFACE = f"""Interface:
- item: float, the size of the item.
- bins: numpy array of shape (n,), the room left in each bin that the item fits into, oldest bin first; \
the last one is a new, empty bin.
- Returns a numpy array of shape (n,): the priority of each bin.

```python
{BEST_FIT}```"""


ROUNDING = 1e-9
"""Amount of room that rounding explains: three items may fill a bin of 100, and their sum be above it."""


@dataclass(frozen=True)
class Instance:
    """Items in the order of arrival, and the size of a bin."""

    capacity: float
    items: tuple[float, ...]

    @property
    def bound(self) -> int:
        """A lower bound of the number of bins: the total size of all items, divided by the size of a bin."""
        return int(np.ceil((sum(self.items) - ROUNDING) / self.capacity))


class BinPacking(DesignProblem):
    """Write a heuristic for online bin packing.

    The fitness is minus the mean number of bins used beyond the lower bound, so it is at most 0. Weibull
    items have shape 3 and scale 45 in bins of 100; uniform items are from 20 to 100 in bins of 150, as in the
    data of FunSearch and of the OR-library. The items of an instance are packed here, with one call per item,
    so that no program sees an item before its turn.

    Args:
        kind: Distribution of the items: ``weibull`` or ``uniform``.
        split: ``train`` or ``test``: different instances of the same kind.
        instances: Number of instances. Default: 5 for ``train``, 20 for ``test``.
        items: Number of items per instance.
        data: File of instances in the format of the OR-library (``binpack3.txt``), which replaces drawn ones.
        blank: Leave the task out of what a writer reads: the control that shows whether it reads the task.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.
    """

    version = "imports-1"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self,
        *,
        kind: Literal["weibull", "uniform"] = "weibull",
        split: Literal["train", "test"] = "train",
        instances: int | None = None,
        items: int = 100,
        data: str = "",
        blank: bool = False,
        trials: str = "",
        render_mode: str | None = None,
    ) -> None:
        if kind not in ("weibull", "uniform") or split not in ("train", "test"):
            raise UsageError(f"kind must be weibull or uniform, split train or test, not {kind}, {split}.")
        n = (5 if split == "train" else 20) if instances is None else instances
        if n < 1 or items < 1:
            raise UsageError(f"instances and items must be at least 1, not {n} and {items}.")
        self.instances = read(data)[:instances] if data else drawn(kind, split, n, items)
        super().__init__(
            task=ASK if blank else TASK,
            interface=INTERFACE,
            function="priority",
            parameters=("item", "bins"),
            start=BEST_FIT,
            target=0.0,
            trials=trials,
            render_mode=render_mode,
        )

    def identity(self) -> str:
        """Return the version of the scoring, and the instances."""
        return f"{self.version} {self.instances}"

    def ready(self) -> None:
        """Start the sandbox."""
        box()

    def run(self, program: str, seed: int) -> Trial:
        """Pack all instances in parallel with a program, and return its trial."""
        with box().load(program, "priority", np.ndarray, finite=False, total=TOTAL) as priority:
            used = pack(self.instances, priority.map)
        excess = [bins - instance.bound for bins, instance in zip(used, self.instances, strict=True)]
        share = sum(excess) / sum(instance.bound for instance in self.instances)
        bins_used = ", ".join(f"{bins} ({more} too many)" for bins, more in zip(used, excess, strict=True))
        return Trial(
            -float(np.mean(excess)),
            f"bins used for each instance, and how many more than the lower bound: {bins_used}; "
            f"on average {np.mean(excess):.2f} bins or {share:.2%} too many.",
            tuple(-float(more) for more in excess),
            {"excess": share},
        )


def pack(instances: Sequence[Instance], priorities: Priorities) -> list[int]:
    """Pack instances in parallel, item by item; return the number of bins that each used.

    Raises:
        ValueError: if the number of priorities differs from that of the bins.
    """
    rooms: list[list[float]] = [[] for _ in instances]
    for step in range(max(len(instance.items) for instance in instances)):
        live = [i for i, instance in enumerate(instances) if step < len(instance.items)]
        calls, fits = [], []
        for i in live:
            item = instances[i].items[step]
            fit = [b for b, room in enumerate(rooms[i]) if room >= item - ROUNDING]
            fits.append(fit)
            calls.append((item, np.array([*(rooms[i][b] for b in fit), instances[i].capacity], dtype=float)))
        for i, fit, (item, bins), bin_priorities in zip(live, fits, calls, priorities(calls), strict=True):
            place = _highest(bin_priorities, len(bins))
            if place == len(fit):
                rooms[i].append(instances[i].capacity - item)
            else:
                rooms[i][fit[place]] -= item
    return [len(bins) for bins in rooms]


def _highest(bin_priorities: Any, n: int) -> int:
    values = np.asarray(bin_priorities)
    if values.shape != (n,) or values.dtype.kind not in "iufb" or np.isnan(values.astype(float)).any():
        raise ValueError(f"priority must return {n} numbers for {n} bins, none of them nan")
    return int(np.argmax(values))


def drawn(kind: str, split: str, n: int, items: int) -> tuple[Instance, ...]:
    """Draw instances; the same arguments give the same instances."""
    rng = np.random.default_rng([kind == "uniform", split == "test", items])
    return tuple(_drawn(kind, items, rng) for _ in range(n))


def _drawn(kind: str, items: int, rng: np.random.Generator) -> Instance:
    if kind == "uniform":
        return Instance(150.0, tuple(rng.integers(20, 101, size=items).astype(float).tolist()))
    sizes = np.clip(np.round(45 * rng.weibull(3, size=items)), 1, 100)
    return Instance(100.0, tuple(sizes.tolist()))


def read(path: str) -> tuple[Instance, ...]:
    """Read instances in the format of the OR-library: their number, and for each its name, capacity,
    number of items and best known number of bins, and the items.

    Raises:
        UsageError: if there is no such file, or it has another format.
    """
    try:
        words = iter(read_text(path).split())
        instances = []
        for _ in range(int(next(words))):
            next(words)
            capacity, n, _ = float(next(words)), int(next(words)), next(words)
            items = tuple([float(next(words)) for _ in range(n)])
            if not items or not all(0 < item <= capacity for item in items):
                raise ValueError(f"an instance needs items from 0 to its capacity of {capacity:g}")
            instances.append(Instance(capacity, items))
        if not instances:
            raise ValueError("there is no instance")
    except (OSError, ValueError, StopIteration) as error:
        raise UsageError(f"{path} holds no bins in the format of the OR-library: {error!r}.") from None
    return tuple(instances)
