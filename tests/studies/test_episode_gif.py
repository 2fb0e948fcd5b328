"""An episode as an animated picture: one picture before the first step, and one after each."""

import pytest
from PIL import Image

import hunch
from hunch.core import UsageError
from hunch_studies.episode_gif import frames


def test_every_step_has_a_picture(tmp_path):
    hunch.train("q-learning", "hunch/FrozenLake-v0", steps=50, out=tmp_path / "lake")
    first, *rest = frames(tmp_path / "lake", seed=0)
    assert 1 <= len(rest) <= 20
    assert {picture.size for picture in rest} == {first.size}
    assert isinstance(first, Image.Image)


def test_what_cannot_be_drawn_is_refused(tmp_path):
    hunch.train("q-learning", hunch.make("hunch/Household-Pick-v0", games=2), steps=50, out=tmp_path / "pick")
    with pytest.raises(UsageError, match="cannot be drawn"):
        next(frames(tmp_path / "pick", seed=0))
