"""Samples written together: the same as alone, to the last bit, and the model's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchWarning
from hunch.lm import Sampling
from hunch.lm.backends import seam
from hunch.lm.backends.huggingface import CausalModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hunch.lm.scoring.engine import Engine  # noqa: E402
from hunch.lm.scoring.lockstep import PASSES, advance, draw  # noqa: E402
from hunch.lm.scoring.writer import Draft, Writer  # noqa: E402

PROMPTS = [f"You see a fridge {i}, a table 2 and a mug{' and a lamp' * (i % 4)}.\nAction:" for i in range(12)]
FREE = Sampling(max_tokens=10, stop=())


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalModel:
    return lm.load(f"hf:{folders[request.param]}", cache=None).model


def test_the_models_of_the_tests_write_in_lockstep(model: CausalModel) -> None:
    assert model._engine.lockstep == PASSES[-1]


@pytest.mark.parametrize("sampling", [FREE, Sampling(max_tokens=12, top_p=0.8, temperature=0.7)])
def test_a_sample_is_the_same_in_any_company(model: CausalModel, sampling: Sampling) -> None:
    together = model.generate(PROMPTS, 11, sampling)  # more than one wave
    assert together == [model.generate([prompt], 11, sampling)[0] for prompt in PROMPTS]
    assert together[3][4:6] == model.generate([PROMPTS[3]], 2, sampling, first=4)[0]
    assert model.generate(PROMPTS[::-1], 3, sampling) == [own[:3] for own in together[::-1]]


def test_every_bit_is_the_same_in_any_company(model: CausalModel) -> None:
    """Also after others have left, and their places were taken."""
    chance = np.random.default_rng(0)
    way = model._engine.way([1], 8)

    def run(indices: list[int], leaving: set[int]) -> dict[int, list[bytes]]:
        engine, said = model._engine, {i: list[bytes]() for i in indices}
        texts: dict[int, tuple[int, ...]] = dict.fromkeys(indices, ())
        owners = {prompt: [i for i in indices if i // 3 == prompt] for prompt in {i // 3 for i in indices}}
        groups = {
            prompt: engine.begin(model._tokens(PROMPTS[prompt]), way, len(own), 8)[0]
            for prompt, own in owners.items()
        }
        for step in range(6):
            texts = {i: (*text, 3 + (7 * i + step) % 300) for i, text in texts.items()}
            if step == 3:
                texts = {i: text for i, text in texts.items() if i not in leaving}
            left = {p: own for p in groups if (own := [i for i in owners[p] if i in texts])}
            for prompt, own in left.items():
                groups[prompt].follow([texts[i] for i in own])
            order = [i for own in left.values() for i in own]
            for i, row in zip(order, advance(model.network, [groups[p] for p in left]), strict=True):
                said[i].append(row.numpy().tobytes())
        return said

    everyone = run(list(range(36)), set())
    for _ in range(4):
        some = sorted(chance.choice(36, chance.integers(1, 30), replace=False).tolist())
        leaving = set(some[::3])
        for i, rows in run(some, leaving).items():
            assert rows == everyone[i][: len(rows)]
            assert len(rows) == (3 if i in leaving else 6)


def test_greedy_is_that_of_transformers(model: CausalModel) -> None:
    greedy = Sampling(max_tokens=8, temperature=0, stop=())
    texts = model.generate(PROMPTS, 2, greedy)
    for prompt, own in zip(PROMPTS, texts, strict=True):
        ids = torch.tensor([model._tokens(prompt)])
        with torch.inference_mode():
            out = model.network.generate(ids, do_sample=False, max_new_tokens=8, pad_token_id=0)
        tokens = [token for token in out[0, ids.shape[1] - 1 :].tolist() if token not in model.ends]
        assert own == [seam.continuation(model.tokenizer, tokens[0], tokens[1:])] * 2


def test_rows_end_by_themselves(folders: dict[str, Path]) -> None:
    """At an end token, at a stop string, or full; the meter counts what was written."""
    model = lm.load(f"hf:{folders['gpt2']}", cache=None)
    free = model.model.generate(PROMPTS, 8, FREE)
    mark = free[0][0][3]
    model.model.ends = {*model.model.ends, model.model._plain_tokens(" " + free[1][1].split()[0])[0]}
    texts = model.generate(PROMPTS, 8, Sampling(max_tokens=10, stop=(mark, "ing")))
    assert all(mark not in text and "ing" not in text for own in texts for text in own)
    assert len({len(text) for own in texts for text in own}) > 3
    assert model.usage.completion_tokens < 12 * 8 * 10
    assert model.usage.prompt_tokens < 2 * sum(len(model.model._tokens(prompt)) for prompt in PROMPTS) + 960


def test_an_architecture_without_lockstep_writes_one_by_one(folders: dict[str, Path]) -> None:
    class Odd(torch.nn.Linear):
        def forward(self, rows: Any) -> Any:
            out = super().forward(rows).clone()
            out[:, -1] *= 1 + 2**-20  # another kernel for the last rows
            return out

    odd, batched = (lm.load(f"hf:{folders['llama']}?batch={n}", cache=None).model for n in (1, 4))
    for model in (odd, batched):
        model.network.model.layers[1].mlp.down_proj.__class__ = Odd
    assert (odd._engine.lockstep, batched._engine.lockstep) == (1, 4)
    assert odd.revision != batched.revision
    wanted = odd.generate(PROMPTS, 2, FREE)
    assert wanted == [odd.generate([prompt], 2, FREE)[0] for prompt in PROMPTS]
    greedy = Sampling(max_tokens=6, temperature=0, stop=())
    assert batched.generate(PROMPTS, 2, greedy) == odd.generate(PROMPTS, 2, greedy), "but for last digits"


@pytest.mark.parametrize("kind", ["Qwen2", "Gemma2", "Bloom"])
def test_other_architectures_give_what_their_own_steps_give(kind: str) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 300}
    more = {} if kind == "Bloom" else {"num_key_value_heads": 2, "intermediate_size": 64, "head_dim": 8}
    config = getattr(transformers, f"{kind}Config")(**sizes, **more, initializer_range=0.2)
    network = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    engine = Engine(network, kind, 128)
    if kind == "Bloom":
        with pytest.warns(HunchWarning, match="plain computation"):
            assert engine.lockstep == 1
        return
    plain = Engine(network, kind, 128)
    vars(plain)["lockstep"] = 1
    asked = [([5, 6, 7 + i], [np.random.default_rng(n) for n in range(3)]) for i in range(4)]
    again = [([5, 6, 7 + i], [np.random.default_rng(n) for n in range(3)]) for i in range(4)]
    ours = Writer(engine, 0).write(asked, FREE, lambda tokens: len(tokens) == 10)
    assert ours == Writer(plain, 0).write(again, FREE, lambda tokens: len(tokens) == 10)


def test_drawing_follows_the_probabilities() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]])).expand(3000, -1)
    drafts = [Draft(np.random.default_rng(i)) for i in range(3000)]
    shares = np.bincount(draw(logits, Sampling(), drafts)) / 3000
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.15, 0.05], atol=0.04)
    assert set(draw(logits, Sampling(top_p=0.7), drafts)) == {0, 1}
    assert set(draw(logits, Sampling(temperature=0), drafts)) == {0}
