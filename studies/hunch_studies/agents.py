"""Study of a model that is trained as an agent, beside the same model frozen as a prior.

    hunch study agents

Every arm acts in the same pool of games with the shipped households model. Those that write take any text,
and one that is not admissible costs a step; the others choose from the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hunch.methods.policy.glam import GLAMConfig
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.tune.gigpo import GiGPOConfig
from hunch.methods.tune.grpo import GRPOConfig
from hunch.methods.tune.rloo import RLOOConfig
from hunch.rl.statistics import above, over_seeds
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.runs.stored import finished
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Study

ENV: Final = "hunch/Household-Pick-v0"
MODEL: Final = "pocket?corpus=households"
TRAINED: Final = MODEL + "&context=960"
"""What a long episode's prompt has beyond this is left out, as the model reads 1,024 tokens."""
WRITER: Final = TRAINED + '&end="\\n"'
STEPS: Final = 20_000
LIMIT: Final = 20
"""Steps of an episode: the untrained model solves some games within them, and not all."""
EPISODES: Final = 200
"""Episodes of each evaluation."""
NEVER: Final = 10**9
WRITES: Final[dict[str, Any]] = {"max_tokens": 12, "episodes": 32, "kl": 0.0, "reference": "none"}
CHOOSES: Final[dict[str, Any]] = {"episodes": 32, "kl": 0.0, "reference": "none", "listed": False}
ALONE: Final = "the model alone"


def arms(scale: Scale) -> tuple[Arm, ...]:
    """The trained model by several updates, its controls, and the frozen model as a prior."""
    steps = scale.steps(STEPS)

    def arm(label: str, method: str, options: Any, lm: str = WRITER, **env: Any) -> Arm:
        config = RunConfig(
            method=method,
            env=ENV,
            lm=lm,
            env_options={"max_steps": LIMIT, **env},
            steps=steps,
            envs=32,
            eval_every=steps,
            eval_episodes=scale.episodes(EPISODES),
            options=options,
        )
        return Arm(label, config)

    def writes(label: str, method: str, options: Any) -> Arm:
        return arm(label, method, options, written=True)

    def chooses(label: str, **options: Any) -> Arm:
        return arm(label, "grpo", GRPOConfig(**{**CHOOSES, **options}), TRAINED)

    prior = PriorConfig(kind="likelihood", listed=False)
    return (
        writes("GRPO", "grpo", GRPOConfig(**WRITES)),
        writes("GRPO, shuffled rewards", "grpo", GRPOConfig(**WRITES, shuffle=True)),
        writes(ALONE, "grpo", GRPOConfig(**{**WRITES, "episodes": NEVER})),
        writes("GiGPO", "gigpo", GiGPOConfig(**WRITES)),
        writes("RLOO", "rloo", RLOOConfig(**WRITES, group=8)),
        # rewards of 0 and 1 without a baseline: the likelihood of the episodes that succeeded
        writes("filtered cloning", "rloo", RLOOConfig(**WRITES, group=8, advantage="returns")),
        chooses("GRPO, from the list"),
        chooses("GRPO, from the list, shuffled rewards", shuffle=True),
        chooses(f"{ALONE}, from the list", episodes=NEVER),
        arm("GLAM", "glam", GLAMConfig(listed=False, normalise="token"), TRAINED),
        arm("DQN-Prior, frozen model", "dqn-prior", DQNPriorConfig(prior=prior), MODEL),
    )


def judged(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Success in the end, whether it is above the model alone, refused texts and seconds, in Markdown."""
    by = {arm: [job.folder for job in jobs([arm], seeds, folder) if finished(job.folder)] for arm in listed}
    late = {arm: [evaluated(run) for run in runs] for arm, runs in by.items()}
    alone = [rate for arm, own in late.items() if arm.label.startswith(ALONE) for rate in own]
    rows = []
    for arm, own in late.items():
        lines = [line for run in by[arm] for line in read_lines(run / "metrics.jsonl")]
        refused = [line["refused"] for line in lines if "refused" in line]
        shown = f"{refused[0]:.2f} to {refused[-1]:.2f}" if refused else ""
        ahead = (
            "" if arm.label.startswith(ALONE) or not alone else "yes" if above(own, alone) else "not shown"
        )
        rows.append((arm.label, over_seeds(own), ahead, shown))
    return table_of("arm | success after training | above the model alone | inadmissible texts", rows)


def evaluated(run: Path) -> float:
    """Return the share of successes in the last evaluation of a run."""
    result = finished(run)
    evaluations = result.evaluations if result else []
    last = [e.success for e in evaluations if e.step == evaluations[-1].step]
    return sum(last) / max(1, len(last))


def _parts(scale: Scale, data: Path) -> list[Part]:
    every = arms(scale)
    writing = tuple(arm for arm in every if "written" in arm.config.env_options)
    choosing = tuple(arm for arm in every if arm not in writing)
    return [
        Part("Writing in a household", writing, measure=judged),
        Part("Choosing in a household", choosing, measure=judged),
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
