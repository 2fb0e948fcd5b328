"""all-mpnet-base-v2, an encoder of sentences that is larger than MiniLM and closer to what people mean.

Source: https://huggingface.co/sentence-transformers/all-mpnet-base-v2 (Apache 2.0). ``hunch models get
mpnet`` fetches it (:mod:`hunch.lm.shelf`). The weights are loaded only if their hash is the published one.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from pathlib import Path

from hunch.lm import shelf
from hunch.lm.backends import weights
from hunch.lm.backends.transformer import SentenceEncoder
from hunch.lm.base import Backend

BACKEND = Backend(
    "mpnet",
    f"{__name__}:load",
    frozenset({"embed"}),
    f"{shelf.SHELF['mpnet'].summary} ('hunch models get mpnet')",
)


class MPNet(SentenceEncoder):
    """The sentence encoder, with 768 numbers per text."""

    reads = 384  # from its sentence_bert_config.json
    packs = False  # transformers cannot exchange the attention of this architecture


def load() -> MPNet:
    """Load the model from the folder of models.

    Raises:
        HunchError: if it is not on this machine, or its weights are not the published ones.
    """
    folder = shelf.file_of("mpnet")
    weights.libraries()
    return copy(_read(folder, shelf.SHELF["mpnet"].weights.stat().st_mtime_ns))


@lru_cache(maxsize=1)
def _read(folder: Path, changed: int) -> MPNet:
    """Read the network, which all models of a process share; each has a name and counters of its own."""
    return MPNet("mpnet", folder, shelf.SHELF["mpnet"].sha256)
