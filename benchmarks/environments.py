"""Steps per second of random play with texts, and microseconds for a copy, on one core.

    python benchmarks/environments.py [ID ...]

Whole episodes, resets included, once with a seed for each episode, as in runs, and once with a seed for the
first; a new seed is a new random generator, which tells where episodes are short. A step of Overcooked is a
macro-action.
"""

from __future__ import annotations

import copy
import random
import sys
import time

import gymnasium

import hunch.envs
from told import told

SECONDS, COPIES = 2.0, 5_000


def main() -> None:
    for id in sys.argv[1:] or hunch.envs.names():
        env = hunch.envs.make(id, history=0)
        rates = f"{rate(env, seeded=True):10,.0f} and {rate(env, seeded=False):10,.0f} steps/s"
        print(f"{id:35} {rates} {copying(env):8.1f} us for a copy")


def rate(env: gymnasium.Env[str, str | int], *, seeded: bool) -> float:
    """Steps per second over whole episodes, for about ``SECONDS`` after as long to warm up."""
    rng = random.Random(0)
    env.reset(seed=0)
    for _ in range(2):
        steps, start = 0, time.process_time()
        while time.process_time() - start < SECONDS:
            steps += episode(env, rng, rng.randrange(2**31) if seeded else None)
    return steps / (time.process_time() - start)


def episode(env: gymnasium.Env[str, str | int], rng: random.Random, seed: int | None) -> int:
    _, info = env.reset(seed=seed)
    steps, done = 0, False
    while not done:
        _, _, terminated, truncated, info = env.step(rng.choice(info["actions"]))
        steps, done = steps + 1, terminated or truncated
    return steps


def copying(env: gymnasium.Env[str, str | int]) -> float:
    """Microseconds for a copy in the middle of an episode."""
    env.reset(seed=0)
    env.step(0)
    start = time.process_time()
    for _ in range(COPIES):
        copy.deepcopy(env)
    return (time.process_time() - start) / COPIES * 1e6


if __name__ == "__main__":
    told(__doc__)
    main()
