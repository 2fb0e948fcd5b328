"""The first demo, ``make demo``: Q-learning alone, among a real model's proposals, and among those of words.

python -m hunch_studies.demo --out runs/demo              # pool 0: a picture within minutes
python -m hunch_studies.demo --pools 10 --out runs/pools  # docs/assets/studies/demo-pools.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hunch import methods
from hunch.cli.arms import JobBars
from hunch.core import HunchError, UsageError
from hunch.report.curves import draw_curves
from hunch.report.table import rows, write
from hunch.rl.rollout import Finished
from hunch.rl.statistics import over_pairs
from hunch.runs.compare import Arm, Outcome, arms, by_arm, compare, jobs, refuse_others, refuse_run
from hunch.runs.config import RunConfig

STEPS = 6_000
"""Environment steps of each agent."""
GAMES = 8
"""Household games of a pool; pool 0 has other games than pool 1."""
MEANING = {
    "dqn": "Q-learning among all actions of a step",
    "dqn-prior": "the same among five that MiniLM proposes, a small real model",
    "dqn-prior, words": "a control: a bag of words proposes in MiniLM's place",
}
"""What each agent is, by the label that it has in the table, the picture and the page."""
MEASURED = (
    "One pool is a picture and no verdict. DQN-Prior was ahead of DQN in 10 of 10",
    "(docs/assets/studies/demo-pools.json), and with 9,000 steps in 5 of 5.",
)


def main(arguments: list[str] | None = None) -> None:
    """Run the agents, and print what was seen and what to do next."""
    parser = argparse.ArgumentParser(description="An agent learns among a model's proposals.")
    parser.add_argument("--pools", type=int, default=1, help="pools of games, with one seed each")
    parser.add_argument("--steps", type=int, default=STEPS, help="environment steps of each agent")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder of the runs")
    options = parser.parse_args(arguments)
    try:
        _run(options.pools, options.steps, options.out)
    except HunchError as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        print(f"demo: stopped; the same command goes on from {options.out}.", file=sys.stderr)
        sys.exit(130)


def listed(steps: int) -> list[Arm]:
    """Return the three agents; the word ``seed`` stands for the number of the pool."""
    place = {"games": GAMES, "pool_seed": "seed"}
    configs = [
        RunConfig(
            method=method,
            lm=lm,
            env="hunch/Household-Pick-v0",
            env_options=place,
            steps=steps,
            options=methods.find(method).config_class(),
        )
        for method, lm in (("dqn", ""), ("dqn-prior", "minilm"), ("dqn-prior", "words"))
    ]
    return arms(configs, control=False)


def _run(pools: int, steps: int, out: Path) -> None:
    if pools < 1 or steps < 1:
        raise UsageError("The demo needs at least one pool and one step.")
    todo = jobs(listed(steps), pools, out)
    refuse_run(out)
    refuse_others(todo)
    print(
        "Three agents learn to find things in a household, and to put them where they\n"
        f"belong: {GAMES} games in a pool, some twenty actions in each step, and a reward at\n"
        f"the end only. Each agent plays {steps:,} steps.\n"
    )
    for label, meaning in MEANING.items():
        print(f"  {label:<17} {meaning}")
    print(flush=True)
    with JobBars(todo) as bars:
        outcomes = compare(todo, watch=bars.follow)
    failed = [outcome for outcome in outcomes if outcome.result is None]
    if failed:
        raise HunchError(
            f"{failed[0].job.arm.label} failed: {failed[0].reason} The same command tries again."
        )
    write(rows(outcomes), out)
    pool = "pool 0" if pools == 1 else f"pools 0 to {pools - 1}"
    picture = draw_curves(
        [outcome.job for outcome in outcomes], out / "curves.png", f"Household games, {pool}, {steps:,} steps"
    )
    for line in seen(outcomes):
        print(line)
    print(f"Picture: {picture}")
    print(f"Next: '. .venv/bin/activate', then 'hunch report {out}': a page with every")
    print("episode. Then your own game: README.md, 'Your environment, your model'.")


def seen(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what the runs have shown: success at the beginning and at the end, and what that says."""
    quarters: dict[str, dict[int, tuple[float, float]]] = {}
    for arm, results in by_arm(outcomes).items():
        quarters[arm.label] = {
            pool: (
                _success(result.episodes, 0, 0.25 * result.requested),
                _success(result.episodes, 0.75 * result.requested, result.requested),
            )
            for pool, result in results.items()
        }
    width = max(map(len, quarters))
    lines = [f"{'success in the':<{width}}  first quarter  last quarter"]
    means = {label: _mean(by_pool) for label, by_pool in quarters.items()}
    lines += [f"{label:<{width}}  {a:>13.2f}  {b:>12.2f}" for label, (a, b) in means.items()]
    return ["", *lines, "", *sentences(means, quarters)]


def sentences(
    means: Mapping[str, tuple[float, float]], quarters: Mapping[str, Mapping[int, tuple[float, float]]]
) -> list[str]:
    """Return what success at the beginning and at the end, by arm and by pool, says; lines of a terminal."""
    dqn, prior, words = means["dqn"], means["dqn-prior"], means["dqn-prior, words"]
    if prior[1] > dqn[1]:
        lines = [
            f"Seen: among MiniLM's proposals the agent went from {prior[0]:.2f} of its games to",
            f"{prior[1]:.2f}. Without proposals it ended at {dqn[1]:.2f}.",
        ]
    else:
        lines = [
            f"Seen: among MiniLM's proposals the agent ended at {prior[1]:.2f} of its games,",
            f"without any at {dqn[1]:.2f}: they did not help here.",
        ]
    lines += [
        f"A bag of words in MiniLM's place ended at {words[1]:.2f}. Over 40 pools the two are level:",
        "what helps in these games is proposals, more than what a model knows beyond",
        "words (docs/studies/priors_knowledge.md).",
    ]
    pools = list(quarters["dqn"])
    if len(pools) == 1:
        return [*lines, *MEASURED]
    lead = [quarters["dqn-prior"][pool][1] - quarters["dqn"][pool][1] for pool in pools]
    ahead = sum(each > 0 for each in lead)
    return [
        *lines,
        f"DQN-Prior over DQN: by {over_pairs(lead).short()}, ahead in {ahead} of {len(pools)} pools.",
    ]


def _success(episodes: Sequence[Finished], after: float, until: float) -> float:
    """Return the share of successes among the episodes that ended after one step and until another."""
    ended = [episode.success for episode in episodes if after < episode.step <= until]
    return sum(ended) / len(ended) if ended else 0.0


def _mean(by_pool: Mapping[int, tuple[float, float]]) -> tuple[float, float]:
    return (
        sum(first for first, _ in by_pool.values()) / len(by_pool),
        sum(last for _, last in by_pool.values()) / len(by_pool),
    )


if __name__ == "__main__":
    main()
