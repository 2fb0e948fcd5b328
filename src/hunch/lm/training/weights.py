"""The trained weights of a model, all of them or adapters: initial weights, temporary ones, and files.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import torch
from torch import Tensor

from hunch.core import EvidenceLevel, HunchError, HunchWarning, UsageError
from hunch.lm.backends import folders
from hunch.lm.backends import weights as files
from hunch.lm.backends.folders import GGUF, READ_BY_MODELS
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.training import gguf_export
from hunch.lm.training.adapters import Adapters

ADAPTER: Final = "adapter"
"""Subfolder of a saved model with its adapters by themselves."""
HUB_FOLDER: Final = "models--"
"""How the name of a model's folder begins in the cache of the hub's library."""
Start: TypeAlias = Literal["weights", "shuffled", "random"]
"""Initial weights: those of the model, the same with its vocabulary shuffled (so that each word has the
meaning of another), or random weights."""


class Weights:
    """Base class of models in training.

    Attributes:
        model: The frozen model that was loaded.
        network: The network of the model.
        adapted: True if only adapters are trained.
    """

    model: CausalModel
    network: Any

    def _select(self, whole: bool, rank: int, alpha: float, seed: int) -> None:
        """Train the whole network, or new adapters."""
        self.network.requires_grad_(whole)
        self.adapted = not whole
        self.adapters = Adapters(self.network, rank, alpha, seed) if self.adapted else None
        self._start: Start = "weights"
        self._first = {name: weight.clone() for name, weight in self.state_dict().items()}
        self._begun = self._first

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    @property
    def evidence(self) -> EvidenceLevel:
        """Evidence level of the initial weights; L0 for shuffled or random ones."""
        return self.model.evidence if self._start == "weights" else "L0"

    def restart(self, start: Start = "weights", seed: int = 0) -> None:
        """Discard all training and start from the given initial weights; the seed draws or shuffles them.

        Raises:
            UsageError: if weights that are not trained would change.
        """
        if start != "weights" and self.adapted:
            raise UsageError(f"start={start!r} needs train=all, because it changes all weights.")
        self.load_state_dict(self._first)
        self._start = start
        if start == "random":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.network.load_state_dict(type(self.network)(self.network.config).state_dict())
        elif start == "shuffled":
            _shuffle(self.network, seed)
        self._begun = self._first
        if start != "weights":
            self._begun = {name: weight.clone() for name, weight in self.state_dict().items()}

    @contextmanager
    def with_weights(self, weights: Mapping[str, Tensor] | None = None) -> Iterator[None]:
        """Use other trained weights within a ``with`` block, without copying them.

        Args:
            weights: Result of :meth:`state_dict`. Default: the weights after the last :meth:`restart`.
        """
        trained = self._trained()
        current = {name: weight.data for name, weight in trained.items()}
        try:
            for name, weight in trained.items():
                weight.data = (weights or self._begun)[name]
            yield
        finally:
            for name, weight in trained.items():
                weight.data = current[name]

    def save(self, folder: str | Path) -> Path:
        """Save the model, with adapters added to its weights, as a transformers folder, which ``hf:`` loads.

        The folder keeps the evidence level, and the card with earlier trainings of the model. The adapters by
        themselves are in its subfolder :data:`ADAPTER`, which peft loads. A model that came from a GGUF file,
        or from a folder with such a ``model.gguf``, is also written as ``model.gguf``, for llama.cpp; a
        warning says where that is not possible.
        """
        network = self.adapters.merged() if self.adapters else self.network
        network.config.hunch_evidence = self.evidence
        write(Path(folder), network, self.model.tokenizer, self.model.trained_on)
        if self.adapters:
            self.save_adapters(Path(folder) / ADAPTER)
        lender = gguf_of(Path(self.model.source))
        if lender is not None:
            try:
                gguf_export.write(network, lender, Path(folder) / f"{folders.MODEL}{GGUF}")
            except HunchError as error:  # the folder is complete without it
                warnings.warn(str(error), HunchWarning, stacklevel=2)
        return Path(folder)

    def save_adapters(self, folder: str | Path) -> Path:
        """Save only the adapters, as a folder that ``peft.PeftModel.from_pretrained`` loads.

        It names the model that they belong to: on the hub, if it came from there, else by folder or file.

        Raises:
            UsageError: if all weights are trained, so that there are no adapters.
        """
        if self.adapters is None:
            raise UsageError(f"{self.name} has no adapters to save, because all of its weights are trained.")
        return self.adapters.save(Path(folder), public_name(self.model.source))

    def parameters(self) -> list[torch.nn.Parameter]:
        """Return the trained weights."""
        return list(self._trained().values())

    def state_dict(self) -> dict[str, Tensor]:
        """Return the trained weights by name; with adapters, a small part of the model."""
        return {name: weight.detach() for name, weight in self._trained().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            HunchError: if the weights are from another model or another setting of ``train``.
        """
        trained = self._trained()
        shapes = {name: weight.shape for name, weight in trained.items()}
        if shapes != {name: weight.shape for name, weight in state.items()}:
            raise HunchError(f"These weights do not match {self.name}: its model or train differs.")
        with torch.no_grad():
            for name, weight in trained.items():
                weight.copy_(state[name])

    def _trained(self) -> dict[str, torch.nn.Parameter]:
        named: Any = self.network.named_parameters()
        return {name: weight for name, weight in named if weight.requires_grad}


def gguf_of(source: Path) -> Path | None:
    """Return the GGUF file of a model: the file that it was read from, or the one that lies in its folder.

    Args:
        source: The folder or file that was read; a run trains on from the folder that another run has saved.
    """
    if source.name.endswith(GGUF):
        return source
    beside = source / f"{folders.MODEL}{GGUF}"
    return beside if beside.is_file() else None


def public_name(source: str) -> str:
    """Return the name on the hub of the model in a folder or file, or the path if it is none of the hub.

    Args:
        source: A path. ``models--OWNER--NAME/snapshots/REVISION`` is how the hub's library keeps a model.
    """
    path = Path(source)
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith(HUB_FOLDER):
        return path.parent.parent.name.removeprefix(HUB_FOLDER).replace("--", "/")
    return source


@torch.no_grad()
def _shuffle(network: Any, seed: int) -> None:
    """Give each token the input and output weights of another token."""
    rows = network.get_input_embeddings().weight
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)).to(rows.device)
    # Input and output may share one matrix, which is then shuffled once.
    layers = (network.get_input_embeddings(), network.get_output_embeddings())
    for layer in {id(layer.weight): layer for layer in layers}.values():
        layer.weight.copy_(layer.weight[order])


def write(folder: Path, network: Any, tokenizer: Any, card: Sequence[Mapping[str, Any]] = ()) -> Path:
    """Save a model like the transformers library, with checksums and a card of its trainings."""
    (folder / files.SUMS).unlink(missing_ok=True)
    with files.quietly():
        network.save_pretrained(str(folder))
        tokenizer.save_pretrained(str(folder))
    if card:
        (folder / files.CARD).write_text("".join(f"{json.dumps(line)}\n" for line in card), encoding="utf-8")
    names = sorted(
        file.name for file in folder.iterdir() if file.name == files.CARD or file.suffix in READ_BY_MODELS
    )
    (folder / files.SUMS).write_text(
        "".join(f"{files.sha256(folder / name)}  {name}\n" for name in names), encoding="utf-8"
    )
    return folder
