"""DQN-Prior and CQL-Prior in Overcooked with real models, beside words, even draws and blank prompts.

    hunch study ladder-kitchen --workers 1    # SmolLM2: llama.cpp serves one model at a time
    hunch study ladder-kitchen --workers 1 --lm qwen-coder-1.5b
    python -m hunch_studies.ladder_kitchen ROWS.jsonl [FOLDER]    # tables of rows; of those of new runs, too

The paper's protocol (Yan et al., ICLR 2025): five proposals, drawn on each arrival in a state, Q reads the
last three steps, and episodes end after 31 (Tomato) and 51 (Salad) actions. Where we depart: a model reads
the observation and no past steps, as the other priors here do, so that it is asked once for each of a few
hundred observations.

What counts online is success over the whole run, the area under the curve: in the end all arms may serve the
dish, and a prior is there to save steps. From recorded data (CQL-Prior, with the weight of the authors' code)
it is the return of the last and of the best checkpoint. An oracle in the role shows the room.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.prior.kinds import PriorConfig, PriorWay
from hunch.runs.compare import Arm, folder_name
from hunch.runs.files import write_atomically
from hunch.runs.stored import finished
from hunch_studies.frontiers import late, learning
from hunch_studies.ladder import WORDS
from hunch_studies.ladder_lake import BLANK, by_label, with_leads
from hunch_studies.planners import table
from hunch_studies.priors import KITCHENS, SALAD, TOMATO, dqn, dqn_prior
from hunch_studies.priors_offline import (
    BETAS,
    FAIR,
    GOOD,
    PUBLISHED,
    by_agent,
    checkpoints,
    evaluated,
    published,
)
from hunch_studies.study import Part, Scale, Study, by_name

HISTORY: Final = 3
"""Past steps that Q reads (paper)."""
STEPS: Final = {TOMATO: 6_000, SALAD: 8_000}
"""Steps of a run in each kitchen (ours)."""
MODEL: Final = "smollm2"
"""The model that is asked, unless others are named."""
UNLISTED: Final[PriorWay] = "likelihood-unlisted"
WAYS: Final[dict[str, tuple[PriorWay, ...]]] = {
    "smollm2": ("label",),
    "qwen-coder-0.5b": (UNLISTED,),
    "qwen-coder-1.5b": (UNLISTED, "structured"),
}
"""The best way of each model as a prior in the ladder's pilot, and a second one that was better with 100
questions; other models are asked in their own best way."""
SAMPLES: Final = 128
"""Restricted answers that are asked for once for each observation; in torch all of them cost one pass."""
OTHER: Final = ", other answers"
"""End of the names of arms with as many other restricted answers: what the luck of drawing them does."""
ORACLE: Final = "scripted:kitchen?error=0"
CONTROLS: Final = ("no prior", "uninformed", WORDS)
"""All actions as candidates (DQN, CQL), even draws of five, and a model that knows words only."""
TABLES: Final = (
    ("overcooked-tomato", "area"),
    ("overcooked-salad", "area"),
    ("salad--recorded", "last"),
    ("salad--recorded", "best"),
    # of ladder-pick and of gflan-prior, whose rows have the same form
    ("household-pick", "area"),
    ("household-pick", "late"),
    ("only-the-ball--written-proposals", "area"),
    ("only-the-ball--written-proposals", "late"),
)
"""Folder of a part and the figure of each table that rows make."""
PLAIN: Final = PriorConfig(recent=0)
"""Priors that read the observation only."""


def asked(scale: Scale) -> Iterator[tuple[str, str, PriorConfig]]:
    """Yield name, model and settings of each prior that asks a model; the blank prompt follows the usual."""
    yield WORDS, "words", PLAIN
    yield "minilm", "minilm", PLAIN
    yield f"minilm, {BLANK}", "minilm", PriorConfig(recent=0, blank=True)
    for rung, spec in by_name(scale.lms or (MODEL,)).items():
        for number, way in enumerate(WAYS.get(rung, ("auto",))):
            name = f"{rung}, {way}" if number else rung
            prior = replace(PLAIN, way=way, samples=SAMPLES if way == "structured" else None)
            yield name, spec, prior
            yield f"{name}, {BLANK}", spec, replace(prior, blank=True)
            if way == "structured":
                yield f"{name}{OTHER}", spec, replace(prior, drawing=1)


def arms(env: str, scale: Scale) -> tuple[Arm, ...]:
    """Return DQN, and DQN-Prior with even draws, with an oracle, and with each prior that asks a model."""
    steps = scale.steps(STEPS[env])
    place: dict[str, Any] = {"history": HISTORY, "max_steps": KITCHENS[env]}
    listed = [
        replace(dqn(env, steps, place), label="no prior"),
        dqn_prior("uninformed", env, "uniform", steps, place, prior=PLAIN),
        dqn_prior("oracle", env, ORACLE, steps, place, prior=PLAIN),
    ]
    listed += [dqn_prior(name, env, lm, steps, place, prior=prior) for name, lm, prior in asked(scale)]
    return tuple(listed)


def from_data(scale: Scale, data: Path) -> Part:
    """Return CQL, and CQL-Prior with each prior, on the data of :mod:`hunch_studies.priors_offline`."""
    source = data / "salad-published"
    recorder = dqn_prior("", SALAD, FAIR, 6_000, PUBLISHED, proposals="visited").config

    def learnt(label: str, method: str, lm: str, **options: Any) -> Arm:
        return published(label, method, SALAD, str(source), lm, scale, beta=BETAS["5/128"], **options)

    listed = [
        learnt("no prior", "cql", "uniform"),
        learnt("uninformed", "cql-prior", "uniform", prior=PLAIN),
        learnt("oracle", "cql-prior", ORACLE, prior=PLAIN),
    ]
    listed += [learnt(name, "cql-prior", lm, prior=prior) for name, lm, prior in asked(scale)]
    names = [arm.label for arm in listed]
    leads = [
        (name, over)
        for name, *_ in asked(scale)
        for over in (*CONTROLS, f"{name}, {BLANK}")
        if over in names and over != name
    ]
    return Part(
        "Salad, recorded",
        tuple(listed),
        measure=partial(checkpoints, leads),
        prepare=partial(by_agent, source, recorder, 1_186, GOOD, scale.smoke),
    )


def measured(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the area under each arm's curve and its leads, in Markdown; the leads go to ``leads.json``."""
    areas = by_label(listed, seeds, folder, learning)
    head = "prior | success over the run"
    return with_leads(areas, areas.keys(), CONTROLS, head, folder)


