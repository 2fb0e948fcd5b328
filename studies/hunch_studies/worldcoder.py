"""WorldCoder: the value of optimism, depending on how often the writer omits an unseen reward.

hunch study worldcoder
hunch study worldcoder --part "FrozenLake, written" --lm qwen-coder-1.5b   # with a real model as the writer
python -m hunch_studies.worldcoder docs/assets/studies/worldcoder.json     # recorded rows beside the table
python -m hunch_studies.worldcoder docs/assets/studies/worldcoder-written.jsonl    # those of the real model
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np

import hunch
from hunch import lm
from hunch.core import State
from hunch.envs.design.code import canonical
from hunch.envs.design.plain import Plain
from hunch.envs.design.problem import Problem
from hunch.envs.design.transitions import collected
from hunch.methods.method import Method
from hunch.methods.program.worldcoder import METHOD, WorldCoder, WorldCoderConfig
from hunch.ranges import PositiveInt
from hunch.rl.rollout import Finished, Rollout
from hunch.rl.small_models import breadth_first
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.rl.world import advance, world_of
from hunch.rl.world_model import LookUp, Prediction, Step, frozen
from hunch.roles.world_model.program import Piece, problem_of, tried
from hunch.roles.writer.programs import Attempt, Kind, Mutator
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.stored import finished
from hunch.seal import sealed_json
from hunch_studies.planners import table as table_of
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, kept, model_of, rows_beside, runs_of
from hunch_studies.worlds.minigrid_numbers import Level
from hunch_studies.writers import FAILURES, failure_of

STEPS = {"FrozenLake": 400, "Sokoban": 200, "Taxi": 300}
"""Environment steps of a run."""
SHY = (1.0, 0.0)
"""Shares of rewards that the writer writes without the rewarded case; its other dials are fixed."""
WRITER = "scripted:modeller?bugs=0.2&repair=0.5&break=0.1&crash=0.1&shy={}"
LINES: dict[str, dict[str, Any]] = {
    "WorldCoder": {},
    "without optimism": {"optimism": False},
    "random actions": {"warmup": 10**9},
}
TABLE = "a table of steps"
ASKED: dict[str, Any] = {"request": "plain", "temperature": 0.9, "max_tokens": 500, "refinements": 8}
"""Settings of a model that writes: those of the study ``writers``, and fewer programs between two steps."""
WRITTEN_PROGRAMS = 6
"""Programs of a run with a model that writes: two minutes of one core."""
RULES = "a script that knows the rules"
BLANK = "blank prompt"
KNOWING = "scripted:modeller?bugs=0"
"""The writer of the arm that shows what there is to gain."""
FUNCTIONS: Final = ("transition", "reward")
KINDS: Final = (*FAILURES, "another form", "a wrong result", "explains all steps")
"""What may become of a program; of those that fail on several steps, the first one tells."""
QUARTERS = 4
LEVELS: tuple[Level, ...] = ("empty", "door-key")
"""Of MiniGrid, the first two of the curriculum in the released code."""
EACH = 5
"""Episodes of a level; the released code goes on after ten successes in a row."""
CODER = "scripted:modeller?bugs=0.1&repair=0.5&break=0.1&crash=0.1&shy=1&trace=1"
"""Writes longer programs, which fail in a line that is right more often than not."""
CURRICULUM: dict[str, tuple[tuple[Level, ...], ...]] = {
    "one after the other": (LEVELS,),
    "each from nothing": tuple((level,) for level in LEVELS),
}
"""What an agent goes through; of several, each has one of its own."""


class TableExplorer(WorldCoder):
    """The agent of WorldCoder with a table of the steps that it has seen in place of programs.

    It follows the shortest known path to a reward. As long as it knows none, it goes to the nearest action
    that it has not tried, which is the optimism of R-max (Brafman and Tennenholtz, 2002).
    """

    @classmethod
    def build(cls, config: Any, models: Mapping[str, Any]) -> Self:
        """Make the agent, which asks no model: the writer never writes."""
        return cls(Mutator(), config)

    def learn(self) -> dict[str, float]:
        """Write no program; steps are remembered as they are seen."""
        return {}

    def _planned(self, state: State) -> list[str] | None:
        """Return the path to a reward, or else to an action that was not tried; None if all were."""
        start = frozen(state.raw)

        def actions(place: Any) -> Sequence[str]:
            return state.options if place == start else self.seen.actions

        def pays(step: Prediction) -> bool:
            return (step.reward or 0.0) > 0

        def is_new(step: Prediction) -> bool:
            return step == Prediction()

        known = self.seen.steps.get(state.task, {})
        model = LookUp(known.values())
        for wanted in (pays, is_new):
            path = breadth_first(model, start, actions, wanted, np.random.default_rng(0)).path
            if path is not None:
                return path
        return None


TABULAR = Method(
    f"{__name__}:TABULAR",
    TableExplorer,
    "explore with a table of steps, and follow it to a reward",
    "Brafman and Tennenholtz, R-max, JMLR 2002",
    environments="environments with raw states and without chance",
    reads={"raw"},
)


@dataclass(frozen=True, kw_only=True)
class LimitedConfig(WorldCoderConfig):
    """Settings of WorldCoder with a limit, and of its control."""

    programs: PositiveInt = WRITTEN_PROGRAMS
    """Maximum programs of a run."""
    blank: bool = False
    """Leave the mission, the steps and the results of programs out of plain requests: the control that shows
    whether the writer reads them. The form of a state, the actions and errors stay."""


class Limited(WorldCoder):
    """WorldCoder with a limit of programs, after which it acts with those that it has."""

    config_class: ClassVar[type[Any]] = LimitedConfig

    def programs_by(
        self,
        problem: Problem,
        parents: Sequence[Attempt],
        feedback: str,
        n: int,
        first: int,
        kind: Kind = "",
    ) -> list[str]:
        """Let the writer write programs; with the blank prompt it reads no task, no step and no result."""
        if self.config.blank:
            problem = replace(problem, plain=self._blank_statement(problem.plain))
            feedback = f"The program failed. {parents[-1].error}" if parents and parents[-1].error else ""
        return super().programs_by(problem, parents, feedback, n, first, kind)

    def _blank_statement(self, plain: Plain | None) -> Plain:
        """Return the form of states and actions in place of the statement of a problem."""
        assert plain is not None
        start = next(iter(self.seen.starts.values()))[0]
        text = (
            f"state is such as {start!r}; lists and arrays are tuples. "
            f"action is a text, one of {', '.join(map(repr, self.seen.actions))}."
        )
        return replace(plain, text=text)

    def _refine(self, piece: Piece, mission: str) -> None:
        """Refine as long as programs are left."""
        if self.written < self.config.programs:
            super()._refine(piece, mission)


LIMITED = Method(
    f"{__name__}:LIMITED",
    Limited,
    "WorldCoder with a limit of programs",
    METHOD.paper,
    environments=METHOD.environments,
    reads=METHOD.reads,
    models=METHOD.models,
)


def arms(env: str, steps: int) -> tuple[Arm, ...]:
    """Return WorldCoder with and without optimism by how shy the writer is, random actions and a table."""
    by_writer = [
        arm(env, steps, shy, line)
        for shy in SHY
        for line in LINES
        if line != "random actions" or shy == SHY[0]
    ]
    options = WorldCoderConfig(warmup=0)
    table = RunConfig(method=TABULAR.name, env=f"hunch/{env}-v0", steps=steps, options=options)
    return (*by_writer, Arm(TABLE, table))


def arms_written(env: str, steps: int, model: str) -> tuple[Arm, ...]:
    """Return WorldCoder with a model that writes, its controls, random actions and a table of steps.

    The script that knows the rules shows what the best writer would gain with as many programs.
    """

    def arm(label: str, method: Method, options: WorldCoderConfig, lm: str = "") -> Arm:
        config = RunConfig(method=method.name, env=f"hunch/{env}-v0", lm=lm, steps=steps, options=options)
        return Arm(label, config)

    return (
        arm("WorldCoder", LIMITED, LimitedConfig(**ASKED), model),
        arm("without optimism", LIMITED, LimitedConfig(**ASKED, optimism=False), model),
        arm(BLANK, LIMITED, LimitedConfig(**ASKED, blank=True), model),
        arm("WorldCoder, twelve programs", LIMITED, LimitedConfig(**ASKED, programs=12), model),
        arm(RULES, LIMITED, LimitedConfig(refinements=ASKED["refinements"]), KNOWING),
        arm("random actions", TABULAR, WorldCoderConfig(epsilon=1.0)),
        arm(TABLE, TABULAR, WorldCoderConfig()),
    )


def written_rows(env: str, steps: int, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Keep the rows of the arms with a model that writes, and return their tables, in Markdown."""
    rows = rows_beside(folder / "rows.jsonl", [arm.label for arm in listed], seeds)
    for arm in listed:
        for seed, run in enumerate(runs_of(arm, seeds, folder)):
            row = {"part": folder.name, "arm": arm.label, "seed": seed, "steps": steps}
            rows.append({**row, **run_outcome(run), **written_outcome(env, run)})
    write_atomically(folder / "rows.jsonl", b"".join(map(sealed_json, rows)))
    return written_tables(rows)


