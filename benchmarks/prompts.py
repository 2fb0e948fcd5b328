"""ICPI's prompts drawn once an episode or for every prediction, with the pocket model, and one at a time.

    python benchmarks/prompts.py            # Chain
    python benchmarks/prompts.py MiniCatch

All sides in one run: the same remembered episodes, states and weights, one thread, no answer kept on disk.
"One at a time" asks the same weights through transformers, each prompt on its own and from its beginning.
Seconds are wall time of decisions of the agent's own; those of an episode come one after the other, as in a
run, so that per-episode prompts are read once.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from hunch.core import Transition
from hunch.envs import make
from hunch.lm import load
from hunch.lm.pocket.model import SHIPPED
from hunch.methods.in_context.icpi import ICPI
from hunch.runs.rollout import Rollout

EPISODES = 12
DECISIONS = 6


def main() -> None:
    torch.set_num_threads(1)
    domain = sys.argv[1] if sys.argv[1:] else "Chain"
    seen, states = experience(domain)
    print("prompts          model                seconds a decision   tokens computed   times faster")
    slowest = None
    for prompts, spec in (
        ("per-prediction", f"hf:{SHIPPED}?prefix_cache=0"),
        ("per-prediction", "pocket"),
        ("per-episode", "pocket"),
    ):
        few = states[:1] if spec.startswith("hf:") else states
        seconds, tokens = decide(prompts, spec, seen, few)
        slowest = slowest or seconds
        name = "one at a time" if spec.startswith("hf:") else "pocket"
        print(f"{prompts:16} {name:20} {seconds:18.3f} {tokens:17,.0f} {slowest / seconds:14.1f}")


def experience(domain: str) -> tuple[list[list[Transition]], list]:
    """Episodes of random play, and the states of one more."""
    rng = np.random.default_rng(0)
    rollout = Rollout([make(f"hunch/{domain}-v0")], seed=0)
    steps: list[list[Transition]] = []
    while len(rollout.finished) < EPISODES:
        steps.append(rollout.step([str(rng.choice(state.actions)) for state in rollout.states]))
    return steps, [transitions[0].state for transitions in steps[:DECISIONS]]


def decide(prompts: str, spec: str, seen: list[list[Transition]], states: list) -> tuple[float, float]:
    """Seconds and computed tokens a decision."""
    lm = load(spec, cache=None)
    agent = ICPI(lm, prompts=prompts)
    for transitions in seen:
        agent.observe(transitions)
    start, before = time.perf_counter(), lm.usage.prompt_tokens + lm.usage.completion_tokens
    for state in states:
        agent.act([state], explore=False)
    used = lm.usage.prompt_tokens + lm.usage.completion_tokens - before
    return (time.perf_counter() - start) / len(states), used / len(states)


if __name__ == "__main__":
    main()
