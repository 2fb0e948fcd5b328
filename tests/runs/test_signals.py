"""Ctrl-C, kill and a closed terminal: saved, and said how to go on."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

import hunch
from hunch.lm import Cached, Store
from hunch.lm.backends.scripted import ScriptedModel, overlap
from hunch.runs.files import read_lines
from hunch.runs.stored import finished

COMMAND = str(Path(sys.executable).with_name("hunch"))
LAKE = "hunch/FrozenLake-v0"
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
ONE_OF_THE_STOPS = [
    signal.SIGTERM,
    *(pytest.param(number, marks=pytest.mark.thorough) for number in STOPS if number != signal.SIGTERM),
]
"""All three in the thorough tests, and one in the suite."""


def ready():
    """Let a process handle the signals that a test's own process may ignore."""
    for number in STOPS:
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)


def started(folder, *line, env=None):
    return subprocess.Popen(
        [COMMAND, *line],
        cwd=folder,
        env=env,
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
    return ("run", "q-learning", "--env", LAKE, "--steps", str(STEPS), "--out", out)


STEPS = 2000
HOLDING = """
import time
from pathlib import Path

class Holding:
    def __init__(self, folder):
        self.folder = folder

    def show(self, figures, step):
        (self.folder / "shows").touch()
        until = time.monotonic() + 120
        while not Path("go").exists() and time.monotonic() < until:
            time.sleep(0.02)

    def flush(self):
        pass

    def close(self):
        pass
"""
"""A board that holds a run after its first metrics, until there is a file."""


@pytest.fixture
def held_line(tmp_path, monkeypatch):
    """The command of a run that waits for the file after its first metrics."""
    (tmp_path / "holding.py").write_text(HOLDING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return (*run_line("run"), "--board", "holding:Holding")


def wait_until_held(folder):
    wait_until(lambda: (folder / "run" / "shows").exists())
    assert read_lines(folder / "run" / "metrics.jsonl")


@pytest.mark.parametrize("number", ONE_OF_THE_STOPS)
def test_a_run_is_saved_and_goes_on(number, held_line, tmp_path):
    process = started(tmp_path, *held_line)
    wait_until_held(tmp_path)
    process.send_signal(number)
    (tmp_path / "go").touch()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "saved in run; the same command continues the run" in errors
    again = started(tmp_path, *run_line("run"))
    assert again.wait(timeout=120) == 0
    whole = hunch.train("q-learning", LAKE, STEPS, out=tmp_path / "whole")
    assert finished(tmp_path / "run").episodes == whole.episodes


def test_a_second_signal_says_how_to_go_on_too(held_line, tmp_path):
    """The first one waits for the step that is under way."""
    process = started(tmp_path, *held_line)
    wait_until_held(tmp_path)
    process.send_signal(signal.SIGINT)
    first = iter(process.stderr.readline, "")
    assert any(
        "stopping at the end of this step, and saving; a second Ctrl-C stops at once" in s for s in first
    )
    process.send_signal(signal.SIGTERM)
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 130, errors
    assert "stopped at once; the same command goes on from the last checkpoint in run" in errors
    assert started(tmp_path, *run_line("run")).wait(timeout=120) == 0


def test_a_run_whose_terminal_is_closed_is_saved(held_line, tmp_path):
    pid, terminal = pty.fork()
    if not pid:
        ready()
        os.chdir(tmp_path)
        os.execv(COMMAND, [COMMAND, *held_line])
    wait_until_held(tmp_path)
    os.close(terminal)
    (tmp_path / "go").touch()
    os.waitpid(pid, 0)
    steps = read_lines(tmp_path / "run" / "metrics.jsonl")[-1]["step"]
    assert (tmp_path / "run" / "summary.json").exists()
    assert steps < STEPS
    again = started(tmp_path, *run_line("run"))
    assert again.wait(timeout=120) == 0


def test_nohup_outlives_its_terminal(held_line, tmp_path):
    process = subprocess.Popen(["nohup", COMMAND, *held_line], cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_until_held(tmp_path)
    process.send_signal(signal.SIGHUP)
    (tmp_path / "go").touch()
    assert process.wait(timeout=120) == 0


AT_WORK = 3.0
"""Seconds of a processor after which these commands are at work: they begin within one."""


def cpu_seconds(pid: int) -> float:
    """Return how long a process has used a processor, which is the same on a busy machine."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


@pytest.mark.parametrize("number", ONE_OF_THE_STOPS)
@pytest.mark.parametrize("name", OTHERS)
def test_other_long_commands_say_how_to_go_on(name, number, tmp_path):
    hunch.train("q-learning", LAKE, 20, out=tmp_path / "run")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    line, advice = OTHERS[name]
    process = started(tmp_path, *line)
    wait_until(lambda: cpu_seconds(process.pid) > AT_WORK)
    assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert advice in errors
    assert errors.count("\n") == 1
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


SENDER = """
import os, sys
line = " ".join(sys.orig_argv)
if "bin/hunch" in line and "multiprocessing" not in line:
    def send(name):
        before = getattr(os, name)
        def call(*arguments, **named):
            if os.environ.pop("SIGNAL", "") and "hunch" in sys._getframe(1).f_code.co_filename:
                os.kill(os.getpid(), int(number))
            return before(*arguments, **named)
        setattr(os, name, call)
    number = os.environ.get("SIGNAL", "")
    if number:
        send("replace")
"""
"""What a process does first: it sends itself a signal when it is about to give a file its name."""
WRITERS = {
    "import": (("data", "import", "lines.jsonl", "--env", LAKE, "--out", "out"), "out was not written"),
    "report": (("report", "run", "--out", "out.html"), "the same command makes them again"),
    "export": (("cache", "export", "out.jsonl", "--file", "answers.sqlite"), "out.jsonl was not written"),
    "audition": (
        ("audition", "--lm", "uniform", "--roles", "prior", "--questions", "2", "--out", "out"),
        "asks again only what is not in the cache",
    ),
    "evaluate": (("evaluate", "run", "--episodes", "1", "--out", "out"), "run is unchanged"),
}
LINE = (
    '{"observations": ["a", "b"], "admissible": [["Go Left"]], "actions": ["Go Left"], "rewards": [0.0], '
    '"terminated": true, "truncated": false}\n'
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("place")
    hunch.train("q-learning", LAKE, 20, out=folder / "run")
    (folder / "lines.jsonl").write_text(LINE)
    store = Store(folder / "answers.sqlite")
    Cached(ScriptedModel(overlap), store).score(["Open the fridge."], [["open the fridge", "look"]])
    store.close()
    (folder / "sitecustomize.py").write_text(SENDER)
    return folder


@pytest.mark.parametrize(("name", "number"), list(zip(WRITERS, [*STOPS, *STOPS], strict=False)))
def test_a_signal_while_a_file_is_written_leaves_no_half(name, number, place, tmp_path):
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    line, advice = WRITERS[name]
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = started(tmp_path, *line, env={**environment, "SIGNAL": str(int(number))})
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert advice in errors
    assert errors.count("\n") == 1
    after = {path for path in tmp_path.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert not [path for path in after - before if "out" in path.parts or path.suffix == ".tmp"]
    assert started(tmp_path, *line, env=environment).wait(timeout=120) == 0


@pytest.mark.parametrize(
    ("line", "number"), [(("sandbox",), STOPS[0]), (("play", LAKE), STOPS[1]), (("lm", "minilm"), STOPS[2])]
)
def test_a_signal_while_the_libraries_are_loaded_is_a_sentence(line, number, tmp_path):
    process = started(tmp_path, *line)
    wait_until(lambda: catches(process.pid, signal.SIGHUP))
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), errors
    assert errors == "hunch: stopped; the same command begins again.\n"
    assert not list(tmp_path.iterdir())


def test_a_signal_while_a_class_is_made_is_a_sentence():
    """Python 3.11 hands on as a RuntimeError what is raised there."""
    program = (
        "from hunch import beginning\n"
        "error = RuntimeError('Error calling __set_name__')\n"
        "error.__cause__ = KeyboardInterrupt()\n"
        "beginning._shown(RuntimeError, error, None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        -signal.SIGINT,
        "hunch: stopped; the same command begins again.\n",
    )


def test_a_process_that_the_command_starts_says_nothing_of_a_signal():
    """Ctrl-C reaches all processes of a terminal; a comparison said twice that it stopped."""
    program = (
        "from hunch import beginning\n"
        "beginning.prepare()\n"
        "raise KeyboardInterrupt  # while the fork server of multiprocessing loads modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


EARLY = """
import os, signal, sys

class Early:
    def find_spec(self, name, *_):
        if name == "hunch.little_memory" and "bin/hunch" in " ".join(sys.orig_argv):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Early())
"""
"""What a process does first: it sends itself Ctrl-C at the command's first own import."""


def test_a_signal_at_the_very_first_moment_is_a_sentence(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(EARLY)
    process = started(tmp_path, "envs", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors == "hunch: stopped; the same command begins again.\n"


@pytest.mark.parametrize("number", ONE_OF_THE_STOPS)
def test_a_server_of_an_environment_ends_with_a_sentence(number, tmp_path):
    pytest.importorskip("openenv", reason="needs the extra 'openenv'")
    process = started(tmp_path, "serve", LAKE, "--port", "0")
    address = re.search(r"http://\S+", process.stdout.readline())[0]
    with urlopen(f"{address}/schema", timeout=60) as answer:
        assert answer.status == 200  # now it listens
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors == "hunch: stopped serving; the sessions have ended, and the same command serves again.\n"
