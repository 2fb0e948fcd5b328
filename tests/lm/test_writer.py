"""Samples from kept distributions: the same as from computed ones, for less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.lm import Sampling
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.scoring.recent import Recent

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hunch.lm.scoring.writer import Writer  # noqa: E402

PROMPTS = [f"You see a fridge {i}, a table 2 and a mug{' and a lamp' * (i % 4)}.\nAction:" for i in range(6)]
SHARP = Sampling(max_tokens=6, temperature=0.3, stop=())


@pytest.fixture(params=["lockstep", "alone", "plain"])
def model(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalModel:
    """A model that computes texts in one of three ways."""
    loaded: CausalModel = lm.load(f"hf:{folders['llama']}", cache=None).model
    if request.param != "lockstep":
        vars(loaded._engine)["lockstep"] = 1
    if request.param == "plain":
        vars(loaded._engine)["unfit"] = "chosen by the test"
    assert loaded._engine.way([1, 2], 6).name == request.param
    return loaded


def samples(model: CausalModel, order: list[int], k: int, limit: int) -> dict[int, list[str]]:
    model._writer = Writer(model._engine, limit)
    return {i: model.generate([PROMPTS[i]], k, SHARP)[0] for i in order}


def test_what_is_kept_changes_no_sample(model: CausalModel) -> None:
    """With room for all, for a few (so that samples leave and rejoin known texts), and for none."""
    order = list(range(6))
    wanted = samples(model, order, 4, 0)
    for limit in (2**20, 12_000, 3_000):
        assert samples(model, order, 4, limit) == wanted
        assert model._writer.known.size <= limit
        assert {i: model.generate([PROMPTS[i]], 4, SHARP)[0] for i in order[::-1]} == wanted
    assert dict(enumerate(model.generate(PROMPTS, 4, SHARP))) == wanted


def test_a_known_text_is_not_computed_again(model: CausalModel) -> None:
    wanted = samples(model, [0], 12, 2**20)[0]
    read, computed = model.tokens_read, model._writer.computed
    assert model.generate([PROMPTS[0]], 12, SHARP)[0] == wanted
    assert (model.tokens_read, model._writer.computed) == (read, computed)
    model.generate([PROMPTS[0]], 40, SHARP, first=12)  # others
    assert model._writer.computed - computed < 40 * 5


def test_rows_that_are_kept_are_those_of_the_network(folders: dict[str, Path]) -> None:
    model: CausalModel = lm.load(f"hf:{folders['llama']}", cache=None).model
    model.generate(PROMPTS, 8, SHARP)
    heads = {model_key(model, prompt): model._tokens(prompt) for prompt in PROMPTS}
    kept = list(model._writer.known._values.items())
    assert len(kept) > 30
    for (way, digest, text), (row, _) in kept:
        with torch.inference_mode():
            ids = torch.tensor([[*heads[way, digest], *text]])
            wanted = torch.log_softmax(model.network(ids).logits[0, -1], dim=-1)
        assert torch.allclose(torch.log_softmax(row, dim=-1), wanted, atol=1e-5, rtol=0)


def model_key(model: CausalModel, prompt: str) -> tuple[str, bytes]:
    from hunch.lm.scoring.writer import Draft, Work

    ids = model._tokens(prompt)
    work = Work(ids, [Draft(np.random.default_rng(0))], model._engine.way(ids, SHARP.max_tokens))
    return work.key(())[:2]


def test_the_least_recently_used_values_are_dropped() -> None:
    kept: Recent[str] = Recent(30)
    for name in "abc":
        kept.put(name, name.upper(), 10)
    assert kept.find("a") == "A"
    kept.put("d", "D", 10)
    assert [name for name in "abcd" if name in kept] == ["a", "c", "d"]
    assert kept.size == 30
    assert kept.find("b") is None
    kept.put("e", "E", 31)
    assert kept.size == 0
