"""Runs a comparison on a Ray cluster, with the same folders as on one machine.

Ray schedules the runs and retries those whose worker was lost. A run works in a local folder of its machine.
At every checkpoint all its files go to an actor on the machine of the comparison, which writes them to the
run's real folder. So a retried run resumes from its last checkpoint on any machine, and no shared disk is
needed. Every machine needs the same Python environment with hunch installed.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hunch.core import HunchError
from hunch.extras import library
from hunch.runs.checkpoints import BEST, CHECKPOINT, file_of, kept_steps
from hunch.runs.compare import Job, Outcome, attempt, missing, outcome, progress
from hunch.runs.execute import interruptible
from hunch.runs.files import write_atomically
from hunch.runs.folder import FAILURE, STREAMS, RunFolder
from hunch.runs.processes import thread_limits

RETRIES = 5
"""Number of times that a run is restarted after its worker or machine was lost."""
LAST = (*STREAMS, str(BEST), str(CHECKPOINT), "summary.json", FAILURE)
"""Files to copy after all others, in the order of writing: lines precede the checkpoint that counts them."""


class Home:
    """An actor on the machine with the folders of a comparison, which gives other machines access."""

    def fetch(self, folder: Path) -> dict[str, bytes]:
        """Read a run's files; missing ones are left out."""
        return pack(folder)

    def keep(self, folder: Path, files: dict[str, bytes]) -> None:
        """Write a run's files, each atomically.

        Raises:
            HunchError: if the folder cannot be written.
        """
        unpack(folder, files)


def pack(folder: Path) -> dict[str, bytes]:
    """Read a run's files, whatever the agent or a board keeps there, in the order in which to write them."""
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    # Hidden files belong to this machine, such as the lock, and partial ones to a process that was killed.
    names = [str(file) for file in files if not file.name.startswith(".") and file.suffix != ".tmp"]
    order = [*(name for name in names if name not in LAST), *(name for name in LAST if name in names)]
    return {name: (folder / name).read_bytes() for name in order}


def unpack(folder: Path, files: dict[str, bytes]) -> None:
    """Write a run's files, in an order that leaves a resumable run if the copy is interrupted."""
    for step in kept_steps(folder):
        if str(file_of(step)) not in files:
            (folder / file_of(step)).unlink()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, data)


def compare(
    todo: Sequence[Job], ray: Any, *, watch: Callable[[dict[Job, dict[str, Any]]], None] = lambda lines: None
) -> list[Outcome]:
    """Execute unfinished runs on a Ray cluster, as many in parallel as fit.

    Args:
        todo: The runs. Each run takes as many of Ray's CPUs as it has threads.
        ray: The connection to the cluster, from :func:`connect`.
        watch: Called about twice per second with the latest line of metrics of each run.

    Raises:
        KeyboardInterrupt: on Ctrl-C; runs in progress are kept up to their last checkpoint.
    """
    home = _home(ray)
    runs = {_start(ray, job, home): job for job in missing(todo)}
    lost: dict[Job, str] = {}
    waiting = list(runs)
    try:
        with interruptible() as stop:
            while waiting and not stop():
                ended, waiting = ray.wait(waiting, timeout=0.5)
                for run in ended:
                    reason = _failure(ray, run)
                    if reason:
                        lost[runs[run]] = reason
                watch(progress(todo))
            if stop():
                raise KeyboardInterrupt
    finally:
        for run in waiting:
            ray.cancel(run, force=True)
        ray.kill(home)
    return [Outcome(job, None, lost[job]) if job in lost else outcome(job) for job in todo]


def connect() -> Any:
    """Connect to the cluster in ``RAY_ADDRESS`` or on this machine, unless already connected; return Ray.

    Raises:
        UsageError: if Ray is not installed.
        HunchError: if there is no cluster.
    """
    ray = library("ray", "A cluster needs Ray", "ray")
    if not ray.is_initialized():
        address = os.environ.get("RAY_ADDRESS", "auto")
        try:
            _reach(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError) as error:
            raise HunchError(
                f"There is no Ray cluster at {address!r}: start one with 'ray start --head' on this machine "
                "and 'ray start --address=HOST:6379' on the others, or set RAY_ADDRESS."
            ) from error
    return ray


def _reach(address: str) -> None:
    """Check that something listens at the address, because Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=5).close()


def _home(ray: Any) -> Any:
    """Start the actor that writes the folders, on this machine only."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "scheduling_strategy": here}
    return ray.remote(Home).options(**options).remote()


def _start(ray: Any, job: Job, home: Any) -> Any:
    threads = job.config.threads
    limits = {"env_vars": thread_limits(threads)}
    task = ray.remote(_work).options(num_cpus=threads, max_retries=RETRIES, runtime_env=limits)
    return task.remote(job, job.folder.absolute(), home)


def _work(job: Job, folder: Path, home: Any) -> None:
    """Execute one run in a local folder, and copy its files at every checkpoint and at the end."""
    import ray

    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        unpack(here, ray.get(home.fetch.remote(folder)))

        def bring_home() -> None:
            ray.get(home.keep.remote(folder, pack(here)))

        with closing(RunFolder(here, saved=bring_home)) as kept:
            attempt(job, here, kept)
        bring_home()


def _failure(ray: Any, run: Any) -> str:
    """Return why a run was lost finally, in one line; empty if it ended by itself."""
    try:
        ray.get(run)
    except ray.exceptions.RayTaskError as error:
        return str(error.cause)
    except ray.exceptions.RayError as error:
        return f"its worker was lost {RETRIES + 1} times, or could not start: {str(error).splitlines()[0]}"
    return ""
