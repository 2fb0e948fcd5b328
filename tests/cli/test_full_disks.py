"""Commands on a full disk: one sentence, no hang, no half file, and what was there before stays.

The disk is a small file system in memory where a test may mount one. Elsewhere no file may pass a limit.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.damaged import generator
from tests.started import run

from hunch.lm import Cached, Store
from hunch.lm.backends.scripted import ScriptedModel, overlap

SECONDS = 120
LAKE = ("--env", "hunch/FrozenLake-v0")
SMALL = ("--lm", "uniform", "--hidden", "8", "--warmup", "10", "--encoder", "bag-of-words?dim=16")
RUN = ("run", "dqn-prior", *LAKE, *SMALL, "--steps", "600", "--eval-every", "200", "--eval-episodes", "2")
PAIR = ("compare", "zero-shot", "q-learning", *LAKE, "--lm", "uniform", "--steps", "300", "--seeds", "1")
SEARCH = ("run", "funsearch", "--env", "hunch/Heuristic-BinPacking-v0", "--env.items", "8", "--steps", "4")
SEARCH = (*SEARCH, "--lm", "scripted:mutator")
COMMANDS = {
    "run": (*RUN, "--keep-every", "200", "--out", "{disk}/run"),
    "compare": (*PAIR, "--workers", "1", "--out", "{disk}/pair"),
    "collect": ("data", "collect", *LAKE, "--steps", "3000", "--out", "{disk}/data"),
    "report": ("report", "{there}/run", "--episodes", "1", "--out", "{disk}/page.html"),
    "evaluate": ("evaluate", "{there}/run", "--episodes", "2", "--out", "{disk}/evaluated"),
    "search": (*SEARCH, "--out", "{disk}/search"),
    "again": (*RUN, "--steps", "1200", "--out", "{disk}/again"),
}
SIZES = {"run": 200, "compare": 40, "collect": 1500, "report": 150, "evaluate": 6, "search": 30, "again": 200}
"""Kilobytes that each command needs, roughly: the disks are smaller or a little larger."""


def hunch(folder, *arguments, limit=None):
    """Run the command in a process of its own, which begins with the libraries loaded if it can.

    The workers of a comparison would be those of all tests, which a limit does not reach.
    """
    if arguments[0] != "compare":
        return run(folder, "-m", "hunch", *arguments, first=limit, seconds=SECONDS)
    command = [str(Path(sys.executable).with_name("hunch")), *arguments]
    how = {"capture_output": True, "text": True, "timeout": SECONDS, "cwd": folder, "preexec_fn": limit}
    return subprocess.run(command, check=False, **how)


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("there")
    done = hunch(folder, *RUN, "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder


@contextmanager
def disk(folder, kilobytes):
    """Make a disk of a size; yield what limits a process to it, if it is no disk of its own."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)]
    if os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0:
        try:
            yield None
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return

    yield partial(limit_files, kilobytes)


def limit_files(kilobytes):
    """Let this process write no larger files."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes,) * 2)


def fill(name, kilobytes, there, tmp_path):
    """Run a command on a small disk; return what is wrong with how it ends."""
    place = tmp_path / f"disk-{len(list(tmp_path.iterdir()))}"
    with disk(place, kilobytes) as limit:
        if name == "again":
            try:
                shutil.copytree(there / "run", place / "again")
            except (OSError, shutil.Error):
                return []  # there is not even room for what was there
        before = {path: path.read_bytes() for path in place.rglob("summary.json")}
        command = [part.format(disk=place, there=there) for part in COMMANDS[name]]
        try:
            done = hunch(tmp_path, *command, limit=limit)
        except subprocess.TimeoutExpired:
            return [f"{name} on {kilobytes} kB hangs"]
        what = f"{name} on {kilobytes} kB, code {done.returncode}: {done.stderr[-700:]}"
        said = done.stderr + done.stdout
        wrong = (
            [what] if done.returncode not in (0, 1) or "Traceback" in said or "HUNCH_DEBUG" in said else []
        )
        if done.returncode and not done.stderr:
            wrong.append(f"{what} no word")
        left = [path for path in place.rglob("*") if path.suffix == ".tmp" or ".half-" in path.name]
        wrong += [f"{what} left {path.name}" for path in left]
        if done.returncode:  # a run that there was room for ends with a summary of its own
            wrong += [f"{what} lost {path}" for path, data in before.items() if path.read_bytes() != data]
    return wrong


@pytest.mark.slow
def test_answers_that_do_not_fit_are_not_called_added(tmp_path):
    store = Store(tmp_path / "answers.sqlite")
    Cached(ScriptedModel(overlap), store).score([f"Room {i}." for i in range(200)], [["a", "b"]] * 200)
    store.close()
    exported = ("cache", "export", "exported.jsonl", "--file", "answers.sqlite")
    assert hunch(tmp_path, *exported).returncode == 0
    with disk(tmp_path / "disk", 32) as limit:
        add = ("cache", "import", "exported.jsonl", "--file", "disk/answers.sqlite")
        done = hunch(tmp_path, *add, limit=limit)
    assert done.returncode == 1, done.stdout
    assert "make room, and the same command adds the rest" in done.stderr
    assert "answers added" not in done.stdout


def cases(numbers):
    """Yield commands and sizes of disks, in kB."""
    for number in numbers:
        rng = generator("disk", number)
        name = sorted(COMMANDS)[number % len(COMMANDS)]
        yield name, max(4, int(SIZES[name] * rng.uniform(0.05, 1.2)))


@pytest.mark.slow
def test_full_disks_are_sentences(there, tmp_path):
    wrong = [each for case in cases(range(len(COMMANDS))) for each in fill(*case, there, tmp_path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(5))
def test_fifty_full_disks_are_sentences(there, tmp_path, part):
    numbers = range(100 + 10 * part, 110 + 10 * part)
    wrong = [each for case in cases(numbers) for each in fill(*case, there, tmp_path)]
    assert not wrong, "\n".join(wrong)
