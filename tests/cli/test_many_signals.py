"""Signals at random moments: a sentence, no hang, and the same command goes on to the same result."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.damaged import generator

from hunch.rl.dataset import load

SECONDS = 60
"""No command may take longer to end after a signal."""
LAKE = ("--env", "hunch/FrozenLake-v0")
SMALL = ("--lm", "uniform", "--hidden", "8", "--warmup", "10", "--encoder", "bag-of-words?dim=16")
PAIR = ("compare", "zero-shot", "q-learning", *LAKE, "--lm", "uniform", "--steps", "2000", "--seeds", "1")
COMMANDS = {
    "run": ("run", "dqn-prior", *LAKE, *SMALL, "--steps", "1500", "--update-every", "20", "--out", "run"),
    "compare": (*PAIR, "--workers", "2", "--out", "pair"),
    "collect": ("data", "collect", *LAKE, "--steps", "4000", "--out", "data"),
    "evaluate": ("evaluate", "there", "--episodes", "400", "--out", "evaluated"),
    "audition": ("audition", "--lm", "minilm", "--roles", "prior", "--questions", "20", "--out", "audition"),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ready():
    """Let a process handle the signals that a test's own process may ignore."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)


def hunch(folder, *arguments):
    """Start the command in a process of its own."""
    command = [str(Path(sys.executable).with_name("hunch")), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, preexec_fn=ready, start_new_session=True, **pipes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What each command writes when nothing interrupts it, and how long that takes."""
    folder = tmp_path_factory.mktemp("whole")
    trained = hunch(folder, "run", "q-learning", *LAKE, "--steps", "500", "--out", "there")
    assert trained.wait() == 0
    seconds = {}
    for name, command in COMMANDS.items():
        begun = time.monotonic()
        process = hunch(folder, *command)
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        seconds[name] = time.monotonic() - begun
    return folder, seconds


def result(folder, name):
    """What a command has written, without times."""
    if name in ("run", "compare"):
        places = sorted(folder.joinpath("run" if name == "run" else "pair").rglob("episodes.jsonl"))
        return [path.read_bytes() for path in places]
    if name == "collect":
        return load(folder / "data").episodes
    if name == "audition":
        return sorted(path.name for path in folder.joinpath("audition").iterdir())
    return json.loads((folder / "evaluated" / "evaluation.json").read_text())["success"]


def interrupt(whole, tmp_path, number):
    """Send signals at a random moment, then run the command again; return what is wrong."""
    folder, seconds = whole
    rng = generator("signal", number)
    name = sorted(COMMANDS)[number % len(COMMANDS)]
    place = tmp_path / str(number)
    place.mkdir()
    os.symlink(folder / "there", place / "there")
    process = hunch(place, *COMMANDS[name])
    time.sleep(rng.uniform(0, 1.1) * seconds[name])
    sent = rng.choice(SIGNALS)
    for _ in range(rng.choice((1, 1, 1, 2))):
        if process.poll() is None:
            os.kill(process.pid, sent)
        time.sleep(rng.uniform(0, 0.2))
    what = f"{number}: {name}, {sent.name}"
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return [f"{what}: hangs"]
    wrong = []
    what = f"{what}, code {process.returncode}: {errors[-500:]}"
    if "Traceback" in errors + output or "HUNCH_DEBUG" in errors + output:
        wrong.append(what)
    again = hunch(place, *COMMANDS[name])
    _, errors = again.communicate(timeout=2 * SECONDS + 3 * seconds[name])
    if again.returncode and "already holds" not in errors:
        wrong.append(f"{what} again: {again.returncode}, {errors[-300:]}")
    elif result(place, name) != result(folder, name):
        wrong.append(f"{what} another result")
    return wrong


@pytest.mark.thorough
def test_signals_are_sentences_and_lose_nothing(whole, tmp_path):
    wrong = [each for number in range(5) for each in interrupt(whole, tmp_path, number)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(6))
def test_sixty_signals_are_sentences_and_lose_nothing(whole, tmp_path, part):
    numbers = range(100 + 10 * part, 110 + 10 * part)
    wrong = [each for number in numbers for each in interrupt(whole, tmp_path, number)]
    assert not wrong, "\n".join(wrong)
