"""Keys are not shown nor stored, wherever they stand: as a model's name, in a spec, in a board's error."""

from types import SimpleNamespace

import pytest

import hunch
from hunch.core import HunchWarning, UsageError
from hunch.lm import load
from hunch.lm.backends.secret import keys, without_keys
from hunch.runs.boards import Boards
from hunch.runs.compare import attempt

KEY = "sk-proj-abcd1234efgh5678ijkl9012"
OTHER = "Zq81-kJ2mmPw77xyTT"
"""A key without a provider's mark."""
LAKE = "hunch/FrozenLake-v0"
SPECS = (
    "openai:gpt?api_key={}",
    "openai:{}",
    "{}",
    "openai:gpt?base_url=http://localhost:1/{}",
    "openai:gpt?{}",
    "opena:gpt?api_key={}",
    "hf:{}",
    "replay:{}",
)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)


@pytest.mark.parametrize("secret", [KEY, OTHER])
@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_with_a_key_is_refused_without_showing_it(hunch_command, tmp_path, spec, secret):
    spec = spec.format(secret)
    arguments = ("--env", LAKE, "--lm", spec, "--steps", "2", "--out", "out")
    for command in (("run", "zero-shot", *arguments), ("lm", spec)):
        code, output, errors = hunch_command(*command)
        assert code == 2
        assert secret not in output + errors
        assert "key" in errors
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError) as refused:
        load(spec)
    assert secret not in str(refused.value)


class Telling:
    """A board that quotes its key."""

    def __init__(self, folder):
        raise RuntimeError(f"401: {OTHER} is wrong \x1b]0;title\x07, and so is {KEY}")


def test_a_board_that_quotes_its_key(tmp_path):
    with pytest.warns(HunchWarning) as warned:
        Boards(tmp_path, 0, {"telling": Telling})
    (message,) = [str(one.message) for one in warned if "telling" in str(one.message)]
    assert OTHER not in message
    assert KEY not in message
    assert "\x1b" not in message


def test_a_failure_that_quotes_a_key_is_written_without_it(tmp_path, monkeypatch):
    monkeypatch.setattr("hunch.runs.compare.execute", lambda *_, **__: 1 / len(hunch.lm.load(f"x:{KEY}")))
    job = SimpleNamespace(resolved=None)
    attempt(job, tmp_path, tmp_path)
    monkeypatch.setattr("hunch.runs.compare.execute", quote)
    attempt(job, tmp_path, tmp_path)
    text = (tmp_path / "failure.txt").read_text()
    assert OTHER not in text
    assert "[" in text


def quote(*_, **__):
    raise RuntimeError(f"server said: {OTHER}\x1b[2J")


def test_output_of_the_command_shows_no_key(hunch_command):
    code, output, errors = hunch_command("report", OTHER)
    assert code == 2
    assert OTHER not in output + errors


@pytest.mark.parametrize(
    "text", ["hf:sentence-transformers/all-MiniLM-L6-v2", "sk-learn", "runs/sk-1/state", "risk-" + "a1" * 20]
)
def test_names_that_are_no_keys_stay(text):
    assert without_keys(text) == text


def test_a_folder_of_the_keys_name_does_not_show_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    key = "sk-proj-Zx81kQ22mmpLt09a"
    monkeypatch.setenv("SOME_API_KEY", key)
    (tmp_path / key).mkdir()
    assert key in keys()
    monkeypatch.setenv("SOME_API_KEY", str(tmp_path / key))
    assert str(tmp_path / key) not in keys()
