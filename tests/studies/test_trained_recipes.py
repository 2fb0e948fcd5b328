"""Commands that train with a small real model: each can be resolved; a few start, with a tiny model."""

from __future__ import annotations

import pytest

from hunch_studies.trained_recipes import RECIPES, start, write_files

pytest.importorskip("transformers")

TINY = "scratch?width=16&layers=1&vocabulary=64"


def test_each_method_has_one_recipe():
    names = [recipe.method for recipe in RECIPES]
    assert len(set(names)) == len(names)
    assert all(recipe.first < recipe.steps for recipe in RECIPES)


@pytest.mark.parametrize("method", ["rest", "offline-rlhf"])
def test_a_recipe_starts_and_tells_the_hours_of_the_whole(method, tmp_path):
    recipe = next(recipe for recipe in RECIPES if recipe.method == method)
    if method == "rest":
        pytest.importorskip("vaderSentiment")
    write_files(tmp_path)
    took = start(recipe, tmp_path, pupil=TINY)
    assert took["hours"] == pytest.approx(took["seconds"] / recipe.first * recipe.steps / 3600)
