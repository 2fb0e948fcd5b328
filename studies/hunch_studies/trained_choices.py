"""A model that chooses among answers: are its probabilities those of being right?

Plain correctness as the reward makes a policy sure of whatever pays most often. Correctness minus the
probability that it gave to its answer (``hunch run rloo --confidence 1``) lets it come to rest where the two
are equal. A ball that is drawn from a bag shows it: nobody can know its colour. The largest of three numbers
can be known, and shows what is learnt.

    hunch study trained --part "Ball from a bag, chosen" "Largest of three, chosen"
    python -m hunch_studies.trained_choices docs/assets/studies/trained-choices.jsonl   # recorded rows
    python -m hunch_studies.trained_choices ROWS --collect runs/study-trained           # records them
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.core import FloatArray, State
from hunch.rl.calibration import calibration_error, reliability
from hunch.rl.policy import cut
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm, folder_name
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.loading import load_agent
from hunch_contrib.tune.rest import ReSTConfig
from hunch_contrib.tune.rloo import RLOOConfig
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, finished_runs, kept, place_name, runs_of

TRAINED: Final = 4_000
HELD_OUT: Final = 300
"""Questions of each kind; none is in both."""
COLOURS: Final = ("red", "blue", "green")
MOST: Final = 12
"""Most balls of a colour."""
STREAMS: Final = 256
"""Choices per update."""
GROUP: Final = 8
"""Choices after each question: an update has 32 questions."""
ROUNDS: Final = 2
"""Rounds of filtered cloning."""
LEARNING_RATE: Final = 3e-4
"""Of all arms: RLOO's default. ReST's, 3e-3, is for models of under a million weights."""
NEVER: Final = 10**9
MODEL: Final = "smollm2?train=lora&rank=16"
"""The model, without its chat template: an answer goes on with the sentence that the question begins."""
UNTRAINED: Final = "untrained"
PLAIN: Final = "correctness"
CONFIDENT: Final = "correctness minus the probability given"
SHUFFLED: Final = "correctness, shuffled"
CLONING: Final = "filtered cloning"


# ---- the questions -----------------------------------------------------------------------------------------


class Question(NamedTuple):
    """A question with listed answers.

    Attributes:
        text: The beginning of a sentence, with which an answer goes on.
        options: The answers.
        answer: The right one; where it is drawn, the one that was.
        shares: The probability that each answer is right, as far as anybody can know.
    """

    text: str
    options: tuple[str, ...]
    answer: str
    shares: tuple[float, ...]


def largest(rng: np.random.Generator) -> Question:
    """Draw a question which of three numbers is the largest: it has one right answer."""
    numbers = [int(number) for number in rng.choice(np.arange(10, 1_000), size=3, replace=False)]
    options = tuple(str(number) for number in numbers)
    text = f"The largest of the numbers {options[0]}, {options[1]} and {options[2]} is"
    shares = tuple(float(number == max(numbers)) for number in numbers)
    return Question(text, options, str(max(numbers)), shares)


def from_a_bag(rng: np.random.Generator) -> Question:
    """Draw a question which ball was drawn from a bag: nobody can know more than the shares."""
    colours = tuple(str(colour) for colour in rng.permutation(COLOURS))
    counts = rng.integers(1, MOST + 1, size=len(colours))  # (colours,)
    shares = counts / counts.sum()
    first, second, third = (f"{n} {colour}" for n, colour in zip(counts, colours, strict=True))
    text = f"A bag holds {first}, {second} and {third} balls. One is drawn at random. Its colour is"
    answer = str(rng.choice(colours, p=shares))
    return Question(text, colours, answer, tuple(shares.tolist()))


def questions(draw: Callable[[np.random.Generator], Question], seed: int) -> list[Question]:
    """Return questions with different texts: first those for training, then those that are held out."""
    rng = np.random.default_rng(seed)
    by_text: dict[str, Question] = {}
    while len(by_text) < TRAINED + HELD_OUT:
        question = draw(rng)
        by_text.setdefault(question.text, question)
    return list(by_text.values())


def prepare(kind: Kind, data: Path) -> None:
    """Write the file of questions for training, unless it is there."""
    file = data / "training.jsonl"
    if file.exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    rows = [
        {"prompt": question.text, "options": question.options, "answer": question.answer}
        for question in questions(kind.draw, 0)[:TRAINED]
    ]
    write_atomically(file, "".join(json.dumps(row) + "\n" for row in rows).encode())


# ---- the runs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of questions, and what learns from them.

    Attributes:
        draw: Draws a question.
        updates: Updates of an arm that learns.
        arms: Labels of the arms; the leads are those of the first.
    """

    draw: Callable[[np.random.Generator], Question]
    updates: int
    arms: tuple[str, ...]


