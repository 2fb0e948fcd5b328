"""Archive and replay: figures, export, removal, and recorded answers to the last bit."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchError, UsageError
from hunch.lm import Cached, Sampling, Store
from hunch.lm.answers.archive import Archive
from hunch.lm.answers.recorded import add_to
from hunch.lm.backends.scripted import ScriptedModel, first, overlap
from hunch.lm.ways import best_way, has_way
from hunch.roles.world_model.prompting import Blank, Completer, Counts, PromptConfig

PROMPTS = [f"Room {i}. Your task is to: open the fridge é.\n- open the fridge\n- look" for i in range(12)]
OPTIONS = [["open the fridge", "look"]] * 12
LABELS = [["A", "B"]] * 12
WARM = Sampling(max_tokens=5, temperature=0.7)


def cached(path: Path, level: str = "L0", rule: object = overlap, name: str | None = None) -> Cached:
    model = ScriptedModel(rule, error=0.4, name=name)
    model.evidence = level
    return Cached(model, Store(path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    model = cached(tmp_path / "a.sqlite")
    model.generate(PROMPTS, 3)
    model.generate(PROMPTS[:2], 1, WARM, first=7)
    model.score(PROMPTS, OPTIONS)
    model.label(PROMPTS, LABELS)
    other = cached(tmp_path / "a.sqlite", rule=first)
    other.generate(PROMPTS[:1])
    for one in (model, other):
        one.store.close()
    return tmp_path / "a.sqlite"


def test_figures_by_model_revision_and_verb(file: Path) -> None:
    holdings = Archive(file).holdings()
    assert [(h.model, h.verb, h.answers) for h in holdings] == [
        ("scripted:first", "generate", 1),
        ("scripted:overlap", "generate", 38),
        ("scripted:overlap", "label", 12),
        ("scripted:overlap", "score", 12),
    ]
    assert all(h.size > 0 and h.first <= h.last for h in holdings)


@pytest.mark.parametrize("stop", [("\n",), ()], ids=["continues", "chats"])
def test_a_recording_can_be_restricted_if_its_answers_were(tmp_path: Path, stop: tuple[str, ...]) -> None:
    for choices in ((), ("look", "open the fridge")):
        model = cached(tmp_path / f"{len(choices)}.sqlite")
        sampling = Sampling(max_tokens=50, stop=stop, choices=choices)
        answers = model.generate(PROMPTS[:1], 3, sampling)
        model.store.close()
        target = tmp_path / f"{len(choices)}.jsonl"
        Archive(tmp_path / f"{len(choices)}.sqlite").export(target)
        replayed = lm.load(f"replay:{target}")
        assert replayed.generate(PROMPTS[:1], 3, sampling) == answers
        assert has_way(replayed, "structured") == bool(choices)
        assert best_way(replayed) == ("structured" if choices else "text")


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_replayed_answers_are_the_recorded_ones(file: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out{suffix}"
    assert Archive(file).export(target, "scripted:overlap").written == 62
    replayed = lm.load(f"replay:{target}")
    bare = ScriptedModel(overlap, error=0.4)
    assert replayed.generate(PROMPTS, 3) == bare.generate(PROMPTS, 3)
    assert replayed.generate(PROMPTS[:2], 1, WARM, first=7) == bare.generate(PROMPTS[:2], 1, WARM, first=7)
    for ours, theirs in zip(replayed.score(PROMPTS, OPTIONS), bare.score(PROMPTS, OPTIONS), strict=True):
        assert ours.logprobs.tobytes() == theirs.logprobs.tobytes()
        assert ours.tokens.tolist() == theirs.tokens.tolist()
    for ours, theirs in zip(replayed.label(PROMPTS, LABELS), bare.label(PROMPTS, LABELS), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert replayed.revision == bare.revision
    assert replayed.verbs == {"generate", "score", "label"}
    assert replayed.store is None
    assert (target.read_bytes()[:2] == b"\x1f\x8b") == suffix.endswith("gz")


def test_replayed_embeddings_are_the_recorded_ones(tmp_path: Path, folders: dict[str, Path]) -> None:
    model = lm.load(f"hf:{folders['bert']}", cache=tmp_path / "a.sqlite")
    wanted = model.embed(PROMPTS)
    Archive(tmp_path / "a.sqlite").export(tmp_path / "out.jsonl")
    replayed = lm.load(f"replay:{tmp_path / 'out.jsonl'}")
    assert replayed.embed(PROMPTS).tobytes() == wanted.tobytes()
    assert (replayed.dim, replayed.evidence) == (model.dim, "L0")
    assert replayed.model.embed([]).shape == (0, model.dim)


@pytest.mark.parametrize(("level", "replayed"), [("L0", "L0"), ("L1", "L1"), ("L2", "L2"), ("L3", "L2")])
def test_recorded_answers_claim_no_more_than_l2(tmp_path: Path, level: str, replayed: str) -> None:
    cached(tmp_path / "a.sqlite", level).generate(PROMPTS)
    Archive(tmp_path / "a.sqlite").export(tmp_path / "out.jsonl")
    assert lm.load(f"replay:{tmp_path / 'out.jsonl'}").evidence == replayed


def test_an_unknown_request_is_named(file: Path, tmp_path: Path) -> None:
    Archive(file).export(tmp_path / "out.jsonl", "scripted:overlap")
    model = lm.load(f"replay:{tmp_path / 'out.jsonl'}")
    for ask, words in [
        (lambda: model.generate(["Who are you?" + "?" * 99]), ("generate", "sample 0", "Who are you?")),
        (lambda: model.generate(PROMPTS, 4), ("generate", "sample 3", "Room 0")),
        (lambda: model.generate(PROMPTS, 1, WARM), ("generate", "other settings")),
        (lambda: model.score(PROMPTS[:1], [["look", "jump"]]), ("score", "scripted:overlap")),
    ]:
        with pytest.raises(HunchError) as caught:
            ask()
        assert all(word in str(caught.value) for word in words)
        assert len(str(caught.value)) < 400
    with pytest.raises(UsageError, match="does not have the verb 'embed'"):
        model.embed(["a"])


def test_several_models_must_be_told_apart(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    Archive(file).export(target)
    with pytest.raises(UsageError, match=r"2 models.*scripted:first.*scripted:overlap"):
        lm.load(f"replay:{target}")
    model = lm.load(f"replay:{target}?model=scripted:first")
    assert model.generate(PROMPTS[:1]) == ScriptedModel(first, error=0.4).generate(PROMPTS[:1])
    assert lm.load("replay:" + str(target), revision=model.revision).model.recorded == "scripted:first"
    with pytest.raises(UsageError, match="no answers of a model"):
        lm.load(f"replay:{target}", model="minilm")


@pytest.mark.parametrize("name", ["uniform", "hf:a?chat=true&dtype=bfloat16", "served%26b"])
@pytest.mark.parametrize("revisions", [("1", "2"), ("1e5", "0012"), ("a&b", "c")])
def test_a_spec_names_any_model_and_revision_as_the_message_lists_them(
    tmp_path: Path, name: str, revisions: tuple[str, str]
) -> None:
    target = tmp_path / "two.jsonl"
    how = [32, 1.0, 1.0, ["\n"]]
    origins = [(name, revision) for revision in revisions] + [("another", revisions[0])]
    records = [
        {
            **{"model": model, "revision": revision, "evidence": "L3", "verb": "generate"},
            **{"request": ["hi", how], "sample": 0, "value": f"{model} {revision}"},
        }
        for model, revision in origins
    ]
    target.write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(UsageError, match="3 models; choose one by") as error:
        lm.load(f"replay:{target}")
    listed = re.findall(r"(\S+) \(revision (\S+)\)", str(error.value))
    for (model, revision), (of_model, of_revision) in zip(origins, listed, strict=True):
        chosen = lm.load(f"replay:{target}?model={of_model}&revision={of_revision}")
        assert chosen.generate(["hi"]) == [[f"{model} {revision}"]]


def test_provenance_of_an_export(file: Path, tmp_path: Path) -> None:
    Archive(file).export(tmp_path / "out.jsonl", "scripted:first")
    [record] = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert record["model"] == "scripted:first"
    assert record["request"][0] == PROMPTS[0]
    assert record["request"][1] == [32, 1.0, 1.0, ["\n"]]
    assert record["version"]
    assert record["created"].startswith("20")
    assert record["evidence"] == "L0"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"no json\n", "line 1"),
        (b'{"model": "x"}\n', "line 1"),
        (b"[1]\n", "line 1"),
        (b"\xff\xfe\n", "line 1"),
        (
            b'{"model": "m", "revision": "r", "evidence": "L1", "verb": "count", '
            b'"request": [[["user", "a"]]], "sample": 0, "value": 3, "version": "1", "created": "2026"}\n',
            "line 1",
        ),
    ],
)
def test_a_damaged_export(tmp_path: Path, content: bytes, line: str) -> None:
    (tmp_path / "out.jsonl").write_bytes(content)
    with pytest.raises(HunchError, match=line):
        lm.load(f"replay:{tmp_path / 'out.jsonl'}")


def test_a_cut_gzip_file(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl.gz"
    Archive(file).export(target, "scripted:overlap")
    target.write_bytes(target.read_bytes()[:-200])
    with pytest.raises(HunchError, match="damaged"):
        lm.load(f"replay:{target}")
    (tmp_path / "x.gz").write_bytes(b"plain text")
    with pytest.raises(HunchError, match="damaged"):
        lm.load(f"replay:{tmp_path / 'x.gz'}")
    with pytest.raises(UsageError, match="no file"):
        lm.load("replay:nowhere.jsonl")


def test_what_cannot_be_exported_is_counted(file: Path, tmp_path: Path) -> None:
    with sqlite3.connect(file) as link:
        link.execute("UPDATE answers SET question = NULL WHERE verb = 'score'")
        link.execute("UPDATE answers SET value = '\"jump\"' WHERE verb = 'generate' AND sample = 2")
        link.execute(
            "UPDATE answers SET question = replace(question, 'Room 3', 'Room 4') WHERE verb = 'label'"
        )
    link.close()
    found = Archive(file).export(tmp_path / "out.jsonl.gz")
    assert (found.written, found.without_request, found.damaged) == (63 - 12 - 12 - 1, 12, 12 + 1)
    with gzip.open(tmp_path / "out.jsonl.gz", "rt") as lines:
        assert len(list(lines)) == found.written


def test_a_file_of_an_earlier_version(file: Path, tmp_path: Path) -> None:
    with sqlite3.connect(file) as link:
        link.execute("ALTER TABLE answers DROP COLUMN question")
    link.close()
    assert sum(h.answers for h in Archive(file).holdings()) == 63
    assert Archive(file).export(tmp_path / "out.jsonl").without_request == 63


def test_an_export_overwrites_nothing(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(UsageError, match="already exists"):
        Archive(file).export(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "precious"
    with pytest.raises(HunchError, match="Cannot write"):
        Archive(file).export(tmp_path / "no folder" / "out")
    with pytest.raises(UsageError, match="did you mean 'scripted:overlap'"):
        Archive(file).export(tmp_path / "out", "scripted:overlp")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("*.tmp"))


def test_clear_all_by_model_and_by_age(file: Path) -> None:
    archive = Archive(file)
    assert archive.clear(older_than=1) == 0
    with sqlite3.connect(file) as link:
        link.execute("UPDATE answers SET created = '2020-01-01T00:00:00+00:00' WHERE verb = 'score'")
    link.close()
    assert archive.count(older_than=1) == archive.clear(older_than=1) == 12
    assert archive.clear("scripted:overlap", older_than=1) == 0
    assert archive.clear(older_than=1e6) == archive.clear(older_than=float("inf")) == 0
    assert archive.clear("scripted:first") == 1
    before = file.stat().st_size
    assert archive.clear() == 50
    assert archive.holdings() == []
    assert file.stat().st_size < before
    with pytest.raises(UsageError, match="at least 0"):
        archive.count(older_than=-1)
    cached(file).generate(PROMPTS)
    assert archive.count() == 12, "the file goes on serving"


def test_files_that_are_no_cache(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file of answers"):
        Archive(tmp_path / "none.sqlite")
    damaged, foreign = tmp_path / "damaged.sqlite", tmp_path / "foreign.sqlite"
    damaged.write_bytes(b"not a database" * 200)
    with pytest.raises(HunchError, match="damaged"):
        Archive(damaged)
    assert damaged.read_bytes() == b"not a database" * 200
    with sqlite3.connect(foreign) as link:
        link.execute("CREATE TABLE answers (question TEXT)")
    link.close()
    before = foreign.read_bytes()
    with pytest.raises(UsageError, match="another program"):
        Archive(foreign)
    assert foreign.read_bytes() == before


def test_a_file_that_is_being_written_loses_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hunch.lm.answers.archive.WAIT_SECONDS", 0.1)
    archive, link = Archive(file), sqlite3.connect(file, isolation_level=None)
    link.execute("BEGIN IMMEDIATE")
    with pytest.raises(HunchError, match="in use by another process"):
        archive.clear()
    assert archive.count() == 63
    link.execute("ROLLBACK")
    link.close()
    assert archive.clear() == 63


def test_samples_of_a_replay_behind_a_prior(file: Path, tmp_path: Path) -> None:
    """The cache in front of a replay asks it for no more than the model was asked for."""
    Archive(file).export(tmp_path / "out.jsonl", "scripted:overlap")
    model = lm.load(f"replay:{tmp_path / 'out.jsonl'}")
    model.generate(PROMPTS, 3)
    model.generate(PROMPTS, 2, first=1)
    assert (model.usage.calls, model.usage.cache_hits) == (36, 24)
    assert np.isfinite(model.score(PROMPTS[:1], OPTIONS[:1])[0].logprobs).all()


def test_prompts_are_cut_in_a_replay_as_they_were_by_the_tokenizer(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    config = PromptConfig(max_tokens=8, context=120)
    examples = [f"left() == {number}\n" for number in range(40)]

    def completed(model: lm.LanguageModel) -> tuple[list[str | None], Counts]:
        completer = Completer(model, config)
        blanks = [
            Blank(f"right() == {start}\n", [examples], np.random.default_rng(start), 0) for start in range(3)
        ]
        return completer.fill(blanks, "\n", str), completer.counts

    model = lm.load(f"hf:{folders['llama']}", cache=tmp_path / "a.sqlite")
    wanted = completed(model)
    last = model.count_tokens("no question follows it")
    assert wanted[1].cut == 3
    Archive(tmp_path / "a.sqlite").export(tmp_path / "out.jsonl")
    # Through another machine's cache, too.
    add_to(Store(tmp_path / "b.sqlite"), tmp_path / "out.jsonl")
    Archive(tmp_path / "b.sqlite").export(tmp_path / "again.jsonl")
    for name in ("out", "again"):
        replayed = lm.load(f"replay:{tmp_path / name}.jsonl")
        assert completed(replayed) == wanted
        assert replayed.context == model.context
        assert "count" not in replayed.verbs
        assert replayed.count_tokens("no question follows it") == last
    with pytest.raises(HunchError, match="does not hold the number of tokens"):
        replayed.count_tokens("a text that nobody counted")


def test_a_replay_without_counts_estimates_them(file: Path, tmp_path: Path) -> None:
    Archive(file).export(tmp_path / "out.jsonl", "scripted:overlap")
    replayed = lm.load(f"replay:{tmp_path / 'out.jsonl'}")
    assert replayed.count_tokens(PROMPTS[0]) == ScriptedModel(overlap).count_tokens(PROMPTS[0])
    assert replayed.context is None
