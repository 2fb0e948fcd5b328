"""Shared parts of the studies of planners: trained skills, and paired episodes with their results.

Every row of a table plays the same episodes with the same skills; a seed determines both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from hunch.core import Agent, World
from hunch.envs import make
from hunch.envs.kitchen.errands import ERRANDS, paraphrases, reached
from hunch.envs.kitchen.skills import VERBS
from hunch.methods import find
from hunch.methods.planner.agent import Planner
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.settings import configure
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import Estimate, over_seeds
from hunch.roles.planner.skills import Skill
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig, execute
from hunch.runs.loading import load_agent, load_skills
from hunch.runs.models import load_models
from hunch.runs.stored import finished
from hunch_studies.kitchen_plans import ideally
from hunch_studies.study import Part, Scale, kept, runs_of

STEPS: Final = {"reach": 30_000, "pick up": 20_000, "put down": 15_000, "open": 15_000}
"""Training steps for the skills of each verb."""
SKILLS: Final = "The skills"
"""Title of the part that trains them."""
KITCHEN: Final = "hunch/Kitchen-v0"
FAMILY: Final = {errand.text: errand.family for errand in (*ERRANDS, *paraphrases())}


@dataclass(frozen=True)
class Line:
    """A row of a table.

    Attributes:
        label: Label of the row.
        lm: The model that plans.
        method: The method.
        options: Options of the method.
        disturbance: Disturbance of the kitchen.
        paraphrased: The errands are in other words.
        asking: The person can be asked where things are.
    """

    label: str
    lm: str
    method: str = "saycan"
    options: Mapping[str, Any] = field(default_factory=dict)
    disturbance: float = 0.0
    paraphrased: bool = False
    asking: bool = False


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


def skill_arms(scale: Scale) -> tuple[Arm, ...]:
    """Return the runs that train the skills of each verb."""
    config = RunConfig(method="q-learning", env="hunch/KitchenSkill-v0", options=SKILL)
    return tuple(
        Arm(verb, replace(config, env_options={"verb": verb}, steps=scale.steps(STEPS[verb])))
        for verb in VERBS
    )


def flat(scale: Scale) -> Arm:
    """Return runs without skills, trained on the errands with as many steps as all skills together."""
    steps = scale.steps(sum(STEPS.values()))
    return Arm("flat", RunConfig(method="q-learning", env=KITCHEN, steps=steps, options=SKILL))


def skills_part(arms: tuple[Arm, ...], scale: Scale) -> Part:
    """Return the part that trains the skills on which the others build."""
    return Part(SKILLS, arms, beside=partial(successes, arms, scale), apart=True)


def successes(arms: Sequence[Arm], scale: Scale, folder: Path) -> str:
    """Return the success of skills at the end of their training."""
    rows = []
    for arm in arms:
        results = [finished(run) for run in runs_of(arm, scale.seeds, folder)]
        rows.append((arm.label, over_seeds([result.success.value for result in results if result])))
    return table("trained | success", rows)


def trained(arm: Arm, seed: int, folder: Path) -> Path:
    """Return the folder of the run of a seed in its part's folder; it is executed unless it is finished."""
    *_, job = jobs([arm], seed + 1, folder)
    execute(job.config, job.folder)
    return job.folder


def skill_runs(folder: Path, seed: int, scale: Scale) -> list[Path]:
    """Return the folders of the runs of a seed's skills."""
    return [trained(arm, seed, folder) for arm in skill_arms(scale)]


def skills_of(folder: Path, seed: int, scale: Scale) -> list[Skill]:
    """Return the skills of a seed."""
    return [skill for run in skill_runs(folder, seed, scale) for skill in load_skills(run)]


class Bench:
    """Plays the rows of a table with the skills of every seed, and keeps the results.

    Args:
        folder: Folder of the results.
        data: Folder of the part that trains the skills.
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
            agent, _ = load_agent(trained(flat(self.scale), seed, self.data))
        else:
            if seed not in self.skills:
                self.skills[seed] = skills_of(self.data, seed, self.scale)
            method = find(line.method)
            config = configure(method.agent_class, None, line.options)
            models = load_models(method.specs(config, line.lm))
            agent = method.build(config, models, skills=self.skills[seed])
        env = make(KITCHEN, disturbance=line.disturbance, paraphrased=line.paraphrased, asking=line.asking)
        return play(agent, env, self.episodes, seed)


def play(agent: Agent, env: Any, episodes: int, seed: int) -> Iterator[Played]:
    """Play errands of a kitchen, and check which plans were right."""
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