KINDS: Final[Mapping[str, Kind]] = {
    "Largest of three, chosen": Kind(largest, 20, (PLAIN, SHUFFLED, CLONING, UNTRAINED)),
    "Ball from a bag, chosen": Kind(from_a_bag, 40, (CONFIDENT, PLAIN, UNTRAINED)),
}
"""By title of the part. The first kind can be known, and shows what is learnt; the second cannot, and shows
what becomes of the probabilities."""


def arms(kind: Kind, model: str, scale: Scale, data: Path) -> tuple[Arm, ...]:
    """Return the arms of a kind: both rewards, and what else could explain a gain."""
    updates = max(2, round(kind.updates * scale.share))
    total = updates * STREAMS
    rloo = RLOOConfig(
        group=GROUP,
        episodes=STREAMS,
        listed=False,  # the question names the answers
        kl=0.0,
        reference="none",
        learning_rate=LEARNING_RATE,
        micro=32,
    )
    cloning = ReSTConfig(
        # As many choices in all. Each stream draws its own question, so more questions are met than by RLOO,
        # of which eight streams share one.
        episodes=total // ROUNDS,
        keep=1,
        least=1.0,  # right ones
        updates=max(2, round(20 * scale.share)),
        batch_size=32,
        micro=32,
        listed=False,
        learning_rate=LEARNING_RATE,
    )
    of_label: Mapping[str, tuple[str, Any, int]] = {
        PLAIN: ("rloo", rloo, total),
        CONFIDENT: ("rloo", replace(rloo, confidence=1.0), total),
        SHUFFLED: ("rloo", replace(rloo, shuffle=True), total),
        CLONING: ("rest", cloning, total),
        UNTRAINED: ("rloo", replace(rloo, episodes=NEVER), STREAMS),
    }
    made = []
    for label in kind.arms:
        method, options, steps = of_label[label]
        config = RunConfig(
            method=method,
            env="hunch/Prompts-v0",
            env_options={"file": str(data / "training.jsonl")},
            lm=model,
            envs=STREAMS,
            steps=steps,
            options=options,
        )
        made.append(Arm(label, config))
    return tuple(made)


def choices(title: str, kind: Kind, model: str, scale: Scale, data: Path) -> Part:
    """Return a part of the study ``trained`` in which a model chooses."""
    listed = arms(kind, model, scale, data)
    # Apart: the arm that never learns has one batch of steps.
    return Part(
        title,
        listed,
        measure=partial(judged, kind),
        prepare=partial(prepare, kind, data),
        apart=True,
    )


# ---- judged on held-out questions --------------------------------------------------------------------------


def measured(run: str, kind: Kind) -> dict[str, Any]:
    """Return how often a run is right on held-out questions, and how well its probabilities fit.

    Returns:
        See :func:`fit`.
    """
    agent, _ = load_agent(Path(run))
    states = [State(question.text, actions=question.options) for question in held_out(kind)]
    policy: Any = agent.policy  # type: ignore[attr-defined]
    probs = np.concatenate(
        [np.array(policy.probabilities(few)) for few in cut(states, 32)]
    )  # (questions, answers)
    return fit(probs, shares_of(kind))


def held_out(kind: Kind) -> list[Question]:
    """Return the questions on which runs are judged."""
    return questions(kind.draw, 0)[TRAINED:]


def shares_of(kind: Kind) -> FloatArray:
    """Return the probability that each answer to the held-out questions is right, (questions, answers)."""
    return np.array([question.shares for question in held_out(kind)])


def fit(probs: FloatArray, shares: FloatArray) -> dict[str, float]:
    """Return how often the likeliest answer is right, and how well the probabilities fit.

    Args:
        probs: The policy's probability of each answer, shape (questions, answers).
        shares: The probability that each answer is right, shape (questions, answers). All figures are
            expectations over it, so no draw of answers adds noise.

    Returns:
        ``right``, how often the favourite is right; ``sure``, the mean probability of the favourite;
        ``calibration``, the mean distance of the two over ten bins of equal width, weighted by the questions
        in each; ``brier``, the mean squared error of all probabilities, summed over the answers;
        ``distance``, the mean total variation distance of the probabilities from the shares.
    """
    rows = np.arange(len(probs))
    right = shares[rows, probs.argmax(axis=1)]  # (questions,)
    sure = probs.max(axis=1)  # (questions,)
    # E |probs - e_answer|^2, over answers drawn from the shares
    errors = (probs**2).sum(axis=1) - 2 * (probs * shares).sum(axis=1) + 1  # (questions,)
    return {
        "right": float(right.mean()),
        "sure": float(sure.mean()),
        "calibration": calibration_error(reliability(sure, right)),
        "brier": float(errors.mean()),
        "distance": float(np.abs(probs - shares).sum(axis=1).mean() / 2),
    }


