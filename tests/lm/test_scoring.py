"""The scoring engine, against the plainest computation of the same numbers, on several architectures."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hunch import lm
from hunch.core import HunchWarning, UsageError
from hunch.lm import Sampling
from hunch.lm.scoring.trie import LIKE, alike, grow, joined, split

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hunch.lm.scoring import engine as scoring  # noqa: E402
from hunch.lm.scoring.engine import BLOCK, BlockPrefill, Engine, PlainPrefill  # noqa: E402
from hunch.lm.scoring.recent import Prefixes, block_keys, size  # noqa: E402

VOCABULARY, CONTEXT, B = 300, 512, BLOCK["cpu"]
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
COMMON = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.2}
LONG = {"max_position_embeddings": CONTEXT}
GROUPED = {"num_key_value_heads": 2}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", SMALL | LONG),
    "qwen2": ("Qwen2", SMALL | LONG | GROUPED),
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT}),
    "gpt_neox": ("GPTNeoX", SMALL | LONG),
    "gemma2": ("Gemma2", SMALL | LONG | GROUPED | {"head_dim": 8, "sliding_window": 4096}),
    "mistral": ("Mistral", SMALL | LONG | GROUPED | {"sliding_window": 64}),
    "bloom": ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "mamba": ("Mamba", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}),
}
TREES = ["llama", "qwen2", "gpt2", "gpt_neox", "gemma2"]
RNG = np.random.default_rng(0)
TEXT = RNG.integers(3, VOCABULARY, CONTEXT).tolist()
OPTIONS = [[9], [9, 8], [5, 6, 7], [5, 6], [5, 7, 6, 8, 9, 10, 11, 12], [4, 4, 4], [9, 8], [200]]


def network(kind: str, dtype: str = "float32") -> Any:
    name, sizes = CONFIGS[kind]
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(**COMMON, **sizes)
    head = "LMHeadModel" if kind == "gpt2" else "ForCausalLM"
    return getattr(transformers, name + head)(config).to(getattr(torch, dtype)).eval()


def engine(net: Any, **options: int) -> Engine:
    return Engine(net, net.config.model_type, CONTEXT, **options)


@pytest.fixture(scope="module", params=TREES)
def net(request: pytest.FixtureRequest) -> Any:
    return network(request.param)


def alone(net: Any, head: list[int], options: list[list[int]]) -> list[float]:
    """One option at a time, one forward pass each, nothing padded."""
    sums = []
    for option in options:
        with torch.inference_mode():
            logits = net(torch.tensor([head + option])).logits[0].double()
        logprobs = torch.log_softmax(logits, -1)
        sums.append(sum(float(logprobs[len(head) + i - 1, token]) for i, token in enumerate(option)))
    return sums


@pytest.mark.parametrize("length", [1, B, B + 1, CONTEXT - 8])
def test_score_is_the_plain_computation(net: Any, length: int) -> None:
    head = TEXT[:length]
    scores = engine(net).score([(head, OPTIONS)])[0]
    np.testing.assert_allclose(scores, alone(net, head, OPTIONS), atol=1e-4)


def test_single_options(net: Any) -> None:
    for option in OPTIONS:
        scores = engine(net).score([(TEXT[:140], [option])])[0]
        np.testing.assert_allclose(scores, alone(net, TEXT[:140], [option]), atol=1e-4)


def test_no_architecture_here_takes_the_plain_way(net: Any) -> None:
    assert not engine(net).unfit


def test_many_options_in_several_passes(net: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options = RNG.integers(3, VOCABULARY, (40, 5)).tolist()
    whole = engine(net).score([(TEXT[:150], options)])[0]
    monkeypatch.setattr(scoring, "MOST_BRANCHES", 30)
    np.testing.assert_allclose(engine(net).score([(TEXT[:150], options)])[0], whole, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "dtype"), [*((kind, "float32") for kind in TREES), ("llama", "bfloat16"), ("gpt2", "bfloat16")]
)
def test_warm_and_cold_agree_to_the_last_bit(kind: str, dtype: str) -> None:
    net = network(kind, dtype)
    requests = [(TEXT[:length], OPTIONS[: 1 + length % 7]) for length in (260, 129, 300)]
    requests.append(([*TEXT[:B], *TEXT[-B:], *TEXT[:9]], OPTIONS))
    cold = [engine(net).score([request])[0].tolist() for request in requests]
    block = engine(net).prefix(TEXT[: B + 1])[0]
    for limit, order in ((size(block), [0, 1, 2, 3]), (2**30, [0, 1, 2, 3]), (2**30, [3, 2, 1, 0])):
        warm = engine(net, prefix_cache=limit)
        found = {i: warm.score([requests[i]])[0].tolist() for i in order}
        assert [found[i] for i in range(len(requests))] == cold
        assert warm.prefixes.size <= limit
        assert warm.saved > 0


def test_a_prefill_is_the_same_bits_warm_and_after_other_samples(net: Any) -> None:
    warm = engine(net, prefix_cache=2**30)
    warm.score([(TEXT[:420], OPTIONS)])
    walks = []
    for reader in (engine(net), warm):
        start = reader.read(TEXT[:300], room=9)
        assert isinstance(start, BlockPrefill)
        for tokens in ([7, 8], [250, 251, 252, 3], [7, 8]):
            start.rewind()
            walks.append([start.logprobs.tolist(), *(start.step(token).tolist() for token in tokens)])
    assert walks[0] == walks[2] == walks[3] == walks[5]
    assert walks[1] == walks[4]


def test_both_ways_to_read_agree(net: Any) -> None:
    blocks, plain = engine(net).read(TEXT[:140], room=4), PlainPrefill(engine(net), TEXT[:140])
    for _ in range(2):
        blocks.rewind()
        plain.rewind()
        np.testing.assert_allclose(blocks.logprobs, plain.logprobs, atol=1e-4)
        for token in (5, 250, 7):
            np.testing.assert_allclose(blocks.step(token), plain.step(token), atol=1e-4)


def test_prompts_together_are_padded_rightly(net: Any) -> None:
    requests = [(TEXT[i : i + length], OPTIONS[i:]) for i, length in enumerate((300, 3, 131, 128, 1, 290))]
    scores = engine(net, batch=4).score(requests)
    for found, (head, options) in zip(scores, requests, strict=True):
        np.testing.assert_allclose(found, alone(net, head, options), atol=1e-4)


def test_half_precision_is_near(net: Any) -> None:
    half = network(net.config.model_type, "bfloat16")
    scores = engine(half).score([(TEXT[:140], OPTIONS)])[0]
    assert np.abs(scores - alone(half, TEXT[:140], OPTIONS)).max() < 0.3


def test_every_token_is_computed_once(net: Any) -> None:
    scorer = engine(net, prefix_cache=2**30)
    assert not scorer.unfit
    before = scorer.computed
    scorer.score([(TEXT[:300], OPTIONS)])
    inner = {tuple(option[:end]) for option in OPTIONS for end in range(1, len(option))}
    assert scorer.computed - before == 300 + len(inner)
    scorer.score([(TEXT[:310], [[9]])])
    assert scorer.computed - before == 300 + len(inner) + 310 - 2 * B
    assert scorer.saved == 2 * B


def test_within_a_sliding_window_by_the_tree_and_beyond_it_the_plain_way() -> None:
    net = network("mistral")
    scorer = engine(net)
    for length in (40, 56, 57, 200):
        scores = scorer.score([(TEXT[:length], OPTIONS)])[0]
        np.testing.assert_allclose(scores, alone(net, TEXT[:length], OPTIONS), atol=1e-4)
    assert isinstance(scorer.read(TEXT[:40], 20), BlockPrefill)
    assert isinstance(scorer.read(TEXT[:40], 30), PlainPrefill)


@pytest.mark.parametrize("kind", ["bloom", "mamba"])
def test_other_architectures_go_the_plain_way_and_say_why(kind: str) -> None:
    net = network(kind)
    scorer = engine(net, prefix_cache=2**20)
    with pytest.warns(HunchWarning, match=f"{kind} .*plain computation"):
        scores = scorer.score([(TEXT[:140], OPTIONS)])[0]
    np.testing.assert_allclose(scores, alone(net, TEXT[:140], OPTIONS), atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start = scorer.read(TEXT[:30], 2)
    for _ in range(2):
        start.rewind()
        follows = start.step(5)
        assert np.exp(follows).sum() == pytest.approx(1)
        assert follows[9] + start.logprobs[5] == pytest.approx(alone(net, TEXT[:30], [[5, 9]])[0], abs=1e-4)


def test_options_of_a_spec(folders: dict[str, Path]) -> None:
    spec = f"hf:{folders['llama']}"
    plain, batched = lm.load(spec, cache=None), lm.load(f"{spec}?batch=4", cache=None)
    assert batched.revision == f"{plain.revision}:batch4"
    assert lm.load(f"{spec}?prefix_cache=0.5", cache=None).revision == plain.revision
    for wrong in ("batch=0", "prefix_cache=-1"):
        with pytest.raises(UsageError, match="batch >= 1 and prefix_cache >= 0"):
            lm.load(f"{spec}?{wrong}", cache=None)


def test_one_prefill_for_all_samples(folders: dict[str, Path]) -> None:
    model = lm.load(f"hf:{folders['gpt2']}", cache=None).model
    model.generate(["You see a mug 3."], 5, Sampling(max_tokens=6, stop=()))
    assert model.tokens_read == len(model.tokenizer("You see a mug 3.")["input_ids"])
    assert model.tokens_saved == 0


tokens = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@given(tokens, st.lists(tokens, min_size=1, max_size=8))
def test_a_tree_holds_its_options(stem: list[int], options: list[list[int]]) -> None:
    tree = grow(stem, options)
    assert [[token for _, token in path] for path in tree.paths] == options
    assert len(tree.tokens) == len(stem) + len({tuple(o[:i]) for o in options for i in range(1, len(o))})
    seen, depths = tree.visible(), tree.depths()
    for option, path in zip(options, tree.paths, strict=True):
        for length, (at, _) in enumerate(path):
            before = np.flatnonzero(seen[at])
            assert [tree.tokens[i] for i in before] == stem + option[:length]
            assert depths[at] == len(before) - 1


@given(st.lists(tokens, min_size=1, max_size=12), st.integers(1, 10))
def test_groups_are_all_options_and_no_larger_than_asked(options: list[list[int]], most: int) -> None:
    groups = split(options, most)
    assert sorted(index for group in groups for index in group) == list(range(len(options)))
    for group in groups:
        assert len(group) == 1 or len(grow([0], [options[i] for i in group]).tokens) - 1 <= most


few = st.lists(st.integers(0, 1), min_size=1, max_size=4)


@given(st.lists(st.tuples(few, st.lists(few, min_size=1, max_size=3)), min_size=1, max_size=6))
def test_joined_trees_hold_all_trees_and_no_stem_that_another_continues(
    asked: list[tuple[list[int], list[list[int]]]],
) -> None:
    trees = [grow(stem, options) for stem, options in asked]
    hosts, homes = joined(trees)
    for tree, (host, back) in zip(trees, homes, strict=True):
        seen, size = hosts[host].visible(), len(hosts[host].tokens)
        for at, own in enumerate(back, tree.root):
            before = [hosts[host].tokens[i] for i in np.flatnonzero(seen[size + own])]
            assert before == [tree.tokens[i] for i in np.flatnonzero(tree.visible()[at])]
            assert hosts[host].depths()[size + own] == tree.depths()[at]
    stems = {tuple(stem) for stem, _ in asked}
    longest = [one for one in stems if not any(one == s[: len(one)] != s for s in stems)]
    branches = sum(len(tree.tokens) - tree.root - 1 for tree in trees)
    assert sum(len(host.tokens) for host in hosts) == sum(map(len, longest)) + branches


@given(st.lists(st.integers(1, 99), min_size=1, max_size=20))
def test_rows_that_are_computed_together_are_of_like_length(lengths: list[int]) -> None:
    groups = alike(lengths)
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    if len(groups) > 1:
        assert 2 * sum(lengths) <= max(lengths) * len(lengths)
        assert all(lengths[row] <= LIKE * lengths[group[0]] for group in groups for row in group)


@given(st.lists(st.lists(st.integers(0, 2), max_size=9), max_size=12), st.integers(0, 5))
def test_the_prefix_cache_is_bounded_and_keeps_beginnings(texts: list[list[int]], blocks: int) -> None:
    one = [(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4))]
    cache = Prefixes(blocks * size(one))
    for text in texts:
        keys = block_keys(text, 2)
        cache.keep(keys, [one] * len(keys))
        assert cache.size <= cache.limit
        assert len(cache.known(keys)) == min(len(keys), blocks)


def test_keys_tell_prefixes_apart() -> None:
    assert block_keys([1, 2, 3, 4], 2) == block_keys([1, 2, 3, 4, 5], 2)[:2]
    assert block_keys([1, 2, 3, 4], 2)[1] != block_keys([9, 2, 3, 4], 2)[1]
