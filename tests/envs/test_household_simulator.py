"""Rules that are easy to lose. That they are the engine's is shown by test_household_engine.py."""

import copy
import pickle
import random
from dataclasses import replace

import pytest

from hunch.envs.household.generator import Recipe, generate
from hunch.envs.household.goals import KINDS, Goal
from hunch.envs.household.house import House
from hunch.envs.household.oracle import plan
from hunch.envs.household.problem import Problem, Wording
from hunch.envs.household.simulator import NOTHING_HAPPENS, Simulator

PICK = Goal("pick", "mug", "shelf")
NEW = Wording()
THINGS = {"mug_bar_1": "countertop_bar_1", "apple_bar_1": "fridge_bar_1", "knife_bar_1": "countertop_bar_1"}
PLACES = {
    "countertop_bar_1": "loc_bar_1",
    "microwave_bar_1": "loc_bar_1",
    "fridge_bar_1": "loc_bar_2",
    "sink_bar_1_bar_sinkbasin": "loc_bar_3",
    "shelf_bar_1": "loc_bar_4",
    "shelf_bar_2": "loc_bar_4",
}


def kitchen(goal=PICK, wording=NEW) -> Simulator:
    """A small kitchen with everything in a known place."""
    kinds = {id: ("sinkbasin" if "basin" in id else id.split("_")[0]) + "type" for id in [*THINGS, *PLACES]}
    facts = {("atlocation", "agent1", "loc_bar_0")}
    facts |= {(("objecttype" if id in THINGS else "receptacletype"), id, kind) for id, kind in kinds.items()}
    facts |= {("receptacleatlocation", id, place) for id, place in PLACES.items()}
    facts |= {("inreceptacle", id, holder) for id, holder in THINGS.items()}
    facts |= {("objectatlocation", id, PLACES[holder]) for id, holder in THINGS.items()}
    facts |= {("pickupable", id) for id in THINGS} | {
        ("openable", "fridge_bar_1"),
        ("openable", "microwave_bar_1"),
    }
    facts |= {
        (able, id) for able in ("cleanable", "heatable", "coolable") for id in ("mug_bar_1", "apple_bar_1")
    }
    facts |= {("isreceptacleobject", "mug_bar_1"), ("sliceable", "apple_bar_1")}
    facts |= {("cancontain", kinds[place], kinds[id]) for place in PLACES for id in THINGS}
    objects = {"agent1": "agent"} | {f"loc_bar_{i}": "location" for i in range(5)}
    objects |= dict.fromkeys(THINGS, "object") | dict.fromkeys(PLACES, "receptacle")
    return Simulator(House(Problem(tuple(objects.items()), tuple(sorted(facts)), goal, "tidy up", wording)))


def play(simulator, *commands):
    """The last answer."""
    return [simulator.step(command) for command in commands][-1]


def test_the_introduction():
    assert kitchen().introduction() == (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a room. Looking quickly around you, you see a countertop 1, a fridge 1, "
        "a microwave 1, a shelf 2, a shelf 1, and a sinkbasin 1.\n\n"
        "Your task is to: tidy up."
    )


@pytest.mark.parametrize(
    ("commands", "answer"),
    [
        (["look"], "You are in the middle of a room. Looking quickly around you, you see nothing."),
        (["inventory"], "You are not carrying anything."),
        (["dance"], NOTHING_HAPPENS),
        (
            ["go to countertop 1"],
            "You arrive at countertop 1. On the countertop 1, you see a knife 1, and a mug 1.",
        ),
        (["go to countertop 1", "go to microwave 1"], NOTHING_HAPPENS),
        (
            ["go to countertop 1", "look"],
            "You are facing the countertop 1, and microwave 1. Next to it, you see nothing.",
        ),
        (["go to fridge 1"], "You arrive at fridge 1. The fridge 1 is closed."),
        (
            ["go to fridge 1", "open fridge 1"],
            "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1.",
        ),
        (["go to fridge 1", "open fridge 1", "close fridge 1"], "You close the fridge 1."),
        (["go to countertop 1", "examine mug 1"], NOTHING_HAPPENS),
        (
            ["go to countertop 1", " take mug 1 from countertop 1 "],
            "You pick up the mug 1 from the countertop 1.",
        ),
    ],
)
def test_answers(commands, answer):
    assert play(kitchen(), *commands) == answer


