"""Scoring options with a local model: the tree of options against one padded batch of prompt and option.

    python benchmarks/scoring.py              # about 10 M parameters
    python benchmarks/scoring.py 100M         # about 100 M
    python benchmarks/scoring.py 100M 2048    # a longer prompt, fewer options
    python benchmarks/scoring.py trace        # an episode of 200 steps, with and without the prefix cache
    python benchmarks/scoring.py batch        # 8 prompts one by one and together
    python benchmarks/scoring.py beside 15M   # lamorel's two ways of scoring; also 100M

Both sides in one run, in turn: the same weights (at random), float32, one thread, nothing cached between
calls; CPU seconds, the least of several runs. The padded batch computes logits for the options only. The
limit is what the products of the needed tokens and weights take at the rate of one large matrix product.

``beside`` does again what lamorel (Carta et al., ICML 2023) does to score, from its description: plain, one
padded batch of prompt and option; or with the key-value state of the prompt, computed once and expanded to
the options. Both take what a call of the network gives, the logits of every token. The third rival expands
the state, too, but has the prompt's last logits computed only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import transformers

from hunch.lm.scoring.engine import Engine
from hunch.lm.scoring.trie import grow
from told import told

SIZES = {
    "2M": {
        "hidden_size": 128,
        "intermediate_size": 344,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "vocab_size": 8000,
    },
    "15M": {
        "hidden_size": 384,
        "intermediate_size": 1024,
        "num_hidden_layers": 6,
        "num_attention_heads": 6,
        "vocab_size": 8000,
    },
    "10M": {
        "hidden_size": 320,
        "intermediate_size": 864,
        "num_hidden_layers": 6,
        "num_attention_heads": 5,
        "vocab_size": 8000,
    },
    "100M": {
        "hidden_size": 768,
        "intermediate_size": 2048,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "vocab_size": 16000,
    },
}
SECONDS = 3.0


def main() -> None:
    torch.set_num_threads(1)
    if sys.argv[1:2] in (["trace"], ["batch"], ["beside"]):
        {"trace": trace, "batch": batch, "beside": beside}[sys.argv[1]](*sys.argv[2:])
        return
    size, length = (sys.argv[1:] + ["10M", "300"][len(sys.argv) - 1 :])[:2]
    network = llama(size)
    print(f"{network.num_parameters() / 1e6:.0f} M parameters, prompt of {length} tokens, one thread")
    print("options   padded batch (s)   tree (s)   times faster   share of the limit   largest difference")
    for n in (2, 8, 20, 50) if int(length) <= 300 else (2, 8):
        compare(network, int(length), n)


def llama(size: str) -> transformers.LlamaForCausalLM:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(max_position_embeddings=4096, tie_word_embeddings=True, **SIZES[size])
    return transformers.LlamaForCausalLM(config).eval()


def compare(network: transformers.LlamaForCausalLM, length: int, n: int) -> None:
    rng = np.random.default_rng(n)
    engine = Engine(network, "benchmark", None)
    prompt, options = rng.integers(3, 8000, length).tolist(), commands(rng, n)
    assert not engine.unfit  # before the clock starts
    plain, tree, large = fastest(
        lambda: engine.plain(prompt, options),
        lambda: engine.score([(prompt, options)])[0],
        matrix_product,
    )
    limit = needed(network, prompt, options) * large / (2 * 512 * 768 * 3072)
    gap = np.abs(engine.plain(prompt, options) - engine.score([(prompt, options)])[0]).max() if n < 9 else 0
    print(
        f"{n:7} {plain:18.2f} {tree:10.3f} {plain / tree:14.1f} {limit / tree:20.0%}   "
        + (f"{gap:18.1e}" if n < 9 else "")
    )


def commands(rng: np.random.Generator, n: int) -> list[list[int]]:
    """Options of 3 to 8 tokens that begin with one of 8 verbs."""
    return [
        [10 + int(rng.integers(8)), *rng.integers(50, 7000, rng.integers(2, 8)).tolist()] for _ in range(n)
    ]


def fastest(*sides: Callable[[], object]) -> list[float]:
    """The least CPU seconds of each side, in turn until each has had its time."""
    best, spent = [float("inf")] * len(sides), 0.0
    while spent < SECONDS:
        for place, side in enumerate(sides):
            start = time.process_time()
            side()
            seconds = time.process_time() - start
            best[place] = min(best[place], seconds)
            spent += seconds / len(sides)
    return best


MATRIX, ROWS = torch.rand(3072, 768), torch.rand(512, 768)


def matrix_product() -> torch.Tensor:
    return torch.nn.functional.linear(ROWS, MATRIX)


def needed(network: transformers.LlamaForCausalLM, prompt: list[int], options: list[list[int]]) -> int:
    """Operations of one product of each needed token with each weight: all but the options' last tokens."""
    tokens = len(grow(prompt, options).tokens)
    head = network.lm_head.weight.numel()
    return 2 * (tokens * (network.num_parameters() - head) + (tokens - len(prompt) + 1) * head)


