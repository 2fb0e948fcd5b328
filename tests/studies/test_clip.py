"""The small model with eyes: its scenes, its training, and what the shipped one reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.lm import Message, picture

torch = pytest.importorskip("torch")
pytest.importorskip("minigrid")
pytest.importorskip("hunch_pocket")
pytest.importorskip("hunch_studies")

from hunch_studies.laboratory import clip  # noqa: E402
from hunch_studies.worlds.babyai.facts import SCHEMA, at_dusk, told  # noqa: E402

SMALL = clip.ClipConfig(updates=4, pool=12, batch=6, width=32, seen=32, layers=1)


def silent(line: str) -> None:
    pass


def test_scenes_are_those_of_their_seed_and_unseen_layouts_are_apart() -> None:
    seen, again = (list(clip.scenes("a", 30)) for _ in range(2))
    assert all(np.array_equal(x.picture, y.picture) for x, y in zip(seen, again, strict=True))
    unseen = list(clip.scenes("a", 30, unseen=True))
    layouts = [{tuple(room.facts.values()) for room in rooms if room.facts} for rooms in (seen, unseen)]
    assert layouts[0]
    assert not layouts[0] & layouts[1]


def test_captions_are_true() -> None:
    for room in clip.scenes("b", 20):
        rng = np.random.default_rng(0)
        said = clip.caption(room.sentences, rng)
        assert all(f"{part.strip('.')}." in room.sentences for part in said.split(". "))
        for field, value in room.facts.items():
            assert SCHEMA.fields[field][value] in room.sentences


@pytest.mark.parametrize("shuffled", [False, True])
def test_stopped_training_resumes_exactly(tmp_path: Path, shuffled: bool) -> None:
    config = clip.ClipConfig(**{**vars(SMALL), "shuffled": shuffled})
    whole = clip.Training(config)
    losses = [whole.advance() for _ in range(4)]
    first = clip.Training(config)
    halves = [first.advance(), first.advance()]
    torch.save(first.state_dict(), tmp_path / "a.pt")
    second = clip.Training(config)
    second.load_state_dict(torch.load(tmp_path / "a.pt", weights_only=True))
    assert [*halves, second.advance(), second.advance()] == losses


def test_a_trained_model_loads_as_any_other(tmp_path: Path) -> None:
    folder = clip.train(SMALL, tmp_path, silent)
    ours, theirs = lm.load(f"pocket?folder={folder}", cache=None), lm.load(f"hf:{folder}", cache=None)
    assert (ours.evidence, ours.verbs) == ("L1", {"embed", "see"})
    line = "The agent is 1 step from the red ball."
    assert ours.embed([line]).tobytes() == theirs.embed([line]).tobytes()


@pytest.mark.parametrize("skin", ["plain", "dusk"])
def test_the_shipped_model_reads_pictures_of_unseen_layouts(skin: str) -> None:
    model = lm.load("pocket?corpus=clip", cache=None)
    rooms = [room for room in clip.scenes("test", 90, unseen=True, things=(1,), whole=True) if room.facts]
    drawn = [at_dusk(room.picture) if skin == "dusk" else room.picture for room in rooms]
    seen = model.embed([(Message("user", "", (picture(pixels),)),) for pixels in drawn])
    for field, values in SCHEMA.fields.items():
        best = (seen @ model.embed(list(values.values())).T).argmax(1)
        assert (
            np.mean([list(values)[i] == room.facts[field] for i, room in zip(best, rooms, strict=True)]) > 0.7
        )
    assert all(told(room.facts) for room in rooms)


def test_the_weights_are_small() -> None:
    from hunch_pocket import CLIP

    assert sum(file.stat().st_size for file in CLIP.iterdir()) < 1_500_000
