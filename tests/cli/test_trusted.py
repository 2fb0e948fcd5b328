"""A stranger's folder runs no code: its modules are imported only if the command line names them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hunch.cli.trusted import admit

EVIL = """
from pathlib import Path

Path("ran").touch()

import gymnasium
import hunch


class X(gymnasium.Wrapper):
    def __init__(self, render_mode=None):
        super().__init__(hunch.make("hunch/FrozenLake-v0", render_mode=render_mode))


METHOD = None
"""
LAKE = "hunch/FrozenLake-v0"
COMMAND = [str(Path(sys.executable).with_name("hunch"))]
MODULE = [sys.executable, "-m", "hunch"]


def call(folder, *arguments, start=COMMAND, **environment):
    told = {"cwd": folder, "env": {**os.environ, **environment}, "capture_output": True, "text": True}
    return subprocess.run([*start, *arguments], **told)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in an environment of evilmod, whose module was named."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "evilmod.py").write_text(EVIL)
    done = call(folder, "run", "q-learning", "--env", "evilmod:X", "--steps", "200", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert (folder / "ran").exists()
    return folder / "run"


def test_a_report_says_how_to_get_the_texts_of_an_environment_of_this_folder(run):
    done = call(run.parent, "report", "run", "--episodes", "0")
    assert done.returncode == 0, done.stderr
    assert "without the texts of its episodes: run: evilmod:X needs the module evilmod" in done.stdout
    assert "if you trust it, add --module evilmod." in done.stdout
    admitted = call(run.parent, "report", "run", "--episodes", "0", "--module", "evilmod")
    assert "without the texts" not in admitted.stdout


@pytest.fixture
def stranger(run, tmp_path):
    """A run's folder with a module beside its files, which its settings name, and a package's metadata."""

    def make(**changes):
        folder = Path(shutil.copytree(run, tmp_path / "stranger"))
        if changes:
            config = json.loads((folder / "config.json").read_text())
            del config["checksum"]
            config["run"] |= changes
            (folder / "config.json").write_text(json.dumps(config))
        (folder / "evilmod.py").write_text(EVIL)
        points = folder / "evil-1.0.dist-info"
        points.mkdir()
        (points / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        (points / "entry_points.txt").write_text("[hunch.methods]\nevil = evilmod:METHOD\n")
        return folder

    return make


@pytest.mark.parametrize(
    "start",
    [COMMAND, pytest.param(MODULE, marks=pytest.mark.thorough)],
    ids=["hunch", "python -m hunch"],
)
@pytest.mark.parametrize(
    "line",
    [
        ("report", "."),
        ("play", "--run", ".", "--auto", "--pause", "0"),
        ("evaluate", ".", "--episodes", "1"),
        ("run", "--config", ".", "--out", "../new"),
        ("data", "collect", "--env", LAKE, "--mix", "agent:.", "--out", "data", "--steps", "5"),
    ],
    ids=lambda line: line[0],
)
def test_a_strangers_environment_is_not_imported(stranger, line, start):
    folder = stranger()
    done = call(folder, *line, start=start)
    assert not (folder / "ran").exists()
    assert "Traceback" not in done.stderr
    if line[0] not in ("report", "data"):  # a report shows the curves, and says why it replays nothing
        assert done.returncode == 2
        assert "add --module evilmod" in done.stderr


@pytest.mark.parametrize(
    "line", [("report", "."), ("evaluate", "."), ("run", "--config", ".", "--out", "../new")]
)
def test_a_strangers_method_is_not_imported(stranger, line):
    folder = stranger(method="evilmod:METHOD")
    done = call(folder, *line)
    assert not (folder / "ran").exists()
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_packages_in_the_folder_and_empty_entries_of_the_path_are_not_found(stranger):
    folder = stranger()
    call(folder, "methods", PYTHONPATH=os.pathsep)
    call(folder, "evaluate", ".", "--episodes", "1", PYTHONPATH=os.pathsep)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("path", "option"),
    [
        ("os:system", "command"),
        pytest.param("subprocess:getoutput", "cmd", marks=pytest.mark.thorough),
        ("nowhere_at_all:X", "x"),
    ],
)
def test_what_is_installed_is_only_called_if_it_is_an_environment(stranger, path, option):
    folder = stranger(env=path, env_options={option: "touch ran"})
    for line in (("run", "--config", ".", "--out", "../new"), ("evaluate", "."), ("report", ".")):
        done = call(folder, *line)
        assert not (folder / "ran").exists()
        assert done.returncode == 2 or line[0] == "report"


def test_a_module_that_is_named_is_imported(stranger):
    """By --module, or as an argument of the command."""
    folder = stranger()
    done = call(folder, "evaluate", ".", "--episodes", "1", "--module", "evilmod")
    assert done.returncode == 0, done.stderr
    done = call(folder, "play", "evilmod:X", "--run", ".", "--auto", "--pause", "0")
    assert done.returncode == 0, done.stderr


def test_a_module_that_does_not_exist_admits_no_other(stranger):
    """Nor does one that lies elsewhere: naming a module trusts the folder that it lies in."""
    folder = stranger()
    done = call(folder, "evaluate", ".", "--episodes", "1", "--module", "evlmod")
    assert done.returncode == 2
    assert "--module evlmod: no such module is installed, and there is no file evlmod.py" in done.stderr
    done = call(folder, "evaluate", ".", "--episodes", "1", "--module", "numpy")
    assert done.returncode == 2
    assert "needs the module evilmod, which is not on the import path. evilmod lies in" in done.stderr
    assert not (folder / "ran").exists()


def test_only_values_that_name_modules_count(tmp_path, monkeypatch):
    """A file that is called like a kind of model makes no folder trusted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "hf.py").touch()
    (tmp_path / "mine.py").touch()
    for line in (["run", "dqn", "--lm", "hf:x"], ["compare", "a", "--lm", "hf:x", "hf:y"], ["report", "."]):
        assert admit(line, own_process=False) == line
        assert str(tmp_path) not in sys.path
    assert admit(["report", ".", "--module=mine"], own_process=False) == ["report", "."]
    assert str(tmp_path) in sys.path


