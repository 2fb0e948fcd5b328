"""The reader of pictures: does the model read the right facts in a picture?

Question and reading are those of ``--reader`` (:class:`hunch.envs.reading.Reader`). A field without a value
counts as wrong. The stand-in takes the most frequent value of the other pictures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from hunch.audition.pictures import BED, Seen, stored
from hunch.audition.question import USUAL, Bed, Manner, Role, Scores
from hunch.envs.reading import Reader
from hunch.lm.base import LanguageModel
from hunch.lm.settings import AskConfig


def pictures(bed: Bed, n: int, seed: int) -> list[Seen]:
    """Draw pictures with n fields in total."""
    return stored().draw(-(-n // len(stored().schema.fields)), seed)


def readings(lm: LanguageModel, drawn: Sequence[Seen], seed: int, manner: Manner = USUAL) -> Scores:
    """Return for each picture the share of correctly read fields; a model that cannot see guesses."""
    schema = stored().schema
    if "see" not in lm.verbs:  # the uninformed stand-in
        rng = np.random.default_rng(seed)
        values = {name: list(known) for name, known in schema.fields.items()}
        guesses = [{name: str(rng.choice(known)) for name, known in values.items()} for _ in drawn]
        return _scored(drawn, guesses)
    reader = Reader(lm, schema, AskConfig(max_tokens=manner.max_tokens, patience=None))
    return _scored(drawn, [reader.facts(seen.picture) for seen in drawn])


def by_frequency(drawn: Sequence[Seen], seed: int) -> Scores:
    """Return the scores of the stand-in: the most frequent values of pictures that were not drawn.

    If all were drawn, it takes those of all pictures.
    """
    shown = {seen.picture for seen in drawn}
    others = [seen.facts for seen in stored().seen if seen.picture not in shown]
    others = others or [seen.facts for seen in stored().seen]
    frequent = {}
    for name in stored().schema.fields:
        [(value, _)] = Counter(facts[name] for facts in others).most_common(1)
        frequent[name] = value
    return _scored(drawn, [frequent for _ in drawn])


def _scored(drawn: Sequence[Seen], readings: Sequence[Mapping[str, str]]) -> Scores:
    names = list(stored().schema.fields)
    right = np.array(
        [
            [reading.get(name) == seen.facts[name] for name in names]
            for reading, seen in zip(readings, drawn, strict=True)
        ]
    )
    columns = {name: float(share) for name, share in zip(names, right.mean(0), strict=True)}
    empty = float(np.mean([not reading for reading in readings]))
    return Scores(
        right.mean(1),
        list(range(len(drawn))),
        {
            **columns,
            "whole pictures": float(right.all(1).mean()),
            "no reading": empty,
        },
        each=len(names),
        unread=empty,
    )


READER = Role(
    "reader",
    "share of the fields of a picture that are read rightly",
    ("generate", "embed"),
    (BED,),
    pictures,
    readings,
    by_frequency,
    ways=("text", "similarity"),
)
