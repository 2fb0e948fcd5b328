"""Files with values of wrong types: each command ends in one sentence about the file, and no raw error."""

import json

import pytest

from hunch.cli.main import main
from hunch.rl import dataset

VALUES = {
    **{"number": "3", "null": "null", "list": "[]", "list of one": "[1]", "text": '"a"', "object": "{}"},
    **{"nan": "NaN", "brackets": "[" * 5000, "braces": '{"a":' * 5000},
}
SETTINGS = ("method", "env", "lm", "steps", "seed", "options", "env_options", "budget", "envs", "data", "out")
EPISODE = {"observations": ["a", "b"], "admissible": [["x"], []], "actions": ["x"], "rewards": [1.0]}
EPISODE |= {"terminated": True, "truncated": False}
FIELDS = (*EPISODE, "seed", "history", "events", "tasks", "pictures", "seat", "lifetime", "number", "group")
FIELDS = (*FIELDS, "behaviour", "task", "success")


@pytest.fixture
def refused(capsys):
    """Run a command that may succeed or fail, but must say what failed."""

    def run(*arguments):
        try:
            main(arguments)
            code = 0
        except SystemExit as end:
            code = end.code
        errors = capsys.readouterr().err
        assert code in (0, 1, 2)
        assert "HUNCH_DEBUG" not in errors  # by which the sentence of an unexpected error ends
        assert errors or not code

    return run


@pytest.mark.parametrize("value", VALUES)
def test_settings_of_wrong_types(tmp_path, refused, value):
    for ending in ("yaml", "json", "toml"):
        file = tmp_path / f"all.{ending}"
        file.write_text(VALUES[value])
        refused("run", "--config", str(file))
    file = tmp_path / "one.json"
    for name in SETTINGS:
        rest = {"method": "zero-shot", "env": "hunch/FrozenLake-v0", "lm": "uniform", "steps": 5}
        text = json.dumps({**rest, name: "@"}).replace('"@"', VALUES[value])
        file.write_text(text)
        refused("run", "--config", str(file), "--out", str(tmp_path / name))
    file = tmp_path / "names.yaml"
    file.write_text(f"method: zero-shot\nenv: hunch/FrozenLake-v0\n1: {VALUES[value]}\noptions:\n  2: 3\n")
    refused("run", "--config", str(file))


@pytest.mark.parametrize("value", VALUES)
def test_recorded_episodes_of_wrong_types(tmp_path, refused, monkeypatch, value):
    monkeypatch.setattr(dataset, "save", lambda data, folder: None)  # reading is what is tested
    file = tmp_path / "episodes.jsonl"
    for name in FIELDS:
        file.write_text(json.dumps({**EPISODE, name: "@"}).replace('"@"', VALUES[value]) + "\n")
        refused("data", "import", str(file), "--env", "hunch/FrozenLake-v0", "--out", str(tmp_path / name))