def written_outcome(env: str, run: Path) -> dict[str, Any]:
    """Return what became of the programs that were written in a run.

    Returns:
        ``kinds``: how many programs of each function there are of each kind (see :func:`kind_of`).
        ``copies``: how many of them say the same as an earlier one.
        ``still``: share of the world's steps in which nothing changes.
        ``right``: share of the world's steps that the last of the best programs for the next state predicts;
        None if no program ran. ``program``: that program.
    """
    lines = [line for line in read_lines(run / "records.jsonl") if line["group"] != -1]
    kinds: dict[str, Counter[str]] = {}
    for line in lines:
        kinds.setdefault(line["function"], Counter())[kind_of(line)] += 1
    transitions = [line for line in lines if line["function"] == "transition" and line["fitness"] is not None]
    distinct = {canonical(line["program"]) for line in lines if line["program"]}
    steps = steps_of_world(env)
    found: dict[str, Any] = {
        "kinds": {name: dict(count) for name, count in kinds.items()},
        "still": float(np.mean([step.state == step.next_state for step in steps])),
        "copies": sum(bool(line["program"]) for line in lines) - len(distinct),
    }
    if not transitions:
        return {**found, "right": None, "program": ""}
    best = max(transitions, key=lambda line: (line["components"]["explained"], line["number"]))
    problem = problem_of("transition", "", steps, tuple(dict.fromkeys(step.action for step in steps)))
    again = tried(Attempt(0, best["program"], None), problem, steps)
    return {**found, "right": again.components.get("explained"), "program": best["program"]}


