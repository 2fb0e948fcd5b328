"""The second demo, ``make demo-lm``: a small model writes policies for MountainCar, beside random changes.

    python -m hunch_studies.demo_lm --lm qwen-coder-1.5b --out runs/demo-lm

DQN needs some 100,000 steps there: the car must first drive away from the goal, and no reward says so.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import hunch
from hunch.core import HunchError, UsageError
from hunch.lm import shelf
from hunch.report.curves import draw
from hunch.report.gather import collect
from hunch.rl.rollout import Finished
from hunch.runs.training import Training
from hunch_studies.programs_policies import MUTATED

BED = "hunch/PolicyCode-v0"
ARRIVED = -200.0
"""Return of a car that never arrives: -1 in each of the 200 steps."""


class Told(hunch.Callback):
    """Prints the return of each program as soon as it is known, and keeps them."""

    def __init__(self, arm: str) -> None:
        self.arm = arm
        self.returns: list[float] = []

    def on_episode(self, run: Training, episode: Finished) -> None:
        """Print the return of a program."""
        self.returns.append(episode.episode_return)
        failed = math.isnan(episode.episode_return)
        what = "failed" if failed else f"return {episode.episode_return:.1f}"
        print(f"{self.arm}, program {len(self.returns)}: {what}; best {self.best:.1f}", flush=True)

    @property
    def best(self) -> float:
        """The best return so far; that of a car that never arrives if all programs failed."""
        return max((value for value in self.returns if not math.isnan(value)), default=ARRIVED)


def main(arguments: list[str] | None = None) -> None:
    """Run both arms, and print what was seen and what to do next."""
    parser = argparse.ArgumentParser(description="A model writes policies for MountainCar.")
    parser.add_argument("--lm", default="qwen-coder-1.5b", help="spec of the model that writes")
    parser.add_argument("--programs", type=int, default=24, help="programs of each arm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=500, help="most tokens of a program")
    parser.add_argument("--out", type=Path, default=Path("runs/demo-lm"), help="folder of both runs")
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except HunchError as error:
        print(f"demo-lm: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)


def _run(options: argparse.Namespace) -> None:
    shelved = shelf.SHELF.get(options.lm)
    if shelved:
        print(f"{options.lm} takes {shelved.size / shelf.MEGABYTE:,.0f} MB; it is fetched once.", flush=True)
        shelf.get(options.lm)
    print(
        f"{options.lm} writes {options.programs} policies for MountainCar, and random changes\n"
        "of a program as many. Ten episodes judge each; -200 is a car that never arrives.",
        flush=True,
    )
    asked: dict[str, Any] = {"request": "plain", "temperature": 0.9, "max_tokens": options.tokens}
    best = {
        "model": _best("model", "code-policy", options, lm=options.lm, **asked),
        "random": _best("random", MUTATED.name, options),
    }
    for sentence in seen(best["model"], best["random"]):
        print(sentence)
    print(f"Picture: {_picture(options.out)}")
    print(f"Its program: {options.out / 'model' / 'best.py'}")
    print(f"Next: hunch report {options.out} writes a page with every program and what came of it.")


def _picture(out: Path) -> Path:
    """Draw the best program so far of both arms over the number of programs."""
    (comparison,) = collect([out])[0]
    arms = {}
    for arm, runs in comparison.arms.items():
        label = "written by the model" if arm.config.lm else "random changes of a program"
        arms[replace(arm, label=label)] = [run.points for run in runs]
    return draw({"Policies for MountainCar": arms}, out / "curves.png")


def _best(arm: str, method: str, options: argparse.Namespace, **settings: Any) -> float:
    """Run an arm, and return the best return of its programs, those of an earlier call included."""
    told = Told(arm)
    result = hunch.train(
        method,
        BED,
        options.programs,
        seed=options.seed,
        out=options.out / arm,
        streams=hunch.Streams(envs=4, options={"base": "MountainCar-v0"}),
        watch=hunch.Watch(callbacks=[told], progress=False),
        search="single",
        retries=0,
        **settings,
    )
    returns = [episode.episode_return for episode in result.episodes]
    return max((value for value in returns if not math.isnan(value)), default=ARRIVED)


def seen(model: float, random: float) -> list[str]:
    """Return what one pair of runs has shown, in sentences; it is no verdict."""
    if model > random:
        first = f"Seen: the model's best policy returns {model:.1f}: {_car(model)}."
        second = f"That of random changes returns {random:.1f}: {_car(random)}."
    else:
        first = f"Seen: the model's best policy returns {model:.1f}: {_car(model)}."
        second = f"That is no more than random changes of a program return: {random:.1f}."
    return [first, second, "One seed is a picture and no verdict; five seeds are in docs/studies/writers.md."]


def _car(value: float) -> str:
    """Return what a policy's return means: it is minus the steps to the goal."""
    return "its car never arrives" if value <= ARRIVED else f"its car arrives after {-value:.0f} steps"


if __name__ == "__main__":
    main()
