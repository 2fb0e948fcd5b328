"""A prompt for each snippet of a film review: Prompt-OIRL chooses one of our twelve, TEMPERA edits one.

The snippets, and how the model is asked, are those of :mod:`hunch_studies.film_prompts`, which finds one
prompt for all.

    hunch study film-choices
    python -m hunch_studies.film_choices ROWS_OF_CHOICES ROWS_OF_EDITS    # in docs/assets/studies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import FloatArray, State
from hunch.rl import dataset
from hunch.rl.statistics import over_pairs
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent
from hunch.runs.record import collect, parse_mix
from hunch_studies.film_prompts import BY_HAND, MODEL, NO_PROMPT, PER_PROMPT, SCORES, judged, of_arms, options
from hunch_studies.planners import table as table_of
from hunch_studies.prompting import (
    CHOOSERS,
    CHOOSING_STEPS,
    EDITS,
    FIXED,
    accuracy,
    chance_oracle,
    editors,
    with_range,
)
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Seeded, Study, kept, model_of, runs_of
from hunch_studies.worlds.prompting import Prompting

ENV: Final = "hunch/Prompting-v0"
RESULTS: Final = SCORES * PER_PROMPT
"""Recorded results that a choice is learnt from: as many calls as the searches for one prompt have."""
ORACLE: Final = "oracle by snippet"
CHANCE: Final = "oracle by chance alone"
"""The oracle where the same prompt is best for all snippets, and results are chance otherwise."""
NO_EDITS: Final = "no edits"
HELD_OUT: Final = 300
"""Episodes in which edits are judged."""


def by_snippet(model: str, play: str) -> dict[str, Any]:
    """Return the options of the environment with one snippet in each episode."""
    asked = {**options(model, balanced=False), "play": play}
    return {**asked, "prompts": "|".join(BY_HAND)} if play == "choose" else asked


# ---- one of twelve prompts -------------------------------------------------------------------------------


def record(model: str, results: int, seeds: int, data: Path) -> None:
    """Record results of prompts drawn at random after snippets drawn at random, for each seed its own."""
    for seed in range(seeds):
        folder = data / f"results-{seed}"
        if not folder.exists():
            drawn = collect(ENV, by_snippet(model, "choose"), parse_mix("random=1"), results, seed=seed)
            dataset.save(drawn, folder)


def of_seed(data: Path, seed: int) -> dict[str, str]:
    """Return which records the run of a seed reads."""
    return {"data": str(data / f"results-{seed}")}


def choosers(model: str, steps: int, data: Path) -> tuple[Seeded, ...]:
    """Who chooses one of our prompts: by the snippet, the best of the records, and at random."""
    run = RunConfig(method="prompt-oirl", env=ENV, env_options=by_snippet(model, "choose"), steps=steps)
    reads = partial(of_seed, data)
    return tuple(
        Seeded(label, replace(run, options=config), settings_by_seed=reads)
        for label, config in CHOOSERS.items()
    )


@cache
def results_of(model: str) -> FloatArray:
    """Return whether each held-out snippet is judged rightly after each prompt: (snippets, prompts)."""
    of_prompts = [judged(model, prompt)["right"] for prompt in BY_HAND]  # a digit for each snippet
    return np.array([[digit == "1" for digit in digits] for digits in of_prompts], dtype=float).T


def choices_of(run: Path) -> list[int]:
    """Return the place of the prompt that a run chooses for each held-out snippet."""
    agent: Any
    agent, config = load_agent(run)
    # No model is asked to choose.
    env = Prompting(**{**config.env_options, "lm": "uniform", "split": "held out"})
    states = [State(question.text, actions=BY_HAND) for question in env.questions]
    return [BY_HAND.index(prompt) for prompt in agent.player(config.seed).act(states)]


def chosen_row(model: str, listed: Sequence[Seeded], folder: Path, arm: str, seed: int) -> dict[str, Any]:
    """Return ``accuracy`` on the held-out snippets, and how often each prompt was chosen."""
    results = results_of(model)
    if arm == ORACLE:
        return {"accuracy": float(results.max(1).mean())}
    if arm == CHANCE:
        return {"accuracy": chance_oracle(results)}
    if arm == NO_PROMPT:
        return {"accuracy": judged(model, "")["accuracy"]}
    chooser = next(one for one in listed if one.label == arm)
    places = choices_of(runs_of(chooser, seed + 1, folder)[seed])
    counts = np.bincount(places, minlength=len(BY_HAND))
    right = results[np.arange(len(places)), places]
    return {
        "accuracy": float(right.mean()),
        "chosen": {BY_HAND[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable") if counts[i]},
        "right": "".join("01"[int(one)] for one in right),
    }


# ---- edits -----------------------------------------------------------------------------------------------


def edited_row(listed: Sequence[Any], episodes: int, folder: Path, arm: str, seed: int) -> dict[str, Any]:
    """Return ``accuracy`` on snippets drawn from those that are held out."""
    editor = next(one for one in listed if one.label == arm)
    run = runs_of(editor, seed + 1, folder)[seed]
    return {"accuracy": accuracy(run, episodes)}


# ---- the study -------------------------------------------------------------------------------------------


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return accuracy of each arm, and its lead over the one that reads no snippet, in Markdown."""
    by_arm = of_arms(rows)
    control = next((label for label in (FIXED, NO_EDITS) if label in by_arm), "")
    base = {seed: row["accuracy"] for seed, row in by_arm.get(control, {}).items()}
    lines = []
    for arm, by_seed in by_arm.items():
        scores = [row["accuracy"] for row in by_seed.values()]
        ends = with_range(np.array(scores))
        shared = [row["accuracy"] - base[seed] for seed, row in by_seed.items() if seed in base]
        lead = over_pairs(shared).short() if arm != control and len(by_seed) > 1 and shared else ""
        first = next(iter(by_seed.values())).get("chosen", {})
        often = "; ".join(f'"{prompt}" {count}' for prompt, count in list(first.items())[:3])
        lines.append((arm, len(by_seed), ends, lead, often))
    head = f"arm | seeds | right [range] | ahead of {control or 'no control'} | chosen most, first seed"
    return table_of(head, lines)


