"""Study of a model that is trained as an agent, beside the same model frozen as a prior.

    hunch study agents

Every arm acts with the shipped households model, and in the same pool of games but for the last part. Those
that write take any text, and one that is not admissible costs a step; the others choose from the list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.methods.policy.glam import GLAMConfig
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.tune.grpo import GRPOConfig
from hunch.rl.statistics import contrast, over_seeds
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.compare import Arm, jobs
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.stored import finished
from hunch_contrib.tune.gigpo import GiGPOConfig
from hunch_contrib.tune.rloo import RLOOConfig
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Seeded, Study

ENV: Final = "hunch/Household-Pick-v0"
MODEL: Final = "pocket?corpus=households"
TRAINED: Final = MODEL + "&context=960"
"""What a long episode's prompt has beyond this is left out, as the model reads 1,024 tokens."""
WRITER: Final = TRAINED + '&end="\\n"'
STEPS: Final = 20_000
CHOSEN: Final = 2_000
"""Steps of the arms that choose from the list, which learn sooner."""
LIMIT: Final = 20
"""Steps of an episode: the untrained model solves some games within them, and not all."""
EPISODES: Final = 100
"""Episodes of each evaluation."""
NEVER: Final = 10**9
WRITES: Final[dict[str, Any]] = {"max_tokens": 12, "episodes": 32, "kl": 0.0, "reference": "none"}
CHOOSES: Final[dict[str, Any]] = {"episodes": 32, "kl": 0.0, "reference": "none", "listed": False}
ALONE: Final = "the model alone"
POOLED: Final = tuple(
    f"{label}, from the list" for label in ("GRPO", "GRPO, shuffled rewards", ALONE, "filtered cloning")
)
"""Arms that are run in other pools of games, too; the other parts have pool 0 only."""


def arms(scale: Scale) -> tuple[Arm, ...]:
    """The trained model by several updates, its controls, and the frozen model as a prior."""

    def arm(label: str, method: str, options: Any, lm: str = WRITER, **env: Any) -> Arm:
        steps = scale.steps(STEPS if env else CHOSEN)
        config = RunConfig(
            method=method,
            env=ENV,
            lm=lm,
            env_options={"max_steps": LIMIT, **env},
            steps=steps,
            envs=32,
            eval_every=steps if env else steps // 2,
            eval_episodes=scale.episodes(EPISODES),
            options=options,
        )
        return Arm(label, config)

    def writes(label: str, method: str, options: Any) -> Arm:
        return arm(label, method, options, written=True)

    def chooses(label: str, config: Any = GRPOConfig, method: str = "grpo", **options: Any) -> Arm:
        return arm(f"{label}, from the list", method, config(**{**CHOOSES, **options}), TRAINED)

    prior = PriorConfig(way="likelihood-unlisted", normalise="sum")
    return (
        writes("GRPO", "grpo", GRPOConfig(**WRITES)),
        writes("GRPO, shuffled rewards", "grpo", GRPOConfig(**WRITES, shuffle=True)),
        writes(ALONE, "grpo", GRPOConfig(**{**WRITES, "episodes": NEVER})),
        writes("GiGPO", "gigpo", GiGPOConfig(**WRITES)),
        writes("RLOO", "rloo", RLOOConfig(**WRITES, group=8)),
        # rewards of 0 and 1 without a baseline: the likelihood of the episodes that succeeded
        writes("filtered cloning", "rloo", RLOOConfig(**WRITES, group=8, advantage="returns")),
        chooses("GRPO"),
        chooses("GRPO, shuffled rewards", shuffle=True),
        chooses(ALONE, episodes=NEVER),
        chooses("GiGPO", GiGPOConfig, "gigpo"),
        chooses("RLOO", RLOOConfig, "rloo", group=8),
        chooses("filtered cloning", RLOOConfig, "rloo", group=8, advantage="returns"),
        arm("GLAM", "glam", GLAMConfig(listed=False, normalise="token"), TRAINED),
        arm("DQN-Prior, frozen model", "dqn-prior", DQNPriorConfig(prior=prior), MODEL),
    )


