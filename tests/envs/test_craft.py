"""The craft world: everything can be done, in the order of the recipes and no other."""

import itertools
import random

import pytest

import hunch
from hunch.core import UsageError
from hunch.envs.craft import HOPELESS, LEVELS, PASTIMES, RULES


def solve(env):
    """A search of its own: breadth first over walks for whatever achievement can be done next."""
    env.reset(seed=0)
    world, steps = env.unwrapped, 0
    while len(world.done) < len(world.achievements):
        goal = next(name for name in world.achievements if name not in world.done)
        steps += _reach(world, goal)
    return steps


def _reach(world, action):
    """Do an action, and what it needs first; returns the steps."""
    rule, steps = world.rules[action], 0
    makers = {r.gives: r.action for r in world.rules.values() if r.gives}
    for thing, n in (*rule.uses, *(((rule.tool, 1),) if rule.tool else ())):
        while world.held.get(thing, 0) < n:
            steps += _reach(world, makers[thing])
    where = world.where[rule.source] if rule.source else _station(world, rule)
    while world.at != where:
        steps += _step(world, f"go to {world.neighbours(world.at)[1]}")
    if not world.works(rule):  # what was fetched on the way used something up
        return steps + _reach(world, action)
    return steps + _step(world, action)


def _station(world, rule):
    builders = {r.puts: r.action for r in world.rules.values() if r.puts}
    for place in world.ring:
        if world.stations.get(place, frozenset()).issuperset(rule.near):
            return place
    table = next((p for p in world.ring if "a table" in world.stations.get(p, ())), None)
    assert table is not None
    for station in rule.near:
        if station not in world.stations[table]:
            _reach(world, builders[station])
    return world.at


def _step(world, action):
    *_, info = world.step(action)
    assert action.startswith("go to") or info["event"] == action
    return 1


@pytest.mark.parametrize(("difficulty", "seed"), list(itertools.product(LEVELS, range(5))))
def test_everything_can_be_achieved(difficulty, seed):
    env = hunch.make("hunch/Craft-v0", difficulty=difficulty, world_seed=seed, max_steps=500)
    solve(env)
    assert len(env.unwrapped.done) == LEVELS[difficulty]


def test_every_beginning_of_the_list_holds_what_it_needs():
    given, standing = set(), set()
    for rule in RULES:
        assert {thing for thing, _ in rule.uses} <= given
        assert not rule.tool or rule.tool in given
        assert standing.issuperset(rule.near)
        given |= {rule.gives}
        standing |= {rule.puts}


def test_an_achievement_pays_once_and_nothing_else_does():
    env = hunch.make("hunch/Craft-v0")
    env.reset(seed=0)
    world = env.unwrapped
    while world.at != world.where["trees"]:
        assert env.step(f"go to {world.neighbours(world.at)[0]}")[1] == 0
    assert [env.step("collect wood")[1] for _ in range(3)] == [1.0, 0.0, 0.0]
    assert env.step("collect wood")[-1]["event"] == ""  # two are as many as can be held
    for action in HOPELESS:
        _, reward, *_, info = env.step(action)
        assert (reward, info["event"]) == (0.0, "")
    _, reward, *_, info = env.step(PASTIMES[0])
    assert (reward, info["event"]) == (0.0, PASTIMES[0])


def test_worlds_differ_and_seeds_repeat():
    places = [hunch.make("hunch/Craft-v0", world_seed=seed).unwrapped.where for seed in (0, 0, 1, 2)]
    assert places[0] == places[1]
    assert places[0] != places[2] or places[0] != places[3]


# ---- with a target ----------------------------------------------------------------------------------------


def test_a_target_is_the_task_and_pays_alone():
    env = hunch.make("hunch/Craft-v0", target="make table", difficulty="easy", max_steps=200)
    _, info = env.reset(seed=0)
    assert info["task"] == "make table"
    world = env.unwrapped
    while world.at != world.where["trees"]:
        env.step(f"go to {world.neighbours(world.at)[0]}")
    assert [env.step("collect wood")[1:3] for _ in range(2)] == [(0.0, False)] * 2
    _, reward, terminated, _, info = env.step("make table")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_another_target_in_every_episode_and_done_gives_up():
    env = hunch.make("hunch/Craft-v0", target="any")
    tasks = {env.reset(seed=seed)[1]["task"] for seed in range(30)}
    assert len(tasks) > 8
    _, reward, terminated, _, info = env.step("done")
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert "done" not in hunch.make("hunch/Craft-v0").unwrapped.choices
    with pytest.raises(UsageError, match="make table"):
        hunch.make("hunch/Craft-v0", target="make tabel")


def test_what_goes_wrong_uses_up_and_gives_nothing():
    env = hunch.make("hunch/Craft-v0", failure=1.0, target="make table")
    env.reset(seed=0)
    world = env.unwrapped
    world.held, world.at = {"wood": 2}, world.where["trees"]
    *_, info = env.step("make table")
    assert (world.held, world.stations, info["event"]) == ({}, {}, "")
    before = world.at
    env.step(f"go to {world.neighbours(before)[0]}")
    assert world.at == before
    mild = hunch.make("hunch/Craft-v0", failure=0.3, target="collect wood")
    mild.reset(seed=0)
    failed = 0
    for _ in range(400):
        mild.unwrapped.at, mild.unwrapped.done, mild.unwrapped._running = (
            mild.unwrapped.where["trees"],
            (),
            True,
        )
        mild.unwrapped.held = {}
        failed += mild.step("collect wood")[4]["event"] == ""
    assert abs(failed / 400 - 0.3) < 0.08


def test_the_scene_says_what_the_observation_says():
    env = hunch.make("hunch/Craft-v0", most=9, max_steps=400)
    observation, info = env.reset(seed=0)
    rng = random.Random(0)
    for _ in range(300):
        scene = info["raw"]
        assert observation.startswith(f"You are in the {scene.at},")
        assert all(thing in observation for thing in scene.near)
        assert all(f"{n} {thing}" in observation for thing, n in scene.held)
        observation, *_, info = env.step(rng.choice(info["actions"]))


def test_the_manual_names_every_recipe():
    manual = hunch.make("hunch/Craft-v0", difficulty="hard").unwrapped.manual
    for rule in RULES:
        assert f"To {rule.action}, " in manual
        assert all(f"{n} {thing}" in manual for thing, n in rule.uses)
