"""Commands without memory: one sentence that says so, and not that a package is missing."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hunch.cli.unexpected import known
from hunch.core import HunchError

COMMAND = str(Path(sys.executable).with_name("hunch"))
LAKE = ("--env", "hunch/FrozenLake-v0")
EPISODE = (
    '{"observations": ["a", "b"], "admissible": [["Go Left"]], "actions": ["Go Left"], "rewards": [0.0], '
    '"terminated": true, "truncated": false}\n'
)
COMMANDS = {
    "run": ("run", "dqn", *LAKE, "--steps", "20", "--encoder", "bag-of-words?dim=16", "--out", "run"),
    "import": ("data", "import", "episodes.jsonl", *LAKE, "--out", "data"),
}


def hunch(folder, megabytes, *line):
    """Run the command with an address space of a size."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2)

    how = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    return subprocess.run([COMMAND, *line], cwd=folder, preexec_fn=limit, **how)


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [250, 400, 900])
@pytest.mark.parametrize("name", COMMANDS)
def test_little_memory_is_a_sentence(name, megabytes, tmp_path):
    (tmp_path / "episodes.jsonl").write_text(EPISODE * 200)
    done = hunch(tmp_path, megabytes, *COMMANDS[name])
    said = done.stderr + done.stdout
    assert done.returncode in (0, 1), said
    assert "Traceback" not in said
    assert "pip install" not in said
    assert "HUNCH_DEBUG" not in said
    if done.returncode:
        assert done.stderr.strip().count("\n") == 0, said
        assert "memory" in done.stderr, said


@pytest.mark.parametrize("line", [[COMMAND], [sys.executable, "-m", "hunch"]])
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("MemoryError", "hunch: There is not enough memory for this."),
        ("ImportError('numpy.so: failed to map segment from shared object')", "There is not enough memory"),
        ("SystemError('<f> returned NULL without setting an exception')", "There is not enough memory"),
        ("KeyboardInterrupt", "hunch: stopped; the same command begins again."),
    ],
)
def test_what_happens_while_libraries_are_loaded_is_a_sentence(line, fault, sentence, tmp_path):
    (tmp_path / "numpy.py").write_text(f"raise {fault}\n")
    how = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    done = subprocess.run([*line, "envs"], env={**os.environ, "PYTHONPATH": str(tmp_path)}, **how)
    assert done.returncode
    assert done.stdout == ""
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_programs_keep_their_tracebacks(tmp_path):
    (tmp_path / "numpy.py").write_text("raise MemoryError\n")
    how = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", "import hunch"], env=environment, **how)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")


@pytest.mark.slow
@pytest.mark.parametrize(
    "megabytes",
    [
        pytest.param(m, marks=() if m in (130, 160, 180) else pytest.mark.thorough)
        for m in range(130, 190, 10)
    ],
)
def test_memory_for_no_library_is_a_sentence(megabytes, tmp_path):
    done = hunch(tmp_path, megabytes, "methods")
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert "memory" in done.stderr.lower()


MORE_THAN_FREE = """
import resource, torch
from hunch.core import HunchError
from hunch.little_memory import free
from hunch.rl.policy import fitting
before = resource.getrlimit(resource.RLIMIT_DATA)
some = int(1.1 * free())
try:
    with fitting(64):
        torch.empty(some, dtype=torch.uint8)  # not touched, so that nothing is taken without the limit either
except HunchError as error:
    print(error)
with fitting(64):
    torch.zeros(2**20)
assert resource.getrlimit(resource.RLIMIT_DATA) == before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems apply no such limit")
def test_an_update_takes_no_more_than_is_free():
    """Or Linux would end the process without a word."""
    how = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    done = subprocess.run([sys.executable, "-c", MORE_THAN_FREE], **how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("There is not enough memory for 64 steps at once; the last checkpoint is")
    assert done.stdout.count("\n") == 1


def test_a_sentence_that_says_what_needs_less_memory_is_kept():
    helpful, other = HunchError("There is not enough memory; take less."), HunchError("The model failed.")
    for error in (helpful, other):
        error.__cause__ = MemoryError()
    assert known(helpful) == "There is not enough memory; take less."
    assert known(other) == "There is not enough memory for this."
