"""Inner Monologue: the value of feedback, depending on how often skills fail.

hunch study inner-monologue
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.rl.statistics import over_pairs
from hunch_studies.planners import Bench, Line, Played, share, skill_arms, skills_part, success, table
from hunch_studies.saycan import MORE, WORDS, asked, by_family, led
from hunch_studies.study import Part, Scale, Study, model_of

EPISODES: Final = 30
"""Episodes per row, disturbance and seed."""
DISTURBANCES: Final = (0.0, 0.2, 0.4)
LINES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "open loop": ("saycan", {"score": "say"}),
    "SayCan": ("saycan", {}),
    "told success": ("inner-monologue", {"feedback": ("success",)}),
    "told the scene": ("inner-monologue", {"feedback": ("scene",)}),
    "told both": ("inner-monologue", {}),
}
"""The arms, each with its method and options."""
ASKING: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "SayCan": ("saycan", {}),
    "asks": ("inner-monologue", {"feedback": ("question",)}),
    "told success": ("inner-monologue", {"feedback": ("success",)}),
    "told success, asks": ("inner-monologue", {"feedback": ("success", "question")}),
    "told the scene": ("inner-monologue", {"feedback": ("scene",)}),
}
"""The arms of active scene description: the planner asks where a thing is, and a person answers."""
DETECTORS: Final = ((0.3, 0.0), (0.0, 0.3), (0.3, 0.3))
"""Rates of false positives and false negatives."""
WRITER_EPISODES: Final = 30
"""Episodes per row and seed of a model that writes, since it is slow."""
SOME: Final = 0.2
"""The disturbance at which it plays: the scripted planner has 1.00 there with reports, and 0.60 without."""
REPORTED: Final = {"feedback": ("success",), "examples_report": True}
"""Reports on skills, of which the examples of plans have some as well."""


def by_disturbance(lm: str, labels: Sequence[str], data: Path, scale: Scale, folder: Path) -> str:
    """Return the success of some arms at every disturbance, and the kinds of failure at the largest."""
    bench = Bench(folder, data, scale, EPISODES)
    rows = []
    for label in labels:
        method, options = LINES[label]
        runs = [bench.played(Line(f"{label} {p}", lm, method, options, p)) for p in DISTURBANCES]
        failed = [f"{share(runs[-1], why):.2f}" for why in ("plan", "execution")]
        rows.append((label, *map(success, runs), *failed))
    told = " | ".join(f"p = {p}" for p in DISTURBANCES)
    return table(f"arm | {told} | failed plan, p = {DISTURBANCES[-1]} | failed execution", rows)


def by_asking(lm: str, data: Path, scale: Scale, folder: Path) -> str:
    """Return the success of arms that may ask where things are, beside those that are told or know nothing.

    The person is there in all of them; only an open channel ``question`` lets the planner ask.
    """
    bench = Bench(folder, data, scale, EPISODES)
    rows, found = [], {}
    for label, (method, options) in ASKING.items():
        found[label] = [
            bench.played(Line(f"{label}, person {p}", lm, method, options, p, asking=True))
            for p in DISTURBANCES
        ]
        skills = [np.mean([e.skills for run in runs for e in run]) for runs in found[label]]
        rows.append((label, *map(success, found[label]), f"{skills[-1]:.1f}"))
    rates = {label: _rates(runs) for label, runs in found.items()}
    leads = [
        (one, other, over_pairs([a - b for a, b in zip(rates[one], rates[other], strict=True)]))
        for one, other in (
            ("asks", "SayCan"),
            ("told success, asks", "told success"),
            ("told the scene", "asks"),
        )
    ]
    told = " | ".join(f"p = {p}" for p in DISTURBANCES)
    head = f"arm | {told} | skills an episode, p = {DISTURBANCES[-1]}"
    less = table("arm | minus | mean over disturbances, paired by seed", leads)
    return f"{table(head, rows)}\n\n{less}"


def _rates(runs: Sequence[Sequence[Sequence[Played]]]) -> list[float]:
    """Return the success of each seed, as a mean over disturbances; ``runs`` is by disturbance and seed."""
    return [float(np.mean([e.success for run in seed for e in run])) for seed in zip(*runs, strict=True)]


def against_words(data: Path, scale: Scale, folder: Path) -> str:
    """Return the lead of MiniLM with success feedback over a bag of words, as a mean over disturbances."""
    label = "told success"
    method, options = LINES[label]
    rates = []
    for lm in ("minilm", "bag-of-words"):
        bench = Bench(folder.parent / part_of(lm).folder, data, scale, EPISODES)
        runs = [bench.played(Line(f"{label} {p}", lm, method, options, p)) for p in DISTURBANCES]
        rates.append(_rates(runs))
    return f"MiniLM less bag of words, {label}: {over_pairs([a - b for a, b in zip(*rates, strict=True)])}."


def writers(lms: Sequence[str], data: Path, scale: Scale, folder: Path) -> str:
    """Return the success of models that write, on errands in other words, by what they are told.

    A report that is always "That worked." is the control: the prompt has the same form, and tells nothing.
    Encoders have the same forty examples.
    """
    bench = Bench(folder, data, scale, WRITER_EPISODES)
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "told success": ("inner-monologue", REPORTED),
        "always told success": ("inner-monologue", {**REPORTED, "false_positives": 1.0}),
        "told nothing": ("saycan", {}),
    }
    played = {}
    for lm in ("minilm", WORDS, *lms):
        way = {"examples": MORE} if lm in ("minilm", WORDS) else asked(MORE)
        for kind, (method, options) in kinds.items():
            label = f"{model_of(lm)}, {kind}"
            line = Line(label, lm, method, {**options, **way}, SOME, paraphrased=True)
            played[label] = bench.played(line)
    leads = []
    for lm in lms:
        name = model_of(lm)
        others = (f"{name}, always told success", f"{name}, told nothing", f"{WORDS}, told success")
        leads += led(played, f"{name}, told success", others)
    return by_family(played, leads)


def by_detector(lm: str, data: Path, scale: Scale, folder: Path) -> str:
    """Return success with detector errors, compared with SayCan, which has no detector."""
    bench, p = Bench(folder, data, scale, EPISODES), 0.2
    rows = []
    for positives, negatives in DETECTORS:
        found = []
        for channels in (("success",), ("success", "scene")):
            options = {"feedback": channels, "false_positives": positives, "false_negatives": negatives}
            label = f"{'-'.join(channels)} {positives} {negatives}"
            found.append(success(bench.played(Line(label, lm, "inner-monologue", options, p))))
        rows.append((positives, negatives, *found))
    plain = success(bench.played(Line("saycan", lm, disturbance=p)))
    shown = table("false positives | false negatives | told success | told success and scene", rows)
    return f"{shown}\n\nSayCan: {plain}."


def part_of(lm: str, beside: Callable[[Path], str] | None = None) -> Part:
    """Return the part of a planner."""
    return Part(f"By disturbance, {lm}", (), beside=beside)


def _parts(scale: Scale, data: Path) -> list[Part]:
    blind = list(LINES)[:3]
    lines = {"scripted:errands": list(LINES), "minilm": blind, "bag-of-words": blind}
    lines |= {lm: list(LINES) for lm in scale.lms}
    skills = skills_part(skill_arms(scale), scale)
    data = data.parent / skills.folder
    return [
        skills,
        *(part_of(lm, partial(by_disturbance, lm, labels, data, scale)) for lm, labels in lines.items()),
        Part("Against words", (), beside=partial(against_words, data, scale)),
        Part("Asking a person", (), beside=partial(by_asking, "scripted:errands", data, scale)),
        Part("A model that writes, in other words", (), beside=partial(writers, scale.lms, data, scale)),
        Part("A detector with errors", (), beside=partial(by_detector, "scripted:errands", data, scale)),
    ]


STUDIES = {
    "inner-monologue": Study(
        "inner-monologue",
        "How much of the success lost to disturbances does feedback recover?",
        "Inner Monologue is ahead of SayCan in every setting, and only it still completes tasks under "
        "disturbances (Huang et al., CoRL 2022).",
        "Errands in a grid kitchen with the skills of the study saycan. Planners that use embeddings (the "
        "bag of words is their lexical control) respond only to reported success, so their arms with scene "
        "descriptions are left out. Success and scene are reported by the environment.",
        _parts,
        lm_for="inner-monologue",
        seeds=5,
    )
}
