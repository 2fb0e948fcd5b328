"""Planner, actor, reporter: the value of training the reporter.

hunch study reporter
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from hunch import train
from hunch.core import Agent
from hunch.envs import make
from hunch.envs.secret import VERBS
from hunch.methods import find
from hunch.methods.settings import configure
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import over_seeds
from hunch.roles.planner.skills import Skill
from hunch.runs.build import load_agent, load_skills
from hunch.runs.compare import folder_name
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_json, write_atomically
from hunch.runs.models import Models
from hunch_studies.planners import SKILL, skill_run, table
from hunch_studies.study import Part, Scale, Study

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


def measured(question: str, data: Path, scale: Scale, folder: Path) -> str:
    """Return the success of every arm, and of flat learning with the steps of actor and reporter together."""
    rows = []
    for label, options in LINES.items():
        found = [_kept(question, label, options, data, scale, folder, seed) for seed in range(scale.seeds)]
        rows.append((label, over_seeds([each["success"] for each in found]), found[0]["episodes"]))
    flat = [_kept(question, "flat", None, data, scale, folder, seed) for seed in range(scale.seeds)]
    steps = scale.steps(2 * ACTOR_STEPS + STEPS)
    rows.append((f"flat Q-learning, {steps:,} steps", over_seeds([f["success"] for f in flat]), "-"))
    return table("arm | success | episodes of training, seed 0", rows)


def _kept(
    question: str,
    label: str,
    options: Mapping[str, Any] | None,
    data: Path,
    scale: Scale,
    folder: Path,
    seed: int,
) -> dict[str, Any]:
    """Return the success of a seed, from its file or measured now."""
    path = folder / f"{folder_name(label)}-{seed}.json"
    if not path.exists():
        agent, episodes = (
            (_flat(question, data, scale, seed), 0)
            if options is None
            else _planned(question, options, data, scale, seed)
        )
        played = evaluate(agent.player, [make(ID, question=question)], scale.episodes(EPISODES), 1_000 + seed)
        found = {"success": sum(e.success for e in played) / len(played), "episodes": episodes}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found).encode())
    known = read_json(path)
    assert known is not None
    return known


def _planned(
    question: str, options: Mapping[str, Any], data: Path, scale: Scale, seed: int
) -> tuple[Agent, int]:
    """Return the agent, trained if its reporter learns, and the number of training episodes."""
    method = find("planner-actor-reporter")
    config = configure(method.agent_class, None, options)
    models = Models({"lm": "scripted:examiner"})
    agent = method.build(config, models, skills=actor(data, scale, seed))
    steps = scale.steps(STEPS) if config.reporter == "trained" else 1
    result = train(agent, make(ID, question=question), steps, seed=seed)
    return agent, len(result.episodes)


def actor(data: Path, scale: Scale, seed: int) -> list[Skill]:
    """Return the skills of a seed; they are trained if necessary."""
    skills: list[Skill] = []
    for verb in VERBS:
        folder = data / f"seed-{seed}" / folder_name(verb)
        skill_run(folder, "hunch/SecretSkill-v0", {"verb": verb}, ACTOR, scale.steps(ACTOR_STEPS), seed)
        skills += load_skills(folder)
    return skills


def _flat(question: str, data: Path, scale: Scale, seed: int) -> Agent:
    folder = data / f"seed-{seed}" / f"flat-{question}"
    config = RunConfig(
        method="q-learning",
        env=ID,
        env_options={"question": question},
        steps=scale.steps(2 * ACTOR_STEPS + STEPS),
        seed=seed,
        options=ACTOR,
    )
    execute(config, folder)
    return load_agent(folder)[0]


def _parts(scale: Scale, data: Path) -> list[Part]:
    titles = {"conditional": "A condition", "search": "A search"}
    return [
        Part(title, (), beside=partial(measured, question, data, scale)) for question, title in titles.items()
    ]


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
