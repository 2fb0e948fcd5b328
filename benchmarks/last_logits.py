"""What it saves to close the gaps between the last states of several prompts before logits are made of them.

    python benchmarks/last_logits.py SPEC  [texts]  [tokens]

A model of transformers makes logits of the last positions of each row only. Of several rows these are a view
with gaps, for which torch copies the output weights once per row. SPEC is a model to train, such as
``smollm2?train=lora``. Each side judges texts (32 of 32 tokens), with gradients, in float32 and in bfloat16,
on one thread: CPU seconds of the better of two, in turns.
"""

from __future__ import annotations

import sys
import time

import torch

from hunch import lm
from hunch.lm.training import Trainable, Written
from told import told

PROMPT = "Continue: the boat number {} left the harbour, and everybody on the pier waved until it was gone."


def step(model: Trainable, texts: list[Written]) -> float:
    """Return the CPU seconds of one pass forwards and backwards."""
    prompts = [PROMPT.format(number) for number in range(len(texts))]
    begin = time.process_time()
    loss = -model.evaluate(prompts, texts).logprobs.sum()
    loss.backward()  # type: ignore[no-untyped-call]
    return time.process_time() - begin


def main(spec: str, texts: int, tokens: int) -> None:
    """Print both sides and their ratio, for each number format."""
    torch.set_num_threads(1)
    chance = torch.Generator().manual_seed(0)
    drawn = torch.randint(200, 2_000, (texts, tokens), generator=chance).tolist()
    written = [Written("", tuple(row), (), finished=False) for row in drawn]
    print("| number format | with gaps, s | without, s | ratio |")
    print("|---|---|---|---|")
    for dtype in ("float32", "bfloat16"):
        model = lm.trainable(f"{spec}{'&' if '?' in spec else '?'}dtype={dtype}")
        hooks = model.network.get_output_embeddings()._forward_pre_hooks
        closing = dict(hooks)
        seconds: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(2):
            hooks.clear()
            seconds["with"].append(step(model, written))
            hooks.update(closing)
            seconds["without"].append(step(model, written))
        gaps, closed = min(seconds["with"]), min(seconds["without"])
        print(f"| {dtype} | {gaps:.1f} | {closed:.1f} | {closed / gaps:.2f} |")


if __name__ == "__main__":
    told(__doc__)
    numbers = [int(text) for text in sys.argv[2:]]
    main(sys.argv[1], *(numbers + [32, 32][len(numbers) :]))
