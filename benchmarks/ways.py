"""Ways of asking a model to choose: which is best, by the number of options.

    python benchmarks/ways.py "qwen-coder-0.5b?threads=1"       # asks; repeat the command to go on
    python benchmarks/ways.py "qwen-coder-1.5b?threads=1" --beds Overcooked-Salad --sizes 4 --blank
    python benchmarks/ways.py bag-of-words                      # the lexical control
    python benchmarks/ways.py                                   # the tables, from the recorded answers

Questions are states of an environment whose solver says which actions bring the goal nearer, as in ``hunch
audition``. Each state is asked with few and with many options: one right action, and wrong ones drawn from
those that are admissible, in their usual order; so the right answer has the same chance in every state. The
model is an action prior, asked for five proposals with the prompts and readers of every role.

Two controls. ``--blank`` asks each question again without the task: what a model gains by the task is what
it knows of it, and the rest is taste. The lexical control is ``bag-of-words``, asked by similarity.

Each answer is one line of the file (``--file``), written at once: what was asked, what was said, and the
weight of each option. ``--seconds`` ends the asking after a while. All ways get the same states.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hunch import lm
from hunch.audition.question import Bed, Moment, Scores, moments
from hunch.core import State
from hunch.lm.ways import Way, has_way
from hunch.roles.prior.base import DistributionPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior

FILE = Path(__file__).parents[1] / "docs" / "assets" / "benchmarks" / "ways.jsonl.gz"
BEDS = {
    "Household-Pick": (Bed("hunch/Household-Pick-v0", {"games": 40}, "pool_seed"), (4, 8, 16, 21)),
    "Overcooked-Salad": (Bed("hunch/Overcooked-Salad-v0"), (4, 8)),
}
"""Environments, each with the numbers of options. A state has at least the largest number of them."""
WAYS: tuple[Way, ...] = (
    "structured",
    "label",
    "text",
    "text-unlisted",
    "likelihood",
    "likelihood-unlisted",
    "similarity",
)
DRAWS = 5
"""Proposals per state, as in DQN-Prior."""
TOKENS = 64
"""Maximum tokens of a written answer."""
CANDIDATES = 100
"""States that are drawn, one of an episode, before those with too few options are left out."""


class Question(NamedTuple):
    """A state with some of its options, one of which is right."""

    bed: str
    size: int  # a state may have fewer wrong options
    number: int
    episode: int
    state: State
    right: str
    blank: bool = False  # whether the task is left out


def questions(n: int, beds: Sequence[str], blank: bool) -> Iterator[Question]:
    """Yield n states of each bed, each with each number of options, and again without the task."""
    for name in beds:
        bed, sizes = BEDS[name]
        large = [m for m in moments(bed, CANDIDATES, 0, each=1) if len(m.state.options) >= max(sizes)][:n]
        for number, moment in enumerate(large):
            for size in sizes:
                whole = reduced(name, number, moment, size)
                yield whole
                if blank:
                    yield whole._replace(state=replace(whole.state, task="", goals=()), blank=True)


def reduced(bed: str, number: int, moment: Moment, size: int) -> Question:
    """Return a state with ``size`` of its options, one of them right."""
    rng = np.random.default_rng([number, size])
    right = str(rng.choice(sorted(moment.good)))
    wrong = [option for option in moment.state.options if option not in moment.good]
    kept = {right, *rng.choice(wrong, min(size - 1, len(wrong)), replace=False)}
    options = tuple(option for option in moment.state.options if option in kept)
    return Question(bed, size, number, moment.episode, replace(moment.state, actions=options), right)


def ask(spec: str, options: argparse.Namespace) -> None:
    """Ask a model in each way, and append the answers to the file."""
    file = options.file
    model: Any = lm.load(spec, cache=None)
    name = spec.partition("?")[0].rpartition("/")[2]
    ways: list[Way] = [way for way in options.ways if has_way(model, way)]
    priors = {way: build_prior(PriorConfig(way=way, max_tokens=TOKENS, patience=None), model) for way in ways}
    known = {key(line) for line in read(file)}
    said: list[str] = []
    model.listener = lambda role, answer, meaning: said.append(answer)
    until = time.monotonic() + options.seconds
    for question in questions(options.states, options.beds, options.blank):
        if options.sizes and question.size not in options.sizes:
            continue
        for way in ways:
            line: dict[str, Any] = {
                "model": name,
                "revision": model.revision,
                "way": way,
                "bed": question.bed,
            }
            line |= {
                "size": question.size,
                "number": question.number,
                "episode": question.episode,
                "right": question.right,
            }
            line |= {"options": list(question.state.options)}
            if question.blank:
                line["blank"] = True
            if key(line) in known:
                continue
            if time.monotonic() > until:
                return
            said.clear()
            start = time.perf_counter()
            weights, unread = weighed(priors[way], question.state)
            line |= {"weights": [round(float(weight), 6) for weight in weights], "unread": unread}
            line |= {"answers": list(said), "seconds": round(time.perf_counter() - start, 2)}
            append(file, line)


def weighed(prior: Any, state: State) -> tuple[np.ndarray, float]:
    """Return p(a|s) or shares of draws, shape (options,), and the share of answers that name no option."""
    if isinstance(prior, DistributionPrior):
        return prior.probabilities([state])[0], 0.0
    (proposal,) = prior.propose([state], DRAWS, np.random.default_rng(0))
    weights = np.zeros(len(state.options))
    weights[proposal.indices] = proposal.weights
    if proposal.fallbacks == 1:
        weights[:] = 0.0
    return weights, float(proposal.fallbacks)


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    """Return what names a question to a model."""
    return line["model"], line["way"], line["bed"], line["size"], line["number"], is_blank(line)


def is_blank(line: dict[str, Any]) -> bool:
    """Return whether the task was left out."""
    return bool(line.get("blank", False))


def read(file: Path) -> list[dict[str, Any]]:
    """Return the recorded lines."""
    if not file.exists():
        return []
    opener: Any = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def append(file: Path, line: dict[str, Any]) -> None:
    """Add a line; to a gzip file as a member of its own."""
    file.parent.mkdir(parents=True, exist_ok=True)
    opener: Any = gzip.open if file.suffix == ".gz" else open
    with opener(file, "at", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


# ---- the table --------------------------------------------------------------------------------------------


Answers = dict[str, dict[int, dict[str, Any]]]
"""The answers to one kind of question: by way and number of the state."""


def table(lines: Sequence[dict[str, Any]]) -> None:
    """Print the weight of the right option by each way, and differences on the same questions."""
    ways = [way for way in WAYS if any(line["way"] == way for line in lines)]
    cells: dict[tuple[str, str, int, bool], Answers] = {}
    for line in lines:
        cell = cells.setdefault((line["model"], line["bed"], line["size"], is_blank(line)), {})
        cell.setdefault(line["way"], {})[line["number"]] = line
    models = list(dict.fromkeys(model for model, *_ in cells))

    print(f"| model | environment | task | options | chance | states | {' | '.join(ways)} |")
    print(f"|{'---|' * (6 + len(ways))}")
    beds = list(BEDS)
    in_order = sorted(cells, key=lambda cell: (models.index(cell[0]), beds.index(cell[1]), cell[3], cell[2]))
    for model, bed, size, blank in in_order:
        by_way = cells[model, bed, size, blank]
        rows = [row for answered in by_way.values() for row in answered.values()]
        chance = np.mean([1 / len(row["options"]) for row in rows])
        counts = sorted({len(by_way[way]) for way in by_way})
        states = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        weights = [estimate([*by_way.get(way, {}).values()]) for way in ways]
        task = "blank" if blank else "stated"
        print(f"| {model} | {bed} | {task} | {size} | {chance:.2f} | {states} | {' | '.join(weights)} |")
    print()

    others = [way for way in ways if way not in ("structured", "similarity")]
    print(f"| model | {' | '.join(f'{way} - structured' for way in others)} |")
    print(f"|{'---|' * (1 + len(others))}")
    for model in models:
        own = [by_way for (name, _, _, blank), by_way in cells.items() if name == model and not blank]
        pairs = [[(by_way.get(way, {}), by_way.get("structured", {})) for by_way in own] for way in others]
        print_differences(model, [paired(each) for each in pairs])
    print()

    print(f"| model | {' | '.join(f'{way}, stated - blank' for way in ways)} |")
    print(f"|{'---|' * (1 + len(ways))}")
    for model in models:
        both = [
            (cells[model, bed, size, False], by_way)
            for (name, bed, size, blank), by_way in cells.items()
            if name == model and blank and (model, bed, size, False) in cells
        ]
        pairs = [[(stated.get(way, {}), blank.get(way, {})) for stated, blank in both] for way in ways]
        print_differences(model, [paired(each) for each in pairs])
    print()

    print("| model | way | questions | recall of 5 | favourite right | names no option | median seconds |")
    print(f"|{'---|' * 7}")
    for model in models:
        for way in ways:
            of_way = [row for row in lines if (row["model"], row["way"]) == (model, way)]
            own_rows = [row for row in of_way if not is_blank(row)]
            if own_rows:
                figures = [np.mean([score(row) for row in own_rows]) for score in (recall, favours, unread)]
                pace = np.median([row["seconds"] for row in own_rows])
                shown = " | ".join(f"{figure:.2f}" for figure in figures)
                print(f"| {model} | {way} | {len(own_rows)} | {shown} | {pace:.1f} |")


def print_differences(model: str, differences: Sequence[str]) -> None:
    """Print a row of differences, if there are any."""
    if any(differences):
        print(f"| {model} | {' | '.join(differences)} |")


def unread(line: dict[str, Any]) -> float:
    """Return the share of answers that named no option."""
    return float(line["unread"])


def right_weight(line: dict[str, Any]) -> float:
    """Return the weight of the right option."""
    return float(line["weights"][line["options"].index(line["right"])])


def recall(line: dict[str, Any]) -> float:
    """Return the probability that the right option is among the draws."""
    weight = right_weight(line)
    sampled = line["way"] in (
        "structured",
        "text",
        "text-unlisted",
    )  # then the weights are shares of the draws
    return float(weight > 0) if sampled else 1 - (1 - weight) ** DRAWS


def favours(line: dict[str, Any]) -> float:
    """Return the probability that the favourite is right, with ties at random."""
    weights = np.array(line["weights"])
    best = weights >= weights.max() - 1e-9
    return float(best[line["options"].index(line["right"])] / best.sum()) if weights.max() > 0 else 0.0


def estimate(rows: Sequence[dict[str, Any]]) -> str:
    """Return the mean weight of the right option with its 95 % interval, a bootstrap over episodes."""
    if not rows:
        return ""
    return _said(np.array([right_weight(row) for row in rows]), [row["episode"] for row in rows])


def paired(cells: Sequence[tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]]) -> str:
    """Return the mean difference of the right weights on the questions that were asked on both sides."""
    differences, episodes = [], []
    for mine, theirs in cells:
        for number in sorted(mine.keys() & theirs.keys()):
            differences.append(right_weight(mine[number]) - right_weight(theirs[number]))
            episodes.append((mine[number]["bed"], mine[number]["episode"]))
    if not differences:
        return ""
    numbers = {episode: number for number, episode in enumerate(dict.fromkeys(episodes))}
    said = _said(np.array(differences), [numbers[episode] for episode in episodes], "+")
    return f"{said}, {len(differences)} questions"


def _said(values: np.ndarray, episodes: Sequence[int], sign: str = "") -> str:
    low, high = Scores(values, episodes).interval
    return f"{values.mean():{sign}.2f} ({low:{sign}.2f}, {high:{sign}.2f})"


def main() -> None:
    """Ask, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("specs", nargs="*")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--beds", nargs="+", default=[*BEDS], choices=[*BEDS])
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of options; default: those of the bed")
    parser.add_argument("--blank", action="store_true", help="ask again without the task")
    parser.add_argument("--states", type=int, default=24, help="states of each bed")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no question after this time"
    )
    parser.add_argument("--file", type=Path, default=FILE)
    options = parser.parse_args()
    for spec in options.specs:
        ask(spec, options)
    table(read(options.file))


if __name__ == "__main__":
    main()
