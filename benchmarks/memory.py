"""Memory of a long run: the resident set at even steps, and its growth once the buffers are full.

A replay buffer holds 50,000 transitions, and priors and caches some 65,000 states, so that memory has to stop
growing before step 100,000. Each run has a process of its own.

    python benchmarks/memory.py [--steps N] [method ...]
    python benchmarks/memory.py --short [method ...]     buffers and steps ten times smaller
"""

from __future__ import annotations

import argparse
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

STEPS = 300_000
FULL = 100_000
"""The step from which all buffers are full."""
METHODS = ("dqn-prior", "dqn", "q-learning", "ppo", "zero-shot")
POINTS = 30
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


def measure(method: str, steps: int, full: int) -> None:
    """Train, and print the growth from the step on at which the buffers are full."""
    memory = Memory(steps)
    settings = SETTINGS[method]
    print(f"{method} in {settings['env']}", flush=True)
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        hunch.train(method, steps=steps, out=out, watch=hunch.Watch(callbacks=[memory]), **settings)
    later = {step: size for step, size in memory.measured.items() if step >= full}
    first, last = min(later), max(later)
    growth = (later[last] - later[first]) / later[first] * full / (last - first)
    print(f"  growth from step {first:,} to {last:,}: {growth:+.2%} per {full:,} steps", flush=True)


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="*", metavar="method", choices=(*METHODS, []))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--one", action="store_true", help="measure in this process")
    asked = parser.parse_args()
    if asked.one:
        less = 10 if asked.short else 1
        if asked.short:
            shrink()
        measure(asked.methods[0], asked.steps // less, FULL // less)
        return
    options = ["--one", "--steps", str(asked.steps), *["--short"] * asked.short]
    for method in asked.methods or METHODS:
        subprocess.run([sys.executable, __file__, *options, method], check=True)


if __name__ == "__main__":
    main()
