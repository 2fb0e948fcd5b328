"""SayCan against each of its factors, with trained skills.

hunch study saycan
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.envs.kitchen.errands import FAMILIES
from hunch.lm import load
from hunch.rl.calibration import brier, reliability
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.loading import load_trained
from hunch_studies.planners import (
    Bench,
    Line,
    Played,
    flat,
    share,
    skill_arms,
    skill_runs,
    skills_part,
    success,
    table,
)
from hunch_studies.reliability import draw_reliability
from hunch_studies.study import Part, Scale, Study, by_name, model_of

EPISODES: Final = 150
"""Episodes per row and seed."""
WORDS: Final = "bag-of-words"
EXPLAINERS: Final = ("scripted:explainer", "scripted:explainer?error=0.5", "scripted:explainer?error=1")
"""Who explains an errand before it is planned: a rule that is right, right in half, or never right."""
REAL: Final = "smollm2"
"""A small real model that explains."""
THOUGHT_EPISODES: Final = 90
WRITER_EPISODES: Final = 30
"""Episodes per row and seed of a model that writes: one for each instruction, since it is slow."""
SHOWN: Final = 12
"""Examples of plans in its prompt."""
MORE: Final = 40
"""Examples of plans where errands are in other words."""
HEATS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


def lines(lm: str) -> tuple[Line, ...]:
    """Return SayCan with a model, and the model alone."""
    return (Line(f"say x can, {lm}", lm), Line(f"say only, {lm}", lm, options={"score": "say"}))


CONTROLS: Final = (
    Line("say x can asked once, minilm", "minilm", options={"affordance": "once"}),
    Line("can only", "uniform", options={"score": "can"}),
    Line("can only, drawn", "uniform", options={"score": "can", "pick": "draw"}),
    Line("flat Q-learning", "", "q-learning"),
)


def factors(models: tuple[str, ...], data: Path, scale: Scale, folder: Path) -> str:
    """Return the success of every arm, and the kinds of failure."""
    bench = Bench(folder, data, scale, EPISODES)
    rows = []
    for line in (*(own for lm in models for own in lines(lm)), *CONTROLS):
        runs = bench.played(line)
        planned = line.method != "q-learning"
        failed = [f"{share(runs, why):.2f}" if planned else "-" for why in ("plan", "execution")]
        families = [f"{success(runs, family).value:.2f}" for family in FAMILIES]
        evidence = load(line.lm).evidence if line.lm else "-"
        rows.append((line.label, evidence, success(runs), *failed, *families))
    pairs = {f"say x can minus say only, {lm}": lines(lm) for lm in models}
    pairs |= {
        f"say x can, {lm} minus {WORDS}": (lines(lm)[0], lines(WORDS)[0]) for lm in models if lm != WORDS
    }
    leads = [(label, *ahead(bench.played(one), bench.played(other))) for label, (one, other) in pairs.items()]
    head = f"arm | evidence | success | failed plan | failed execution | {' | '.join(FAMILIES)}"
    told = table("difference in the same episodes | over seeds | over instructions", leads)
    return f"{table(head, rows)}\n\n{told}"


def ahead(runs: Sequence[Sequence[Played]], others: Sequence[Sequence[Played]]) -> tuple[Estimate, Estimate]:
    """Return the difference in success between two arms, with its intervals over seeds and over instructions.

    All seeds have the same instructions, so only the second says how far the lead holds for others.
    """
    rates = [[np.mean([e.success for e in run]) for run in own] for own in (runs, others)]
    by = [[np.mean(found) for found in by_instruction(own).values()] for own in (runs, others)]
    seeds, instructions = (over_pairs([a - b for a, b in zip(*each, strict=True)]) for each in (rates, by))
    return seeds, instructions


def by_instruction(runs: Sequence[Sequence[Played]]) -> dict[str, list[bool]]:
    """Return the successes of all seeds by instruction, sorted by its text."""
    every = sorted((e.task, e.success) for run in runs for e in run)
    return {task: [success for _, success in own] for task, own in groupby(every, key=itemgetter(0))}


def other_words(data: Path, scale: Scale, folder: Path) -> str:
    """Return success on errands in other words, each encoder at the temperature that is best in ours."""
    bench = Bench(folder, data, scale, EPISODES)
    best = {lm: tuned(bench, lm) for lm in ("minilm", WORDS)}
    found: dict[tuple[str, str], list[list[Played]]] = {}
    for lm, heat in best.items():
        options = {"prior": PriorConfig(temperature=heat)}
        found |= {
            (lm, score): bench.played(
                Line(
                    f"{score}, {lm} at {heat}, other words",
                    lm,
                    options={**options, "score": score},
                    paraphrased=True,
                )
            )
            for score in ("product", "say")
        }
    heats = [
        (lm, *(f"{success(bench.played(line)).value:.2f}" for line in warmed(lm).values())) for lm in best
    ]
    rows = [
        (lm, best[lm], score, success(runs), *(f"{success(runs, family).value:.2f}" for family in FAMILIES))
        for (lm, score), runs in found.items()
    ]
    pairs = {
        "product, minilm minus words": (("minilm", "product"), (WORDS, "product")),
        "say, minilm minus words": (("minilm", "say"), (WORDS, "say")),
        "minilm, product minus say": (("minilm", "product"), ("minilm", "say")),
        "words, product minus say": ((WORDS, "product"), (WORDS, "say")),
    }
    leads = [(label, *ahead(found[one], found[other])) for label, (one, other) in pairs.items()]
    told = table("difference in the same episodes | over seeds | over instructions", leads)
    head = f"planner | temperature | score | success | {' | '.join(FAMILIES)}"
    chosen = table(f"success in our words at temperature | {' | '.join(map(str, HEATS))}", heats)
    return f"{chosen}\n\n{table(head, rows)}\n\n{told}"


def writers(lms: Sequence[str], data: Path, scale: Scale, folder: Path) -> str:
    """Return the success of models that write, asked as the paper's was, beside encoders and a blank prompt.

    Each skill is scored by its likelihood after examples of plans, the instruction and the skills so far.
    """
    bench = Bench(folder, data, scale, WRITER_EPISODES)
    kinds: dict[str, dict[str, Any]] = {
        "say x can": asked(SHOWN),
        "say only": {**asked(SHOWN), "score": "say"},
        "blank prompt": {**asked(SHOWN), "blank": True},
    }
    played = {lm: bench.played(lines(lm)[0]) for lm in ("minilm", WORDS)}
    played |= episodes_of(bench, lms, kinds)
    leads = []
    for lm in lms:
        name = model_of(lm)
        others = ("minilm", WORDS, f"{name}, say only", f"{name}, blank prompt")
        leads += led(played, f"{name}, say x can", others)
    return by_family(played, leads)


def writers_other_words(lms: Sequence[str], data: Path, scale: Scale, folder: Path) -> str:
    """Return the success of models that write on errands in other words, at equal examples of plans.

    Encoders compare with the same examples that the models read, and with all that there are.
    """
    bench = Bench(folder, data, scale, THOUGHT_EPISODES)
    played = {}
    for n in (0, MORE):
        for lm in ("minilm", WORDS):
            label = f"{lm}, {n or 'all'} examples"
            played[label] = bench.played(Line(label, lm, options={"examples": n}, paraphrased=True))
    kinds = {
        "say x can": asked(MORE),
        "examples without the instruction": {**asked(MORE), "uninstructed": True},
        "blank prompt": {**asked(MORE), "blank": True},
    }
    played |= episodes_of(bench, lms, kinds, paraphrased=True)
    leads = []
    for lm in lms:
        name = model_of(lm)
        others = (f"minilm, {MORE} examples", f"{WORDS}, {MORE} examples", f"{WORDS}, all examples")
        controls = (f"{name}, examples without the instruction", f"{name}, blank prompt")
        leads += led(played, f"{name}, say x can", (*others, *controls))
    return by_family(played, leads)


def asked(examples: int) -> dict[str, Any]:
    """Return the options of a model that writes: the paper's way of asking, with examples of plans."""
    return {"examples": examples, "prior": PriorConfig(way="likelihood-unlisted", normalise="sum")}


