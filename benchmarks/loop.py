"""Environment steps per second of the training loop, with learning, and of evaluations; where the time goes.

On the demo's environment, on one core, with every text already in the cache. The share of each part is
measured by timing the agent's verbs and the environments. Times are the processor's, so that other work on
the machine does not count.

    python benchmarks/loop.py [steps]
    python benchmarks/loop.py [steps] --against FOLDER

The second form compares this checkout with another one, such as an earlier commit that ``git archive``
wrote to a folder: both sides run in turn, each in a process of its own, and the best of three counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import hunch
from hunch.rl.rollout import Rollout
from hunch.roles import SimilarityPrior, TextTable

ROUNDS = 3


def timed(method: Callable[..., Any], spent: dict[str, float], name: str) -> Callable[..., Any]:
    """Add the time of every call to ``spent[name]``."""

    def call(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return method(*arguments, **options)
        finally:
            spent[name] += time.process_time() - start

    return call


def measure(agent: Any, steps: int) -> tuple[float, dict[str, float]]:
    """Steps per second of one run, and seconds spent in each part."""
    spent: dict[str, float] = defaultdict(float)
    for verb in ("act", "observe", "learn"):
        setattr(agent, verb, timed(getattr(agent, verb), spent, verb))
    Rollout.step, plain = timed(Rollout.step, spent, "environment"), Rollout.step  # type: ignore[method-assign]
    try:
        env = hunch.make("hunch/Household-Pick-v0", games=4)
        start = time.process_time()
        hunch.train(agent, env, steps)
        seconds = time.process_time() - start
    finally:
        Rollout.step = plain  # type: ignore[method-assign]
    spent["loop"] = seconds - sum(spent.values())
    return steps / seconds, spent


def evaluated(agent: Any, streams: int, episodes: int = 48) -> float:
    """Steps per second of an evaluation in so many streams."""
    envs = [hunch.make("hunch/Household-Pick-v0", games=4) for _ in range(streams)]
    start = time.process_time()
    played = hunch.evaluate(agent, envs, episodes)
    return sum(episode.length for episode in played) / (time.process_time() - start)


def figures(steps: int) -> dict[str, dict[str, float]]:
    """Print where the time goes; return the steps per second of each agent, by what it does."""
    torch.set_num_threads(1)
    table = TextTable(hunch.lm.load("minilm"))
    agents: dict[str, Callable[[], Any]] = {
        "dqn-prior": lambda: hunch.methods.DQNPrior(SimilarityPrior(table), table),
        "dqn": lambda: hunch.methods.DQN(table),
    }
    found = {}
    for name, make in agents.items():
        measure(make(), steps)  # fills the cache
        agent = make()
        rate, spent = measure(agent, steps)
        total = sum(spent.values())
        shares = ", ".join(f"{part} {seconds / total:.0%}" for part, seconds in spent.items())
        evaluated(agent, 1)  # fills the cache
        alone, beside = (max(evaluated(agent, streams) for _ in range(3)) for streams in (1, 8))
        print(f"{name:10} {rate:6.0f} environment steps/s with learning, one core: {shares}")
        print(f"{'':10} {alone:6.0f} in an evaluation, {beside:.0f} in eight streams")
        found[name] = {"with learning": rate, "in an evaluation": alone, "in eight streams": beside}
    return found


def compare(steps: int, other: Path) -> None:
    """Print the steps per second of both checkouts, and this one's relative to the other's."""
    sides = [other, Path(__file__).parent.parent]
    best: list[dict[tuple[str, str], float]] = [{}, {}]
    with TemporaryDirectory() as empty:
        # The studies that are installed belong to one side only: an empty entry hides them from both.
        (Path(empty) / "hunch_rl_studies-0.dist-info").mkdir()
        (Path(empty) / "hunch_rl_studies-0.dist-info" / "METADATA").write_text(
            "Name: hunch-rl-studies\n", encoding="utf-8"
        )
        for side, rates in ROUNDS * list(zip(sides, best, strict=True)):
            at = {**os.environ, "PYTHONPATH": os.pathsep.join((empty, str(side / "src")))}
            command = [sys.executable, __file__, str(steps)]
            done = subprocess.run(command, env=at, stdout=subprocess.PIPE, text=True, check=True)
            for agent, own in json.loads(done.stdout.splitlines()[-1]).items():
                for what, rate in own.items():
                    rates[agent, what] = max(rate, rates.get((agent, what), 0.0))
    for (agent, what), rate in best[1].items():
        before = best[0][agent, what]
        print(f"{agent:10} {what:16} {before:6.0f} -> {rate:6.0f} steps/s, {rate / before:.2f} times as fast")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int, nargs="?", default=4000)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    if given.against:
        compare(given.steps, given.against)
    else:
        print(json.dumps(figures(given.steps)))