def steps_of_world(env: str) -> list[Step]:
    """Return steps of a world: all of them where they are few."""
    played, others = collected(hunch.make(f"hunch/{env}-v0"), 1)
    return [*dict.fromkeys(played), *others]


def kind_of(line: Mapping[str, Any]) -> str:
    """Return in words what became of a program, given its line in ``records.jsonl``."""
    if line["fitness"] is None:
        return failure_of(line["error"])
    if line["components"]["explained"] == 1.0:
        return "explains all steps"
    expected, returned = (
        _form(line["feedback"].partition(f"\n{name}: ")[2].partition("\n")[0])
        for name in ("expected", "returned")
    )
    return "a wrong result" if returned == expected else "another form"


def _form(written: str) -> Any:
    """Return the form of a value that is written as Python: the types of its parts. An array is a tuple."""

    def form(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return tuple(map(form, value))
        return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value)

    if written.startswith("array("):
        written = written.removeprefix("array(").removesuffix(")")
    try:
        return form(ast.literal_eval(written))
    except (ValueError, SyntaxError):
        return written  # no plain value, so of a form of its own


def written_tables(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return two tables of rows, in Markdown: success by arm, and what became of the programs."""
    by_arm: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_arm.setdefault(row["arm"], []).append(row)
    steps = rows[0]["steps"]
    first_arm, first = next(iter(by_arm.items()))
    lines = []
    for label, of in by_arm.items():
        right = [row["right"] for row in of if row["right"] is not None]
        cells = [*_cells(of, steps).split(" | "), over_seeds(right).short() if right else ""]
        cells.append(str(sum(row["copies"] for row in of)))
        lines.append([label, *cells, "" if of is first else _saved(of, first, steps)])
    columns = "arm | steps to the first success | never | solved in the last quarter | programs by quarter"
    success = table_of(f"{columns} | best program right | copies | {first_arm} saves", lines)

    counted: list[list[str]] = []
    for label, of in by_arm.items():
        for function in FUNCTIONS:
            total = sum((Counter(row["kinds"].get(function, {})) for row in of), Counter[str]())
            if total:
                counted.append([label, function, *(str(total[kind]) for kind in KINDS)])
    kinds = table_of(" | ".join(["arm", "function", *KINDS]), counted)
    still = f"In {rows[0]['still']:.2f} of the world's steps nothing changes."
    return f"{success}\n\n{still}\n\n{kinds}"


def recorded_written(file: Path) -> str:
    """Return the tables of recorded rows with a model that writes, in Markdown."""
    by_part: dict[str, list[Mapping[str, Any]]] = {}
    for row in read_lines(file):
        by_part.setdefault(row["part"], []).append(row)
    return "\n\n".join(f"### {part}\n\n{written_tables(rows)}" for part, rows in by_part.items())


def arm(env: str, steps: int, shy: float, line: str) -> Arm:
    """Return the runs of a line."""
    options = WorldCoderConfig(**LINES[line])
    config = RunConfig(
        method="worldcoder", env=f"hunch/{env}-v0", lm=WRITER.format(shy), steps=steps, options=options
    )
    return Arm(label(shy, line), config)


def label(shy: float, line: str) -> str:
    """Return the label of a line."""
    return f"{line}, shy {shy:g}"


def run_outcome(run: Path) -> dict[str, Any]:
    """Return the step of the first success, the share of episodes solved, and programs by quarter."""
    result = finished(run)
    assert result is not None
    asked = [line["models"].get("lm") for line in read_lines(run / "metrics.jsonl")]
    written = [lm["calls"] + lm["cache_hits"] if lm else 0 for lm in asked]  # a program for each
    first = next((episode.step for episode in result.episodes if episode.success), None)
    late = [episode.success for episode in result.episodes if episode.step > result.requested * 3 / 4]
    marks = [written[round(len(written) * (q + 1) / QUARTERS) - 1] for q in range(QUARTERS)]
    return {
        "first": first,
        "late": float(np.mean(late)) if late else 0.0,
        "programs": np.diff([0, *marks]).tolist(),
    }


def table(env: str, seeds: int, steps: int, folder: Path) -> str:
    """Steps to the first success, success at the end, and programs written in each quarter of the steps."""
    rows = {a.label: [run_outcome(run) for run in runs_of(a, seeds, folder)] for a in arms(env, steps)}
    columns = "shy, line, steps to the first success, never, solved in the last quarter, programs by quarter"
    lines = [f"| {' | '.join(columns.split(', '))} |", "|---" * 6 + "|"]
    ahead = []
    for shy in SHY:
        by = {line: own for line in LINES if (own := rows.get(label(shy, line)))}
        lines += [f"| {shy} | {line} | {_cells(own, steps)} |" for line, own in by.items()]
        saved = _saved(by["without optimism"], by["WorldCoder"], steps)
        ahead.append(f"- shy {shy}: optimism saves {saved} on the same seed.")
        saved = _saved(rows[TABLE], by["WorldCoder"], steps)
        ahead.append(f"- shy {shy}: WorldCoder saves {saved} over {TABLE} on the same seed.")
    lines.append(f"| - | {TABLE} | {_cells(rows[TABLE], steps)} |")
    note = f"Of {steps:,} steps. A run that never succeeded counts as {steps:,}."
    return "\n".join([note, "", *lines, "", *ahead])


def _saved(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], steps: int) -> str:
    """Return how many steps earlier others have their first success, paired by seed, in words."""
    pairs = zip(rows, others, strict=True)
    fewer = over_pairs([(row["first"] or steps) - (other["first"] or steps) for row, other in pairs])
    value, *bounds = fewer.short(digits=0).split(" ", 1)
    return " ".join([value, "steps", *bounds])


def _cells(rows: Sequence[Mapping[str, Any]], steps: int) -> str:
    first = over_seeds([row["first"] or steps for row in rows])
    programs = np.mean([row["programs"] for row in rows], axis=0)
    return " | ".join(
        [
            first.short(digits=0),
            f"{sum(row['first'] is None for row in rows)} of {len(rows)}",
            str(over_seeds([row["late"] for row in rows])),
            ", ".join(f"{n:.1f}" for n in programs),
        ]
    )


# ---- missions that follow one another ---------------------------------------------------------------------


def followed(levels: Sequence[Level], seed: int) -> list[dict[str, Any]]:
    """One agent through levels of MiniGrid: programs, steps to the first success and success in each."""
    env = hunch.make("hunch/MiniGrid-v0", levels=tuple(levels), each=EACH)
    agent, rollout = WorldCoder(lm.load(CODER)), Rollout([env], seed)
    agent.begin(world_of(rollout, env, 0, ()), seed)
    found = []
    for level in levels:
        written, begun, ended = agent.written, rollout.steps, list[Finished]()
        while len(ended) < EACH:
            advance(rollout, agent)
            agent.learn()
            ended += rollout.take_finished()
        first = next((episode.step - begun for episode in ended if episode.success), None)
        solved = float(np.mean([episode.success for episode in ended]))
        programs = agent.written - written
        found.append({"level": level, "programs": programs, "first": first, "solved": solved})
    return found


def _level(line: str, seed: int) -> dict[str, Any]:
    return {"levels": [found for levels in CURRICULUM[line] for found in followed(levels, seed)]}


def curriculum_table(seeds: int, folder: Path) -> str:
    """Return programs and first successes by level, for one agent on all levels, and a new one on each."""
    keys = [(line, seed) for seed in range(min(seeds, 5)) for line in CURRICULUM]
    rows = kept(folder / "runs.jsonl", keys, _level)
    lines = ["| arm | level | programs | steps to the first success | never | solved |", "|---" * 6 + "|"]
    for line in CURRICULUM:
        own = [row["levels"] for row in rows if row["key"][0] == line]
        for i, level in enumerate(LEVELS):
            here = [levels[i] for levels in own]
            programs = over_seeds([one["programs"] for one in here])
            first = [one["first"] for one in here if one["first"] is not None]
            told = f"{over_seeds(first).value:.0f}" if first else "-"
            lines.append(
                f"| {line} | {level} | {programs} | {told} | {len(here) - len(first)} of {len(here)} "
                f"| {over_seeds([one['solved'] for one in here])} |"
            )
    one, anew = ([row["levels"] for row in rows if row["key"][0] == line] for line in CURRICULUM)
    for i, level in enumerate(LEVELS):
        saved = over_pairs([b[i]["programs"] - a[i]["programs"] for a, b in zip(one, anew, strict=True)])
        lines.append(f"\n- {level}: what was learnt before saves {saved} programs on the same seed.")
    return "\n".join(lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for env, full in STEPS.items():
        steps = max(40, round(full * scale.share))
        parts.append(Part(env, arms(env, steps), beside=partial(table, env, scale.seeds, steps)))
    for model in scale.lms:
        for env, full in STEPS.items():
            steps = max(40, round(full * scale.share))
            title = f"{env}, written by {model_of(model) or model}"
            measure = partial(written_rows, env, steps)
            parts.append(Part(title, arms_written(env, steps, model), measure=measure, apart=True))
    later = partial(curriculum_table, scale.seeds)
    return [*parts, Part("MiniGrid, one level after the other", (), beside=later)]


STUDIES = {
    "worldcoder": Study(
        "worldcoder",
        "Does optimism as a constraint lead to an earlier first success, and do model calls decrease once "
        "the model is right?",
        "WorldCoder solves small Sokoban after about 50 actions, where deep reinforcement learning needs "
        "orders of magnitude more, and transfers to other tasks of MiniGrid (Tang, Key and Ellis, NeurIPS "
        "2024).",
        "The writer is a script (L0) that knows the rules and plants errors. Whether it writes a reward that "
        "nobody has seen is a dial: where it always does, optimism has nothing to add. Environments are "
        "ours, Gymnasium's Taxi, and the first two levels of MiniGrid. The planner is breadth-first search.",
        _parts,
        lm_for="worldcoder",
        seeds=10,
    )
}


def recorded(file: Path) -> str:
    """Return how many steps WorldCoder saves over the table, from recorded rows, in Markdown."""
    if file.suffix == ".jsonl":
        return recorded_written(file)
    every = json.loads(file.read_text(encoding="utf-8"))
    lines = []
    for env, steps in STEPS.items():
        rows = sorted(every[env.lower()], key=lambda row: row["key"][2])
        table = [row for row in rows if row["key"][1] == TABLE]
        at_random = [row for row in rows if row["key"][1] == "random actions"]
        by_shy = [[row for row in rows if row["key"][:2] == [shy, "WorldCoder"]] for shy in SHY]
        saved = [_saved(at_random, table, steps), *(_saved(table, of, steps) for of in by_shy)]
        lines.append([env, *_cells(table, steps).split(" | ")[:2], *saved])
    columns = "world | first success of the table | never | the table saves over random actions"
    return table_of(" | ".join([columns, *(f"WorldCoder saves at shy {shy:g}" for shy in SHY)]), lines)


if __name__ == "__main__":
    print_table(recorded, "What WorldCoder saves over a table of steps.")