def with_pools(listed: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return arms of which each seed has a pool of games of its own: their intervals are over pools, too."""
    return tuple(Seeded(arm.label, arm.config, partial(_own_pool, arm.config.env_options)) for arm in listed)


def _own_pool(env_options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return {"env_options": {**env_options, "pool_seed": seed + 1}}


def judged(listed: Sequence[Arm], seeds: int, folder: Path, *, episodes: int) -> str:
    """Success in the end and in unseen games, verdicts over the model alone, and refused texts, in Markdown.

    The figures of each seed are written to ``rows.json`` in the folder.
    """
    runs_of_arm = {
        arm: [job.folder for job in jobs([arm], seeds, folder) if finished(job.folder)] for arm in listed
    }
    rows_of_arm = {arm: [_row(arm, run, episodes) for run in runs] for arm, runs in runs_of_arm.items()}
    every_row = list(chain(*rows_of_arm.values()))
    write_atomically(folder / "rows.json", (json.dumps(every_row, indent=0) + "\n").encode())
    # Of each measure and arm the figure of each seed: a run that failed leaves its seed out.
    columns = {
        measure: {arm: {row["seed"]: row[measure] for row in own} for arm, own in rows_of_arm.items()}
        for measure in _MEASURED
    }
    rows = []
    for arm in listed:
        cells = [cell for measure in _MEASURED for cell in _over(arm, columns[measure])]
        rows.append((arm.label, *cells, _refused(runs_of_arm[arm])))
    head = "arm | success after training | over the model alone | unseen games | over the model alone"
    return table_of(f"{head} | inadmissible texts", rows)


_MEASURED: Final = ("success", "unseen")


def _over(arm: Arm, by_seed: Mapping[Arm, Mapping[int, float]]) -> tuple[Any, str]:
    """Return an arm's success, and the verdict over the model alone."""
    success = over_seeds(list(by_seed[arm].values()))
    [alone] = [own for other, own in by_seed.items() if other.label.startswith(ALONE)] or [{}]
    if arm.label.startswith(ALONE) or not alone:
        return success, ""
    return success, str(contrast(by_seed[arm], alone, best=1.0))


def _refused(runs: Sequence[Path]) -> str:
    """Return the share of refused texts in the first and in the last update, means over runs.

    An update without refused texts has no such line of metrics.
    """
    shares = [[line.get("refused", 0.0) for line in _metrics(run) if "tokens" in line] for run in runs]
    shares = [own for own in shares if own]  # not of a model that is never updated
    if not any(map(any, shares)):
        return ""
    return f"{np.mean([own[0] for own in shares]):.2f} to {np.mean([own[-1] for own in shares]):.2f}"


def _row(arm: Arm, run: Path, episodes: int) -> dict[str, Any]:
    """Return what a finished run came to: its curve, and its success at the end in seen and unseen games."""
    curve = dict[int, list[bool]]()
    result = finished(run)
    for own in result.evaluations if result else []:
        curve.setdefault(own.step, []).append(own.success)
    rates = {step: sum(own) / len(own) for step, own in curve.items()}
    trial = Trial(run=run, env_options={"split": "unseen"}, episodes=episodes, seed=17)
    unseen = evaluate_run(trial, run.parent / "evaluations" / run.name).success.value
    tokens = [line["usage"]["prompt_tokens"] for line in _metrics(run) if "usage" in line]
    return {
        **{"arm": arm.label, "seed": int(run.name.rpartition("-")[2]), "success": rates[max(rates)]},
        **{"unseen": unseen, "episodes": episodes, "curve": rates, "prompt_tokens": max(tokens, default=0)},
    }


def _metrics(run: Path) -> list[dict[str, Any]]:
    return read_lines(run / "metrics.jsonl")


def _parts(scale: Scale, data: Path) -> list[Part]:
    every, measure = arms(scale), partial(judged, episodes=scale.episodes(EPISODES))
    writing = tuple(arm for arm in every if "written" in arm.config.env_options)
    choosing = tuple(arm for arm in every if arm not in writing)
    return [
        Part("Writing in a household", writing, measure=measure),
        Part("Choosing in a household", choosing, measure=measure),
        Part("Other pools", with_pools([arm for arm in choosing if arm.label in POOLED]), measure=measure),
    ]


STUDIES = {
    "agents": Study(
        "agents",
        "Does training a model as an agent make it a better agent, and is that better than keeping it frozen "
        "as a prior?",
        "Trained as an agent in ALFWorld by GiGPO, Qwen2.5 succeeds in 0.12 more games than by GRPO (Feng et "
        "al., NeurIPS 2025, 1.5 and 7 billion weights).",
        "A model of 1.9 million weights, pretrained on walkthroughs of such households (L1), and games of "
        "our simulator: nothing here is an ALFWorld score. All hyper-parameters are ours.",
        _parts,
        seeds=5,
    )
}
