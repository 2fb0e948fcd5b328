"""Does the audition foretell what real models are worth as prior and as policy, on the Frozen Lake?

    python -m hunch_studies.ladder_lake PAIRS.jsonl    # asks the audition's questions, and adds the pairs
    hunch study ladder-lake --workers 1                # the loops behind them: llama.cpp serves one model

The lake has eleven cells on which a choice is made, so that a model of any size is asked in minutes. Its
blank prompt is that of the audition: without task and rules. What stays are the sentences that say where each
action leads.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from hunch.audition.question import Bed as Place
from hunch.audition.roles import role_named
from hunch.lm.registry import answers as stored_answers
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.compare import Arm, jobs
from hunch.runs.files import write_atomically
from hunch.runs.result import Result
from hunch.runs.stored import finished
from hunch_studies.frontiers import BEDS, Bed
from hunch_studies.ladder import WORDS, Cell, Recorder, lead, model_of, put_to, stand_in
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study

LAKE: Final = "hunch/FrozenLake-v0"
RUNGS: Final[Mapping[str, str]] = {
    "minilm": "similarity",
    "smollm2": "label",
    "qwen-coder-0.5b": "label",
    "qwen-coder-1.5b": "label",
}
"""The models, and how they are asked: the way that needs one answer a state."""
WAYS_OF_OTHERS: Final[Mapping[str, str]] = {"mpnet": "similarity"}
"""How models are asked that this study does not ask unless they are named."""
USUAL: Final = "label"
"""How a model of one's own is asked."""
QUESTIONS: Final = 40
"""Drawn from the states of playing; the same eleven cells come back."""
BLANK: Final = "blank prompt"
METHODS: Final = ("dqn-prior", "zero-shot")
LOOPS: Final = tuple(bed for bed in BEDS if bed.env == LAKE and bed.method in METHODS)
"""The loops of a prior and of a policy on the lake."""


# ---- what the audition says -------------------------------------------------------------------------------


def way_of(rung: str) -> str:
    """Return how a model is asked."""
    return {**RUNGS, **WAYS_OF_OTHERS}.get(rung, USUAL)


def foretold(rung: str, spec: str, loop: Bed) -> list[dict[str, Any]]:
    """Ask a model and its controls the audition's questions on the lake, and return a pair for each control.

    Args:
        rung: Name of the model.
        spec: How it is loaded here.
        loop: The loop behind the questions.
    """
    role = role_named(loop.role)
    place: Place = next(bed for bed in role.beds if bed.env == LAKE)
    asked = role.draw(place, QUESTIONS, 0)
    cell = Cell("pilot", role.name, rung, way_of(rung))
    backend, bare = model_of(spec)
    model = Recorder(bare, stored_answers(backend))
    usual = {"beds": [put_to(model, cell, role, place, asked)]}
    others = {
        "words": {"beds": [stand_in(Cell("pilot", role.name, WORDS), role, place, asked)]},
        "blank": {"beds": [put_to(model, cell._replace(blank=True), role, place, asked)]},
    }
    pairs = []
    for over, other in others.items():
        ahead = lead(usual, other)
        assert ahead is not None  # both answered the same questions
        pairs.append(
            {
                "role": role.name,
                "rung": rung,
                "way": way_of(rung),
                "bed": f"Frozen Lake ({loop.method})",
                "over": over,
                "command": f"hunch study ladder-lake --part {loop.method}",
                "audition": [round(x, 4) for x in ahead],
                "questions": QUESTIONS,
                "loop": None,
            }
        )
    return pairs


def main(file: str, *specs: str) -> None:
    """Add the pairs of models, NAME or NAME=SPEC, to a file; without names those of all rungs."""
    rows = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    for named in specs or tuple(RUNGS):
        rung, _, spec = named.partition("=")
        for loop in LOOPS:
            rows += foretold(rung, spec or rung, loop)
    write_atomically(Path(file), "".join(f"{json.dumps(row)}\n" for row in rows).encode())


# ---- the loops --------------------------------------------------------------------------------------------


def arms(bed: Bed, scale: Scale, specs: Mapping[str, str]) -> tuple[Arm, ...]:
    """Return a method with each model, with its blank prompt, with words, uninformed, and with an oracle."""
    [uninformed] = bed.arms("independent", scale)[:1]
    oracle = bed.model.specs("independent")[0]
    config = uninformed.config

    def asked(way: str) -> Any:
        return replace(config.options, prior=PriorConfig(way=way))  # type: ignore[arg-type]

    listed = [
        Arm("uninformed", config),
        Arm(WORDS, replace(config, lm=str(role_named(bed.role).lexical))),
        Arm("oracle", replace(config, lm=oracle)),
    ]
    for rung, spec in specs.items():
        own = replace(config, lm=spec, options=asked(way_of(rung)))
        listed.append(Arm(rung, own))
        listed.append(Arm(f"{rung}, {BLANK}", replace(own, env_options={"explained": False})))
    return tuple(listed)


def judged(bed: Bed, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the measure of each arm and the leads of the models, in Markdown; leads go to ``leads.json``."""
    achieved = by_label(listed, seeds, folder, bed.measure)
    models = [label for label in achieved if f"{label}, {BLANK}" in achieved]
    return with_leads(achieved, models, (WORDS,), f"arm | {bed.what}", folder)


def by_label(
    listed: Sequence[Arm], seeds: int, folder: Path, measure: Callable[[Result], float]
) -> dict[str, list[float]]:
    """Return a number of each finished run, by arm."""
    numbers: dict[str, list[float]] = {}
    for arm in listed:
        results = [finished(job.folder) for job in jobs([arm], seeds, folder)]
        numbers[arm.label] = [measure(result) for result in results if result]
    return numbers


def with_leads(
    achieved: Mapping[str, Sequence[float]],
    leading: Collection[str],
    controls: Sequence[str],
    head: str,
    folder: Path,
) -> str:
    """Return what arms achieved and leads over controls, paired by seed; leads go to ``leads.json``.

    Args:
        achieved: A number of each seed, by arm.
        leading: The arms whose leads are shown.
        controls: The arms over which they are, besides an arm's own blank prompt.
        head: Heads of the first two columns.
        folder: Where ``leads.json`` is written.
    """
    lines, leads = [], {}
    for label, own in achieved.items():
        cells = []
        for over in (*controls, f"{label}, {BLANK}"):
            if label not in leading or over not in achieved or over == label:
                cells.append("")
                continue
            ahead = over_pairs([a - b for a, b in zip(own, achieved[over], strict=True)])
            leads[f"{label} over {over}"] = [ahead.value, ahead.low, ahead.high]
            cells.append(ahead.short())
        lines.append((label, over_seeds(own).short(), *cells))
    write_atomically(folder / "leads.json", json.dumps(leads, indent=1).encode())
    columns = [f"over {control}" for control in controls]
    return table(" | ".join([head, *columns, f"over its {BLANK}"]), lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    specs = {rung: rung for rung in RUNGS}
    for spec in scale.lms:  # "NAME?options" stands for the rung of this name
        specs[spec.partition("?")[0]] = spec
    return [Part(bed.method, arms(bed, scale, specs), measure=partial(judged, bed)) for bed in LOOPS]


STUDIES = {
    "ladder-lake": Study(
        "ladder-lake",
        "Does the audition foretell what real models are worth as prior and as policy on the Frozen Lake?",
        "Nothing: the pairs are ours.",
        "Models are asked by label, and MiniLM by similarity; a cell is asked once.",
        _parts,
        lm_for="dqn-prior",
        seeds=5,
    )
}

if __name__ == "__main__":
    main(*sys.argv[1:])
