"""``hunch cache``, as a user types it."""

import json

import pytest

from hunch import lm
from hunch.cli.main import main
from hunch.lm import Cached, Store
from hunch.lm.backends.scripted import ScriptedModel, overlap

PROMPTS = [f"Room {i}.\n- look\n- go left" for i in range(5)]


@pytest.fixture
def hunch(capsys, monkeypatch, tmp_path):
    """Run the command in a folder with a small cache; return exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    monkeypatch.setenv("COLUMNS", "200")
    Cached(ScriptedModel(overlap), Store(tmp_path / "answers.sqlite")).generate(PROMPTS, 2)

    def run(*arguments):
        code = 0
        try:
            main(["cache", *arguments])
        except SystemExit as stopped:
            code = stopped.code
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def test_stats(hunch):
    code, out, _ = hunch("stats")
    assert code == 0
    assert "scripted:overlap" in out
    assert "generate" in out
    assert "10 answers" in out
    assert "usage" in hunch()[1]


def test_export_is_replayed_by_a_run(hunch, tmp_path):
    code, out, _ = hunch("export", "out.jsonl.gz", "--model", "scripted:overlap")
    assert code == 0
    assert "10 answers written" in out
    replayed = lm.load("replay:out.jsonl.gz")
    assert replayed.generate(PROMPTS, 2) == ScriptedModel(overlap).generate(PROMPTS, 2)
    assert hunch("export", "out.jsonl.gz")[0] == 2


def test_clear_asks_first(hunch, monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "n")
    assert "Nothing was deleted" in hunch("clear")[1]
    assert "10 answers" in asked[0]
    monkeypatch.setattr("builtins.input", lambda question: "y")
    assert "10 answers deleted" in hunch("clear", "--model", "scripted:overlap")[1]
    assert "0 answers" in hunch("stats")[1]


def test_clear_without_a_terminal_removes_nothing(hunch, monkeypatch):
    def closed(question):
        raise EOFError

    monkeypatch.setattr("builtins.input", closed)
    assert "Nothing was deleted" in hunch("clear")[1]
    assert "0 answers deleted" in hunch("clear", "--older-than", "3", "--yes")[1]
    assert "10 answers deleted" in hunch("clear", "--yes")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("stat",), 2, "did you mean 'stats'"),
        (("stats", "--file", "none.sqlite"), 2, "no file of answers"),
        (("stats", "--file", "text"), 1, "damaged"),
        (("clear", "--yes", "--file", "text"), 1, "damaged"),
        (("clear", "--yes", "--model", "scripted:overlp"), 2, "did you mean 'scripted:overlap'"),
        (("clear", "--yes", "--older-than", "-1"), 2, "at least 0"),
        (("export", "text"), 2, "already exists"),
    ],
)
def test_wrong_use_is_one_sentence(hunch, tmp_path, arguments, code, sentence):
    (tmp_path / "text").write_text("some text " * 200)
    found, _, errors = hunch(*arguments)
    assert found == code
    assert sentence in errors
    assert len(errors.strip().splitlines()) == 1
    assert (tmp_path / "text").read_text() == "some text " * 200
    assert "10 answers" in hunch("stats")[1]


def test_a_run_from_recorded_answers_is_the_recorded_run(hunch, tmp_path):
    """The whole way: a run that fills the cache, an export, and the same run offline from it."""
    lake = ("--env", "hunch/FrozenLake-v0", "--steps", "60", "--prior.temperature", "0.5")
    run = ["run", "zero-shot", *lake, "--lm", "minilm", "--out"]
    main([*run, "first"])
    assert hunch("export", "lake.jsonl.gz", "--model", "minilm")[0] == 0
    run[run.index("minilm")] = "replay:lake.jsonl.gz"
    main([*run, "second"])
    episodes = [(tmp_path / place / "episodes.jsonl").read_text() for place in ("first", "second")]
    assert episodes[0] == episodes[1] != ""
    levels = [
        json.loads((tmp_path / p / "summary.json").read_text())["evidence"] for p in ("first", "second")
    ]
    assert levels == ["L3", "L2"]


def test_exported_answers_are_added_to_another_cache(hunch, tmp_path):
    assert hunch("export", "said.jsonl.gz")[0] == 0
    elsewhere = ("--file", "other.sqlite")
    assert "10 answers added" in hunch("import", "said.jsonl.gz", *elsewhere)[1]
    assert "0 answers added" in hunch("import", "said.jsonl.gz", *elsewhere)[1]

    class Silent(ScriptedModel):
        def generate(self, *_, **__):
            raise AssertionError("every answer is known")

    here, there = (Store(tmp_path / name) for name in ("answers.sqlite", "other.sqlite"))
    told = [Cached(Silent(overlap), store).generate(PROMPTS, 2) for store in (here, there)]
    assert told[0] == told[1]


def test_a_damaged_export_is_one_sentence(hunch, tmp_path):
    (tmp_path / "torn.jsonl").write_text('{"model": ')
    code, _, errors = hunch("import", "torn.jsonl", "--file", "other.sqlite")
    assert code == 1
    assert "line 1 cannot be read" in errors
