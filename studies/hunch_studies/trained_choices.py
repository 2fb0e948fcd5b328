"""A model that chooses among answers: are its probabilities those of being right?

Plain correctness as the reward makes a policy sure of whatever pays most often. Correctness minus the
probability that it gave to its answer (``hunch run rloo --confidence 1``) lets it come to rest where the two
are equal. Both learn here to choose the largest of three numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import FloatArray, IntArray, State
from hunch.rl.calibration import calibration_error, reliability
from hunch.rl.policy import cut
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import write_atomically
from hunch.runs.loading import load_agent
from hunch_contrib.tune.rest import ReSTConfig
from hunch_contrib.tune.rloo import RLOOConfig
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, kept, runs_of

CHOICES: Final = "Largest of three, chosen"
"""Title of the part."""
TRAINED: Final = 4_000
HELD_OUT: Final = 300
"""Questions of each kind; no three numbers are in both."""
OPTIONS: Final = 3
STREAMS: Final = 256
UPDATES: Final = 40
GROUP: Final = 8
"""Choices after each question: an update has 32 questions."""
ROUNDS: Final = 4
"""Rounds of filtered cloning."""
LEARNING_RATE: Final = 3e-4
"""Of all arms: the default of the methods."""
NEVER: Final = 10**9
MODEL: Final = "smollm2?train=lora&rank=16"
"""The model, without its chat template: an answer goes on with the sentence that the question begins."""
UNTRAINED: Final = "untrained"
PLAIN: Final = "correctness"
CONFIDENT: Final = "correctness minus the probability given"


# ---- the questions -----------------------------------------------------------------------------------------


def questions(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the questions for training, and those that are held out."""
    rng = np.random.default_rng(seed)
    drawn: dict[frozenset[int], dict[str, Any]] = {}  # by the numbers, so that no two questions have the same
    while len(drawn) < TRAINED + HELD_OUT:
        numbers = [int(number) for number in rng.choice(np.arange(10, 1_000), size=OPTIONS, replace=False)]
        drawn.setdefault(frozenset(numbers), question(numbers))
    rows = list(drawn.values())
    return rows[:TRAINED], rows[TRAINED:]


def question(numbers: Sequence[int]) -> dict[str, Any]:
    """Return the question which of some numbers is the largest."""
    options = [str(number) for number in numbers]
    return {
        "prompt": f"The largest of the numbers {', '.join(options[:-1])} and {options[-1]} is",
        "options": options,
        "answer": str(max(numbers)),
    }


def prepare(data: Path) -> None:
    """Write both files of questions, unless they are there."""
    data.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("training", "held-out"), questions(0), strict=True):
        file = data / f"{name}.jsonl"
        if not file.exists():
            write_atomically(file, "".join(json.dumps(row) + "\n" for row in rows).encode())


# ---- the runs ----------------------------------------------------------------------------------------------


def arms(model: str, scale: Scale, data: Path) -> tuple[Arm, ...]:
    """The two rewards, shuffled rewards, cloning of right answers, and the model before training."""
    updates = max(2, round(UPDATES * scale.share))
    total = updates * STREAMS
    rloo = RLOOConfig(
        group=GROUP,
        episodes=STREAMS,
        listed=False,  # the question names the numbers
        kl=0.0,
        reference="none",
        learning_rate=LEARNING_RATE,
        micro=32,
    )
    cloning = ReSTConfig(
        episodes=total // ROUNDS,  # as many choices in all, each after a question of its own
        keep=1,
        least=1.0,  # right ones
        updates=max(2, round(20 * scale.share)),
        batch_size=32,
        micro=32,
        listed=False,
        learning_rate=LEARNING_RATE,
    )

    def arm(label: str, method: str, options: Any, steps: int) -> Arm:
        config = RunConfig(
            method=method,
            env="hunch/Prompts-v0",
            env_options={"file": str(data / "training.jsonl")},
            lm=model,
            envs=STREAMS,
            steps=steps,
            options=options,
        )
        return Arm(label, config)

    return (
        arm(PLAIN, "rloo", rloo, total),
        arm(CONFIDENT, "rloo", replace(rloo, confidence=1.0), total),
        arm("correctness, shuffled", "rloo", replace(rloo, shuffle=True), total),
        arm("filtered cloning", "rest", cloning, total),
        arm(UNTRAINED, "rloo", replace(rloo, episodes=NEVER), STREAMS),
    )


