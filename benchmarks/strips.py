"""Planning problems on one core: steps per second of random play, and seconds for grounding and for plans.

    python benchmarks/strips.py

Play is with texts and whole episodes, resets with a new problem included. Plans are those of the oracle.
"""

from __future__ import annotations

import random
import statistics
import time

import numpy as np

from hunch_studies.worlds.strips import problems
from hunch_studies.worlds.strips.env import Ferry, Generated, Gripper, Logistics, Miconic
from hunch_studies.worlds.strips.grounding import Ground, changing
from hunch_studies.worlds.strips.pddl import Problem
from told import told

SECONDS, PLANS = 3.0, 10


def main() -> None:
    for name, env in {
        "Logistics, 3 cities of 3, 4 packages": Logistics(cities=3, locations=3, packages=4),
        "Gripper, 6 balls": Gripper(balls=6),
        "Ferry, 6 cars": Ferry(cars=6),
        "Miconic, 8 floors, 5 passengers": Miconic(floors=8, passengers=5),
    }.items():
        length, seconds = planned(env)
        print(
            f"{name:38} {rate(env):9,.0f} steps/s {len(env.grounded.ground.operators):6,} actions"
            f"   plans of {length:4.1f} in {seconds:.3f} s"
        )
    for blocks in (10, 30):
        problem = problems.blocksworld(np.random.default_rng(0), blocks)
        print(f"grounding Blocksworld, {blocks} blocks: {grounding(problem):.3f} s")


def rate(env: Generated) -> float:
    """Steps per second, after as long to warm up."""
    rng = random.Random(0)
    env.reset(seed=0)
    for _ in range(2):
        steps, start = 0, time.process_time()
        while time.process_time() - start < SECONDS:
            _, info = env.reset()
            done = False
            while not done:
                _, _, terminated, truncated, info = env.step(rng.choice(info["actions"]))
                steps, done = steps + 1, terminated or truncated
    return steps / (time.process_time() - start)


def planned(env: Generated) -> tuple[float, float]:
    """Mean length of the oracle's plans, and seconds for one."""
    lengths, start = [], time.process_time()
    for seed in range(PLANS):
        env.reset(seed=seed)
        lengths.append(len(env.oracle() or ()))
    return statistics.mean(lengths), (time.process_time() - start) / PLANS


def grounding(problem: Problem) -> float:
    start = time.process_time()
    moving = changing(problem.domain)
    Ground(problem.domain, problem.objects, frozenset(a for a in problem.init if a[0] not in moving))
    return time.process_time() - start


if __name__ == "__main__":
    told(__doc__)
    main()
