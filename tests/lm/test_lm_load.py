"""Specs, their options, the default cache, the meter, the probe, and a light import."""

from __future__ import annotations

import subprocess
import sys
from copy import copy
from pathlib import Path

import pytest

from hunch import lm
from hunch.core import UsageError
from hunch.lm import Usage
from hunch.runs.models import check_specs


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("minlm", "did you mean 'minilm'"),
        ("Uniform", "did you mean 'uniform'"),
        ("script:first", "did you mean 'scripted:<rule>'"),
        (
            "gpt-9",
            "there are anthropic:<model>, bag-of-words, decisions:<model>, ",
        ),
        ("Qwen/Qwen2.5-0.5B", "did you mean 'hf:Qwen/Qwen2.5-0.5B'"),
        ("", "there are anthropic"),
        ("openai:", "should read 'openai:<model>'"),
        ("openai:x?key=abc", "no option 'key'"),
        ("pockt", "did you mean 'pocket'"),
        ("scripted:frist", "no rule 'frist'"),
        ("scripted:", "should read 'scripted:<rule>'"),
        ("hf", "should read 'hf:<name or folder>'"),
        ("uniform:x", "should read 'uniform'"),
        ("scripted:first?eror=0.1", "no option 'eror'; did you mean 'error'"),
        ("scripted:first?error", r"should read '\?key=value"),
        ("scripted:first?error=0.1&error=0.2", "names the option 'error' twice"),
        ("uniform?x=1", "no option 'x'; there are none"),
        ("bag-of-word", "did you mean 'bag-of-words'"),
        ("bag-of-words?dmi=8", "did you mean 'dim'"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        lm.load(spec)
    assert "\n" not in str(caught.value)


def test_options_in_the_spec_and_as_arguments_are_one() -> None:
    written = lm.load("scripted:first?refusal=0.1&error=0.2")
    given = lm.load("scripted:first?error=0.9", error=0.2, refusal=0.1)
    assert written.revision == given.revision
    assert written.name == given.name == "scripted:first?error=0.2&refusal=0.1"


def test_where_answers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lm.load("uniform").store is None
    assert lm.load("uniform", cache=tmp_path / "x.sqlite").store.path == tmp_path / "x.sqlite"
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path))
    assert lm.registry.per_user() == tmp_path / "answers.sqlite"
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "mine.sqlite"))
    assert lm.registry.per_user() == tmp_path / "mine.sqlite"
    monkeypatch.delenv("HUNCH_CACHE")
    assert lm.registry.per_user() == lm.PER_USER.expanduser()


@pytest.mark.parametrize("word", ["off", "None", "0"])
def test_a_cache_is_a_file(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUNCH_CACHE", word)
    with pytest.raises(UsageError, match=f"HUNCH_CACHE={word} names no file"):
        lm.registry.per_user()
    with pytest.raises(UsageError, match=f"HUNCH_CACHE={word} names no file"):
        check_specs("zero-shot", {"lm": "uniform"}, {"lm": ["score"]})
    monkeypatch.setenv("HUNCH_CACHE", f"./{word}")
    assert lm.registry.per_user() == Path(word)
    monkeypatch.setenv("HUNCH_CACHE", "")
    assert lm.registry.per_user() == lm.PER_USER.expanduser()


def test_a_costly_model_uses_the_default_cache(folders: dict[str, Path]) -> None:
    first, second = (lm.load(f"hf:{folders['bert']}") for _ in range(2))
    assert first.embed(["mug"]).tobytes() == second.embed(["mug"]).tobytes()
    assert (first.usage.calls, second.usage.calls) == (1, 0)
    assert lm.load(f"hf:{folders['bert']}", cache=None).store is None


def test_a_model_without_the_verb_says_who_has_it() -> None:
    with pytest.raises(UsageError) as caught:
        lm.require(lm.load("uniform"), "embed", "The text encoder")
    able = [kind.pattern for kind in lm.kinds().values() if "embed" in kind.verbs]
    assert {"bag-of-words", "hf:<name or folder>", "minilm", "openai:<model>", "words"} <= set(able)
    assert str(caught.value) == (
        "The text encoder needs a model with the verb 'embed', but uniform only has decide, "
        f"generate, label, score; 'embed' is offered by {', '.join(able)}."
    )


def test_usage_adds_and_is_told_by_name() -> None:
    model = lm.load("uniform")
    model.generate(["a", "b", "a"], 2)
    before = copy(model.usage)
    model.score(["a"], [["x"]])
    spent = model.usage - before
    assert (before.calls, before.cache_hits, spent.calls, spent.cache_hits) == (4, 2, 1, 0)
    assert before + spent == model.usage
    assert Usage(**model.usage.as_dict()) == model.usage


def test_describe(folders: dict[str, Path]) -> None:
    seen = lm.describe(f"hf:{folders['gpt2']}")
    assert seen.answers
    assert seen.verbs == ("generate", "score", "embed")
    assert all(seen.speed[verb] > 0 for verb in seen.verbs)
    assert (seen.evidence, seen.dim, seen.context) == ("L0", 32, 128)
    assert seen.parameters == 400 * 32 + 128 * 32 + 2 * 12 * 32**2 + 2 * (13 * 32) + 2 * 32
    assert lm.describe("uniform").parameters == 0


def test_describe_a_model_that_fails(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no MiniLM weights"):
        lm.describe("minilm", folder=tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"others")
    seen = lm.describe("minilm", folder=tmp_path)
    assert not seen.answers
    assert "is not the published" in seen.problem
    with pytest.raises(UsageError):
        lm.describe("minlm")


def test_import_is_light() -> None:
    code = (
        "import sys, hunch.lm; "
        "print([m for m in ('torch', 'transformers', 'openai', 'anthropic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
