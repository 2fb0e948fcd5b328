"""Shared parts of the studies of planners: trained skills, and paired episodes with their results.

Every row of a table plays the same episodes with the same skills; a seed determines both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hunch.core import Agent, World
from hunch.envs import make
from hunch.envs.kitchen.errands import ERRANDS, reached
from hunch.envs.kitchen.skills import VERBS, ideally
from hunch.methods import find
from hunch.methods.planner.agent import Planner
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.settings import configure
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import Estimate, over_seeds
from hunch.roles.planner import Skill
from hunch.runs.build import load_skills
from hunch.runs.compare import folder_name
from hunch.runs.execute import RunConfig, execute
from hunch.runs.models import Models
from hunch_studies.study import Scale, kept

STEPS: Final = {"reach": 30_000, "pick up": 20_000, "put down": 15_000, "open": 15_000}
"""Training steps for the skills of each verb."""
KITCHEN: Final = "hunch/Kitchen-v0"
FAMILY: Final = {errand.text: errand.family for errand in ERRANDS}


@dataclass(frozen=True)
class Line:
    """A row of a table.

    Attributes:
        label: Label of the row.
        lm: The model that plans.
        method: The method.
        options: Options of the method.
        disturbance: Disturbance of the kitchen.
    """

    label: str
    lm: str
    method: str = "saycan"
    options: Mapping[str, Any] = field(default_factory=dict)
    disturbance: float = 0.0


@dataclass(frozen=True)
class Played:
    """The result of an episode.

    Attributes:
        task: The instruction.
        success: Success according to the environment.
        right: True if its skills would have done the errand if every possible skill had worked.
        skills: Number of skills.
        steps: Number of primitive actions.
    """

    task: str
    success: bool
    right: bool
    skills: int
    steps: int

    @property
    def failure(self) -> str:
        """Kind of failure: "plan" if the plan was wrong, else "execution"."""
        return "" if self.success else "execution" if self.right else "plan"


SKILL: Final = QLearningConfig(gamma=0.95, learning_rate=0.3, epsilon=(0.2, 0.2, 1), sweeps=0)
"""Training settings of skills and of the flat agent."""


def skill_run(
    folder: Path, env: str, env_options: Mapping[str, Any], options: QLearningConfig, steps: int, seed: int
) -> Path:
    """Train skills in an environment of skills, unless they are trained already; return the run's folder."""
    config = RunConfig(
        method="q-learning",
        env=env,
        env_options=dict(env_options),
        steps=steps,
        seed=seed,
        options=options,
    )
    execute(config, folder)
    return folder


def skill_runs(folder: Path, seed: int, scale: Scale) -> list[Path]:
    """Train the skills of a seed, unless they are trained already; return the folders of their runs."""
    return [
        skill_run(
            folder / f"seed-{seed}" / folder_name(verb),
            "hunch/KitchenSkill-v0",
            {"verb": verb},
            SKILL,
            scale.steps(STEPS[verb]),
            seed,
        )
        for verb in VERBS
    ]


def skills_of(folder: Path, seed: int, scale: Scale) -> list[Skill]:
    """Return the skills of a seed."""
    return [skill for run in skill_runs(folder, seed, scale) for skill in load_skills(run)]


def flat(folder: Path, seed: int, scale: Scale) -> Agent:
    """Return an agent without skills, trained on the errands with as many steps as all skills together."""
    from hunch.runs.build import load_agent

    steps = scale.steps(sum(STEPS.values()))
    config = RunConfig(method="q-learning", env=KITCHEN, steps=steps, seed=seed, options=SKILL)
    execute(config, folder / f"seed-{seed}" / "flat")
    return load_agent(folder / f"seed-{seed}" / "flat")[0]


class Bench:
    """Plays the rows of a table with the skills of every seed, and keeps the results.

    Args:
        folder: Folder of the results.
        data: Folder of the skills' runs.
        scale: Size of the study.
        episodes: Episodes per row and seed.
    """

    def __init__(self, folder: Path, data: Path, scale: Scale, episodes: int) -> None:
        self.folder, self.data, self.scale = folder, data, scale
        self.episodes = scale.episodes(episodes)
        self.skills: dict[int, list[Skill]] = {}

    def played(self, line: Line) -> list[list[Played]]:
        """Return the episodes of a row, seed by seed."""
        keys = [(line.label, seed) for seed in range(self.scale.seeds)]
        rows = kept(self.folder / "episodes.jsonl", keys, lambda _, seed: self._played(line, seed))
        return [[Played(**episode) for episode in row["played"]] for row in rows]

    def _played(self, line: Line, seed: int) -> dict[str, Any]:
        return {"played": [vars(episode) for episode in self._play(line, seed)]}

    def _play(self, line: Line, seed: int) -> Iterator[Played]:
        if line.method == "q-learning":
            agent = flat(self.data, seed, self.scale)
        else:
            if seed not in self.skills:
                self.skills[seed] = skills_of(self.data, seed, self.scale)
            method = find(line.method)
            config = configure(method.agent_class, None, line.options)
            agent = method.build(config, Models({"lm": line.lm}), skills=self.skills[seed])
        return play(agent, line.disturbance, self.episodes, seed)


def play(agent: Agent, disturbance: float, episodes: int, seed: int) -> Iterator[Played]:
    """Play errands, and check which plans were right."""
    env: Any = make(KITCHEN, disturbance=disturbance)
    agent.begin(World(env=KITCHEN, examples=env.unwrapped.examples), seed)
    player = agent.player(seed)
    ended = evaluate(lambda _: player, [env], episodes, seed)
    plans = player.records() if isinstance(player, Planner) else [None] * episodes
    for episode, plan in zip(ended, plans, strict=True):
        _, info = env.reset(seed=episode.seed, options={"episode": episode.number})
        names = plan["plan"] if plan else []
        right = plan is not None and reached(env.unwrapped.errand.goal, ideally(info["raw"], names))
        yield Played(info["task"], episode.success, right, len(names), episode.length)


def success(runs: Sequence[Sequence[Played]], family: str = "") -> Estimate:
    """Return success over seeds, of one family or all."""
    own = [[e.success for e in run if not family or FAMILY[e.task] == family] for run in runs]
    return over_seeds([sum(run) / len(run) for run in own if run])


def share(runs: Sequence[Sequence[Played]], failure: str) -> float:
    """Return the share of episodes with this kind of failure."""
    every = [episode.failure == failure for run in runs for episode in run]
    return sum(every) / len(every)


def table(head: str, rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; the names of the columns are separated by bars."""
    columns = head.split(" | ")
    cells = [columns, ["---"] * len(columns), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
