"""Boards: MLflow, Trackio and W&B without a server, one's own, and those that are not there."""

import json
import os
import sqlite3
import subprocess
import sys
import warnings
from importlib.util import find_spec

import pytest

import hunch
from hunch.core import UsageError
from hunch.extras import install

LAKE = "hunch/FrozenLake-v0"
OWN = """
import json

class Lines:
    def __init__(self, folder):
        self.settings = json.loads((folder / "config.json").read_text())["run"]
        self.file = open(folder / "lines.txt", "a")

    def show(self, figures, step):
        self.file.write(json.dumps([self.settings["method"], step, figures["seconds"]]) + "\\n")

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()
"""


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "my_board.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def shown(folder):
    return [json.loads(line) for line in (folder / "lines.txt").read_text().splitlines()]


def test_a_board_of_ones_own_gets_every_line(own, tmp_path, hunch_command):
    hunch.train("q-learning", LAKE, 40, out=tmp_path / "run", watch=hunch.Watch(boards=["my_board:Lines"]))
    lines = [["q-learning", line["step"], line["seconds"]] for line in metrics(tmp_path / "run")]
    assert shown(tmp_path / "run") == lines
    line = ("q-learning", "--env", LAKE, "--steps", "40", "--board", "my_board:Lines")
    assert hunch_command("run", *line, "--out", "cli")[0] == 0
    assert len(shown(tmp_path / "cli")) == len(lines)
    assert "my_board" not in (tmp_path / "cli" / "config.json").read_text()


@pytest.mark.slow
def test_the_workers_of_a_comparison_use_it_too(own, tmp_path, monkeypatch):
    """In a process of its own: workers of later tests would inherit the board."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    line = ("q-learning", "--env", LAKE, "--steps", "40", "--seeds", "1", "--board", "my_board:Lines")
    subprocess.run([sys.executable, "-m", "hunch", "compare", *line, "--out", "both"], check=True)
    assert shown(tmp_path / "both" / "q-learning" / "seed-0")


WRONG = [
    ("wandb", "A board is wandb:PROJECT, mlflow:PROJECT, trackio:PROJECT or MODULE:Class, not 'wandb'."),
    ("no_such_module:Board", "The board no_such_module:Board cannot be imported"),
    ("json:Board", "The board json:Board cannot be imported"),
    ("json:loads", "and json:loads is not a class."),
    ("json:JSONDecoder", "and json:JSONDecoder has no method show."),
    *(
        (f"{kind}:mine", f"The board {kind}:mine needs {kind}: {install(kind)}.")
        for kind in ("wandb", "mlflow", "trackio")
        if find_spec(kind) is None
    ),
]


@pytest.mark.parametrize(("board", "says"), WRONG, ids=[board for board, _ in WRONG])
def test_a_board_that_is_not_there_is_one_sentence(board, says, hunch_command, tmp_path):
    for command in ("run", "compare"):
        line = ("q-learning", "--env", LAKE, "--board", board, "--out", "out")
        code, _, errors = hunch_command(command, *line)
        assert (code, errors.count("\n")) == (2, 1)
        assert says in errors
        assert not (tmp_path / "out").exists()


def test_a_board_needs_a_folder():
    with pytest.raises(UsageError, match="set it with out="):
        hunch.train("q-learning", LAKE, 40, watch=hunch.Watch(boards=["json:Board"]))


def in_two_sittings(out, board):
    """A run that is stopped at once and resumed."""
    for stop in (lambda: True, lambda: False):
        hunch.train("q-learning", LAKE, 40, out=out, watch=hunch.Watch(boards=[board], stop=stop))
    return metrics(out)


def test_mlflow(tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    lines = in_two_sittings(tmp_path / "run", "mlflow:lakes")
    hunch.train("q-learning", LAKE, 40, out=tmp_path / "other", watch=hunch.Watch(boards=["mlflow:lakes"]))
    client = tracking.MlflowClient()
    runs = client.search_runs([client.get_experiment_by_name("lakes").experiment_id])
    assert len(runs) == 2
    run = next(run for run in runs if run.info.run_name.endswith("/run"))
    assert run.info.status == "FINISHED"
    assert run.data.params["method"] == "q-learning"
    assert run.data.params["options.gamma"]
    steps = [point.step for point in client.get_metric_history(run.info.run_id, "seconds")]
    assert sorted(set(steps)) == [line["step"] for line in lines]


def test_trackio(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read when the package is imported
    pytest.importorskip("trackio")
    lines = in_two_sittings(tmp_path / "run", "trackio:lakes")
    (file,) = (tmp_path / "trackio").glob("lakes*.db")
    with sqlite3.connect(file) as base:
        rows = base.execute("select step, run_name, metrics from metrics").fetchall()
    assert {name for _, name, _ in rows} == {"/".join((tmp_path / "run").parts[-3:])}
    assert {step for step, _, _ in rows} == {line["step"] for line in lines}
    assert "success" in json.loads(rows[-1][2]) or "seconds" in json.loads(rows[-1][2])


def test_wandb_offline(tmp_path, monkeypatch):
    """Each sitting leaves a file for ``wandb sync``, of the same run there."""
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    lines = in_two_sittings(tmp_path / "run", "wandb:lakes")
    files = [file.read_bytes() for file in sorted((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))]
    (name,) = {file.name for file in (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")}
    assert name.startswith("run-")
    assert all(b"usage/calls" in file for file in files)
    assert sum(file.count(b"usage/calls") for file in files) >= len(lines)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_wandb_on_a_full_disk_is_a_warning(tmp_path, monkeypatch):
    """Its own process writes the file, and says nothing."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    place = tmp_path / "run" / "wandb"
    hunch.train("q-learning", LAKE, 20, out=tmp_path / "run")
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this system mounts no disk in memory")
    try:
        watch = hunch.Watch(boards=["wandb:lakes"])
        with pytest.warns(hunch.core.HunchWarning, match="WandB cannot be used .*No space left"):
            hunch.train("q-learning", LAKE, 400, out=tmp_path / "run", watch=watch)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


FAILS = 'raise OSError(28, "No space left on device")'
FULL = OWN.replace("self.file.flush()", FAILS).replace("self.file.close()", FAILS)


def test_a_board_that_cannot_write_is_named_once(tmp_path, monkeypatch):
    (tmp_path / "full_board.py").write_text(FULL)
    monkeypatch.syspath_prepend(tmp_path)
    watch = hunch.Watch(boards=["full_board:Lines"])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        hunch.train("q-learning", LAKE, 400, out=tmp_path / "run", saving=hunch.Saving(every=50), watch=watch)
    assert sum("Lines cannot be used (OSError: [Errno 28]" in str(each.message) for each in seen) == 1
