"""Milliseconds of running a short reward in a sandbox, beside plain ``exec`` in this process.

    python benchmarks/sandbox.py [sandboxes]

A sandbox's own start is paid once. A program's start and its calls, one by one and in batches of 1,000, are
medians. ``exec`` isolates from nothing.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

from hunch.sandbox import Sandbox, costs
from told import told

REPEATS = 100


def main() -> None:
    boxes = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{'sandbox, once':32} {median(sandbox_ms() for _ in range(boxes)):9.3f} ms")
    with Sandbox(seconds=60, least="process") as box:
        for what, milliseconds in costs.measure(box, REPEATS).items():
            print(f"{what:32} {milliseconds:9.3f} ms")
        print(f"isolation {box.isolation}: {', '.join(box.locks)}")
    for what, milliseconds in plain().items():
        print(f"{what:32} {milliseconds:9.3f} ms")


def sandbox_ms() -> float:
    start = time.perf_counter()
    with Sandbox(seconds=60, least="process"):
        return (time.perf_counter() - start) * 1e3


def plain() -> dict[str, float]:
    """The same program by ``exec`` here."""
    starts, calls = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        namespace: dict[str, Any] = {}
        exec(costs.SOURCE, namespace)
        starts.append((time.perf_counter() - start) * 1e3)
    for _ in range(10 * REPEATS):
        start = time.perf_counter()
        namespace["reward"](*costs.ARGUMENTS)
        calls.append((time.perf_counter() - start) * 1e3)
    return {"start with exec": median(starts), "call with exec": median(calls)}


if __name__ == "__main__":
    told(__doc__)
    main()
