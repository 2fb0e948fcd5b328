"""Programs in processes of their own that begin with the slow libraries loaded, and servers in threads.

Programs are for tests whose subject is what a program does. Those of how it starts begin a fresh interpreter.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseServer
from subprocess import CompletedProcess, TimeoutExpired
from typing import TypeVar

from hunch.runs.compare import PRELOADED

SLOW = (
    *("torch._dynamo", "hunch.lm.scoring.engine", "matplotlib.pyplot", "tyro"),
    *("openai", "tensorboard.summary.writer.record_writer", "tensorboard.compat.proto.event_pb2"),
)
"""What most runs of tests import besides."""
Server = TypeVar("Server", bound=BaseServer)


@contextmanager
def answering(server: Server) -> Iterator[Server]:
    """Let a server answer in a thread; it stops at once, and not after half a second."""
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def server():
    """The processes that begin with the libraries loaded, made by one that loads them once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, *SLOW])
    return context


def run(
    folder: Path,
    *arguments: str,
    first: Callable[[], None] | None = None,
    seconds: float | None = None,
    **environment: str,
) -> CompletedProcess[str]:
    """Run a file of a folder, or a module after ``-m``, in that folder; return code, output and errors.

    Args:
        folder: The folder.
        arguments: The file or the module, and its arguments.
        first: What the process does before; a function of a module, as it is pickled.
        seconds: After so many seconds the process is killed.
        environment: Variables of the environment.

    Raises:
        TimeoutExpired: if it was killed.
    """
    with tempfile.TemporaryDirectory() as name:
        told = [Path(name) / stream for stream in ("output", "errors")]
        given = (folder, arguments, {**os.environ, **environment}, told, first)
        process = server().Process(target=_main, args=given)
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            raise TimeoutExpired(arguments, seconds or 0.0)
        return CompletedProcess(arguments, process.exitcode, *(file.read_text() for file in told))


def _main(
    folder: Path,
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    told: list[Path],
    first: Callable[[], None] | None,
) -> None:
    for number, file in enumerate(told, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    if first is not None:
        first()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("error", RuntimeWarning)
    sys.path.insert(0, str(folder))
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")
