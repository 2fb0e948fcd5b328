"""ICPI and its baselines on their six domains: regret by the error rate of a scripted model.

The regret of an episode is ``info["optimal"]`` of its start less its return, discounted by the domain's
``log_gamma``; it is found by playing the episode again from its seed and actions. A run's figure is the mean
over the episodes that ended in the last quarter of its steps.

    python -m hunch.studies.icpi runs/icpi --seeds 4
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hunch import methods
from hunch.core import Episode
from hunch.envs import make
from hunch.rl.statistics import Estimate, over_seeds
from hunch.runs.execute import RunConfig, execute
from hunch.runs.result import last_quarter
from hunch.runs.rollout import TextEnvironment

DOMAINS = ("Chain", "DistractorChain", "Maze", "MiniCatch", "MiniInvaders", "PointMass")
METHODS = ("icpi", "icpi-no-argmax", "matching", "tabular-q")
ERRORS = (0.0, 0.1, 0.3)


@dataclass(frozen=True)
class Row:
    """The regret of one method in one domain.

    Attributes:
        error: Share of wrong answers; ``None`` where no model is asked.
        optimum: The mean optimum of the episodes that the regret is of.
        regret: Over seeds, with its interval.
    """

    domain: str
    method: str
    error: float | None
    optimum: float
    regret: Estimate

    def __str__(self) -> str:
        error = "-" if self.error is None else self.error
        return f"| {self.domain} | {self.method} | {error} | {self.optimum:.2f} | {self.regret} |"


def regret(env: TextEnvironment, episode: Episode) -> tuple[float, float]:
    """Play an episode again; return its regret and the optimum of its start."""
    _, info = env.reset(seed=episode.seed)
    optimum = float(info["optimal"])
    gamma: float = env.unwrapped.texts.log_gamma  # type: ignore[attr-defined]
    rewards = [float(env.step(action)[1]) for action in episode.actions]
    return optimum - sum(gamma**t * reward for t, reward in enumerate(rewards)), optimum


def final_regret(config: RunConfig, folder: Path) -> tuple[float, float]:
    """Do a run; return the mean regret and optimum of the episodes of its last quarter."""
    env = make(config.env, **config.env_options)
    result = execute(config, folder)
    pairs = [regret(env, episode) for episode in last_quarter(result.episodes, config.steps)]
    regrets, optima = zip(*pairs, strict=True)
    return sum(regrets) / len(pairs), sum(optima) / len(pairs)


def arms(errors: Sequence[float], model: str) -> Iterator[tuple[str, float | None, str]]:
    """Each method with each error rate, and its model; once where it asks none."""
    for name in METHODS:
        if methods.find(name).verbs:
            yield from ((name, error, f"{model}?error={error}") for error in errors)
        else:
            yield name, None, "uniform"


def run(
    out: str | Path,
    smoke: bool = False,
    seeds: int = 4,
    *,
    steps: int = 200,
    errors: Sequence[float] = ERRORS,
    model: str = "scripted:icpi",
    report: Callable[[Row], None] = print,
) -> list[Row]:
    """Do all runs, or what is left of them, and write ``regret.json``.

    Args:
        out: The folder of the runs.
        smoke: Only see that it works: two domains, one seed, 40 steps.
        seeds: Of each run.
        steps: Environment steps a run.
        errors: Shares of wrong answers.
        model: A scripted model for the prompts of ICPI.
        report: Called with each row.
    """
    domains, seeds, steps = (DOMAINS[:2], 1, 40) if smoke else (DOMAINS, seeds, steps)
    rows = []
    for domain in domains:
        for name, error, spec in arms(errors, model):
            figures = [
                final_regret(
                    RunConfig(
                        method=name,
                        env=f"hunch/{domain}-v0",
                        lm=spec,
                        steps=steps,
                        seed=seed,
                        options=methods.find(name).config_class(),
                    ),
                    Path(out) / domain / f"{name}-{error}" / f"seed-{seed}",
                )
                for seed in range(seeds)
            ]
            regrets, optima = zip(*figures, strict=True)
            rows.append(Row(domain, name, error, sum(optima) / seeds, over_seeds(regrets)))
            report(rows[-1])
    _write(Path(out) / "regret.json", rows)
    return rows


def _write(path: Path, rows: Sequence[Row]) -> None:
    records = [
        {
            "domain": row.domain,
            "method": row.method,
            "error": row.error,
            "optimum": row.optimum,
            "regret": row.regret.value,
            "low": row.regret.low,
            "high": row.regret.high,
        }
        for row in rows
    ]
    path.write_text(json.dumps(records, indent=2) + "\n")


def main() -> None:
    """Read the command line and do the study."""
    parser = argparse.ArgumentParser(prog="python -m hunch.studies.icpi", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--smoke", action="store_true", help="only see that it works")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--errors", type=float, nargs="+", default=list(ERRORS))
    parser.add_argument("--model", default="scripted:icpi")
    chosen = parser.parse_args()
    print("| domain | method | error | optimum | regret |\n|---|---|---|---|---|")
    run(
        chosen.out,
        chosen.smoke,
        chosen.seeds,
        steps=chosen.steps,
        errors=chosen.errors,
        model=chosen.model,
        report=lambda row: print(row, flush=True),
    )


if __name__ == "__main__":
    main()
