"""Planner, actor, reporter: the value of training the reporter.

hunch study reporter
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from hunch.envs import make
from hunch.methods.settings import configure
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.loading import load_agent
from hunch.runs.stored import finished
from hunch_contrib.planner.planner_actor_reporter import PlannerActorReporter
from hunch_studies.planners import SKILL, SKILLS, skills_part, table
from hunch_studies.study import Part, Scale, Seeded, Study, kept, runs_of
from hunch_studies.worlds.secret import VERBS

ID: Final = "hunch/SecretProperty-v0"
ACTOR: Final = replace(SKILL, gamma=0.9, learning_rate=0.1)
ACTOR_STEPS: Final = 80_000
"""Training steps of each of the two verbs."""
STEPS: Final = 15_000
"""Training steps of the reporter."""
EPISODES: Final = 100
LINES: Final[dict[str, dict[str, Any]]] = {
    "trained reporter": {},
    "untrained reporter": {"reporter": "untrained"},
    "scripted reporter, true": {"reporter": "scripted"},
    "scripted reporter, lies in 10 %": {"reporter": "scripted", "lies": 0.1},
    "scripted reporter, lies in 30 %": {"reporter": "scripted", "lies": 0.3},
    "scripted reporter, lies always": {"reporter": "scripted", "lies": 1.0},
}
"""The arms, and how each differs."""


def actors(scale: Scale) -> tuple[Arm, ...]:
    """Return the runs that train the actor, by verb."""
    return tuple(
        Arm(
            verb,
            RunConfig(
                method="q-learning",
                env="hunch/SecretSkill-v0",
                env_options={"verb": verb},
                steps=scale.steps(ACTOR_STEPS),
                options=ACTOR,
            ),
        )
        for verb in VERBS
    )


def arms(question: str, out: Path, scale: Scale) -> tuple[Arm, ...]:
    """Return every arm, and flat learning with the steps of actor and reporter together."""
    config = RunConfig(method="q-learning", env=ID, env_options={"question": question})
    steps = scale.steps(2 * ACTOR_STEPS + STEPS)
    flat = Arm(f"flat Q-learning, {steps:,} steps", replace(config, steps=steps, options=ACTOR))
    config = replace(config, method="planner-actor-reporter", lm="scripted:examiner")
    return (*(_planned(label, own, config, out, scale) for label, own in LINES.items()), flat)


def _planned(label: str, options: Mapping[str, Any], config: RunConfig, out: Path, scale: Scale) -> Seeded:
    own = configure(PlannerActorReporter, None, options)
    steps = scale.steps(STEPS) if own.reporter == "trained" else 1
    return Seeded(
        label, replace(config, steps=steps), settings_by_seed=partial(_skilled, own, actors(scale), out)
    )


def _skilled(options: Any, skills: Sequence[Arm], out: Path, seed: int) -> dict[str, Any]:
    folders = tuple(str(out / Part(SKILLS, ()).folder / arm.folder / f"seed-{seed}") for arm in skills)
    return {"options": replace(options, skills=folders)}


def measured(question: str, listed: Sequence[Arm], scale: Scale, folder: Path) -> str:
    """Return the success of every arm in new episodes."""
    runs = {arm.label: runs_of(arm, scale.seeds, folder) for arm in listed}
    keys = [(label, seed) for label in runs for seed in range(scale.seeds)]

    def played(label: str, seed: int) -> dict[str, Any]:
        agent, _ = load_agent(runs[label][seed])
        ended = evaluate(agent.player, [make(ID, question=question)], scale.episodes(EPISODES), 1_000 + seed)
        return {"success": sum(e.success for e in ended) / len(ended)}

    found = kept(folder / "success.jsonl", keys, played)
    rows = []
    for label, own in runs.items():
        result = finished(own[0])
        trained = "-" if result is None or label.startswith("flat") else len(result.episodes)
        success = over_seeds([row["success"] for row in found if row["key"][0] == label])
        rows.append((label, success, trained))
    return table("arm | success | episodes of training, seed 0", rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = [skills_part(actors(scale), scale)]
    for question, title in {"conditional": "A condition", "search": "A search"}.items():
        listed = arms(question, data.parent, scale)
        parts.append(Part(title, listed, beside=partial(measured, question, listed, scale), apart=True))
    return parts


STUDIES = {
    "reporter": Study(
        "reporter",
        "Does a reporter learn, from the reward alone, what to report to its planner?",
        "A reporter that is trained with the planner in the loop learns to report what matters, and to leave "
        "out noise; plain reinforcement learning fails on such tasks (Dasgupta et al., 2023).",
        "The planner is a script (L0), so the study says nothing about language models. The actor is "
        "Q-learning in a table, with memory of what it saw. The reporter chooses one of two sentences "
        "given the words of an event; one word is the property, and four are meaningless. Success is "
        "measured in 100 new episodes per seed.",
        _parts,
        seeds=5,
    )
}
