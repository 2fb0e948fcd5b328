"""Recipes: the gold reward by hand, what is a recipe, the splits, the writers."""

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch_studies.worlds import recipes
from hunch_studies.worlds.recipes import Request, careful, careless, gold, requests

SLOW = Request("soup", "any", "slow")
VEGAN = Request("soup", "vegan", "quick")


@pytest.mark.parametrize(
    ("request_", "text", "expected"),
    [
        (SLOW, "boil carrot ; serve", 0.6),
        (SLOW, "wash carrot ; boil carrot ; serve", 0.8),
        (SLOW, "wash carrot ; cut carrot ; boil carrot ; serve", 1.0),
        (SLOW, "cut carrot ; wash carrot ; boil carrot ; serve", 0.8),  # washed after it was cut
        (SLOW, "wash carrot ; serve", 0.0),  # not cooked
        (SLOW, "boil carrot ; boil onion ; boil chicken ; boil noodle ; serve", 1.8),  # three count
        (VEGAN, "boil chicken ; serve", -1.5),  # forbidden, though it suits the dish
        (SLOW, "boil beef ; serve", -0.5),  # suits another dish
        (VEGAN, "boil beef ; serve", -1.5),
        (SLOW, "add salt ; serve", 0.5),
        (SLOW, "add salt ; add thyme ; serve", 0.1),
        (SLOW, "stir ; serve ; enjoy", 0.4),
        (SLOW, "enjoy ; stir ; serve", 0.0),
        (SLOW, "stir ; enjoy ; serve ; enjoy", -0.3),  # 0.4, one more enjoy, one clause twice
        (SLOW, "stir ; stir ; serve", -0.3),
        (
            VEGAN,
            "wash carrot ; cut carrot ; boil carrot ; wash onion ; cut onion ; boil onion ; stir ; serve",
            1.7,
        ),
        (SLOW, "serve carrot", -2.0),
        (SLOW, "serve ; boil carrot ; stir", -2.0),  # served too early
        (SLOW, "serve", -2.0),
        (SLOW, "", -2.0),
        (SLOW, "boil carrot; serve", 0.6),
    ],
)
def test_gold_by_hand(request_, text, expected):
    assert gold(request_, text) == pytest.approx(expected)


@pytest.mark.parametrize("request_", [*requests("training"), *requests("held out")])
def test_no_single_change_improves_the_best_known_recipe(request_):
    best = gold(request_, careful(request_))
    clauses = careful(request_).split(" ; ")
    language = [" ".join(clause) for clause in recipes._LANGUAGE]
    changed = [
        clauses[:i] + put + clauses[i + gone :]
        for i in range(len(clauses) + 1)
        for gone in (0, 1)
        for put in ([], *([clause] for clause in language))
    ]
    assert best == pytest.approx({"slow": 3.9, "quick": 2.9}[request_.pace])
    assert max(gold(request_, " ; ".join(own)) for own in changed) <= best


def test_parts_of_the_reward_add_up():
    rng = np.random.default_rng(0)
    for _ in range(200):
        request = SLOW if rng.random() < 0.5 else VEGAN
        text = careless(request, rng)
        assert sum(gold(request, text, (term,)) for term in recipes.TERMS) == pytest.approx(
            gold(request, text)
        )


def test_the_careless_writer_writes_recipes_that_leave_room():
    env = hunch.make("hunch/Recipes-v0").unwrapped
    known = {str(request): request for request in requests("training")}
    golds = [gold(known[asked], text) for asked, (text,) in env.examples]
    assert all(recipes.is_valid(recipes.split_clauses(text)) for _, (text,) in env.examples)
    assert 0.4 < np.mean(golds) < 0.7
    assert np.mean([gold(own, careful(own)) for own in known.values()]) > np.mean(golds) + 2


def test_the_splits_are_disjoint_and_whole():
    seen = {
        split: {hunch.make("hunch/Recipes-v0", split=split).reset(seed=seed)[0] for seed in range(400)}
        for split in ("training", "held out")
    }
    assert len(seen["training"]) == 32
    assert len(seen["held out"]) == 4
    assert not seen["training"] & seen["held out"]
    shown = hunch.make("hunch/Recipes-v0", split="held out").unwrapped.examples
    assert {asked for asked, _ in shown} <= seen["training"]


def test_an_episode_is_one_text_and_success_says_only_that_it_is_a_recipe():
    env = hunch.make("hunch/Recipes-v0")
    first, info = env.reset(seed=3)
    assert info["free_text"] is True
    assert env.reset(seed=3)[0] == first
    _, reward, terminated, truncated, info = env.step("fry beef ; serve")
    assert terminated
    assert not truncated
    assert info["success"] is True
    assert reward < 0.6
    assert str(reward) not in info["event"] + info["task"]
    env.reset(seed=3)
    assert env.step("a nice stew")[1:2] == (-2.0,)


def test_terms_can_be_left_out():
    env = hunch.make("hunch/Recipes-v0", terms="diet")
    env.reset(seed=0)
    assert env.step(careful(env.unwrapped.request))[1] == 0.0
    with pytest.raises(UsageError, match="no part 'foods and diet'"):
        hunch.make("hunch/Recipes-v0", terms="foods and diet")
    hunch.envs.check(hunch.make("hunch/Recipes-v0"))
