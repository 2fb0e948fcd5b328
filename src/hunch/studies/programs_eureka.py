"""Eureka's loop against its controls, with a scripted writer that has dials for its error rates.

hunch study eureka
"""

from __future__ import annotations

from pathlib import Path

from hunch.envs.design.reward import RewardDesign
from hunch.methods.program.eureka import EurekaConfig
from hunch.rl.statistics import over_seeds
from hunch.roles.program import Feedback
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.studies.programs_funsearch import programs_of, tried, winner
from hunch.studies.study import Part, Scale, Study

CONTROLS: dict[str, Feedback] = {
    "Eureka": "own",
    "shuffled feedback": "shuffled",
    "blind": "blind",
    "best of n": "fresh",
}
"""The lines, and what their writer is shown."""
WRITER = "scripted:writer"
DIALS = ((0.4, 0.1), (0.8, 0.0), (0.1, 0.2))
"""Repair and break rates of the writer."""
AGAIN = 5
"""New seeds with which a winner is trained again."""


def arms(steps: int, lm: str) -> tuple[Arm, ...]:
    """Eureka and its controls, with one writer."""
    return tuple(
        Arm(
            label,
            RunConfig(
                method="eureka",
                env="hunch/RewardDesign-v0",
                lm=lm,
                steps=steps,
                envs=8,
                options=EurekaConfig(population=8, feedback=feedback, give_up=0),
            ),
        )
        for label, feedback in CONTROLS.items()
    )


def trained_again(folder: Path) -> str:
    """Every run's winner, trained again with new seeds, beside rewards that were written by hand."""
    env = RewardDesign()
    rows = ["| arm | fitness when it was chosen | success trained again |", "|---|---|---|"]
    for name, program in (("sparse reward", env.world.sparse), ("reward by hand", env.world.dense)):
        rows.append(f"| {name} | | {_again(env, program):.2f} |")
    for arm, runs in programs_of(folder).items():
        best = [winner(run) for run in runs]
        then = over_seeds([line["fitness"] for line in best])
        now = over_seeds([_again(env, line["program"]) for line in best])
        rows.append(f"| {arm.replace('-', ' ')} | {then} | {now} |")
    return f"Winners are trained again with {AGAIN} new seeds each.\n\n" + "\n".join(rows)


def _again(env: RewardDesign, program: str) -> float:
    """Mean success over new trainings; a failure of one counts as 0."""
    return sum(tried(env, program, seed=1_000 + i).fitness or 0.0 for i in range(AGAIN)) / AGAIN


def _parts(scale: Scale, data: Path) -> list[Part]:
    steps = max(16, round(32 * scale.share))
    dials = [(f"repairs {r:g}, breaks {b:g}", f"repair={r}&break={b}&crash=0.1") for r, b in DIALS]
    writers = [(name, f"{WRITER}?{chosen}") for name, chosen in dials]
    writers += [(lm, lm) for lm in scale.lms]
    return [Part(f"A writer that {name}", arms(steps, lm), beside=trained_again) for name, lm in writers]


STUDIES = {
    "eureka": Study(
        "eureka",
        "From which rates of repair and damage on does Eureka's loop find better rewards than its controls?",
        "Eureka beats rewards by experts on 83 % of 29 tasks, with GPT-4 (Ma et al., ICLR 2024).",
        "The writer is a script (L0) that acts on feedback as often as its dials say; one answer in "
        "ten crashes; it says nothing about language models. The task is our PointMaze, a trial one "
        "training by the cross-entropy method; four batches of eight programs, not five of sixteen.",
        _parts,
        lm_for="eureka",
        seeds=5,
    )
}
