"""Writing many samples: in lockstep over the prefix cache, one by one, and with transformers' ``generate``.

    python benchmarks/generation.py           # about 15 M parameters
    python benchmarks/generation.py 100M      # about 100 M
    python benchmarks/generation.py served "openai:NAME?base_url=http://localhost:8000/v1"

All in one run, in turn: the same weights (at random), float32, one thread; 16 prompts, 5 samples of 32 tokens
each, temperature 1, no end token. Transformers gets the prompts as one batch, padded on the left where their
lengths differ, with ``num_return_sequences=5``. Nothing is cached between calls, but where prompts share a
beginning it is computed once within a call. Tokens written a CPU second, the best of several runs.

``served`` asks a model behind a server once for as many samples of as many prompts, in words, and shows the
tokens per second that the server counts as written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
import transformers

from hunch import lm
from hunch.lm.scoring.engine import Engine
from hunch.lm.scoring.recent import Prefixes
from hunch.lm.scoring.writer import Writer
from hunch.lm.speech import Sampling
from scoring import SIZES, fastest
from told import told

PROMPTS, SAMPLES, TOKENS = 16, 5, 32
CASES = {
    "30 tokens": (0, (30, 30)),
    "30 to 60 tokens": (0, (30, 60)),
    "300 tokens": (0, (300, 300)),
    "256 shared + 44 tokens": (256, (44, 44)),
}
SAMPLING = Sampling(max_tokens=TOKENS, stop=())


def main() -> None:
    if sys.argv[1:2] == ["served"]:
        served(sys.argv[2])
        return
    torch.set_num_threads(1)
    size = (*sys.argv[1:], "15M")[0]
    torch.manual_seed(0)
    config = transformers.LlamaConfig(max_position_embeddings=1024, tie_word_embeddings=True, **SIZES[size])
    network = transformers.LlamaForCausalLM(config).eval()
    network.generation_config.update(eos_token_id=None, pad_token_id=0)
    engine, single = (Engine(network, "benchmark", 1024, prefix_cache=2**28) for _ in range(2))
    vars(single)["lockstep"] = 1
    print(f"{network.num_parameters() / 1e6:.0f} M parameters; {engine.lockstep} rows a pass")
    print(f"{'prompts':24} lockstep (tokens/s)   one by one   transformers   lockstep / transformers")
    for name, (shared, (shortest, longest)) in CASES.items():
        prompts = drawn(shared, shortest, longest)
        ours, alone, theirs = fastest(
            written(engine, prompts), written(single, prompts), generated(network, prompts)
        )
        total = PROMPTS * SAMPLES * TOKENS
        rates = f"{total / ours:19.0f} {total / alone:12.0f} {total / theirs:14.0f}"
        print(f"{name:24} {rates} {theirs / ours:20.2f}")


def served(spec: str) -> None:
    model = lm.load(spec, cache=None)
    before, start = model.model.tokens_written, time.perf_counter()
    prompts = [f"{number}. You see a fridge, a table and a mug. " * 3 for number in range(PROMPTS)]
    model.generate(prompts, SAMPLES, SAMPLING)
    seconds, tokens = time.perf_counter() - start, model.model.tokens_written - before
    print(f"{model.name}: {tokens:,} tokens in {seconds:.1f} s, {tokens / seconds:,.0f} a second")


def drawn(shared: int, shortest: int, longest: int) -> list[list[int]]:
    rng = np.random.default_rng(0)
    begin = rng.integers(3, 8000, shared).tolist()
    return [
        begin + rng.integers(3, 8000, rng.integers(shortest, longest + 1)).tolist() for _ in range(PROMPTS)
    ]


def written(engine: Engine, prompts: Sequence[list[int]]) -> Callable[[], object]:
    def run() -> object:
        engine.prefixes = Prefixes(2**28)  # and a writer that knows no distributions
        requests = [(p, [np.random.default_rng(i) for i in range(SAMPLES)]) for p in prompts]
        found = Writer(engine, 0).write(requests, SAMPLING, lambda tokens: len(tokens) == TOKENS)
        assert sum(len(tokens) for own in found for tokens in own) == PROMPTS * SAMPLES * TOKENS
        return found

    return run


def generated(network: transformers.LlamaForCausalLM, prompts: Sequence[list[int]]) -> Callable[[], object]:
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])

    def run() -> object:
        with torch.inference_mode():
            found = network.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                top_k=0,
                max_new_tokens=TOKENS,
                num_return_sequences=SAMPLES,
            )
        assert found.shape == (PROMPTS * SAMPLES, width + TOKENS)
        return found

    return run


if __name__ == "__main__":
    told(__doc__)
    main()
