"""A packaged model as llama.cpp runs it, and the same file in torch with bfloat16: seconds per question.

    python benchmarks/packaged.py smollm2
    python benchmarks/packaged.py qwen-coder-0.5b --ways label --states 16

Eight states of Household-Pick are asked at once, as a run with eight streams asks them: by the one, then by
the other, and again. torch reads a batch in one pass, and multiplies in bfloat16 at a multiple of the usual
speed where the processor has instructions for it (AMX). llama.cpp reads weights of four bits, so that it
needs a third of the memory, and writes faster if one text is written at a time.

Both get one thread and the same texts: llama.cpp scores an action after the bare prompt, so torch does it
without the chat template, too, where the other ways use it. The distance is half the sum of the absolute
differences of their distributions over the actions, which rounding makes, and in written answers chance.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from hunch import lm
from hunch.audition.question import Bed, moments
from hunch.core import State
from hunch.lm import shelf
from hunch.roles.prior.kinds import PriorConfig, build_prior

BED = Bed("hunch/Household-Pick-v0", {"games": 40}, "pool_seed")
STREAMS = 8
"""States that are asked at once."""
DRAWS = 5
"""Proposals per state, as in DQN-Prior."""


def answered(model: lm.LanguageModel, way: str, states: list[State]) -> tuple[np.ndarray, float]:
    """Return the weights of all actions of some states, one after the other, and the seconds they took."""
    prior = build_prior(PriorConfig(way=way, patience=None), model)  # type: ignore[arg-type]
    start = time.perf_counter()
    proposals = prior.propose(states, DRAWS, np.random.default_rng(0))
    seconds = time.perf_counter() - start
    if hasattr(prior, "probabilities"):  # kept, so the model is not asked again
        return np.concatenate(prior.probabilities(states)), seconds
    weights = [p.named(len(s.options)) for p, s in zip(proposals, states, strict=True)]
    return np.concatenate(weights), seconds


def main() -> None:
    """Ask both, batch by batch, and print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(shelf.SHELF))
    parser.add_argument("--ways", nargs="+", default=["label", "structured", "likelihood-unlisted"])
    parser.add_argument("--states", type=int, default=24)
    asked = parser.parse_args()

    torch.set_num_threads(1)
    drawn = [moment.state for moment in moments(BED, asked.states + STREAMS, 0)]
    served = lm.load(f"{asked.model}?threads=1", cache=None)
    file = shelf.SHELF[asked.model].path
    print(f"{asked.model}, {asked.states} states of Household-Pick, {STREAMS} at once, one thread each")
    print("| way | llama.cpp, seconds per state | torch, bfloat16 | ratio (batches) | distance |")
    print("|---|---|---|---|---|")
    for way in asked.ways:
        chat = "false" if way.startswith("likelihood") else "true"
        loaded = lm.load(f"hf:{file}?chat={chat}&dtype=bfloat16&batch={STREAMS}", cache=None)
        ratios, spent, distances = [], np.zeros(2), []
        for first in range(0, asked.states + 1, STREAMS):
            states = drawn[first : first + STREAMS]
            p, of_served = answered(served, way, states)
            q, of_loaded = answered(loaded, way, states)
            if first == 0:  # both warm up with a batch that is not counted
                continue
            ratios.append(of_served / of_loaded)
            spent += (of_served, of_loaded)
            distances.append(np.abs(p - q).sum() / 2 / len(states))
        each = spent / (len(ratios) * STREAMS)
        span = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(
            f"| {way} | {each[0]:.2f} | {each[1]:.2f} | {spent[0] / spent[1]:.2f} ({span}) | "
            f"{np.mean(distances):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
