"""Generated games: their sizes, splits and places."""

import hashlib
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hunch.envs
from hunch.core import UsageError
from hunch.envs.household import vocabulary as v
from hunch.envs.household.generator import OBJECT_RANGE, RECEPTACLE_RANGE, TYPICAL, Recipe, generate, pairs
from hunch.envs.household.goals import KINDS
from hunch.envs.household.house import House
from hunch.envs.household.oracle import plan
from hunch.envs.household.problem import parse_problem
from hunch.envs.household.simulator import Simulator

recipes = st.builds(
    Recipe,
    kind=st.sampled_from(KINDS),
    split=st.sampled_from(["train", "unseen"]),
    placement=st.sampled_from(["typical", "uniform"]),
    seed=st.integers(0, 2**31),
    index=st.integers(0, 1000),
)

# The least and the greatest length of a plan: everything in one place, and every door closed.
LENGTHS = {
    "pick": (3, 6),
    "examine": (3, 5),
    "clean": (4, 8),
    "heat": (4, 8),
    "cool": (4, 8),
    "picktwo": (5, 11),
}


@settings(max_examples=200)
@given(recipes)
def test_a_generated_game_is_sound(recipe):
    problem = generate(recipe)
    house = House(problem)
    simulator = Simulator(house)
    assert not simulator.won
    assert len(house.receptacles) in RECEPTACLE_RANGE
    assert len(house.things) in OBJECT_RANGE
    assert not simulator.opened
    assert not house.at[house.start]
    assert problem.goal in pairs(recipe.kind, recipe.split)
    assert generate(recipe) == problem
    assert parse_problem(problem.pddl(), f'"Your task is to: {problem.task}."') == problem
    assert replace(problem, facts=()) == replace(
        generate(replace(recipe, placement="uniform")), facts=()
    )  # placement moves things and changes nothing else


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("placement", ["typical", "uniform"])
def test_the_oracle_wins(kind, placement):
    least, most = LENGTHS[kind]
    for index in range(60):
        simulator = Simulator(House(generate(Recipe(kind, placement=placement, index=index))))
        commands = plan(simulator)
        assert least <= len(commands) <= most
        for command in commands:
            assert not simulator.won
            assert command in simulator.commands
            simulator.step(command)
        assert simulator.won
        assert plan(simulator) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_splits_share_no_pair(kind):
    train, unseen = set(pairs(kind, "train")), set(pairs(kind, "unseen"))
    assert not train & unseen
    assert len(unseen) >= 8
    assert 2 < len(train) / len(unseen) < 5


def test_a_pair_held_out_of_one_kind_is_held_out_of_all():
    def seen(split):
        return {(goal.object, goal.target) for kind in KINDS for goal in pairs(kind, split)}

    assert not seen("train") & seen("unseen")


def test_a_larger_pool_begins_with_the_smaller_one():
    small, large = (hunch.envs.make("hunch/Household-Pick-v0", games=n).unwrapped.pool for n in (4, 28))
    assert large[:4] == small
    goals = {generate(recipe).goal for recipe in large}
    assert len(goals) == 28


def test_pools_differ_by_seed():
    assert generate(Recipe("pick", seed=0)) != generate(Recipe("pick", seed=1))


def test_the_same_game_on_every_platform():
    text = "".join(generate(Recipe(kind, index=index)).pddl() for kind in KINDS for index in range(5))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "f9e5a4a5488a8eac"


def placed(placement):
    """How often each class of object starts in each class of receptacle."""
    counts = Counter()
    for index in range(400):
        facts = generate(Recipe("pick", placement=placement, index=index)).facts
        types = {fact[1]: fact[2].removesuffix("type") for fact in facts if fact[0].endswith("type")}
        counts.update((types[fact[1]], types[fact[2]]) for fact in facts if fact[0] == "inreceptacle")
    return counts


def test_typical_places_are_typical():
    typical, uniform = placed("typical"), placed("uniform")

    def share(counts, thing, *receptacles):
        total = sum(count for (other, _), count in counts.items() if other == thing)
        return sum(counts[thing, receptacle] for receptacle in receptacles) / total

    assert share(typical, "mug", "coffeemachine", "cabinet", "countertop", "desk") > 0.6
    assert share(typical, "egg", "fridge") > 2 * share(uniform, "egg", "fridge")
    assert share(typical, "fork", "drawer", "sinkbasin", "diningtable", "countertop") > 0.95
    assert share(uniform, "soapbar", "drawer") > 3 * share(typical, "soapbar", "drawer")


def test_the_tables_agree():
    assert set(TYPICAL) == set(v.ALL_OBJECTS) == set().union(*v.OBJECTS.values())
    for thing, weights in TYPICAL.items():
        assert set(weights) <= v.places(thing)
    for room, receptacles in v.RECEPTACLES.items():
        assert set(receptacles) <= set(v.FITS)
        assert all(v.places(thing) & set(receptacles) for thing in v.OBJECTS[room])


@pytest.mark.parametrize(
    "options",
    [
        {"games": 0},
        {"split": "test"},
        {"split": "official:test"},
        {"placement": "odd"},
        {"engine": "steam"},
        {"games": -3},
        {"max_steps": 0},
    ],
)
def test_options_out_of_range(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        hunch.envs.make("hunch/Household-Pick-v0", **options)


def test_a_chosen_game():
    env = hunch.envs.make("hunch/Household-Pick-v0", games=3)
    assert env.reset(options={"game": 2})[1]["game"] == "pick-train-typical-0-2"
    drawn = {env.reset(seed=seed)[1]["game"] for seed in range(40)}
    assert len(drawn) == 3
    with pytest.raises(UsageError, match="games 0 to 2"):
        env.reset(options={"game": 3})
