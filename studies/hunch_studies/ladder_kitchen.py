"""DQN-Prior in the kitchens of Overcooked with real models, beside words, even draws and blank prompts.

    hunch study ladder-kitchen --workers 1    # SmolLM2: llama.cpp serves one model at a time
    hunch study ladder-kitchen --workers 1 --lm qwen-coder-1.5b

The paper's protocol (Yan et al., ICLR 2025): five proposals, drawn on each arrival in a state, Q reads the
last three steps, and episodes end after 31 (Tomato) and 51 (Salad) actions. Where we depart: a model reads
the observation and no past steps, as the other priors here do, so that it is asked once for each of a few
hundred observations.

What counts is success over the whole run, the area under the curve: in the end all arms may serve the dish,
and a prior is there to save steps. An oracle in the role shows the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hunch.roles.prior.kinds import PriorConfig, PriorWay
from hunch.runs.compare import Arm, jobs
from hunch.runs.stored import finished
from hunch_studies.frontiers import learning
from hunch_studies.ladder import WORDS
from hunch_studies.ladder_lake import BLANK, with_leads
from hunch_studies.priors import KITCHENS, SALAD, TOMATO, dqn, dqn_prior
from hunch_studies.study import Part, Scale, Study, by_name

HISTORY: Final = 3
"""Past steps that Q reads (paper)."""
STEPS: Final = {TOMATO: 6_000, SALAD: 8_000}
MODEL: Final = "smollm2"
"""The model that is asked, unless others are named."""
UNLISTED: Final[PriorWay] = "likelihood-unlisted"
WAYS: Final[dict[str, tuple[PriorWay, ...]]] = {
    "smollm2": ("label",),
    "qwen-coder-0.5b": (UNLISTED,),
    "qwen-coder-1.5b": (UNLISTED, "structured"),
}
"""How the ladder's pilot says that a model is best asked as a prior, and another way where 100 questions gave
the other one more; other models in their best way."""
SAMPLES: Final = 128
"""Restricted answers that are asked for once for each observation; in torch all of them cost one pass."""
ORACLE: Final = "scripted:kitchen?error=0"


def arms(env: str, scale: Scale) -> tuple[Arm, ...]:
    """Return DQN, and DQN-Prior with even draws, words, MiniLM, an oracle, and each model and its blank."""
    steps = scale.steps(STEPS[env])
    place: dict[str, Any] = {"history": HISTORY, "max_steps": KITCHENS[env]}

    def filled(label: str, lm: str, way: PriorWay = "auto", blank: bool = False) -> Arm:
        samples = SAMPLES if way == "structured" else None
        prior = PriorConfig(way=way, recent=0, samples=samples, blank=blank)
        return dqn_prior(label, env, lm, steps, place, prior=prior)

    listed = [
        dqn(env, steps, place),
        filled("uninformed", "uniform"),
        filled(WORDS, "words"),
        filled("minilm", "minilm"),
        filled(f"minilm, {BLANK}", "minilm", blank=True),
        filled("oracle", ORACLE),
    ]
    for rung, spec in by_name(scale.lms or (MODEL,)).items():
        for number, way in enumerate(WAYS.get(rung, ("auto",))):
            label = f"{rung}, {way}" if number else rung
            listed.append(filled(label, spec, way))
            listed.append(filled(f"{label}, {BLANK}", spec, way, blank=True))
    return tuple(listed)


def measured(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the area under each arm's curve and its leads, in Markdown; the leads go to ``leads.json``."""
    areas: dict[str, list[float]] = {}
    for arm in listed:
        results = [finished(job.folder) for job in jobs([arm], seeds, folder)]
        areas[arm.label] = [learning(result) for result in results if result]
    head = "prior | success over the run"
    return with_leads(areas, areas.keys(), ("DQN", "uninformed", WORDS), head, folder)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        Part(env.split("/")[1].removesuffix("-v0"), arms(env, scale), measure=measured)
        for env in (TOMATO, SALAD)
    ]


STUDIES = {
    "ladder-kitchen": Study(
        "ladder-kitchen",
        "Does a real model that writes pay as the prior of DQN-Prior in the kitchens of Overcooked?",
        "With a 7B model DQN-Prior learns both dishes in fewer steps than DQN (Yan et al., in a figure).",
        "Q reads three past steps, the model none. Success over the run is the area under the curve.",
        _parts,
        lm_for="dqn-prior",
        seeds=5,
    )
}
