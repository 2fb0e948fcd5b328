"""Documents of the corpus as rows of tokens, and the accuracy of a network on their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hunch_studies.laboratory import corpus

CHARACTERS_PER_TOKEN: Final = 4
"""Upper bound of characters per token, so that a document of this length always fills its row."""


@dataclass(frozen=True)
class Batch:
    """Rows of documents.

    Attributes:
        ids: Tokens, int64, shape (rows, length + 1).
        weights: Loss weight of each token except the first, float32, shape (rows, length).
        answers: Number of the answer that a token belongs to, else -1; shape (rows, length).
    """

    ids: NDArray[np.int64]
    weights: NDArray[np.float32]
    answers: NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """An endless stream of documents, numbered by seed.

    Attributes:
        document: Writes a document, given a seed, minimum characters, ease, and a shape or None.
        shapes: Names of the shapes for evaluation; documents with a given shape are not part of training.
        shown: Number of answers per document that are not evaluated, because they are examples for the
            others.
        fit: Fits a tokenizer.
        games: Pattern of the names of the environments' games that it shows (:mod:`fnmatch`); empty for none.
    """

    document: Callable[[str, int, float, str | None], corpus.Document]
    shapes: tuple[str, ...]
    shown: int
    fit: Callable[[], Any]
    games: str = ""

    def rows(
        self, fitted: Any, seeds: list[str], length: int, ease: float, shape: str | None = None
    ) -> Batch:
        """Write one document per row."""
        size = length * CHARACTERS_PER_TOKEN
        return tokenise(fitted, [self.document(seed, size, ease, shape) for seed in seeds], length)

    def evaluate(self, network: Any, fitted: Any, rows: int = 8, length: int = 512) -> dict[str, float]:
        """Return the share of right answers on documents outside the training stream, by shape."""
        shares = {}
        for shape in self.shapes:
            seeds = [f"evaluation-{shape}-{i}" for i in range(rows)]
            answers = accuracy(network, self.rows(fitted, seeds, length, 0.0, shape))
            late = [answer for row in answers for answer in row[self.shown :]]
            shares[shape] = sum(late) / max(1, len(late))
        return shares


def tokenise(fitted: Any, documents: Sequence[corpus.Document], length: int) -> Batch:
    """Return one document per row, cut at the row's end."""
    ids = np.full((len(documents), length + 1), fitted.eos_token_id, dtype=np.int64)
    weights = np.zeros((len(documents), length), dtype=np.float32)
    answers = np.full((len(documents), length), -1, dtype=np.int64)
    for row, document in enumerate(documents):
        parts = fitted([piece.text for piece in document], add_special_tokens=False)["input_ids"]
        flat = np.array([token for part in parts for token in part][:length])
        own = np.repeat(
            [1.0 if piece.answer else corpus.CONTEXT_WEIGHT for piece in document], list(map(len, parts))
        )
        which = np.repeat(
            [i if piece.answer else -1 for i, piece in enumerate(document)], list(map(len, parts))
        )
        n = len(flat)
        ids[row, 1 : n + 1], weights[row, :n], answers[row, :n] = flat, own[:n], which[:n]
    return Batch(ids, weights, answers)


def accuracy(network: Any, batch: Batch) -> list[list[bool]]:
    """Return whether each whole answer of each row is predicted, if the most likely token is always taken."""
    import torch

    ids = torch.from_numpy(batch.ids).to(next(network.parameters()).device)
    with torch.inference_mode():
        right = (network(input_ids=ids[:, :-1]).logits.argmax(-1) == ids[:, 1:]).cpu().numpy()
    results = []
    for own, which in zip(right, batch.answers, strict=True):
        whole = [n for n in dict.fromkeys(which.tolist()) if n >= 0 and n != which[-1]]  # that may be cut
        results.append([bool(own[which == n].all()) for n in whole])
    return results
