"""What texts that no model wrote score on the beds of the study "trained": a control of words alone.

    python -m hunch_studies.trained_fixed

One text for all requests, chosen on requests of the training part, shows how much of a score needs no
reading. A piece of the request, sent back as it is, shows how much needs no language: the word that is quoted
or is to be spelled, or the last number.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hunch.core import Memoryless
from hunch.envs import make
from hunch.envs.constraints import TOPICS, WORDS
from hunch.rl.episodes import evaluate
from hunch_studies.planners import table as table_of
from hunch_studies.trained import BEDS, HELD_OUT, JUDGED

FIRST, SECOND = 60, 1_000
"""Requests of the training part on which all texts are scored, and then the best of them."""
KEPT: Final = 20
"""Texts that are scored on the second number of requests."""
REPEATED: Final = (1, 2, 3, 4, 6, 8, 12, 15)
"""How often a word is written."""
FORMS: Final[tuple[Callable[[str], str], ...]] = (
    str,
    str.upper,
    lambda text: f'"{text}"',
    lambda text: f"{text}?",
    lambda text: f'"{text.upper()}?"',
    lambda text: "\n".join(f"- {word}" for word in text.split()),
)
"""Forms that the constraints know of."""
PRAISE: Final = (
    *("good", "great", "lovely", "happy", "love"),
    *("best", "wonderful", "perfect", "joy", "beautiful"),
)
PIECE: Final[dict[str, str]] = {
    "Sums": r"(\d+) =",
    "Spelling backwards": r": (\w+)\n",
    "Constraints": r"the word '(\w+)'",
}
"""The piece of a request that is sent back; of a review's beginning none could be an answer."""


def repeated(words: Sequence[str], times: Sequence[int] = REPEATED) -> list[str]:
    """Return each word, written several times."""
    return [" ".join([word] * number) for word in words for number in times]


def texts(bed: str) -> list[str]:
    """Return the texts of which one is chosen for a bed."""
    match bed:
        case "Sums":
            return [str(number) for number in range(199)]
        case "Spelling backwards":
            return [letter * length for letter in string.ascii_lowercase for length in range(1, 7)]
        case "Constraints":
            words = [*string.ascii_lowercase, *WORDS, *(topic.split()[-1] for topic in TOPICS)]
            return list(dict.fromkeys(form(text) for text in repeated(words) for form in FORMS))
        case _:
            return repeated(PRAISE)


def scored(env: Any, listed: Sequence[str], requests: int) -> list[float]:
    """Return the mean score of each text on the first requests of an environment."""
    scores = np.zeros(len(listed))
    for number in range(requests):
        for index, text in enumerate(listed):
            env.reset(seed=number)
            scores[index] += env.step(text)[1]
    return [float(score) / requests for score in scores]


def best_text(bed: str, first: int = FIRST, second: int = SECOND) -> str:
    """Return the text with the highest score on requests of the training part.

    Args:
        bed: Name of the bed.
        first: Number of requests on which all texts are scored.
        second: Number of requests on which the best of them are scored again.
    """
    env = make(BEDS[bed].env)
    listed = texts(bed)
    order = np.argsort([-score for score in scored(env, listed, first)], kind="stable").tolist()
    kept: list[str] = [listed[index] for index in order[:KEPT]]
    return kept[int(np.argmax(scored(env, kept, second)))]


def judged(bed: str, rule: Callable[[str], str]) -> float:
    """Return the mean score of a rule on a bed's held-out requests, those that models were judged on."""

    def player(seed: int) -> Memoryless:
        return Memoryless(lambda states, rng: [rule(state.observation) for state in states], seed)

    played = evaluate(player, [make(BEDS[bed].env, part="held-out")], HELD_OUT, JUDGED)
    return float(np.mean([episode.episode_return for episode in played]))


def piece(bed: str, one: str) -> Callable[[str], str]:
    """Return the rule that sends back a piece of the request, and one text for all where there is none."""

    def rule(request: str) -> str:
        named = re.search(PIECE[bed], request)
        return str(named[1]) if named else one

    return rule


def main() -> None:
    """Print the scores of both controls in Markdown."""
    rows = []
    for bed in ("Sums", "Spelling backwards", "Reviews", "Constraints"):
        one = best_text(bed)
        of_one = judged(bed, lambda request, one=one: one)  # type: ignore[misc]
        of_piece = f"{judged(bed, piece(bed, one)):.2f}" if bed in PIECE else "-"
        rows.append((bed, f"`{one}`".replace("\n", " / "), f"{of_one:.2f}", of_piece))
    print(table_of("bed | one text for all | its held-out score | a piece of the request", rows))


if __name__ == "__main__":
    main()
