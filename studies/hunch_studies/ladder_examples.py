"""What are twelve examples of plans worth to a model that reads them, and to words that compare with them?

    hunch study ladder --out FOLDER --unpack docs/assets/studies/ladder/*.tar.xz
    python -m hunch_studies.ladder_examples FOLDER

In the ladder a planner reads twelve examples, because each costs tokens. Words and the encoder compare the
errand with all of them, which costs next to nothing: that is what a user without a model that writes would
do. The first table gives them fewer. The second is the lead of the planners in the folder over words with the
same twelve.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hunch.audition.planner import ALL, PLANNER, SHOWN, skills
from hunch.audition.question import Scores
from hunch.envs.kitchen.errands import EXAMPLES
from hunch.lm import load
from hunch_studies.ladder import (
    CELLS,
    FULL,
    RUNGS,
    SEEDS,
    STAND_INS,
    Lead,
    lead,
    plain_scores,
    questions,
    read_cell,
)
from hunch_studies.planners import table

NUMBERS: Final = (SHOWN, 40, 80, len(EXAMPLES))
"""Numbers of examples: those of the ladder, those of SayCan's study, twice as many, and all."""
COMPARE: Final = {"words": "bag-of-words", "MiniLM": RUNGS["minilm"]}
"""The models that compare texts, by name."""


def compared(spec: str, stage: str, n: int, examples: int) -> Scores:
    """Return the scores of a model that compares the errand with some of the examples.

    Args:
        spec: The model.
        stage: Stage of the ladder whose questions it answers.
        n: Number of questions.
        examples: Number of examples; 0 for all.
    """
    [(_, asked)] = questions(PLANNER, n, stage)
    return skills(load(spec, cache=None), asked, SEEDS[stage], examples=examples)


def by_number() -> str:
    """Return a table of the share of right next skills, by the number of examples."""
    rows = []
    for examples in NUMBERS:
        cells = []
        for spec in COMPARE.values():
            # All of them in the order of the environment, as in the audition.
            number = ALL if examples == len(EXAMPLES) else examples
            scores = compared(spec, "full", FULL, number)
            low, high = scores.interval
            cells.append(f"{scores.ability:.2f} [{low:.2f}, {high:.2f}]")
        rows.append((examples, *cells))
    return table(f"examples | {' | '.join(COMPARE)}", rows)


def over_words(folder: Path) -> Iterator[tuple[Mapping[str, Any], Lead]]:
    """Yield the cells of planners that read examples, with their leads over words with the same examples."""
    for file in sorted((folder / CELLS).glob("*--planner--*.json")):
        cell = read_cell(file)
        reads = cell["rung"] not in STAND_INS and cell["way"] != "similarity" and not cell["blank"]
        if not reads:
            continue
        words = compared(COMPARE["words"], cell["stage"], cell["questions"], SHOWN)
        gap = lead(cell, {"beds": [{"env": PLANNER.beds[0].env, **plain_scores(words)}]})
        if gap is not None:
            yield cell, gap


def page(folder: Path) -> str:
    """Return both tables in Markdown."""
    rows = [
        (cell["rung"], cell["way"], cell["questions"], f"{gap.value:.2f} [{gap.low:.2f}, {gap.high:.2f}]")
        for cell, gap in over_words(folder)
    ]
    head = f"model | way | questions | lead over words with the same {SHOWN} examples"
    return f"{by_number()}\n\n{table(head, rows)}"


if __name__ == "__main__":
    print(page(Path(sys.argv[1])))
