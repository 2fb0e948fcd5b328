"""Model steps per second of Monte Carlo tree search, in a sandboxed program and in the true simulator.

Trees grow side by side, so that a batch of their questions is one call. The aim is 5,000 steps a second in
the program with 64 trees; seconds are elapsed ones, so that other work on the machine counts.

    python benchmarks/planning.py [trees ...]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import hunch
from hunch.envs.design.dynamics import CART_POLE, CLIFF_WALKING
from hunch.envs.design.program_model import ProgramModel
from hunch.envs.design.running import box
from hunch.rl.search import MCTS
from hunch.rl.world_model import TrueCopy, WorldModel
from told import told

CODE = {"CliffWalking": (CLIFF_WALKING, 36), "CartPole": (CART_POLE, (0.0, 0.0, 0.0, 0.0))}
"""The dynamics as a program, and the state in which trees begin."""


class Counted:
    """A world model that counts what it is asked."""

    def __init__(self, model: WorldModel) -> None:
        self.model, self.steps = model, 0

    def step(self, states: Any, actions: Any, rngs: Any) -> Any:
        """Ask on."""
        self.steps += len(states)
        return self.model.step(states, actions, rngs)


def speed(model: WorldModel, start: Any, actions: tuple[str, ...], trees: int) -> float:
    """Steps of the model per second of elapsed time."""
    counted, rngs = Counted(model), [np.random.default_rng(i) for i in range(trees)]
    begun = time.perf_counter()
    MCTS(chance=False).search(counted, [start] * trees, lambda state: actions, rngs)
    return counted.steps / (time.perf_counter() - begun)


if __name__ == "__main__":
    told(__doc__)
    for trees in [int(text) for text in sys.argv[1:]] or [1, 64]:
        for name, (code, start) in CODE.items():
            env = hunch.make(f"hunch/{name}-v0")
            _, info = env.reset(seed=0)
            with box().load(code, "step") as program:
                found = [
                    speed(m, start, info["actions"], trees) for m in (ProgramModel(program), TrueCopy(env))
                ]
            told = f"{found[0]:,.0f} in the sandboxed program, {found[1]:,.0f} in the true simulator"
            print(f"{name}, {trees} trees: {told}")
