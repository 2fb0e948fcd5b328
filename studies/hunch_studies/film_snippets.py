"""Snippets of film reviews that people have rated, as questions for a model that is prompted.

``films/questions.jsonl`` has 600 of them; ``SOURCE.txt`` beside it says where they are from. It is made by

    pip download vaderSentiment==2.5 --no-deps --no-binary :all:
    python -m hunch_studies.film_snippets vaderSentiment-2.5.tar.gz
"""

from __future__ import annotations

import io
import json
import random
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hunch.envs.prompts import numbered
from hunch.runs.files import write_atomically

QUESTIONS: Final = Path(__file__).with_name("films") / "questions.jsonl"
"""600 snippets, a line of JSON each with ``prompt`` and ``answer``; every second one is held out."""
ARCHIVE: Final = "vaderSentiment-2.5/additional_resources/hutto_ICWSM_2014.tar.gz"
RATED: Final = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
CLEAR: Final = 1.5
"""Least distance of a mean rating, of -4 to 4, from 0: what people are not sure of is left out."""
SHORTEST, LONGEST = 5, 18
"""Words of a snippet."""
SIDE: Final = 300
"""Snippets of each answer."""
ANSWERS: Final = ("great", "terrible")
"""The answers, which are the words that the paper's classifier chooses between."""


def read(package: Path) -> Iterator[tuple[float, str]]:
    """Yield mean rating and text of all snippets of the package's archive."""
    with tarfile.open(package) as outer, tarfile.open(fileobj=_member(outer, ARCHIVE)) as inner:
        for line in _member(inner, RATED).read().decode("utf-8", errors="replace").splitlines():
            _, rating, text = line.split("\t")
            yield float(rating), text


def _member(archive: tarfile.TarFile, name: str) -> io.BytesIO:
    file = archive.extractfile(name)
    assert file is not None, f"{name} is no file"
    return io.BytesIO(file.read())


def write(package: Path) -> None:
    """Draw snippets by a seed, and write them with equally many answers of each kind in both halves."""
    clear = [
        (ANSWERS[rating < 0], text)
        for rating, text in read(package)
        if abs(rating) >= CLEAR and SHORTEST <= len(text.split()) <= LONGEST and text.isascii()
    ]
    random.Random(0).shuffle(clear)
    great, terrible = (
        [{"prompt": text, "answer": kind} for answer, text in clear if answer == kind][:SIDE]
        for kind in ANSWERS
    )
    # Two of each kind in turn, since every second line is held out.
    fours = [row for i in range(0, SIDE, 2) for row in (*great[i : i + 2], *terrible[i : i + 2])]
    write_atomically(QUESTIONS, "".join(json.dumps(row) + "\n" for row in fours).encode())


def frequent(n: int) -> tuple[str, ...]:
    """Return the words that occur most often in the snippets that are not held out, most frequent first."""
    training = [row["prompt"] for _, row in numbered(str(QUESTIONS), "answer")][::2]
    words = Counter(word for text in training for word in text.lower().split() if word.isalpha())
    return tuple(word for word, _ in sorted(words.items(), key=lambda item: (-item[1], item[0]))[:n])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