def judged(kind: Kind, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the table of all arms on held-out questions, in Markdown."""
    by_arm: dict[str, list[dict[str, Any]]] = {}
    for arm in listed:
        keys = [(str(run),) for run in runs_of(arm, seeds, folder)]
        by_arm[arm.label] = kept(folder / "chosen.jsonl", keys, partial(measured, kind=kind))
    return tabulated(kind, by_arm)


def tabulated(kind: Kind, by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the table of the rows of each arm, seed by seed, and the leads of the first arm, in Markdown.

    Below the arms stand who knows nothing and takes the first answer, and who knows all that can be known.
    """
    names = ("right", "sure", "calibration", "brier", "distance")
    lines = [
        (label, len(rows), *(over_seeds([row[name] for row in rows]) for name in names))
        for label, rows in by_arm.items()
    ]
    shares = shares_of(kind)
    ends = {"all answers alike": np.full_like(shares, 1 / shares.shape[1]), "the shares": shares}
    for label, probs in ends.items():
        row = fit(probs, shares)
        lines.append((label, "", *(f"{row[name]:.2f}" for name in names)))
    head = (
        "arm | seeds | right | probability of the favourite | calibration error | Brier score | "
        "distance from the shares"
    )
    first, *others = by_arm
    leads = []
    for label in others:
        for name in ("right", "calibration", "brier", "distance"):
            leading = _by_seed(by_arm[first], name)
            compared = _by_seed(by_arm[label], name)
            lead = over_pairs([leading[seed] - compared[seed] for seed in leading if seed in compared])
            leads.append(f"- {first} less {label}, {name}: {lead.short()}")
    explained = f"On {HELD_OUT:,} held-out questions. Of calibration, brier and distance less is better."
    return "\n\n".join([explained, table_of(head, lines), "\n".join(leads)])


def _by_seed(rows: Sequence[Mapping[str, Any]], name: str) -> dict[int, float]:
    """Return a figure of each seed; rows without one are in the order of their seeds."""
    return {row.get("seed", place): row[name] for place, row in enumerate(rows)}


def recorded(file: Path) -> str:
    """Return the tables of recorded rows, kind by kind, in Markdown.

    A row has the title of its ``kind``, ``arm``, ``seed``, and what :func:`fit` returns.
    """
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    parts = []
    for title, kind in KINDS.items():
        by_arm = {
            label: sorted(
                (row for row in rows if (row["kind"], row["arm"]) == (title, label)),
                key=lambda row: row["seed"],
            )
            for label in kind.arms
        }
        by_arm = {label: rows_of_arm for label, rows_of_arm in by_arm.items() if rows_of_arm}
        if by_arm:
            parts.append(f"### {title}\n\n{tabulated(kind, by_arm)}")
    return "\n\n".join(parts)


def add_rows(study: Path, file: Path) -> None:
    """Judge the finished runs of a study's folder, and write their rows to a file; judged ones are kept."""
    known = {(row["kind"], row["arm"], row["seed"]): row for row in read_lines(file)}
    for title, kind in KINDS.items():
        for label in kind.arms:
            for seed, run in finished_runs(study / place_name(title) / folder_name(label)).items():
                key = (title, label, seed)
                if key not in known:
                    figures = {name: round(figure, 6) for name, figure in measured(str(run), kind).items()}
                    known[key] = {"kind": title, "arm": label, "seed": seed, **figures}
    order = [(title, label) for title, kind in KINDS.items() for label in kind.arms]
    rows = sorted(known.values(), key=lambda row: (order.index((row["kind"], row["arm"])), row["seed"]))
    write_atomically(file, "".join(json.dumps(row) + "\n" for row in rows).encode())


def main() -> None:
    """Print the tables of recorded rows, after adding those of a study's folder if one is named."""
    parser = argparse.ArgumentParser(description="Tables of a model that chooses among answers.")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--collect", type=Path, metavar="FOLDER", help="the study, whose runs are judged")
    asked = parser.parse_args()
    if asked.collect:
        add_rows(asked.collect, asked.rows)
    print(recorded(asked.rows))


if __name__ == "__main__":
    main()
