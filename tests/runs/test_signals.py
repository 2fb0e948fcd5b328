"""Ctrl-C, kill and a closed terminal: saved, and said how to go on."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hunch
from hunch.runs.files import read_lines
from hunch.runs.stored import finished

COMMAND = str(Path(sys.executable).with_name("hunch"))
LAKE = "hunch/FrozenLake-v0"
LONG = ("--steps", "3000", "--envs", "2")
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def ready():
    """Let a process handle the signals that a test's own process may ignore."""
    for number in STOPS:
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)


def started(folder, *line):
    return subprocess.Popen(
        [COMMAND, *line],
        cwd=folder,
        text=True,
        preexec_fn=ready,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def wait_until(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def catches(pid, number):
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def run_line(out):
    return ("run", "q-learning", "--env", LAKE, "--steps", "20000", "--out", out)


@pytest.mark.parametrize("number", STOPS)
def test_a_run_is_saved_and_goes_on(number, tmp_path):
    process = started(tmp_path, *run_line("run"))
    wait_until(lambda: read_lines(tmp_path / "run" / "metrics.jsonl"))
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "saved in run; the same command continues the run" in errors
    again = started(tmp_path, *run_line("run"))
    assert again.wait(timeout=120) == 0
    whole = hunch.train("q-learning", LAKE, 20_000, out=tmp_path / "whole")
    assert finished(tmp_path / "run").episodes == whole.episodes


def test_a_run_whose_terminal_is_closed_is_saved(tmp_path):
    pid, terminal = pty.fork()
    if not pid:
        ready()
        os.chdir(tmp_path)
        os.execv(COMMAND, [COMMAND, *run_line("run")])
    wait_until(lambda: read_lines(tmp_path / "run" / "metrics.jsonl"))
    os.close(terminal)
    os.waitpid(pid, 0)
    steps = read_lines(tmp_path / "run" / "metrics.jsonl")[-1]["step"]
    assert (tmp_path / "run" / "summary.json").exists()
    assert steps < 20_000
    again = started(tmp_path, *run_line("run"))
    assert again.wait(timeout=120) == 0


def test_nohup_outlives_its_terminal(tmp_path):
    process = subprocess.Popen(["nohup", COMMAND, *run_line("run")], cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_until(lambda: read_lines(tmp_path / "run" / "metrics.jsonl"))
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=120) == 0


OTHERS = {
    "collect": (
        ("data", "collect", "--env", LAKE, "--out", "data", "--steps", "3000000"),
        "data was not written; the same command records the same from the beginning",
    ),
    "evaluate": (
        ("evaluate", "run", "--episodes", "1000000"),
        "run is unchanged, and the same command begins again",
    ),
    "audition": (
        ("audition", "--lm", "bag-of-words", "--roles", "prior", "--questions", "1000000"),
        "the same command asks again only what is not in the cache",
    ),
}


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("name", OTHERS)
def test_other_long_commands_say_how_to_go_on(name, number, tmp_path):
    hunch.train("q-learning", LAKE, 20, out=tmp_path / "run")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    line, advice = OTHERS[name]
    process = started(tmp_path, *line)
    wait_until(lambda: catches(process.pid, signal.SIGHUP))
    time.sleep(0.2)  # now it is at work
    assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert advice in errors
    assert errors.count("\n") == 1
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
