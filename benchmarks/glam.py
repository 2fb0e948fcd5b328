"""Steps a second of GLAM with walks in BabyAI, acting and learning: python benchmarks/glam.py [SOURCE ...].

With folders of sources, such as src and another checkout's, they run in turn, in processes of their own, and
the last line is the ratio of the first two; the sum of the weights afterwards says whether they agree.
"""

import os
import subprocess
import sys
import time

from told import told

ROUNDS = 3


def measure() -> None:
    import torch

    import hunch
    from hunch import methods
    from hunch.rl.rollout import Rollout
    from hunch.rl.world import advance, world_of

    torch.set_num_threads(1)
    envs = [hunch.make("hunch/BabyAI-GoToRedBall-v0", history=0) for _ in range(32)]
    agent = methods.find("glam").agent_class(normalise="token", temperature=0.5)
    rollout = Rollout(envs, 0)
    agent.begin(world_of(rollout, envs[0], 100_000, ()), 0)
    start, acting, told = time.process_time(), 0.0, {}
    while not told:
        before = time.process_time()
        advance(rollout, agent)
        acting += time.process_time() - before
        told = agent.learn()
    spent = time.process_time() - start
    weights = sum(float(own.double().abs().sum()) for own in agent.policy.lm.parameters())
    parts = f"{acting:.1f} s acting, {spent - acting:.1f} s learning"
    print(f"{rollout.steps / spent:.1f} steps per CPU second ({parts})")
    print(f"{spent:.3f} {weights:.9f}")


def main() -> None:
    if sys.argv[1:] in ([], ["one"]):
        measure()
        return
    spent: dict[str, float] = {}
    for _ in range(ROUNDS):
        for source in sys.argv[1:]:
            paths = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
            told = subprocess.run(
                [sys.executable, __file__, "one"],
                env={**os.environ, "PYTHONPATH": paths},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            said, last = told.strip().splitlines()
            seconds, weights = last.split()
            spent[source] = min(float(seconds), spent.get(source, float("inf")))
            print(f"{source}: {said}, weights {weights}", flush=True)
    first, second, *_ = (*spent.values(), *spent.values())
    print(f"ratio {second / first:.2f}")


if __name__ == "__main__":
    told(__doc__)
    main()
