"""Tokens that the demo's written prior computes: with each distribution computed anew, and with kept ones.

    python benchmarks/distributions.py            # 1,000 steps
    python benchmarks/distributions.py 9000       # the run of the demo

Both sides in one run: DQN-Prior with ``pocket?corpus=households`` in the demo's first pool, once with nothing
kept but the blocks of prompts, read one at a time and written eight rows at a time, as before distributions
were kept; and once as it is. Both take the same actions, which is checked. A draw reads its prompt and each
token but its last; ``every draw alone`` counts that without any sharing, ``before`` with a prompt read once
for all its draws and its known blocks not read. Seconds are processor time in the model's ``generate``, and
of the whole run.
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import torch

import hunch
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.scoring.writer import Writer
from hunch.roles import MappedPrior, TextTable
from told import told


class Side(NamedTuple):
    """What one side did and computed."""

    actions: list[Any]
    alone: int
    before: int
    computed: int
    model_seconds: float
    seconds: float


def main() -> None:
    torch.set_num_threads(1)
    steps = int((*sys.argv[1:], "1000")[0])
    anew, kept = side(steps, keep=False), side(steps, keep=True)
    assert anew.actions == kept.actions, "what is kept changed an action"
    print(f"{steps:,} steps, the same {sum(map(len, kept.actions)):,} actions")
    rows = {
        "every draw alone": (anew.alone, None, None),
        "before": (anew.before, anew.model_seconds, anew.seconds),
        "kept": (kept.computed, kept.model_seconds, kept.seconds),
    }
    print(f"{'':18} {'tokens':>11} {'model, s':>9} {'run, s':>7} {'tokens / kept':>14} {'model / kept':>13}")
    for name, (tokens, model, whole) in rows.items():
        times = ("", "") if model is None or whole is None else (f"{model:.1f}", f"{whole:.1f}")
        ratio = "" if model is None else f"{model / kept.model_seconds:.2f}"
        share = f"{tokens / kept.computed:.2f}"
        print(f"{name:18} {tokens:11,} {times[0]:>9} {times[1]:>7} {share:>14} {ratio:>13}")


def side(steps: int, *, keep: bool) -> Side:
    cached = hunch.lm.load("pocket", corpus="households", cache=None)
    model: Any = cached.model
    if not keep:
        model.decoder.blocks = 1
        model._writer = Writer(model.decoder, 0)
    asked = watched(model)
    env = hunch.make("hunch/Household-Pick-v0", games=8, pool_seed=0)
    encoder = TextTable(hunch.lm.load("minilm", cache=None))
    agent = hunch.methods.DQNPrior(prior=MappedPrior(cached, listed=False), encoder=encoder, k=5)
    start = time.process_time()
    result = hunch.train(agent, env, steps=steps, seed=0)
    seconds = time.process_time() - start
    written = model.tokens_written - asked["draws"]
    return Side(
        [episode.actions for episode in result.episodes],
        asked["prompts"] + written,
        model.tokens_read + written,
        model.tokens_read + model._writer.computed,
        asked["seconds"],
        seconds,
    )


def watched(model: CausalModel) -> dict[str, Any]:
    """Count the draws and their prompts' tokens, and measure processor time."""
    asked = {"draws": 0, "prompts": 0, "seconds": 0.0}
    generate = model.generate

    def counting(prompts: Any, k: int = 1, *rest: Any) -> list[list[str]]:
        asked["draws"] += k * len(prompts)
        asked["prompts"] += k * sum(len(model._tokens(prompt)) for prompt in prompts)
        start = time.process_time()
        try:
            return generate(prompts, k, *rest)
        finally:
            asked["seconds"] += time.process_time() - start

    vars(model)["generate"] = counting
    return asked


if __name__ == "__main__":
    told(__doc__)
    main()