def batch() -> None:
    network, rng = llama("10M"), np.random.default_rng(0)
    print("8 prompts with 8 options each: times faster together (batch=8) than one by one")
    for length in (30, 100, 300):
        requests = [(rng.integers(3, 8000, length).tolist(), commands(rng, 8)) for _ in range(8)]
        single, together = Engine(network, "benchmark", None), Engine(network, "benchmark", None, batch=8)
        assert not single.unfit
        assert not together.unfit
        one_by_one, at_once = fastest(*(partial(engine.score, requests) for engine in (single, together)))
        print(f"prompts of {length:3} tokens {one_by_one / at_once:10.2f}")


def beside(size: str = "15M") -> None:
    print("prompt of 300 tokens, options of 3 to 8; seconds, and how many times the tree is faster")
    print("size   options    tree (s)   plain (s)      cached (s)     cached, fewer logits (s)    difference")
    for n in (2, 20, 42):
        network, rng = llama(size), np.random.default_rng(n)
        engine = Engine(network, "benchmark", None)
        prompt, options = rng.integers(3, 8000, 300).tolist(), commands(rng, n)
        assert not engine.unfit
        ways = [
            partial(tree_of, engine, prompt, options),
            partial(pairs, network, prompt, options),
            partial(expanded, network, prompt, options),
            partial(expanded, network, prompt, options, logits_to_keep=1),
        ]
        found: dict[int, np.ndarray] = {}
        tree, *others = fastest(*(partial(kept, found, i, way) for i, way in enumerate(ways)))
        gap = max(float(np.abs(found[i] - found[0]).max()) for i in range(1, len(ways)))
        shown = "".join(f"{seconds:10.3f} ({seconds / tree:4.1f})" for seconds in others)
        print(f"{size:5} {n:8} {tree:11.3f} {shown} {gap:12.1e}", flush=True)


def tree_of(engine: Engine, prompt: list[int], options: list[list[int]]) -> np.ndarray:
    """Log-probabilities of options as a tree."""
    return engine.score([(prompt, options)])[0]


def kept(found: dict[int, np.ndarray], place: int, way: Callable[[], np.ndarray]) -> None:
    """Keep what a way finds, so that the ways can be compared."""
    found[place] = way()


def padded(options: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Options as rows, padded behind, and which of their tokens are real."""
    rows = [torch.tensor(option) for option in options]
    tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return tokens, torch.arange(tokens.shape[1]) < torch.tensor([[len(row)] for row in rows])


@torch.inference_mode()
def pairs(network: transformers.LlamaForCausalLM, prompt: list[int], options: list[list[int]]) -> np.ndarray:
    """Log-probabilities of options from one batch of prompt and option."""
    tails, real = padded(options)
    rows = torch.cat([torch.tensor([prompt]).expand(len(tails), -1), tails], dim=1)
    mask = torch.cat([real.new_ones(len(tails), len(prompt)), real], dim=1).long()
    logits = network(input_ids=rows, attention_mask=mask).logits[:, :-1]
    return (
        likelihoods(logits, rows[:, 1:])[:, len(prompt) - 1 :].masked_fill(~real, 0).sum(1).double().numpy()
    )


@torch.inference_mode()
def expanded(
    network: transformers.LlamaForCausalLM, prompt: list[int], options: list[list[int]], **first: int
) -> np.ndarray:
    """Log-probabilities of options after the key-value state of the prompt, a copy for each."""
    tails, real = padded(options)
    read = network(input_ids=torch.tensor([prompt]), use_cache=True, **first)
    read.past_key_values.batch_repeat_interleave(len(tails))
    mask = torch.cat([real.new_ones(len(tails), len(prompt)), real], dim=1).long()
    after = network(input_ids=tails, attention_mask=mask, past_key_values=read.past_key_values).logits
    logits = torch.cat([read.logits[:, -1:].expand(len(tails), -1, -1), after[:, :-1]], dim=1)
    return likelihoods(logits, tails).masked_fill(~real, 0).sum(1).double().numpy()


def likelihoods(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The log-probability of each token, of shape (rows, places)."""
    return logits.log_softmax(-1).gather(-1, tokens[:, :, None])[:, :, 0]


def trace() -> None:
    network, rng = llama("10M"), np.random.default_rng(0)
    print("an episode of 200 steps: instruction of 200 tokens, 6 more tokens a step, 10 options a step")
    for name, limit in (("no prefix cache", 0), ("prefix cache of 256 MiB", 256 * 2**20)):
        engine = Engine(network, "benchmark", None, prefix_cache=limit)
        assert not engine.unfit
        rng = np.random.default_rng(0)
        history, options, begin = rng.integers(3, 8000, 200).tolist(), 0, time.process_time()
        for _ in range(200):
            own = commands(rng, 10)
            engine.score([(history, own)])
            options += len(grow([0], own).tokens) - 1
            history += rng.integers(3, 8000, 6).tolist()
        seconds = time.process_time() - begin
        print(f"{name:24} {engine.computed - options:10,} prompt tokens computed, {seconds:7.1f} CPU seconds")


if __name__ == "__main__":
    told(__doc__)
    main()
