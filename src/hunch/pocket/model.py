"""``pocket``: the small causal model that comes with hunch, for in-context methods without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hunch.core import HunchError, UsageError
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.scoring.writer import Writer
from hunch.pocket.decoder import DISTRIBUTIONS, Decoder
from hunch.suggest import suggest

SHIPPED: Final = Path(__file__).with_name("weights")
FOLDERS: Final = {
    "examples": SHIPPED,
    **{corpus: SHIPPED.with_name(f"{corpus}_weights") for corpus in ("walks", "households")},
}
"""Folders of the models that come with hunch, by training corpus."""


class PocketModel(CausalModel):
    """A pocket model: like any causal model, but a decoder of its own writes.

    Args:
        folder: A model that ``hunch pretrain pocket`` saved.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.folder = folder
        self.decoder = Decoder(self.network)
        self._writer = Writer(self.decoder, DISTRIBUTIONS)

    @property
    def tokens_saved(self) -> int:
        """Prompt tokens that were found in the cache instead of being computed."""
        return self._engine.saved + self.decoder.saved


def load(*, corpus: str = "examples", folder: str | None = None) -> PocketModel:
    """Load a model that comes with hunch, or one that ``hunch pretrain pocket`` saved.

    Raises:
        UsageError: if there is no model for this corpus.
        HunchError: if the folder holds no model.
    """
    if corpus not in FOLDERS:
        raise UsageError(
            f"There is no pocket model of the corpus {corpus!r}; {suggest(corpus, FOLDERS.keys())}"
        )
    place = Path(folder).expanduser() if folder else FOLDERS[corpus]
    if not (place / "config.json").exists():
        raise HunchError(f"There is no pocket model in {place}; 'hunch pretrain pocket' trains one.")
    return PocketModel("pocket", place)
