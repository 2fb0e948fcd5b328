"""DQN-Prior in Household-Pick with real models, beside words, even draws and each model's blank prompt.

    hunch study ladder-pick --workers 1                # SmolLM2: llama.cpp serves one model at a time
    hunch study ladder-pick --workers 1 --lm qwen-coder-0.5b
    hunch study ladder-pick --workers 1 --lm "hf:FILE.gguf?chat=true&dtype=bfloat16&batch=8"
    python -m hunch_studies.ladder_pick ANSWERS.jsonl.gz    # how restricted answers are spread

The pairs of the ladder name this loop: does a model that the audition calls ahead, or not, come out so when
Q-learning chooses among its proposals? A model is asked in the way that the pairs name. As in the kitchens,
every prior reads the task, the last observation and the commands, and no earlier steps: so a model is asked
once for each of some hundreds of observations, and not on almost every step. A run is shorter than those of
the encoders (2,000 steps, not 9,000), because a question of a model that writes takes a second.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.roles.prior.kinds import PriorConfig, PriorWay
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.frontiers import late
from hunch_studies.ladder import WORDS
from hunch_studies.ladder_kitchen import PLAIN, SAMPLES
from hunch_studies.ladder_lake import BLANK, by_label, with_leads
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, by_name

ENV: Final = "hunch/Household-Pick-v0"
STEPS: Final = 2_000
MODEL: Final = "smollm2"
"""The model that is asked, unless others are named."""
WAYS: Final[dict[str, PriorWay]] = {
    "smollm2": "label",
    "qwen-coder-0.5b": "structured",
    "qwen-coder-1.5b": "structured",
}
"""How the pairs say that a model is asked; another model in its best way."""


def arms(scale: Scale) -> tuple[Arm, ...]:
    """Return DQN-Prior with even draws, words, MiniLM, and with each model and its blank prompt."""

    def filled(lm: str, prior: PriorConfig) -> RunConfig:
        return RunConfig(
            method="dqn-prior",
            env=ENV,
            lm=lm,
            steps=scale.steps(STEPS),
            env_options={"games": 8},
            options=DQNPriorConfig(encoder="minilm", prior=prior),
        )

    listed = [
        Arm("uninformed", filled("uniform", PLAIN)),
        Arm(WORDS, filled("words", PLAIN)),
        Arm("minilm", filled("minilm", PLAIN)),
    ]
    for rung, spec in by_name(scale.lms or (MODEL,)).items():
        way = WAYS.get(rung, "auto")
        asked = replace(PLAIN, way=way, samples=SAMPLES if way == "structured" else None)
        listed.append(Arm(rung, filled(spec, asked)))
        listed.append(Arm(f"{rung}, {BLANK}", filled(spec, replace(asked, blank=True))))
    return tuple(listed)


def measured(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the success of each arm and its leads, in Markdown; the leads go to ``leads.json``."""
    success = by_label(listed, seeds, folder, late)
    head = "prior | success in the last quarter"
    return with_leads(success, success.keys(), ("uninformed", WORDS), head, folder)


IDLE: Final = ("help", "inventory", "look")
"""Commands that change nothing."""


def spread(file: Path) -> str:
    """Return over how many commands each model's restricted answers are spread, in Markdown.

    Args:
        file: Recorded answers, compressed; those of other ways of asking are left out.
    """
    commands: dict[str, list[str]] = {}  # by prompt
    # How often each command was the answer, by model, whether the prompt was blank, and prompt.
    answers: dict[tuple[str, bool], dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["verb"] != "generate":
                continue
            prompt, (*_, choices) = row["request"]
            if not choices:  # not restricted
                continue
            commands[prompt] = choices
            blank = "Your task is to" not in prompt
            answers[row["model"], blank][prompt][row["value"]] += 1

    rows = []
    for (model, blank), prompts in answers.items():
        figures = []
        for prompt, counts in prompts.items():
            choices = commands[prompt]
            idle = sum(counts[command] for command in IDLE) / counts.total()
            idle_by_chance = sum(command in choices for command in IDLE) / len(choices)
            favourite = max(counts.values()) / counts.total()
            figures.append((len(choices), len(counts), favourite, idle, idle_by_chance))
        means = np.mean(figures, axis=0)  # (figures,)
        label = f"{model}, {BLANK}" if blank else model
        rows.append((label, len(prompts), *(f"{mean:.2f}" for mean in means)))
    head = "model | prompts | commands | different answers | favourite | change nothing | the same by chance"
    return table(head, rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("Household-Pick", arms(scale), measure=measured)]


STUDIES = {
    "ladder-pick": Study(
        "ladder-pick",
        "Does a real model that writes pay as the prior of DQN-Prior in Household-Pick?",
        "With a 7B model DQN-Prior reaches 0.62 on the training tasks of Pick, with k = 5, in ALFWorld.",
        "2,000 steps, eight generated games; Q embeds by MiniLM. A prior reads the last observation.",
        _parts,
        lm_for="dqn-prior",
        seeds=3,
    )
}


def main() -> None:
    """Print how the recorded answers are spread."""
    parser = argparse.ArgumentParser(description="How restricted answers in Household-Pick are spread.")
    parser.add_argument("answers", type=Path)
    print(spread(parser.parse_args().answers))


if __name__ == "__main__":
    main()
