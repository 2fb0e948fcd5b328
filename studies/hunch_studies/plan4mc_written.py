"""Plan4MC with a skill graph that a real model writes, beside its blank prompt, word overlap and a rule.

The worlds, targets and trained skills are those of :mod:`hunch_studies.plan4mc`. A graph depends on the model
and on how it is asked, not on the seed, so each is written once.

    hunch study plan4mc-written --lm SPEC
    python -m hunch_studies.plan4mc_written ROWS    # in docs/assets/studies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.rl.statistics import contrast, over_pairs, over_seeds
from hunch.runs.files import read_lines
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
from hunch_studies.plan4mc_graphs import (
    REQUESTS,
    agreement,
    by_words,
    fields_right,
    with_field,
    written,
)
from hunch_studies.planners import skills_part, table
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, by_name, kept, loaded, selected
from hunch_studies.worlds.craft_skills import FINDINGS

NOTHING: Final = "nothing needed"
"""A graph in which no skill takes or brings anything, so that each plan is the target itself."""
BLANK: Final = "blank prompt"
"""The same request without the manual."""
TITLE: Final = "Written by a model"
KINDS: Final = {"valid": "never", "replanning": "each"}
"""Plans that are made once, and plans that are made anew after each skill, as Plan4MC's ``replan``."""
LENT: Final = "lent"
"""Success with replanning of the right graph, with one field of all its skills as a writer has it."""


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


def graph_of(writer: Writer, specs: Mapping[str, str]) -> SkillGraph:
    """Return the graph that somebody writes; answers of models are cached."""
    names = skill_names(FINDINGS)
    if writer.name == WORDS:
        return by_words(craft_manual(), names)
    if writer.name == NOTHING:
        return SkillGraph(dict.fromkeys(names, Entry()))
    spec = specs.get(writer.name, writer.name)
    return written(loaded(spec), "" if writer.blank else craft_manual(), names, writer.request)


def about_graph(graph: SkillGraph) -> dict[str, Any]:
    """Return how many skills a graph has, how many have each field right, and how many fields each skill."""
    truth = right(FINDINGS)
    by_skill = fields_right(graph, truth)
    return {"skills": len(graph.entries), "right": agreement(graph, truth), "by_skill": by_skill}


def played(bench: Bench, graph: SkillGraph, seed: int, replan: str) -> list[float]:
    """Return success on each target, in the world of a seed and without failures."""
    agent = planning(bench.skills_found(seed), graph=graph, replan=replan)
    episodes = play(agent, seed, 0.0, bench.scale.episodes(EACH))
    return [float(np.mean([e["success"] for e in episodes if e["target"] == target])) for target in TARGETS]


def measured(graphs: Mapping[str, SkillGraph], bench: Bench, label: str, *place: Any) -> dict[str, Any]:
    """Return a row: about a graph, its success in the world of a seed, or that of one of its fields.

    Args:
        graphs: Graphs by label.
        bench: Has the skills.
        label: The label of the graph.
        place: Nothing, or a seed, or a field and a seed.
    """
    if not place:
        return about_graph(graphs[label])
    *fields, seed = place
    if fields:
        lent = with_field(right(FINDINGS), graphs[label], *fields)
        return {LENT: played(bench, lent, seed, "each")}
    return {kind: played(bench, graphs[label], seed, replan) for kind, replan in KINDS.items()}


def results(specs: Mapping[str, str], data: Path, scale: Scale, folder: Path, labels: Sequence[str]) -> str:
    """Return the tables of all writers with these labels, and of the controls."""
    models = [writer for writer in writers(specs) if writer.label in labels]
    graphs = {writer.label: graph_of(writer, specs) for writer in (*CONTROLS, *models)}
    keys: list[tuple[Any, ...]] = []
    for label in graphs:
        keys += [(label,), *((label, seed) for seed in range(scale.seeds))]
    for writer in (Writer(WORDS), *models):
        if graphs[writer.label].entries and not writer.blank:
            keys += [(writer.label, field, seed) for field in FIELDS for seed in range(scale.seeds)]
    bench = Bench(folder, data, scale)
    return tables(kept(folder / "rows.jsonl", keys, partial(measured, graphs, bench)))


def tables(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what is right in each graph, and the success of its plans with their leads, in Markdown."""
    return "\n\n".join(part(rows) for part in (of_graphs, of_plans, of_leads, of_fields))


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
            every = sum(row["by_skill"]) / (len(FIELDS) * len(row["by_skill"]))
            lines.append([row["key"][0], row["skills"], f"{every:.2f}", *shares])
    return table(" | ".join(["written by", "skills", "right fields", *FIELDS]), lines)


def successes(rows: Sequence[Mapping[str, Any]], kind: str) -> dict[str, dict[int, float]]:
    """Return the share of targets reached with the plans of each graph, by label and seed."""
    by_label: dict[str, dict[int, float]] = {}
    for row in rows:
        if kind in row:
            label, seed = row["key"]
            by_label.setdefault(label, {})[seed] = float(np.mean(row[kind]))
    return by_label


def of_plans(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return success of plans that are made once, and with replanning, over seeds."""
    by_kind = [successes(rows, kind) for kind in KINDS]
    lines = [[label, *(over_seeds(list(own[label].values())) for own in by_kind)] for label in by_kind[0]]
    return table("written by | valid plans | success with replanning", lines)


def of_leads(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return leads in the share of right fields over skills, and in success with replanning over seeds."""
    scores = successes(rows, "replanning")
    shares = {row["key"][0]: np.array(row["by_skill"]) / len(FIELDS) for row in rows if "by_skill" in row}
    lines = []
    for label, own in scores.items():
        if label in (writer.label for writer in CONTROLS) or label.endswith(BLANK):
            continue
        for other in (f"{label}, {BLANK}", WORDS, NOTHING):
            if other in scores:
                fields = over_pairs(list(shares[label] - shares[other])).short()
                success = contrast(own, scores[other], best=1.0)
                lines.append([label, other, fields, success])
    return table("written by | beside | lead in right fields | lead in success", lines)


def of_fields(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return success with replanning, over seeds, if only one field of the graph is the writer's."""
    by_label: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if LENT in row:
            label, field, _ = row["key"]
            by_label.setdefault(label, {}).setdefault(field, []).append(float(np.mean(row[LENT])))
    lines = [[label, *(over_seeds(own[field]) for field in FIELDS)] for label, own in by_label.items()]
    return table(" | ".join(["one field written by", *FIELDS]), lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    specs = by_name(scale.lms, [control.name for control in CONTROLS])
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
