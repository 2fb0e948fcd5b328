"""What a second seed on a second core costs, and what a step and a checkpoint cost as a run grows.

One seed by ``hunch compare --seeds 1 --workers 1``, then two with ``--workers 2``. Wall time is told as it
is, but on a machine that others use it says little, so the processor time of all processes is told as well:
where two seeds take twice that of one, neither waits for the other by spinning, and on two idle cores they
take the wall time of one. The load of the machine is printed beside it.

    python -m benchmarks.parallel [steps]
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import torch
from benchmarks.told import told

import hunch
from hunch import train
from hunch.methods.prior.dqn_prior import DQNConfig
from hunch.roles import TextTable
from hunch.runs.checkpoints import CHECKPOINT

ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of Linux's prctl."""
SETTING = ("dqn", "--env", "hunch/Household-Pick-v0", "--env.games", "4")


def measure(seeds: int, steps: int, out: Path) -> tuple[float, float]:
    """Wall time and processor time of a comparison with so many seeds on so many workers."""
    command = [sys.executable, "-m", "hunch", "compare", *SETTING, "--steps", str(steps), "--out", str(out)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [*command, "--seeds", str(seeds), "--workers", str(seeds)], check=True, capture_output=True
    )
    with suppress(ChildProcessError):  # the fork server, with the time of all workers, was left to us
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))
    return time.monotonic() - start, spent


def parallel(steps: int, out: Path) -> None:
    """Print what two seeds take against one."""
    measure(2, steps, out / "cache")  # every text is in the cache from here on
    one, two = (measure(seeds, steps, out / str(seeds)) for seeds in (1, 2))
    load = os.getloadavg()[0]
    for name, a, b in zip(("wall time", "processor time"), one, two, strict=True):
        print(f"{name:14}: one seed {a:.1f} s, two seeds {b:.1f} s, ratio {b / a:.2f}", flush=True)
    print(f"{os.cpu_count()} cores, load at the end {load:.1f} (ours is at most 2)")


def growth(steps: int, out: Path) -> None:
    """Print processor time a step and a checkpoint, and its size, as a run of DQN grows."""
    torch.set_num_threads(1)
    table = TextTable(hunch.lm.load("minilm"))
    for length in (steps, 4 * steps):
        agent = hunch.methods.DQN(table, DQNConfig())
        start = time.process_time()
        train(agent, hunch.make("hunch/Household-Pick-v0", games=4), length, out=out / f"g{length}")
        a_step = (time.process_time() - start) / length
        start = time.process_time()
        torch.save(agent.state_dict(), out / "state.pt")
        a_save = time.process_time() - start
        size = (out / f"g{length}" / CHECKPOINT).stat().st_size / 1e6
        states = len(agent.features.states)
        print(
            f"dqn, {length:6,} steps: {1e3 * a_step:.2f} ms a step; {states:,} states kept; a checkpoint of "
            f"{size:.1f} MB takes {1e3 * a_save:.0f} ms",
            flush=True,
        )


def main(steps: int) -> None:
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1)
    with tempfile.TemporaryDirectory() as name:
        os.environ["HUNCH_CACHE"] = str(Path(name) / "answers.sqlite")
        parallel(steps, Path(name))
        growth(steps, Path(name))


if __name__ == "__main__":
    told(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
