"""Memory of a long run: the resident set at even steps, and its growth once the buffers are full.

A replay buffer holds 50,000 transitions, and priors and caches some 65,000 states, so that memory has to stop
growing before step 100,000. Each run has a process of its own.

    python benchmarks/memory.py [steps] [method ...]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hunch
from hunch.lm.answers import memory
from hunch.methods.prior import dqn_prior
from hunch.rl import q_learning
from hunch.roles.encoder import features
from hunch.roles.policy import perceptron
from hunch.roles.prior import base

STEPS = 200_000
METHODS = ("dqn-prior", "dqn", "q-learning", "ppo", "zero-shot")
POINTS = 20
HOUSEHOLD: dict[str, Any] = {"env": "hunch/Household-Pick-v0", "streams": hunch.Streams(options={"games": 8})}
# Smaller and fewer updates than by default: they take time, and no memory.
SMALL = {"hidden": 16, "batch_size": 16, "update_every": 50}
SETTINGS: dict[str, dict[str, Any]] = {
    "dqn-prior": {**HOUSEHOLD, **SMALL, "lm": "minilm"},
    "dqn": {**HOUSEHOLD, **SMALL},
    "q-learning": {"env": "hunch/FrozenLake-v0"},
    "ppo": {**HOUSEHOLD},
    "zero-shot": {**HOUSEHOLD, "lm": "minilm"},
}


def resident() -> float:
    """Return the resident set of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * 4096 / 2**20


class Memory(hunch.Callback):
    """Prints the resident set at even steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.every = steps // POINTS
        self.started = time.monotonic()
        self.measured: dict[int, float] = {}

    def on_step(self, run: Any, transitions: Any) -> None:
        """Measure, if it is time."""
        if run.steps // self.every > len(self.measured):
            self.measured[run.steps] = resident()
            seconds = time.monotonic() - self.started
            print(f"  step {run.steps:>9,}: {resident():7.1f} MB, {seconds:6.0f} s", flush=True)


def measure(method: str, steps: int) -> None:
    """Train, and print the growth in the second half."""
    memory = Memory(steps)
    settings = SETTINGS[method]
    print(f"{method} in {settings['env']}", flush=True)
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        hunch.train(method, steps=steps, out=out, watch=hunch.Watch(callbacks=[memory]), **settings)
    half, last = list(memory.measured.values())[POINTS // 2 - 1 :: POINTS // 2]
    growth = (last - half) / half * 100_000 / (steps / 2)
    print(f"  growth from step {steps // 2:,}: {growth:+.2%} per 100,000 steps", flush=True)


def shrink() -> None:
    """Make all buffers ten times smaller."""
    for module, name in (
        (memory, "MOST_ANSWERS"),
        (memory, "MOST_BYTES"),
        (dqn_prior, "FORGET_EVERY"),
        (features, "RECENT"),
        (perceptron, "KNOWN"),
        (base, "KNOWN"),
    ):
        setattr(module, name, getattr(module, name) // 10)
    make = q_learning.Replay.__init__

    def smaller(self: q_learning.Replay, capacity: int, k: int = 0) -> None:
        make(self, capacity // 10, k)

    q_learning.Replay.__init__ = smaller  # type: ignore[method-assign]


def main() -> None:
    """Measure one method after the other."""
    arguments = sys.argv[1:]
    short = "--short" in arguments
    if "--one" in arguments:
        if short:
            shrink()
        measure(arguments[-1], STEPS // 10 if short else STEPS)
        return
    options = ["--short"] * short
    for method in [argument for argument in arguments if argument in METHODS] or METHODS:
        subprocess.run([sys.executable, __file__, "--one", *options, method], check=True)


if __name__ == "__main__":
    main()
