"""Programs in processes of their own that begin with the slow libraries loaded.

For tests whose subject is what a program does. Those of how it starts begin a fresh interpreter.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

from hunch.runs.compare import PRELOADED


def server():
    """The processes that begin with the libraries loaded, made by one that loads them once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, "transformers"])
    return context


def run(folder: Path, *arguments: str, **environment: str) -> CompletedProcess[str]:
    """Run a file of a folder, or a module after ``-m``, in that folder; return code, output and errors."""
    with tempfile.TemporaryDirectory() as name:
        told = [Path(name) / stream for stream in ("output", "errors")]
        given = (folder, arguments, {**os.environ, **environment}, told)
        process = server().Process(target=_main, args=given)
        process.start()
        process.join()
        return CompletedProcess(arguments, process.exitcode, *(file.read_text() for file in told))


def _main(folder: Path, arguments: tuple[str, ...], environment: Mapping[str, str], told: list[Path]) -> None:
    for number, file in enumerate(told, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
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
