"""``hunch sandbox``: shows how this machine isolates programs that a model wrote, and the time it costs."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from hunch.core import UsageError
from hunch.sandbox import Sandbox, costs

USAGE = """usage: hunch sandbox

  prints how this machine isolates programs that a model wrote, and the time that running them costs"""

_MEANING = {
    "kernel+namespaces": "no files, no network, no other processes, by the kernel and by namespaces",
    "kernel": "no files, no network, no other processes, by the kernel",
    "process": "only a separate process: a program can read your files and use the network",
    "none": "programs do not run here",
}
_WHERE = {  # where each is available
    "an unprivileged user": "everywhere, unless a container's root may not change its user",
    "limits on memory, files and processes": "Linux",
    "no new privileges": "Linux",
    "Landlock": "Linux 5.13 and later, if enabled; the filter alone also blocks files and network",
    "filter of system calls": "Linux on x86-64 and aarch64",
    "namespaces": "Linux, but not in default containers, nor for ordinary users of Ubuntu 24.04",
}


def sandbox(arguments: Sequence[str]) -> None:
    """Print each lock of the sandbox that works on this machine, and the time that the sandbox costs.

    Raises:
        UsageError: if any argument is given.
    """
    if list(arguments) in (["-h"], ["--help"]):
        print(USAGE)
        return
    if arguments:
        raise UsageError("hunch sandbox takes no arguments.")
    console = Console(highlight=False)
    console.print(f"{platform.system()} {platform.release()} on {platform.machine()}\n", markup=False)
    try:
        box = Sandbox(seconds=60, least="none")
    except UsageError as error:
        console.print(f"isolation none: {_MEANING['none']}\n{error}", markup=False, soft_wrap=True)
        return
    with box:
        _print_isolation(console, box)
        _print_costs(console, box)


def _print_isolation(console: Console, box: Sandbox) -> None:
    console.print(f"isolation {box.isolation}: {_MEANING[box.isolation]}\n", markup=False, soft_wrap=True)
    holding = [*box.locks, *(["namespaces"] if box.isolation == "kernel+namespaces" else [])]
    for lock in holding:
        console.print(f"yes  {lock}", markup=False)
    for lock, where in _WHERE.items():
        if lock not in holding:
            console.print(f"no   {lock}: {where}", markup=False, soft_wrap=True)
    if not box.isolation.startswith("kernel"):
        console.print("\nA model's program runs only if you set least='process'.", markup=False)


def _print_costs(console: Console, box: Sandbox) -> None:
    grid = Table(box=None, show_header=False, pad_edge=False)
    for what, milliseconds in costs.measure(box).items():
        grid.add_row(what, f"{milliseconds:.3f} ms")
    console.print()
    console.print(grid)
