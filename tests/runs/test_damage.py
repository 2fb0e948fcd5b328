"""Damaged and unwritable folders: one sentence each, and nothing is destroyed."""

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext

import pytest
import torch
from tests import started

from hunch.core import HunchError
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.report.gather import collect
from hunch.runs.boards import Boards
from hunch.runs.callbacks import Watch
from hunch.runs.checkpoints import CHECKPOINT
from hunch.runs.compare import Arm, Job, compare, outcome
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import last_line, read_lines, write_atomically
from hunch.runs.folder import RunFolder
from hunch.runs.loading import load_agent
from hunch.runs.processes import thread_limits
from hunch.runs.stored import read_run

CONFIG = RunConfig(
    method="zero-shot",
    env="hunch/FrozenLake-v0",
    lm="scripted:frozenlake?error=0.5",
    steps=400,
    options=ZeroShotConfig(),
)


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A run that was stopped on the way."""
    out = tmp_path_factory.mktemp("half")
    lines = []
    execute(CONFIG, out, watch=Watch(report=lines.append, stop=lambda: len(lines) >= 100))
    return out


@pytest.fixture
def run(half, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(half, tmp_path / "run")


def content(folder):
    """All files but the lock and the figures for TensorBoard."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path.name: path.read_bytes() for path in paths if "tensorboard" not in path.parts}


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_a_line(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{" + b"x" * (len(lines[1]) - 2) + b"\n", *lines[2:]]))


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        (str(CHECKPOINT), cut_in_half, "The checkpoint .* is damaged: remove it"),
        ("config.json", os.unlink, "config.json is missing or damaged"),
        ("config.json", cut_in_half, "config.json is damaged"),
        ("config.json", lambda path: path.write_text("[]"), "JSON object"),
        ("config.json", lambda path: path.write_text("{}"), "config.json is missing or damaged"),
        ("summary.json", cut_in_half, "summary.json is damaged"),
        ("episodes.jsonl", damage_a_line, "Line 2 of .*episodes.jsonl is damaged"),
        ("episodes.jsonl", os.unlink, "shorter than its checkpoint says"),
    ],
)
def test_one_sentence_and_nothing_destroyed(run, name, damage, sentence):
    damage(run / name)
    before = content(run)
    with pytest.raises(HunchError, match=sentence):
        execute(CONFIG, run)
    assert {name: data for name, data in content(run).items() if data} == before


@pytest.mark.parametrize(
    ("name", "damage"), [(str(CHECKPOINT), cut_in_half), ("episodes.jsonl", os.unlink), ("", None)]
)
def test_no_file_is_left_open(run, name, damage):
    """Neither of a run that is refused nor of one that goes on."""
    if damage:
        damage(run / name)
    with warnings.catch_warnings(record=True, action="always") as warned:
        with pytest.raises(HunchError) if damage else nullcontext():
            execute(CONFIG, run)
        gc.collect()
    assert [str(w.message) for w in warned if str(run) in str(w.message)] == []


def test_half_a_line_at_the_end_is_what_a_kill_leaves(run, half, tmp_path):
    with open(run / "episodes.jsonl", "ab") as file:
        file.write(b'{"step": 4')
    assert len(read_lines(run / "episodes.jsonl")) == len(read_lines(half / "episodes.jsonl"))
    execute(CONFIG, run)
    execute(CONFIG, tmp_path / "whole")
    assert (run / "episodes.jsonl").read_bytes() == (tmp_path / "whole" / "episodes.jsonl").read_bytes()


def test_a_summary_alone_is_still_a_run(run):
    """Without its checkpoint a finished run must not be taken for another one's."""
    execute(CONFIG, run)
    (run / CHECKPOINT).unlink()
    with pytest.raises(HunchError, match="seed: 0 there, 5 asked"):
        execute(RunConfig(**{**vars(CONFIG), "seed": 5}), run)


@pytest.mark.parametrize(
    ("name", "said"),
    [("episodes.jsonl", "3 of 4 evaluations"), ("programs.jsonl", "records, [0-9] are there")],
)
def test_what_was_evaluated_and_written_is_whole_or_not_read(tmp_path, name, said):
    """A file that lost its last lines is as sound, line by line, as the whole."""
    config = RunConfig(
        method="funsearch",
        env="hunch/Heuristic-BinPacking-v0",
        env_options={"items": 10, "instances": 2},
        lm="scripted:mutator",
        steps=4,
        eval_every=2,
        eval_episodes=2,
        options=FunSearchConfig(),
    )
    execute(config, tmp_path)
    assert collect([tmp_path])[1] == []
    lines = (tmp_path / name).read_bytes().splitlines(keepends=True)
    (tmp_path / name).write_bytes(b"".join(lines[:-1]))
    with pytest.raises(HunchError, match=said):
        collect([tmp_path])


@pytest.mark.parametrize("text", ["{}", '{"run": {"method": "zero-shot"}}', '{"run": 3}'])
def test_settings_of_another_version(run, text):
    (run / "config.json").write_text(text)
    with pytest.raises(HunchError, match="damaged or from another version"):
        read_run(run)


