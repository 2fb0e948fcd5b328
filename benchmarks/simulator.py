"""Steps per second of household play with admissible commands, on one core: ours, and the real engine's.

    python benchmarks/simulator.py

Random play of 50-step episodes over a pool of games, resets included, in processor time. The engine (extra
``alfworld``) plays the same games, as it comes and behind our environment, if it is installed.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import hunch.envs
from hunch.envs.household.generator import Recipe, generate
from hunch.envs.household.house import House
from hunch.envs.household.problem import Problem, write
from hunch.envs.household.simulator import Simulator
from hunch.envs.household.textworld import rules
from told import told

GAMES, EPISODE, SECONDS = 28, 50, 5.0


def main() -> None:
    problems = [generate(Recipe("pick", index=index)) for index in range(GAMES)]
    houses = [House(problem) for problem in problems]
    simulator = rate(simulated(lambda rng: rng.choice(houses)))
    print(f"simulator                {simulator:10,.0f} steps/s")
    # A house remembers the texts and commands of situations it has seen; a new one for each episode cannot.
    print(
        f"without its memory       {rate(simulated(lambda rng: House(rng.choice(problems)))):10,.0f} steps/s"
    )
    print(f"environment              {rate(through_gymnasium('hunch')):10,.0f} steps/s")
    if not all(importlib.util.find_spec(name) for name in ("alfworld", "textworld", "fast_downward")):
        print("real engine              not installed (extra alfworld)")
        return
    engine = rate(played_by_the_engine(problems))
    print(f"real engine              {engine:10,.1f} steps/s")
    print(f"environment on it        {rate(through_gymnasium('textworld')):10,.1f} steps/s")
    print(f"simulator / real engine  {simulator / engine:10,.0f}")


def rate(episode: Callable[[random.Random], int]) -> float:
    """Steps per second over whole episodes, for about ``SECONDS`` after one to warm up."""
    rng = random.Random(0)
    episode(rng)
    steps, start = 0, time.process_time()
    while time.process_time() - start < SECONDS:
        steps += episode(rng)
    return steps / (time.process_time() - start)


def simulated(draw: Callable[[random.Random], House]) -> Callable[[random.Random], int]:
    def episode(rng: random.Random) -> int:
        game = Simulator(draw(rng))
        for step in range(EPISODE):
            game.step(rng.choice(game.commands))
            if game.won:
                return step + 1
        return EPISODE

    return episode


def through_gymnasium(engine: str) -> Callable[[random.Random], int]:
    env = hunch.envs.make("hunch/Household-Pick-v0", games=GAMES, engine=engine, max_steps=EPISODE, history=0)

    def episode(rng: random.Random) -> int:
        _, info = env.reset(seed=rng.randrange(2**31))
        steps, done = 0, False
        while not done:
            _, _, terminated, truncated, info = env.step(rng.choice(info["actions"]))
            steps, done = steps + 1, terminated or truncated
        return steps

    return episode


def played_by_the_engine(problems: list[Problem]) -> Callable[[random.Random], int]:
    domain, grammar = rules()
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    folder = Path(tempfile.mkdtemp())
    for index, problem in enumerate(problems):
        write(problem, folder / f"{index:02}.tw-pddl", domain=domain, grammar=grammar)
    games = sorted(folder.iterdir())
    env = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)), shuffle=False)

    def episode(rng: random.Random) -> int:
        argv = sys.argv[:]  # loading overwrites it
        env.load(str(rng.choice(games)))
        sys.argv[:] = argv
        state = env.reset()
        for step in range(EPISODE):
            state, _, done = env.step(rng.choice(state["admissible_commands"]))
            if done:
                return step + 1
        return EPISODE

    return episode


if __name__ == "__main__":
    told(__doc__)
    main()
