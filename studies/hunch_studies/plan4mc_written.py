"""Plan4MC with a skill graph that a real model writes, beside its blank prompt, word overlap and a rule.

The worlds, targets and trained skills are those of :mod:`hunch_studies.plan4mc`. A graph depends on the model
and on how it is asked, not on the seed, so each is written once.

    hunch study plan4mc-written --lm SPEC
    python -m hunch_studies.plan4mc_written ROWS    # in docs/assets/studies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.core import FloatArray
from hunch.rl.statistics import compared, over_pairs, over_seeds
from hunch.runs.files import read_lines
from hunch.runs.models import load_models
from hunch_contrib.planner.skill_graph import FIELDS, Entry, SkillGraph
from hunch_studies.plan4mc import (
    EACH,
    RULE,
    TARGETS,
    WORDS,
    Bench,
    craft_manual,
    finding,
    planning,
    play,
    right,
    skill_names,
)
from hunch_studies.plan4mc_graphs import REQUESTS, agreement, by_words, written
from hunch_studies.planners import skills_part, table
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, by_name, kept, selected
from hunch_studies.worlds.craft_skills import FINDINGS

NOTHING: Final = "nothing needed"
"""A graph in which no skill takes or brings anything, so that each plan is the target itself."""
BLANK: Final = "blank prompt"
"""The same request without the manual."""
TITLE: Final = "Written by a model"
KINDS: Final = ("valid", "replanning")
"""Plans that are made once, and plans that are made anew after each skill."""


class Writer(NamedTuple):
    """Who writes a graph, and how it is asked.

    Attributes:
        name: Name of the model, or of a control.
        request: The way of asking; empty for a control that is not asked.
        blank: The manual is left out.
    """

    name: str
    request: str = ""
    blank: bool = False

    @property
    def label(self) -> str:
        """Label of the row."""
        return ", ".join([self.name, *([self.request] if self.request else []), *([BLANK] * self.blank)])


CONTROLS: Final = (Writer(RULE, "plain"), Writer(WORDS), Writer(NOTHING), Writer("uniform", "plain"))


def writers(specs: Mapping[str, str]) -> list[Writer]:
    """Return each model with each request, with the manual and without."""
    return [Writer(name, way, blank) for name in specs for way in REQUESTS for blank in (False, True)]


@cache
def model(spec: str) -> Any:
    """Return a model, loaded once."""
    return load_models({"lm": spec})["lm"]


def graph_of(writer: Writer, specs: Mapping[str, str]) -> SkillGraph:
    """Return the graph that somebody writes; answers of models are cached."""
    names = skill_names(FINDINGS)
    if writer.name == WORDS:
        return by_words(craft_manual(), names)
    if writer.name == NOTHING:
        return SkillGraph(dict.fromkeys(names, Entry()))
    spec = specs.get(writer.name, writer.name)
    return written(model(spec), "" if writer.blank else craft_manual(), names, writer.request)


def measured(
    graphs: Mapping[str, SkillGraph], bench: Bench, label: str, seed: int | None = None
) -> dict[str, Any]:
    """Return what is right in a graph, or, with a seed, the success on each target in its world."""
    graph = graphs[label]
    if seed is None:
        return {"skills": len(graph.entries), "right": agreement(graph, right(FINDINGS))}
    episodes = bench.scale.episodes(EACH)
    row = {}
    for kind, replan in zip(KINDS, ("never", "each"), strict=True):
        agent = planning(bench.skills_found(seed), graph=graph, replan=replan)
        played = play(agent, seed, 0.0, episodes)
        row[kind] = [float(np.mean([e["success"] for e in played if e["target"] == t])) for t in TARGETS]
    return row


def results(specs: Mapping[str, str], data: Path, scale: Scale, folder: Path, labels: Sequence[str]) -> str:
    """Return the tables of all writers with these labels, and of the controls."""
    every = [*CONTROLS, *(writer for writer in writers(specs) if writer.label in labels)]
    graphs = {writer.label: graph_of(writer, specs) for writer in every}
    bench = Bench(folder, data, scale)
    keys = [(label, *seed) for label in graphs for seed in ((), *((s,) for s in range(scale.seeds)))]
    return tables(kept(folder / "rows.jsonl", keys, partial(measured, graphs, bench)))


def tables(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what is right in each graph, and the success of its plans with their leads, in Markdown."""
    return f"{of_graphs(rows)}\n\n{of_plans(rows)}\n\n{of_leads(rows)}"


def of_graphs(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the share of skills with each field right: where the field says something, and where not."""
    lines = []
    for row in rows:
        if "right" in row:
            counts = [row["right"][field] for field in FIELDS]
            shares = [
                f"{said / all_said:.2f}, {empty / all_empty:.2f}"
                for said, all_said, empty, all_empty in counts
            ]
            lines.append([row["key"][0], row["skills"], *shares])
    return table(" | ".join(["written by", "skills", *FIELDS]), lines)


def successes(rows: Sequence[Mapping[str, Any]], kind: str) -> dict[str, FloatArray]:
    """Return success with the plans of each graph: (seeds, targets) by label."""
    by_label: dict[str, list[Any]] = {}
    for row in rows:
        if kind in row:
            by_label.setdefault(row["key"][0], []).append(row[kind])
    return {label: np.array(of_seeds) for label, of_seeds in by_label.items()}


def of_plans(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return success of plans that are made once, and with replanning, over seeds."""
    by_kind = [successes(rows, kind) for kind in KINDS]
    lines = [[label, *(over_seeds(list(own[label].mean(1))) for own in by_kind)] for label in by_kind[0]]
    return table("written by | valid plans | success with replanning", lines)


def of_leads(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return leads in success with replanning, paired by seed, and by target as the mean over seeds."""
    scores = successes(rows, "replanning")
    lines = []
    for label, own in scores.items():
        if label in (writer.label for writer in CONTROLS) or label.endswith(BLANK):
            continue
        for other in (f"{label}, {BLANK}", WORDS, NOTHING):
            if other in scores:
                by_seed = compared(list(own.mean(1)), list(scores[other].mean(1)), best=1.0)
                by_target = over_pairs(list((own - scores[other]).mean(0)))
                lines.append([label, other, by_seed, by_target.short()])
    return table("written by | beside | lead over seeds | lead over targets", lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    specs = by_name(scale.lms)
    skills = skills_part((finding(scale),), scale)
    known = tuple(writer.label for writer in (*CONTROLS, *writers(specs)))
    labels = sorted(selected(known, scale.arms))
    beside = partial(results, specs, data.parent / skills.folder, scale, labels=labels)
    return [skills, Part(TITLE, (), beside=beside, players=known)]


STUDIES = {
    "plan4mc-written": Study(
        "plan4mc-written",
        "Does a small real model write a skill graph from a manual that a search can plan with?",
        "In Plan4MC GPT-4 writes the skill graph of Minecraft, given examples (Yuan et al., 2023).",
        "Our craft world, 22 targets and 34 skills. Small models write the graph, each once, with greedy "
        "answers; they are asked in Plan4MC's words here, or with four examples.",
        _parts,
        lm_for="plan4mc",
        seeds=5,
    )
}

if __name__ == "__main__":
    print_table(
        lambda file: tables(read_lines(file)), "Graphs written by models, and success of their plans."
    )
