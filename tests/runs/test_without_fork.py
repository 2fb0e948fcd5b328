"""A system without fork, as Windows is: what our code lacks there is taken away, and all else works."""

import os
import subprocess
import sys

import pytest

from hunch.lm.answers import leases

LAKE = "hunch/FrozenLake-v0"
LACKING = """
import multiprocessing, os, sys
import filelock, gymnasium, rich.console, torch, tyro  # they know the system that they run on
import concurrent.futures, logging, random, subprocess, tempfile, threading
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "sched_getaffinity", "pidfd_open"):
    if hasattr(os, name):
        delattr(os, name)
multiprocessing.get_all_start_methods = lambda: ["spawn"]
"""
COMMAND = (
    LACKING
    + """
if __name__ == "__main__":
    from hunch.cli.main import main
    for line in sys.argv[1:]:
        main(line.split())
"""
)


@pytest.fixture
def without_fork(tmp_path):
    """Run one command after the other, each a line, in a process that has no fork."""
    (tmp_path / "command.py").write_text(COMMAND)

    def run(*lines):
        return subprocess.run(
            [sys.executable, "command.py", *lines],
            cwd=tmp_path,
            env={**os.environ, "HUNCH_CACHE": str(tmp_path / "answers.sqlite")},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.slow
def test_runs_comparisons_and_worker_processes_spawn(without_fork, tmp_path):
    small = f"--hidden 8 --encoder bag-of-words --env {LAKE} --steps 60"
    prior = "--lm scripted:frozenlake --k 2"
    done = without_fork(
        f"run dqn-prior {prior} {small} --out run",
        f"compare dqn-prior {prior} {small} --no-control --seeds 1 --out compared",
        f"run dqn {small} --envs 2 --processes 2 --out workers",
        "evaluate run --episodes 2",
    )
    assert done.returncode == 0, done.stderr
    one, other = (tmp_path / name / "episodes.jsonl" for name in ("run", "compared/dqn-prior/seed-0"))
    assert one.read_bytes() == other.read_bytes()
    assert (tmp_path / "workers" / "summary.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", ["Heuristic-BinPacking", pytest.param("Heuristic-CapSet", marks=pytest.mark.thorough)]
)
def test_programs_are_refused_in_one_sentence(without_fork, tmp_path, problem):
    """Also in a problem of the studies, which is checked before the run as other people's are."""
    line = f"run funsearch --env hunch/{problem}-v0 --lm scripted:mutator --steps 4 --out programs"
    refused = without_fork("sandbox", line)
    assert refused.returncode == 2, refused.stderr
    assert refused.stderr.count("\n") == 1
    sentence = "Programs cannot be run on this system: it has no fork. On Windows, use WSL 2."
    assert refused.stderr == f"hunch: {sentence}\n"
    assert "WSL 2" in refused.stdout, "hunch sandbox says so, too"


def test_a_lease_is_no_reason_to_signal_a_process(monkeypatch):
    """On Windows os.kill ends the process, whatever the signal: a lease there ends by the clock."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = f"{leases._host()}:{process.pid}:1"
    try:
        assert leases._lives(holder)
        monkeypatch.setattr(os, "kill", lambda pid, number: process.kill())
        monkeypatch.setattr(leases.os, "name", "nt")
        assert leases._lives(holder)
        assert process.poll() is None
    finally:
        monkeypatch.undo()
        process.communicate(b"\n")
