"""WorldCoder: the value of optimism, depending on how often the writer omits an unseen reward.

hunch study worldcoder
python -m hunch_studies.worldcoder docs/assets/studies/worldcoder.json   # recorded rows beside the table
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

import hunch
from hunch import lm
from hunch.core import State
from hunch.methods.method import Method
from hunch.methods.program.worldcoder import WorldCoder, WorldCoderConfig
from hunch.rl.rollout import Finished, Rollout
from hunch.rl.small_models import breadth_first
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.rl.world import advance, world_of
from hunch.rl.world_model import LookUp, Prediction, frozen
from hunch.roles.writer.programs import Mutator
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.stored import finished
from hunch.seal import sealed_json
from hunch_studies.planners import table as table_of
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, kept, model_of, runs_of
from hunch_studies.worlds.minigrid_numbers import Level

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
WRITTEN_STEPS = 150
"""Environment steps of a run with a model that writes."""
ASKED: dict[str, Any] = {"request": "plain", "temperature": 0.9, "max_tokens": 500, "refinements": 8}
"""Settings of a model that writes: those of the study ``writers``, and fewer programs between two steps."""
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
    """Return WorldCoder with a model that writes, with and without optimism, random actions and a table."""

    def arm(label: str, method: str, options: WorldCoderConfig, lm: str = "") -> Arm:
        config = RunConfig(method=method, env=f"hunch/{env}-v0", lm=lm, steps=steps, options=options)
        return Arm(label, config)

    return (
        arm("WorldCoder", "worldcoder", WorldCoderConfig(**ASKED), model),
        arm("without optimism", "worldcoder", WorldCoderConfig(**ASKED, optimism=False), model),
        arm("random actions", TABULAR.name, WorldCoderConfig(epsilon=1.0)),
        arm(TABLE, TABULAR.name, WorldCoderConfig()),
    )


def written_table(steps: int, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Keep the rows of the arms with a model that writes, and return their table, in Markdown."""
    rows = {arm.label: [run_outcome(run) for run in runs_of(arm, seeds, folder)] for arm in listed}
    keyed = [{"key": [label, seed], **row} for label, of in rows.items() for seed, row in enumerate(of)]
    write_atomically(folder / "rows.jsonl", b"".join(map(sealed_json, keyed)))
    first = next(iter(rows.values()))
    lines = []
    for label, of in rows.items():
        saved = "" if of is first else _saved(of, first, steps)
        lines.append([label, *_cells(of, steps).split(" | "), saved])
    columns = "arm | steps to the first success | never | solved in the last quarter | programs by quarter"
    return table_of(f"{columns} | {listed[0].label} saves", lines)


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


def _cells(rows: list[dict[str, Any]], steps: int) -> str:
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
    steps = max(40, round(WRITTEN_STEPS * scale.share))
    for model in scale.lms:
        for env in STEPS:
            title = f"{env}, written by {model_of(model) or model}"
            measure = partial(written_table, steps)
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
