"""Decisions of ICPI with the pocket model: prompts drawn per episode or per prediction, answers written or
chosen.

    python benchmarks/prompts.py            # Chain
    python benchmarks/prompts.py MiniCatch

All sides in one run: the same remembered episodes, states and weights, states without hints, one thread of
computing, no answer kept on disk. "One at a time" asks the same weights through transformers, each prompt on
its own and from its beginning. "8 streams" are eight environments of one agent, which asks the model for all
of them together. Seconds are wall time per decision and stream; those of an episode come one after the other,
as in a run, so that per-episode prompts are read once.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import torch

from hunch.core import State
from hunch.envs import make
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.in_context.icpi import ICPI
from hunch.rl.rollout import Rollout
from hunch.rl.world import world_of
from hunch_pocket import EXAMPLES
from told import told

EPISODES = 12
DECISIONS = 6
SIDES: tuple[tuple[str, str, int, int, dict[str, Any]], ...] = (
    ("one at a time", f"hf:{EXAMPLES}?prefix_cache=0", 1, 1, {"prompts": "per-prediction"}),
    ("per prediction", "pocket", 1, DECISIONS, {"prompts": "per-prediction"}),
    ("per episode", "pocket", 1, DECISIONS, {"prompts": "per-episode"}),
    ("per episode, choosing", "pocket", 1, DECISIONS, {"prompts": "per-episode", "answers": "choose"}),
    ("per episode, 8 streams", "pocket", 8, DECISIONS, {"prompts": "per-episode"}),
)
"""Name, model, streams, decisions and settings of each side."""


def main() -> None:
    torch.set_num_threads(1)
    domain = sys.argv[1] if sys.argv[1:] else "Chain"
    print("prompts                  seconds per decision   tokens computed   times faster")
    slowest = 0.0
    for name, spec, streams, decisions, options in SIDES:
        lm = load(spec, cache=None)
        seconds, tokens = decide(domain, lm, streams, decisions, options)
        slowest = slowest or seconds
        print(f"{name:24} {seconds:20.3f} {tokens:17,.0f} {slowest / seconds:14.1f}", flush=True)


def decide(
    domain: str, lm: LanguageModel, streams: int, decisions: int, options: dict[str, Any]
) -> tuple[float, float]:
    """Show an agent episodes of random play; return seconds and tokens per decision in states of the last."""
    envs = [make(f"hunch/{domain}-v0", hints=False) for _ in range(streams)]
    rollout, rng = Rollout(envs), np.random.default_rng(0)
    agent = ICPI(lm, **options)
    agent.begin(world_of(rollout, envs[0], 0, ()), 0)
    moments: list[list[State]] = []
    while len(rollout.finished) < EPISODES * streams:
        moments.append(rollout.states)
        agent.observe(rollout.step([str(rng.choice(state.options)) for state in rollout.states]))
    start = time.perf_counter()
    for states in moments[-decisions:]:
        agent.q(states, rng)
    count = decisions * streams
    return (time.perf_counter() - start) / count, (
        lm.usage.prompt_tokens + lm.usage.completion_tokens
    ) / count


if __name__ == "__main__":
    told(__doc__)
    main()
