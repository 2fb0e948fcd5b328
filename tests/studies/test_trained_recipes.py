"""Commands that train with a small real model: each is understood; two start, with a tiny model."""

from __future__ import annotations

import pytest

from hunch import methods
from hunch.cli.environment import split_environment
from hunch.cli.options import options_of, parse, run_config
from hunch.extras import NotInstalledError
from hunch.runs.config import Setting
from hunch.runs.resolve import resolve
from hunch_studies.trained_recipes import RECIPES, start, write_files

pytest.importorskip("transformers")

TINY = "scratch?width=16&layers=1&vocabulary=64"
LABELS = [f"{recipe.method} {recipe.options.split('--env ')[1].split()[0]}" for recipe in RECIPES]


@pytest.mark.parametrize("recipe", RECIPES, ids=LABELS)
def test_the_options_of_a_recipe_are_those_of_its_method(recipe, tmp_path, monkeypatch):
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    name, *arguments = recipe.words(recipe.steps, TINY, "uniform")
    method = methods.find(name)
    rest, env_options = split_environment(arguments)
    parts = {"where_": Setting, "method_": options_of(method, rest)}
    parsed = parse(f"run {name}", "", parts, rest)
    config = run_config(name, parsed.where_, env_options, parsed.method_, seed=0)
    try:
        resolve(config)
    except NotInstalledError as error:
        pytest.skip(str(error))
    assert config.steps == recipe.steps
    assert set(recipe.shorter) <= set(arguments)


@pytest.mark.parametrize("method", ["rest", "offline-rlhf"])
def test_a_recipe_starts_and_tells_the_hours_of_the_whole(method, tmp_path):
    if method == "rest":
        pytest.importorskip("vaderSentiment")
    recipe = next(recipe for recipe in RECIPES if recipe.method == method)
    write_files(tmp_path)
    took = start(recipe, tmp_path, pupil=TINY)
    assert 0 < took["seconds"] < 600
    assert took["hours"] == pytest.approx(took["seconds"] * recipe.steps / recipe.first / 3600)
