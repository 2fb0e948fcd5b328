"""``pocket``: the small causal models of this project, for in-context methods without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hunch import extras, plugins
from hunch.core import HunchError, UsageError
from hunch.lm.backends.huggingface import CausalModel, kind_of
from hunch.lm.scoring.writer import Writer
from hunch.pocket.decoder import DISTRIBUTIONS, Decoder
from hunch.suggest import suggest

if TYPE_CHECKING:
    from hunch.lm.backends.paired import PairedModel

GROUP: Final = "hunch.weights"
"""Entry-point group for packages with weights: names of training corpora, and folders of models."""
HOUSEHOLDS: Final = Path(__file__).with_name("households_weights")
_OF_POCKET: Final = ("examples", "walks", "clip", "statements")


class PocketModel(CausalModel):
    """A pocket model: like any causal model, but this project's decoder writes the texts.

    Args:
        folder: A model that ``hunch pretrain pocket`` saved.
    """

    best_way = "text"  # its studies read what it writes
    shortens = False  # it reads prompts of one form, and a part of one says nothing to it

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.folder = folder
        self.decoder = Decoder(self.network)
        self._writer = Writer(self.decoder, DISTRIBUTIONS)

    @property
    def tokens_saved(self) -> int:
        """Prompt tokens whose results were cached instead of computed again."""
        return self._engine.saved + self.decoder.saved


def load(*, corpus: str = "examples", folder: str | None = None) -> PocketModel | PairedModel:
    """Load a model of this project, or one that ``hunch pretrain pocket`` saved.

    Raises:
        UsageError: if there is no model for this corpus, or its package is not installed.
        HunchError: if the folder holds no model.
    """
    place = place_of(corpus=corpus, folder=folder)
    if kind_of(place) == "paired":
        from hunch.lm.backends.paired import PairedModel  # loads torch

        return PairedModel("pocket", place)
    model = PocketModel("pocket", place)
    if place == HOUSEHOLDS:
        model.best_way = "text-unlisted"  # its corpus has no lists of actions
    return model


def place_of(*, corpus: str = "examples", folder: str | None = None) -> Path:
    """Return the folder of a model that :func:`load` loads."""
    place = Path(folder).expanduser() if folder else _folder(corpus)
    if not (place / "config.json").exists():
        raise HunchError(f"There is no pocket model in {place}; 'hunch pretrain pocket' trains one.")
    return place


def _folder(corpus: str) -> Path:
    """Return the folder of the model of a corpus, from this package or another."""
    if corpus == "households":
        return HOUSEHOLDS
    known = plugins.installed(GROUP)
    if corpus in known:
        folder: Path = known[corpus].load()
        return folder
    if corpus in _OF_POCKET:
        raise extras.of_pocket(f"The pocket model of the corpus {corpus!r}")
    hint = suggest(corpus, list(dict.fromkeys((*_OF_POCKET, *known, "households"))))
    raise UsageError(f"There is no pocket model of the corpus {corpus!r}; {hint}")
