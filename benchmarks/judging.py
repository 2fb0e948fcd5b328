"""A model as the judge of outcomes: is its verdict right, and does its probability of Yes order the outcomes?

    python benchmarks/judging.py "qwen-coder-1.5b?threads=1"    # asks; repeat the command to go on
    python benchmarks/judging.py                                # the table, from the recorded answers

Outcomes of the two games of Kwon et al., each with the verdict that its rule gives. The judge is that of
the method ``kwon``, asked in the way ``label``: the probability of Yes against No as the next word. A written
answer at temperature 0 would be the more probable of the two. The control is the blank prompt: the same
request without the objective. What a judge knows of the objective is what it is better with it than without.

Each answer is one line of the file (``--file``), written at once.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hunch
from hunch import lm
from hunch.core import FloatArray, World
from hunch.rl.rollout import episode_seed
from hunch.roles import Judge, JudgeConfig

FILE = Path(__file__).parents[1] / "docs" / "assets" / "benchmarks" / "judging.jsonl.gz"
GAMES = ("MatrixGame", "Ultimatum")
EPISODES = 200
"""Episodes that are drawn, to find enough different outcomes."""
RESAMPLES = 2000


def outcomes(game: str, n: int) -> list[tuple[str, list[str], bool]]:
    """Return n different outcomes of a game: the objective, the account of the episode, the right verdict."""
    env: Any = hunch.make(f"hunch/{game}-v0")
    found: dict[tuple[str, tuple[str, ...]], bool] = {}
    for number in range(EPISODES):
        seed = episode_seed(0, 0, number)
        rng = np.random.default_rng([seed, 1])  # not that of the deal
        observation, info = env.reset(seed=seed)
        action = str(rng.choice(info["actions"]))
        _, _, _, _, after = env.step(action)
        account = (observation, f"> {action}", after["event"])
        found.setdefault((info["task"], account), after["success"])
    drawn = list(found.items())[:n]
    # Equal beginnings stand together, so that the server reads them once.
    drawn.sort(key=lambda item: (item[0][1][0], item[0][0]))
    return [(task, list(account), success) for (task, account), success in drawn]


def ask(spec: str, n: int, file: Path) -> None:
    """Ask a model about each outcome, with the objective and without, and append the answers."""
    model = lm.load(spec, cache=None)
    name = spec.partition("?")[0].rpartition("/")[2]
    known = {(line["model"], line["game"], line["blank"], line["account"]) for line in read(file)}
    for game in GAMES:
        for blank in (False, True):
            judge = Judge(model, JudgeConfig(way="label", objective="" if blank else None, patience=None))
            judge.begin(World(), 0)
            for task, account, success in outcomes(game, n):
                told = "\n".join((task, *account))
                if (name, game, blank, told) in known:
                    continue
                (verdict,) = judge.judged([judge.question(task, account)])
                line = {"model": name, "revision": model.revision, "game": game, "blank": blank}
                line |= {"account": told, "right": bool(success), "yes": verdict}
                append(file, line)


def read(file: Path) -> list[dict[str, Any]]:
    """Return the recorded lines."""
    if not file.exists():
        return []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def append(file: Path, line: dict[str, Any]) -> None:
    """Add a line, as a member of its own."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "at", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


# ---- the table --------------------------------------------------------------------------------------------


def table(lines: Sequence[dict[str, Any]]) -> None:
    """Print, for each model and game, how right its verdicts are and how it orders the outcomes."""
    print(
        "| model | game | objective | outcomes | says yes | verdict right | P(yes) | area under the curve |"
    )
    print(f"|{'---|' * 8}")
    kinds = dict.fromkeys((line["model"], line["game"], line["blank"]) for line in lines)
    for model, game, blank in kinds:
        rows = [r for r in lines if (r["model"], r["game"], r["blank"]) == (model, game, blank)]
        yes = np.array([0.5 if row["yes"] is None else row["yes"] for row in rows])
        right = np.array([row["right"] for row in rows])
        verdict = (yes >= 0.5) == right
        cells = [model, game, "blank" if blank else "stated", str(len(rows)), f"{np.mean(yes >= 0.5):.2f}"]
        cells += [f"{verdict.mean():.2f}", f"{yes.min():.2f} to {yes.max():.2f}", with_interval(yes, right)]
        print(f"| {' | '.join(cells)} |")


def area(yes: FloatArray, right: Any) -> float:
    """Return the probability that a right outcome has a larger P(yes) than a wrong one; 0.5 is chance."""
    differences = yes[right][:, None] - yes[~right][None, :]
    return float(np.mean((differences > 0) + 0.5 * (differences == 0)))


def with_interval(yes: FloatArray, right: Any) -> str:
    """Return the area with its 95 % interval, a bootstrap over right and over wrong outcomes."""
    rng = np.random.default_rng(0)
    yes_right, yes_wrong = yes[right], yes[~right]
    areas = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([rng.choice(yes_right, len(yes_right)), rng.choice(yes_wrong, len(yes_wrong))])
        areas.append(area(drawn, np.arange(len(drawn)) < len(yes_right)))
    low, high = np.percentile(areas, [2.5, 97.5])
    return f"{area(yes, right):.2f} ({low:.2f}, {high:.2f})"


def main() -> None:
    """Ask, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("specs", nargs="*")
    parser.add_argument("--outcomes", type=int, default=32, help="outcomes of each game")
    parser.add_argument("--file", type=Path, default=FILE)
    options = parser.parse_args()
    for spec in options.specs:
        ask(spec, options.outcomes, options.file)
    table(read(options.file))


if __name__ == "__main__":
    main()