FOREIGN = (
    {"method": "zero-shot", "lm": "openai:m?base_url=https://evil.example/v1"},
    {"method": "zero-shot", "lm": 'openai:m?base_url="\\u0068ttp://evil.example/v1"'},
    {
        "method": "zero-shot",
        "lm": "anthropic:m?base_url=https://api.anthropic.com.evil.example&key_env=HUNCH_KEY",
    },
    {"method": "zero-shot", "lm": "decisions:m?base_url=https://evil.example/v1"},
    {"env": "openenv:https://evil.example"},
)
KEYS = {"HUNCH_API_KEY": "zq81kJ2mmPw77xyTTabc", "HUNCH_KEY": "zq81kJ2mmPw77xyTTabd"}


@pytest.mark.parametrize("changes", FOREIGN, ids=lambda changes: changes.get("lm", changes.get("env")))
def test_nothing_goes_to_a_strangers_server(stranger, changes):
    method = {} if "method" not in changes else {"options": {}}
    folder = stranger(**changes, **method)
    host = "api.anthropic.com.evil.example" if "anthropic" in str(changes) else "evil.example"
    (folder / "checkpoint" / "state.pt").unlink()
    config = folder / "config.json"
    settings = {name: changes.get(name, value) for name, value in (("env", LAKE), ("lm", ""))}
    for line in (("run", "--config", "settings.json", "--out", "../new"), ("report", ".")):
        written = {"method": changes.get("method", "q-learning"), "steps": 5, **settings}
        (folder / "settings.json").write_text(json.dumps(written))
        done = call(folder, *line, **KEYS)
        assert "Traceback" not in done.stderr
        if line[0] == "run":
            assert done.returncode == 2
            assert f"add --server {host}" in done.stderr
    assert config.exists()


def test_servers_that_are_named_or_near_are_reached(tmp_path):
    line = ("run", "zero-shot", "--env", LAKE, "--steps", "2", "--out", "new")
    there = "openai:m?base_url=http://nowhere.invalid/v1"
    near = "openai:m?base_url=http://127.0.0.1:1/v1"
    (tmp_path / "near.json").write_text(json.dumps({"method": "zero-shot", "env": LAKE, "lm": near}))
    (tmp_path / "far.json").write_text(json.dumps({"method": "zero-shot", "env": LAKE, "lm": there}))
    for arguments in (
        (*line, "--lm", there),
        ("run", "--config", "near.json"),
        ("run", "--config", "far.json", "--server", "nowhere.invalid"),
    ):
        done = call(tmp_path, *arguments, "--out", "new", HUNCH_API_KEY="zq81kJ2mmPw77xyTTabc")
        assert "cannot be reached" in done.stderr