def episodes_of(
    bench: Bench, lms: Sequence[str], kinds: Mapping[str, Mapping[str, Any]], *, paraphrased: bool = False
) -> dict[str, list[list[Played]]]:
    """Return the episodes of each model and kind of planner, by the label of the row."""
    played = {}
    for lm in lms:
        for kind, options in kinds.items():
            label = f"{model_of(lm)}, {kind}"
            played[label] = bench.played(Line(label, lm, options=options, paraphrased=paraphrased))
    return played


def led(
    played: Mapping[str, Sequence[Sequence[Played]]], label: str, others: Iterable[str]
) -> list[tuple[str, Estimate]]:
    """Return the lead of a row over others in the same episodes, with intervals over instructions."""
    return [(f"{label} minus {other}", ahead(played[label], played[other])[1]) for other in others]


def by_family(played: Mapping[str, Sequence[Sequence[Played]]], leads: Sequence[tuple[str, Estimate]]) -> str:
    """Return a table of success and failed plans, and one of leads."""
    rows = []
    for label, runs in played.items():
        families = [f"{success(runs, family).value:.2f}" for family in FAMILIES]
        failed = [f"{share(runs, why):.2f}" for why in ("plan", "execution")]
        rows.append((label, success(runs), *failed, *families))
    head = f"planner | success | failed plan | failed execution | {' | '.join(FAMILIES)}"
    shown = table(head, rows)
    if not leads:
        return shown
    return f"{shown}\n\n{table('difference in the same episodes | over instructions', leads)}"


