"""The kitchen: its rules, its errands, and the two routes to where a plan leads."""

import dataclasses

import numpy as np
import pytest

import hunch
from hunch.core import State, UsageError
from hunch.envs.kitchen import world
from hunch.envs.kitchen.errands import ERRANDS, EXAMPLES, FAMILIES, paraphrases, possible, reached
from hunch.envs.kitchen.skills import SKILLS, VERBS, subtasks
from hunch.envs.kitchen.world import FLOOR, HAND, NOWHERE, PLACES, THINGS, Scene


def scene(**where):
    """All things are on the table but those that are named; the robot stands in a corner."""
    return Scene((0, 1), tuple(where.get(thing, "table") for thing in THINGS))


def test_no_cell_is_beside_two_places():
    beside = [sum(abs(r - row) + abs(c - column) == 1 for r, c in PLACES.values()) for row, column in FLOOR]
    assert max(beside) == 1
    assert all(any(Scene(cell, scene().where).beside == place for cell in FLOOR) for place in PLACES)


def test_thirty_errands_of_four_families_and_thirty_skills():
    assert len(ERRANDS) == len({errand.text for errand in ERRANDS}) == 30
    assert {errand.family for errand in ERRANDS} == set(FAMILIES)
    assert len(SKILLS) == 30
    assert sorted(name for verb in VERBS for name in (s.name for s in subtasks(verb))) == sorted(SKILLS)


@pytest.mark.parametrize("seed", range(3))
def test_errands_begin_possible_and_not_done_but_by_luck(seed):
    env = hunch.make("hunch/Kitchen-v0")
    for number in range(40):
        _, info = env.reset(seed=100 * seed + number)
        assert possible(env.unwrapped.errand.goal, info["raw"])
        assert info["raw"].held is None
        assert info["raw"].opened == ()


def test_what_is_in_a_closed_container_is_not_told():
    hidden = scene(cola="fridge")
    assert "cola" not in world.described(hidden)
    assert not hidden.seen("cola")
    assert "cola" in world.described(dataclasses.replace(hidden, opened=("fridge",)))
    assert "apple" not in world.described(scene(apple=NOWHERE))


def test_a_disturbance_of_one_lets_nothing_be_grasped():
    rng = np.random.default_rng(0)
    at_table = dataclasses.replace(scene(), robot=(1, 2))
    for _ in range(50):
        after, event = world.step(at_table, "grasp the apple", rng, 1.0)
        assert after.held is None
        assert "rolls away" in event
        assert after.place_of("apple") != HAND
        assert after.place_of("apple") != "table" or "Somebody moves the apple" in event
    grasped = [world.step(at_table, "grasp the apple", rng)[0].held for _ in range(200)]
    assert abs(grasped.count("apple") / 200 - (1 - world.SLIP)) < 0.07


def test_only_done_ends_an_errand_and_only_what_holds_pays():
    env = hunch.make("hunch/Kitchen-v0", family="primitive")
    rewards = set()
    for number in range(60):
        env.reset(seed=number)
        holds = reached(env.unwrapped.errand.goal, env.unwrapped.scene)
        _, reward, terminated, _, info = env.step("done")
        assert terminated
        assert reward == float(holds) == float(info["success"])
        rewards.add(reward)
    assert rewards == {0.0, 1.0}  # some begin beside the bin


def test_another_errand_after_ten_steps():
    env = hunch.make("hunch/Kitchen-v0", changes=1.0)
    _, info = env.reset(seed=0)
    tasks = [info["task"]]
    for _ in range(12):
        *_, info = env.step("release")
        tasks.append(info["task"])
    assert len(set(tasks[:10])) == 1
    assert tasks[10] != tasks[9]
    assert tasks[10] == tasks[12]
    hunch.envs.check(env, steps=15)


def test_a_person_answers():
    env = hunch.make("hunch/Kitchen-v0", asking=True)
    _, info = env.reset(seed=0)
    for thing in THINGS:
        place = info["raw"].place_of(thing)
        *_, told = env.step(f"ask where the {thing} is")
        assert told["event"].endswith(f"no {thing}." if place == NOWHERE else f"at the {place}.")


@pytest.mark.parametrize("verb", VERBS)
def test_a_skill_sees_where_its_aim_is_and_not_what(verb):
    env = hunch.make("hunch/KitchenSkill-v0", verb=verb)
    for seed in range(30):
        observation, info = env.reset(seed=seed)
        assert not any(name in observation for name in (*THINGS, *PLACES))
        subtask = env.unwrapped.subtask
        assert subtask.view(State("", raw=info["raw"])).observation == observation
        assert not subtask.reached(info["raw"], info["raw"])


def test_errands_have_other_words():
    texts = [errand.text for errand in paraphrases()]
    assert len({*texts}) == 3 * len(ERRANDS)
    assert not {*texts} & {known.text for known in ERRANDS} | {*texts} & {shown.task for shown in EXAMPLES}
    env = hunch.make("hunch/Kitchen-v0", paraphrased=True, family="long")
    told = {env.reset(seed=seed)[1]["task"] for seed in range(200)}
    assert told == {errand.text for errand in paraphrases() if errand.family == "long"}


def test_bad_options():
    for id, options in (
        ("hunch/Kitchen-v0", {"family": "hard"}),
        ("hunch/Kitchen-v0", {"disturbance": 2.0}),
        ("hunch/Kitchen-v0", {"changes": -0.5}),
        ("hunch/KitchenSkill-v0", {"verb": "sing"}),
    ):
        with pytest.raises(UsageError):
            hunch.make(id, **options)


def test_descriptions_of_actions_tell_what_they_do_and_nothing_hidden():
    hidden = dataclasses.replace(scene(cola="fridge", apple=NOWHERE, cup=HAND), robot=(0, 1))
    assert hidden.beside == "fridge"
    told = world.consequences(hidden)
    assert set(told) == set(world.ACTIONS) - {world.DONE}
    assert told["grasp the cola"] == told["grasp the apple"] == "it is not in sight"
    assert told["grasp the cup"] == "you hold it"
    assert told["grasp the sponge"] == "it is at the table, out of reach"
    assert told["open"] == "the fridge is closed"
    assert told["release"] == "there is nothing to put down, or nowhere"
    assert told["go west"] == "the way is blocked"
    opened = dataclasses.replace(hidden, opened=("fridge",))
    assert world.consequences(opened)["grasp the cola"] == "the hand is full"
    assert world.consequences(opened)["release"] == "at the fridge"


def test_the_contract_holds_with_descriptions():
    hunch.envs.check(hunch.make("hunch/Kitchen-v0", described=True))
    env = hunch.make("hunch/Kitchen-v0", described=True, asking=True)
    observation, info = env.reset(seed=0)
    state = State.read(observation, info)
    assert state.descriptions[state.options.index("done")] == ""