def test_closed_doors_heat_and_cool():
    simulator = kitchen(Goal("heat", "mug", "shelf"))
    play(simulator, "go to countertop 1", "take mug 1 from countertop 1")
    assert simulator.step("heat mug 1 with microwave 1") == "You heat the mug 1 using the microwave 1."
    assert simulator.step("examine mug 1") == "This is a normal mug 1. In it, you see nothing."
    assert play(simulator, "go to shelf 2", "move mug 1 to shelf 2") == "You move the mug 1 to the shelf 2."
    assert simulator.won
    play(simulator, "take mug 1 from shelf 2", "go to fridge 1", "cool mug 1 with fridge 1")
    play(simulator, "go to shelf 1", "move mug 1 to shelf 1")
    assert not simulator.won


def test_examining_what_is_held():
    simulator = kitchen(Goal("cool", "apple", "shelf"))
    play(simulator, "go to fridge 1", "open fridge 1", "take apple 1 from fridge 1")
    assert simulator.step("examine apple 1") == "There's nothing special about apple 1."
    assert play(simulator, "cool apple 1 with fridge 1", "examine apple 1") == "This is a cold apple 1."
    play(simulator, "go to sinkbasin 1", "clean apple 1 with sinkbasin 1")
    assert simulator.step("examine apple 1") == "This is a cool and clean apple 1."
    play(simulator, "move apple 1 to sinkbasin 1", "go to countertop 1", "take knife 1 from countertop 1")
    assert (
        play(simulator, "go to sinkbasin 1", "slice apple 1 with knife 1")
        == "You sliced the apple 1 with the knife 1."
    )
    play(simulator, "move knife 1 to sinkbasin 1", "take apple 1 from sinkbasin 1")
    assert simulator.step("examine apple 1") == "This is a cool and clean sliced apple 1."


def test_look_lists_only_what_moved_between_neighbours():
    simulator = kitchen()
    play(
        simulator,
        "go to countertop 1",
        "take mug 1 from countertop 1",
        "go to shelf 1",
        "move mug 1 to shelf 1",
    )
    assert simulator.step("look") == "You are facing the shelf 2, and shelf 1. Next to it, you see nothing."
    play(simulator, "take mug 1 from shelf 1", "move mug 1 to shelf 2")
    assert simulator.step("look") == "You are facing the shelf 2, and shelf 1. Next to it, you see a mug 1."


def test_the_old_wording():
    simulator = kitchen(wording=Wording(put_in_on=True, arrive_at_place=True, help=False))
    assert "help" not in simulator.commands
    assert simulator.step("go to shelf 1") == "You arrive at loc 1. On the shelf 1, you see nothing."
    play(simulator, "go to countertop 1", "take mug 1 from countertop 1", "go to shelf 1")
    assert simulator.step("put mug 1 in/on shelf 1") == "You put the mug 1 in/on the shelf 1."
    assert simulator.won


def test_the_oracle_starts_from_any_state():
    simulator = kitchen()
    assert plan(simulator) == (
        "go to countertop 1",
        "take mug 1 from countertop 1",
        "go to shelf 1",
        "move mug 1 to shelf 1",
    )
    play(simulator, "go to countertop 1", "take knife 1 from countertop 1")
    assert plan(simulator)[:2] == ("move knife 1 to countertop 1", "take mug 1 from countertop 1")
    assert simulator.held >= 0  # the game itself is left alone
    assert plan(kitchen(Goal("pick", "plunger", "shelf"))) is None
    assert plan(kitchen(Goal("picktwo", "mug", "shelf"))) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_oracle_wins_after_any_wandering(kind):
    for index in range(20):
        rng = random.Random(index)
        simulator = Simulator(House(generate(Recipe(kind, index=index))))
        for _ in range(40):
            simulator.step(rng.choice(simulator.commands))
        for command in plan(simulator):
            assert command in simulator.commands
            simulator.step(command)
        assert simulator.won


def test_copies_are_independent_and_share_the_house():
    simulator = kitchen()
    for duplicate in (Simulator.copy, copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))):
        twin = duplicate(simulator)
        play(twin, "go to countertop 1", "take mug 1 from countertop 1")
        assert simulator.commands == kitchen().commands
        assert play(
            simulator.copy(), "go to countertop 1", "take mug 1 from countertop 1", "look"
        ) == twin.step("look")
    assert copy.deepcopy(simulator).house is simulator.house


def test_a_problem_that_starts_at_a_receptacle():
    problem = generate(Recipe("pick"))
    facts = [fact for fact in problem.facts if fact[0] != "atlocation"] + [
        ("atlocation", "agent1", "loc_bar_01")
    ]
    text = Simulator(House(replace(problem, facts=tuple(sorted(facts))))).introduction()
    assert "\n\nYou are facing the " in text