def choices(title: str, model: str, scale: Scale, data: Path) -> Part:
    """Return the part of the study ``trained`` in which a model chooses."""
    listed = arms(model, scale, data)
    beside = partial(judged, listed, scale.seeds, data / "held-out.jsonl")
    return Part(title, listed, beside=beside, prepare=partial(prepare, data), apart=True)


# ---- judged on held-out questions --------------------------------------------------------------------------


def measured(run: str, questions_file: str) -> dict[str, Any]:
    """Return how often a run is right on held-out questions, and how well its probabilities fit.

    Returns:
        See :func:`fit`.
    """
    agent, _ = load_agent(Path(run))
    rows = [json.loads(line) for line in Path(questions_file).read_text(encoding="utf-8").splitlines()]
    states = [State(row["prompt"], actions=tuple(row["options"])) for row in rows]
    policy: Any = agent.policy  # type: ignore[attr-defined]
    probs = np.concatenate(
        [np.array(policy.probabilities(few)) for few in cut(states, 32)]
    )  # (questions, options)
    places = np.array([row["options"].index(row["answer"]) for row in rows])  # (questions,)
    return fit(probs, places)


def fit(probs: FloatArray, places: IntArray) -> dict[str, float]:
    """Return how often the likeliest answer is right, and how well the probabilities fit.

    Args:
        probs: Probability of each answer, shape (questions, answers).
        places: Place of the right answer, shape (questions,).

    Returns:
        ``right``, the share of questions whose favourite is right; ``sure``, the mean probability of the
        favourite; ``calibration``, the mean distance of the two over ten bins of equal width, weighted by the
        questions in each; ``brier``, the mean squared error of all probabilities, summed over the answers.
    """
    right = probs.argmax(axis=1) == places  # (questions,)
    sure = probs.max(axis=1)  # (questions,)
    errors = ((probs - np.eye(probs.shape[1])[places]) ** 2).sum(axis=1)  # (questions,)
    return {
        "right": float(right.mean()),
        "sure": float(sure.mean()),
        "calibration": calibration_error(reliability(sure, right)),
        "brier": float(errors.mean()),
    }


def judged(listed: Sequence[Arm], seeds: int, questions_file: Path, folder: Path) -> str:
    """Return the table of all arms on held-out questions, in Markdown."""
    by_arm: dict[str, list[dict[str, Any]]] = {}
    for arm in listed:
        runs = runs_of(arm, seeds, folder)
        keys = [(str(run), str(questions_file)) for run in runs]
        by_arm[arm.label] = kept(folder / "chosen.jsonl", keys, measured)
    return tabulated(by_arm)


def tabulated(by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the table of the rows of each arm, seed by seed, in Markdown."""
    names = ("right", "sure", "calibration", "brier")
    lines = [
        (label, len(own), *(over_seeds([row[name] for row in own]) for name in names))
        for label, own in by_arm.items()
    ]
    head = "reward | seeds | right | probability of the favourite | calibration error | Brier score"
    leads = [
        f"- {CONFIDENT} over {label}, {name}: "
        + over_pairs(
            [own[name] - other[name] for own, other in zip(by_arm[CONFIDENT], rows, strict=True)]
        ).short()
        for label, rows in by_arm.items()
        if label != CONFIDENT
        for name in ("right", "brier")
    ]
    return "\n\n".join([f"On {HELD_OUT:,} held-out questions.", table_of(head, lines), "\n".join(leads)])
