"""Embedding short texts with minilm: read together without padding, and one by one.

    python benchmarks/embedding.py

Both in one run, in turn: the same weights, float32, one thread, nothing cached. CPU milliseconds a text, the
median of the calls; texts of 5 to 20 tokens, as commands of household games have them.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import torch

from hunch import lm
from hunch.lm.backends.minilm import MiniLM
from hunch.lm.backends.packing import Reader
from told import told

VERBS = (
    "go to",
    "open",
    "take mug 1 from",
    "put the hot mug 1 in",
    "look around and examine",
    "clean the plate with",
)
THINGS = (
    "fridge",
    "cabinet",
    "countertop",
    "microwave",
    "sink basin",
    "coffee machine",
    "side table",
    "desk lamp",
)
PLACES = ("", " in the kitchen", " next to the large window of the living room")


def main() -> None:
    torch.set_num_threads(1)
    together, alone = (lm.load("minilm", cache=None).model for _ in range(2))
    assert isinstance(together, MiniLM)
    assert isinstance(alone, MiniLM)
    alone.network.set_attn_implementation("sdpa")
    alone._reader = Reader(alone.network, pack=False)
    rng = np.random.default_rng(0)
    print("texts of a call   one by one (ms a text)   together (ms a text)   times faster   tokens of a text")
    for size in (1, 5, 10, 20, 60, 200):
        spent: dict[str, list[float]] = {"alone": [], "together": []}
        tokens = []
        for _ in range(max(5, 200 // size)):
            texts = [
                f"{rng.choice(VERBS)} the {rng.choice(THINGS)} {rng.integers(20)}{rng.choice(PLACES)}"
                for _ in range(size)
            ]
            tokens += [len(together._tokens(text)) for text in texts]
            for name, model in (("alone", alone), ("together", together)):
                start = time.process_time()
                model.embed(texts)
                spent[name].append((time.process_time() - start) * 1e3 / size)
        one, many = median(spent["alone"]), median(spent["together"])
        print(f"{size:15} {one:24.1f} {many:22.1f} {one / many:14.1f} {np.mean(tokens):18.1f}")


if __name__ == "__main__":
    told(__doc__)
    main()