# ---- rows -------------------------------------------------------------------------------------------------


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Return a row for each finished run below the folder of this study.

    Online a row has the area under the curve and the success in the last quarter of the steps, from recorded
    data the return of the last and of the best checkpoint.
    """
    rows = []
    for run in sorted(folder.glob("*/*/seed-*")):
        result = finished(run)
        if result is None:
            continue
        row = {"part": run.parts[-3], "arm": run.parts[-2], "seed": int(run.name.removeprefix("seed-"))}
        returns = list(evaluated(run).values())
        if returns:
            row |= {"last": returns[-1], "best": max(returns)}
        else:
            row |= {"area": learning(result), "late": late(result)}
        rows.append(row)
    return rows


def tables(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return for each part and figure the mean of each arm and its leads, paired by seed, in Markdown."""
    texts = []
    for part, figure in TABLES:
        found: dict[str, dict[int, float]] = {}  # by arm and seed
        for row in rows:
            if row["part"] == part and figure in row:
                found.setdefault(row["arm"], {})[row["seed"]] = row[figure]
        if not found:
            continue
        lines = []
        for arm, own in sorted(found.items(), key=lambda item: -np.mean(list(item[1].values()))):
            cells = []
            its_blank = folder_name(f"{arm.removesuffix(folder_name(OTHER))}, {BLANK}")
            for over in (*map(folder_name, CONTROLS), its_blank):
                both = sorted(own.keys() & found.get(over, {}).keys()) if over != arm else []
                lead = over_pairs([own[seed] - found[over][seed] for seed in both])
                cells.append(lead.short() if both else "")
            lines.append((arm, str(len(own)), over_seeds(list(own.values())).short(), *cells))
        leads = " | ".join(f"over {control}" for control in (*CONTROLS, f"its {BLANK}"))
        texts.append(f"{part}, {figure}:\n\n" + table(f"prior | seeds | {figure} | {leads}", lines))
    return "\n\n".join(texts)


def main(file: str, folder: str = "") -> None:
    """Write the rows of a folder into a file, if a folder is named, and print the tables of its rows."""
    path = Path(file)
    if folder:
        lines = [json.dumps(row) for row in rows_of(Path(folder))]
        write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
    print(tables([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]))


def _parts(scale: Scale, data: Path) -> list[Part]:
    online = [
        Part(env.split("/")[1].removesuffix("-v0"), arms(env, scale), measure=measured)
        for env in (TOMATO, SALAD)
    ]
    return [*online, from_data(scale, data)]


STUDIES = {
    "ladder-kitchen": Study(
        "ladder-kitchen",
        "Does a real model that writes pay as the prior of DQN-Prior and CQL-Prior in Overcooked?",
        "With a 7B model DQN-Prior needs fewer steps than DQN, and CQL-Prior fewer data than CQL.",
        "Q reads three past steps, the model none. Success over the run is the area under the curve.",
        _parts,
        lm_for="dqn-prior",
        seeds=5,
    )
}

if __name__ == "__main__":
    main(*sys.argv[1:])