def thought(explainers: Mapping[str, str], data: Path, scale: Scale, folder: Path) -> str:
    """Return success on errands in other words with an explanation before the plan, and by family.

    The planner is an encoder, which reads the explanation with the instruction. ``error=1`` explains another
    errand: the control. The blank prompt leaves out instruction and examples.
    """
    bench = Bench(folder, data, scale, THOUGHT_EPISODES)
    kinds: dict[str, dict[str, Any]] = {
        "none": {},
        **{name: {"explainer": spec} for name, spec in explainers.items()},
        "blank prompt": {"blank": True},
    }
    rows, found = [], {}
    for lm in ("minilm", WORDS):
        for label, options in kinds.items():
            line = Line(f"{lm}, {label}, other words", lm, options=options, paraphrased=True)
            found[lm, label] = bench.played(line)
            families = [f"{success(found[lm, label], family).value:.2f}" for family in FAMILIES]
            rows.append((lm, label, success(found[lm, label]), *families))
    leads = [
        (f"{lm}, {label} minus none", *ahead(found[lm, label], found[lm, "none"]))
        for lm, label in found
        if label != "none"
    ]
    told = table("difference in the same episodes | over seeds | over instructions", leads)
    head = f"planner | explained by | success | {' | '.join(FAMILIES)}"
    return f"{table(head, rows)}\n\n{told}"


def warmed(lm: str) -> dict[float, Line]:
    """Return a row for each temperature, on the thirty instructions in our own words."""
    return {t: Line(f"{lm} at {t}", lm, options={"prior": PriorConfig(temperature=t)}) for t in HEATS}


def tuned(bench: Bench, lm: str) -> float:
    """Return the temperature with the most success."""
    return max(HEATS, key=lambda heat: success(bench.played(warmed(lm)[heat])).value)


def dial(data: Path, scale: Scale, folder: Path) -> str:
    """Return the results of a scripted planner with an error rate, by five sampled answers."""
    bench = Bench(folder, data, scale, EPISODES // 3)
    rows = []
    for error in (0.6, 0.8):
        found = []
        for score in ("product", "say"):
            lm = f"scripted:errands?error={error}"
            options = {"score": score, "prior": PriorConfig(way="text")}
            found.append(success(bench.played(Line(f"{score} {error}", lm, options=options))))
        rows.append((error, *found))
    return table("share of wrong answers | say x can | say only", rows)


def calibrated(data: Path, scale: Scale, folder: Path) -> str:
    """Return how well the skills' values predict success in held-out episodes."""
    trained = [[load_trained(run) for run in skill_runs(data, s, scale)] for s in range(scale.seeds)]
    rows = []
    for i, run in enumerate(skill_runs(data, 0, scale)):
        own = [seed[i] for seed in trained]
        rates = [float(np.mean(t.successes)) for t in own]
        always = [brier([rate] * len(t.successes), t.successes) for rate, t in zip(rates, own, strict=True)]
        scores = over_seeds([brier(t.values, t.successes) for t in own])
        told = f"{scores.value:.3f} [{scores.low:.3f}, {scores.high:.3f}]"
        rows.append((run.parent.name, over_seeds(rates), told, f"{over_seeds(always).value:.3f}"))
    foretold = np.concatenate([t.values for seed in trained for t in seed])
    came = [s for seed in trained for t in seed for s in t.successes]
    found = reliability(foretold, came)
    folder.mkdir(parents=True, exist_ok=True)
    draw_reliability(found, folder / "reliability.png", "Skills of the kitchen")
    bins = [(f"{b.predicted:.2f}", f"{b.observed:.2f}", b.n) for b in found]
    first = table("verb | success | Brier score | Brier score of the mean success", rows)
    second = table("predicted | observed | episodes", bins)
    picture = f"![Reliability]({folder.name}/reliability.png)"
    return f"{first}\n\nAll verbs together, by predicted probability:\n\n{second}\n\n{picture}"


def _parts(scale: Scale, data: Path) -> list[Part]:
    models = ("minilm", WORDS, "scripted:errands")
    skills = skills_part((*skill_arms(scale), flat(scale)), scale)
    data = data.parent / skills.folder
    rules = {spec: spec for spec in EXPLAINERS}
    real = by_name(scale.lms or (REAL,))
    return [
        skills,
        Part("Calibration of the skills", (), beside=partial(calibrated, data, scale)),
        Part("Say and can", (), beside=partial(factors, models, data, scale)),
        Part("The same errands in other words", (), beside=partial(other_words, data, scale)),
        Part("A planner with an error rate", (), beside=partial(dial, data, scale)),
        Part("A model that writes", (), beside=partial(writers, scale.lms, data, scale)),
        Part(
            "A model that writes, in other words",
            (),
            beside=partial(writers_other_words, scale.lms, data, scale),
        ),
        Part("Chain of thought", (), beside=partial(thought, rules, data, scale)),
        Part("Chain of thought, a small real model", (), beside=partial(thought, real, data, scale)),
    ]


STUDIES = {
    "saycan": Study(
        "saycan",
        "Is usefulness times the probability of working a better score for skills than either alone?",
        "PaLM-SayCan plans 84 % and executes 74 % of 101 instructions (Ahn et al., CoRL 2022).",
        "A grid kitchen with thirty instructions and thirty skills instead of a robot with 551. The skills "
        "are four tables of Q-learning, one per verb; their values are calibrated on 200 episodes. "
        "Planners that embed use 156 examples of plain instructions with plans, which replace those of "
        "SayCan's prompt. A plan is right if its skills would have done the errand had every possible "
        "skill worked.",
        _parts,
        lm_for="saycan",
        seeds=5,
    )
}
