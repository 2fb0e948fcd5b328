"""Plan4MC: the value of a search over a graph of skills, with failing skills and wrong graphs.

hunch study plan4mc
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np

from hunch.core import Agent, Player, State, Transition, World
from hunch.envs import make
from hunch.envs.craft import DONE, RULES
from hunch.lm import load
from hunch.methods import find
from hunch.methods.planner.agent import Planner
from hunch.methods.settings import configure
from hunch.rl.episodes import evaluate
from hunch.rl.rollout import Finished
from hunch.rl.statistics import Estimate, over_seeds
from hunch.roles.planner.skills import Skill
from hunch.runs.compare import SEED, Arm
from hunch.runs.execute import RunConfig
from hunch.runs.loading import load_agent, load_skills
from hunch.runs.models import load_models
from hunch_contrib.planner.plan4mc import Plan4MC, attempt
from hunch_contrib.planner.skill_graph import SkillGraph, extract
from hunch_studies.plan4mc_graphs import SILENT, by_words, corrupted, reason
from hunch_studies.planners import SKILL, skills_part, table, trained
from hunch_studies.study import Part, Scale, Study, kept
from hunch_studies.worlds.craft_skills import WALKS, Finding

ID: Final = "hunch/Craft-v0"
WORLD: Final[dict[str, Any]] = {"difficulty": "hard", "most": 9, "max_steps": 300}
TARGETS: Final = tuple(rule.action for rule in RULES)
STEPS: Final = 5_000
"""Training steps of the skill to find things, and of the flat agent."""
EACH: Final = 2
"""Episodes per target, arm and seed."""
FAILURES: Final = (0.0, 0.15, 0.3, 0.45)
RULE: Final = "scripted:recipes"
WORDS: Final = "word overlap"
EDGES: Final = (1, 2, 4, 8, 16)


class Played(TypedDict):
    """An episode: its target, success, skills and steps, and why there was no plan."""

    target: str
    success: bool
    skills: int
    steps: int
    problem: str


def finding(scale: Scale) -> Arm:
    """Return the runs that train the skills to find things, each in the world of its seed."""
    config = RunConfig(method="q-learning", env="hunch/CraftSkill-v0", options=SKILL)
    return Arm("find", replace(config, env_options={"world_seed": SEED}, steps=scale.steps(STEPS)))


def flat(scale: Scale) -> Arm:
    """Return Q-learning on the targets themselves, with as many steps as the skills."""
    place = {**WORLD, "world_seed": SEED, "target": "any"}
    config = RunConfig(method="q-learning", env=ID, env_options=place, options=SKILL)
    return Arm("flat", replace(config, steps=scale.steps(STEPS)))


def planning(
    skills: Sequence[Skill], lm: str = RULE, graph: SkillGraph | None = None, **options: Any
) -> Agent:
    """Make Plan4MC with a model that writes the graph, or with a graph."""
    config = configure(Plan4MC, None, options)
    return Plan4MC(load_models({"lm": lm})["lm"], skills, config, graph=graph)


def naming(skills: Sequence[Skill], lm: str) -> Agent:
    """Make a planner whose model names the next skill itself (SayCan's code); all actions are skills."""
    env: Any = make(ID, **WORLD, target="any").unwrapped
    every = [*(attempt(action, None) for action in env.choices if action != DONE), *skills]
    saycan = find("saycan")
    config = configure(saycan.agent_class, None, {"longest": 100})
    return saycan.build(config, load_models({"lm": lm}), skills=every)


def play(agent: Agent, seed: int, failure: float, episodes: int) -> list[Played]:
    """Play episodes of every target in the world of a seed."""
    played: list[Played] = []
    for number, target in enumerate(TARGETS):
        env: Any = make(ID, **WORLD, world_seed=seed, target=target, failure=failure)
        agent.begin(World(env=ID, manual=env.unwrapped.manual), seed)
        player = agent.player(seed)
        ended = evaluate(lambda _, mine=player: mine, [env], episodes, 1_000 * seed + number)  # type: ignore[misc]
        lines = player.records() if isinstance(player, Planner) else [{}] * episodes
        for episode, line in zip(ended, lines, strict=True):
            played.append(_played(target, episode, line))
    return played


def _played(target: str, episode: Finished, line: Mapping[str, Any]) -> Played:
    return Played(
        target=target,
        success=episode.success,
        skills=len(line.get("plan", ())),
        steps=episode.length,
        problem=line.get("problem", ""),
    )


class Bench:
    """Plays the rows of a table in the worlds of all seeds, and keeps the results.

    Args:
        folder: Folder of the episodes.
        data: Folder of the part that trains the skills.
        scale: Size of the study.
    """

    def __init__(self, folder: Path, data: Path, scale: Scale) -> None:
        self.folder, self.data, self.scale = folder, data, scale
        self.skills: dict[int, list[Skill]] = {}

    def skills_found(self, seed: int) -> list[Skill]:
        """Return the skills of a seed."""
        if seed not in self.skills:
            self.skills[seed] = load_skills(trained(finding(self.scale), seed, self.data))
        return self.skills[seed]

    def played(self, label: str, agent: Callable[[int], Agent], failure: float = 0.0) -> list[list[Played]]:
        """Return the episodes of an arm, seed by seed."""
        episodes = self.scale.episodes(EACH)
        return self.kept(label, lambda seed: play(agent(seed), seed, failure, episodes))

    def kept(self, label: str, played: Callable[[int], list[Played]]) -> list[list[Played]]:
        """Return the episodes of a row, seed by seed, each played once."""
        keys = [(label, seed) for seed in range(self.scale.seeds)]
        rows = kept(self.folder / "episodes.jsonl", keys, lambda _, seed: {"played": played(seed)})
        return [row["played"] for row in rows]


def succeeded(runs: Sequence[Sequence[Played]]) -> Estimate:
    """Return success over seeds."""
    return over_seeds([float(np.mean([e["success"] for e in run])) for run in runs])


def ended(runs: Sequence[Sequence[Played]], explicit: bool) -> float:
    """Return the share of failed episodes with a message that there is no plan, or without one."""
    every = [not e["success"] and said(e) == explicit for run in runs for e in run]
    return float(np.mean(every))


def said(episode: Played) -> bool:
    """Return whether a failure was reported as "no plan", as opposed to the end of a plan."""
    return reason(episode["problem"]) != SILENT


# ---- a right graph ----------------------------------------------------------------------------------------


def valid(writers: Sequence[str], data: Path, scale: Scale, folder: Path) -> str:
    """Return success of plans that are made once, without failures, by the model that wrote the graph."""
    bench, rows = Bench(folder, data, scale), []
    for lm in writers:
        cells: list[object] = [f"`{lm}`"]
        for replan in ("never", "each"):
            runs = bench.played(f"{replan} {lm}", partial(_written, bench, lm, replan))
            cells += [succeeded(runs), f"{ended(runs, True):.2f}", f"{ended(runs, False):.2f}"]
        rows.append(cells)
    head = "written by | valid plans | no plan, and says so | fails unsaid"
    return table(f"{head} | success, planning anew | no plan, and says so | fails unsaid", rows)


def _written(bench: Bench, lm: str, replan: str, seed: int) -> Agent:
    """Make a planner whose graph a model has written, or word overlap."""
    skills = bench.skills_found(seed)
    if lm != WORDS:
        return planning(skills, lm, replan=replan)
    return planning(skills, graph=by_words(craft_manual(), skill_names(skills)), replan=replan)


def craft_manual() -> str:
    """Return the manual of the craft world, which is the same in all of them."""
    env: Any = make(ID, **WORLD, target="any").unwrapped
    return str(env.manual)


def skill_names(skills: Sequence[Skill | Finding]) -> list[str]:
    """Return the names in a skill graph: the targets, and the skills to find things."""
    return [*TARGETS, *(skill.name for skill in skills)]


# ---- skills that fail -------------------------------------------------------------------------------------


def failing(models: Sequence[str], data: Path, scale: Scale, folder: Path) -> str:
    """Return success by how often skills fail, with and without replanning, and without a graph."""
    bench = Bench(folder, data, scale)
    labels = {"each": "planning anew after each skill", "retry": "one plan, tried again", "never": "one plan"}
    lines: dict[str, Callable[[int], Agent]] = {
        label: partial(lambda replan, s: planning(bench.skills_found(s), replan=replan), replan)
        for replan, label in labels.items()
    }
    rows = []
    for label, agent in lines.items():
        runs = [bench.played(f"{label} {p}", agent, p) for p in FAILURES]
        rows.append((label, "L0", *map(succeeded, runs), _skills(runs[FAILURES.index(0.3)])))
    for lm in models:
        agent = partial(lambda lm, s: naming(bench.skills_found(s), lm), lm)
        runs = [bench.played(f"{lm} names skills {p}", agent, p) for p in (0.0, 0.3)]
        names = f"`{lm}` names the next skill"
        rows.append(
            (names, load(lm).evidence, succeeded(runs[0]), "", succeeded(runs[1]), "", _skills(runs[1]))
        )

    def learner(seed: int) -> Agent:
        return load_agent(trained(flat(scale), seed, data))[0]

    runs = [bench.played(f"flat {p}", learner, p) for p in (0.0, 0.3)]
    rows.append(
        (
            f"flat Q-learning, {scale.steps(STEPS):,} steps",
            "-",
            succeeded(runs[0]),
            "",
            succeeded(runs[1]),
            "",
            "-",
        )
    )
    told = " | ".join(f"p = {p}" for p in FAILURES)
    return table(f"arm | evidence | {told} | skills per episode, p = 0.3", rows)


def _skills(runs: Sequence[Sequence[Played]]) -> str:
    return f"{np.mean([e['skills'] for run in runs for e in run]):.0f}"


# ---- a wrong graph ----------------------------------------------------------------------------------------


def right(skills: Sequence[Skill | Finding]) -> SkillGraph:
    """Return the graph of all targets and skills according to the manual."""
    return extract(load(RULE), craft_manual(), skill_names(skills))


def wrong(data: Path, scale: Scale, folder: Path) -> str:
    """Return success with wrong edges, which differ between targets, and the reports of failures."""
    bench, rows, reasons = Bench(folder, data, scale), [], Counter[str]()
    for edges in EDGES:
        cells: list[object] = [edges]
        for replan in ("each", "never"):
            misled = partial(_misled, bench, edges, replan)
            runs = bench.kept(f"{replan} {edges}", misled)
            told = [said(e) for run in runs for e in run if not e["success"]]
            cells += [succeeded(runs), f"{np.mean(told):.2f}" if told else "-"]
            if replan == "each":
                reasons.update(reason(e["problem"]) for run in runs for e in run if not e["success"])
        rows.append(cells)
    head = "wrong edges | success, planning anew | failures reported | valid plans | failures reported"
    total = sum(reasons.values())
    shares = [(kind, f"{n / total:.2f}") for kind, n in reasons.most_common()]
    return f"{table(head, rows)}\n\nPlanning anew, all failures:\n\n{table('report | share', shares)}"


def _misled(bench: Bench, edges: int, replan: str, seed: int) -> list[Played]:
    """Play an episode of every target, each with its own corrupted graph."""
    skills = bench.skills_found(seed)
    graph, played = right(skills), list[Played]()
    for number, target in enumerate(TARGETS):
        rng = np.random.default_rng([seed, edges, number])
        agent = planning(skills, graph=corrupted(graph, edges, rng), replan=replan)
        env: Any = make(ID, **WORLD, world_seed=seed, target=target)
        agent.begin(World(), seed)
        player = agent.player(seed)
        (episode,) = evaluate(lambda _, mine=player: mine, [env], 1, seed)  # type: ignore[misc]
        (line,) = player.records()  # type: ignore[attr-defined]
        played.append(_played(target, episode, line))
    return played


# ---- no find skills ---------------------------------------------------------------------------------------


def wandering(skill: Skill) -> Skill:
    """Return the same skill before training: it walks at random."""
    return replace(skill, player=Wanders, origin="")


class Wanders(Player):
    """Walks at random."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Return a random walk action for each state."""
        return [str(self.rng.choice(WALKS)) for _ in states]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: it has no memory."""


def unfound(data: Path, scale: Scale, folder: Path) -> str:
    """Return results without skills that find things: left out of the plans, or missing entirely."""
    bench = Bench(folder, data, scale)
    lines: dict[str, Callable[[int], Agent]] = {
        "trained skills to find things": lambda s: planning(bench.skills_found(s)),
        "left out of every plan": lambda s: planning(bench.skills_found(s), find=False),
        "found by walking at random": lambda s: planning(
            [wandering(skill) for skill in bench.skills_found(s)]
        ),
        "none, and the graph knows": lambda s: planning(()),
    }
    rows = []
    for label, agent in lines.items():
        runs = bench.played(label, agent)
        steps = f"{np.mean([e['steps'] for run in runs for e in run]):.0f}"
        rows.append((label, succeeded(runs), f"{ended(runs, True):.2f}", f"{ended(runs, False):.2f}", steps))
    return table("arm | success | no plan, reported | fails unreported | steps per episode", rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    models = ("uniform", "bag-of-words", "minilm", *scale.lms)
    skills = skills_part((finding(scale), flat(scale)), scale)
    data = data.parent / skills.folder
    told: Mapping[str, Callable[[Path], str]] = {
        "A graph read from the manual": partial(valid, (RULE, WORDS, *scale.lms), data, scale),
        "Skills that fail": partial(failing, models, data, scale),
        "Wrong edges": partial(wrong, data, scale),
        "Without skills to find things": partial(unfound, data, scale),
    }
    return [skills, *(Part(title, (), beside=beside) for title, beside in told.items())]


STUDIES = {
    "plan4mc": Study(
        "plan4mc",
        "How much does a search over a graph of skills help if skills fail, or if the graph is wrong?",
        "Plan4MC has the highest success on most of 40 Minecraft tasks. Its success is lower without "
        "skills that find things, and a language model that plans by itself does worse than the search "
        "(Yuan et al., 2023).",
        "Our craft world instead of Minecraft. The graph is written by a rule that reads the manual (L0). "
        "Skills to find things are trained, with one table of Q-learning per world; gathering and making "
        "are single actions, as crafting is in the released code. The failure rate of skills is a "
        "setting.",
        _parts,
        lm_for="plan4mc",
        seeds=5,
    )
}