def test_damage_in_one_run_does_not_stop_a_comparison(run, tmp_path):
    """The other run is done; the damaged one is listed with its reason, and done once that is put right."""
    broken, sound = (
        Job(Arm("zero-shot", CONFIG), seed, folder) for seed, folder in ((0, run), (1, tmp_path / "sound"))
    )
    (run / "summary.json").write_text("{")
    first, second = compare([broken, sound], workers=1)
    assert "summary.json is damaged" in first.reason
    assert second.result
    assert second.result.complete
    (run / "summary.json").unlink()
    (run / "failure.txt").unlink()
    done = (tmp_path / "sound" / "summary.json").stat().st_mtime_ns
    assert all(ended.result for ended in compare([broken, sound], workers=1))
    assert (tmp_path / "sound" / "summary.json").stat().st_mtime_ns == done
    assert outcome(broken).result


def test_what_was_asked_after_the_last_checkpoint_is_counted(run):
    """The model was asked, and is asked again: a rule's answers are on no disk."""
    later = last_line(run / "metrics.jsonl")
    later["models"]["lm"]["calls"] += 1000
    later["seconds"] += 50
    with open(run / "metrics.jsonl", "a") as file:
        file.write(json.dumps(later) + "\n")
    result = execute(CONFIG, run)
    assert result.usage["calls"] == 1400
    assert result.seconds > 50
    assert [line["step"] for line in read_lines(run / "metrics.jsonl")] == list(range(2, 401, 2))


FULL = """
import resource, signal, sys
from pathlib import Path
from hunch.core import HunchError
from hunch.runs.files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(Path(sys.argv[1]), bytes(5000))
except HunchError as error:
    print(error)
"""


LIMITED = """
import resource, signal, sys
from tests.runs.test_damage import CONFIG
from hunch.core import HunchError
from hunch.runs.execute import execute
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    execute(CONFIG, sys.argv[1])
except HunchError as error:
    print(error)
"""


@pytest.mark.parametrize("size", [4_000, 20_000])
def test_a_run_on_a_full_disk_ends_with_a_sentence(tmp_path, size):
    """Its figures for TensorBoard do not fit either, and no thread of its prints a traceback."""
    pytest.importorskip("tensorboard")
    (tmp_path / "limited.py").write_text(LIMITED)
    done = started.run(tmp_path, "limited.py", str(tmp_path / "run"), str(size))
    assert "Cannot write" in done.stdout
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_file_that_does_not_fit_leaves_the_old_one(tmp_path):
    write_atomically(tmp_path / "state.pt", b"good")
    (tmp_path / "full.py").write_text(FULL)
    done = started.run(tmp_path, "full.py", "state.pt")
    assert done.returncode == 0, done.stderr
    assert "larger than this process may write. Everything saved before is intact" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"state.pt", "full.py"}
    assert (tmp_path / "state.pt").read_bytes() == b"good"


READ_ONLY = """
import sys
from hunch.core import HunchError
from hunch.runs.folder import RunFolder
try:
    RunFolder(sys.argv[1])
except HunchError as error:
    print(error)
"""


def test_a_read_only_folder_is_a_sentence(run):
    """A file system mounted read-only, where this machine lets us mount one; it also binds the superuser."""
    mount = f"mount --bind {run} {run} && mount -o remount,ro,bind {run}"
    child = f"{mount} && {sys.executable} -c '{READ_ONLY}' {run}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", child], capture_output=True, text=True)
    assert "the disk is read-only. Everything saved before is intact" in done.stdout, done.stderr


def test_a_killed_holder_leaves_no_lock(tmp_path):
    code = "import os, sys; from hunch.runs.folder import RunFolder as F; "
    code += "f = F(sys.argv[1]); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -9
    RunFolder(tmp_path).close()


def test_an_agent_is_loaded_with_the_threads_of_its_run(run):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        load_agent(run)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_thread_limits_name_the_pools():
    assert thread_limits(2)["OPENBLAS_NUM_THREADS"] == thread_limits(2)["OMP_NUM_THREADS"] == "2"


def test_figures_for_tensorboard_are_neither_doubled_nor_missing(tmp_path):
    """A sitting that dies after its checkpoint has written figures that the next one writes again."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    first = Boards(tmp_path, 0, {})
    for step in (1, 2, 3):
        first.show({"step": step, "return": float(step), "usage": {}})
        first.flush()
    for begun in (1, 0):  # from a checkpoint after step 1, then from the very beginning
        again = Boards(tmp_path, begun, {})
        for step in range(begun + 1, 4):
            again.show({"step": step, "return": float(step), "usage": {}})
        again.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("return")] == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_run_that_fails_closes_its_writers(tmp_path):
    """The thread of an open writer would fail as soon as somebody deletes the folder."""
    pytest.importorskip("tensorboard")
    others = set(threading.enumerate())

    def fail(line):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        execute(CONFIG, tmp_path / "run", watch=Watch(report=fail))
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))
    assert set(threading.enumerate()) <= others


@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.jsonl"])
def test_lines_are_not_written_through_a_link(tmp_path, name):
    """In a folder that others can write, it could lead to any file."""
    mine = tmp_path / "mine.txt"
    mine.write_text("kept")
    run = tmp_path / "run"
    run.mkdir()
    (run / name).symlink_to(mine)
    with pytest.raises(HunchError, match="it is a link"):
        execute(CONFIG, run)
    assert mine.read_text() == "kept"