def chosen_table(model: str, every: int, listed: Sequence[Any], seeds: int, folder: Path) -> str:
    """Judge the choosers on all held-out snippets, and return the table."""
    keys = [(arm.label, seed) for arm in listed for seed in range(seeds)]
    if len(listed) == every:
        keys += [(ORACLE, 0), (CHANCE, 0), (NO_PROMPT, 0)]
    return table(kept(folder / "judged.jsonl", keys, partial(chosen_row, model, listed, folder)))


def edited_table(episodes: int, listed: Sequence[Any], seeds: int, folder: Path) -> str:
    """Judge the editors, and return the table."""
    keys = [(arm.label, seed) for arm in listed for seed in range(seeds)]
    return table(kept(folder / "judged.jsonl", keys, partial(edited_row, listed, episodes, folder)))


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for model in scale.lms or (MODEL,):
        place = data / model_of(model)
        choosing = choosers(model, scale.steps(CHOOSING_STEPS), place)
        ready = partial(record, model, max(60, round(RESULTS * scale.share)), scale.seeds, place)
        choice = partial(chosen_table, model, len(choosing))
        parts.append(Part(f"Choices, {model_of(model)}", choosing, measure=choice, prepare=ready, apart=True))
        run = RunConfig(method="tempera", env=ENV, env_options=by_snippet(model, "edit"))
        editing = editors(run, scale.steps(EDITS))
        edit = partial(edited_table, scale.episodes(HELD_OUT))
        parts.append(Part(f"Edits, {model_of(model)}", editing, measure=edit, apart=True))
    return parts


STUDIES = {
    "film-choices": Study(
        "film-choices",
        "Does a prompt for each film review make a small real model a better judge than one for all?",
        "A prompt chosen by question beats the best fixed one (Sun, Prompt-OIRL, ICLR 2024: arithmetic, "
        "three larger models). Prompts edited by question beat fixed ones (Zhang et al., TEMPERA, ICLR 2023: "
        "RoBERTa-large; film reviews among the tasks).",
        "SmolLM2-135M; twelve prompts of ours, 1,600 recorded results; TEMPERA edits five words in place of "
        "instructions, examples and labels, and starts from random ones.",
        _parts,
        lm_for="zero-shot",
        seeds=5,
    )
}


def recorded(choices: Path, edits: Path | None = None) -> str:
    """Return the tables of recorded rows of choices, and of edits, in Markdown."""
    return "\n\n".join(table(read_lines(file)) for file in (choices, edits) if file)


if __name__ == "__main__":
    print_table(recorded, "A prompt for each film review: rows of choices, then of edits.", at_most=2)
