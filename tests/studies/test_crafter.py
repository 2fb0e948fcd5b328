"""Crafter in words: BALROG's wording by hand, the contract, and Crafter's own rewards and ends."""

import copy

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch_studies.worlds.crafter import ACTIONS, carried, described

NAMES = {1: "water", 2: "grass", 3: "tree", 4: "player", 5: "cow"}


def test_what_is_seen_is_told_in_balrogs_words():
    seen = np.full((9, 7), 2)
    seen[4, 3], seen[4, 2], seen[6, 3] = 4, 3, 3
    seen[0:3, 0:3] = 1
    seen[8, 6] = 0
    assert described(seen, NAMES, (0, -1)).splitlines() == [
        "You see:",
        "- water 1 step north and 4 steps west",
        "- tree 1 step north",
        "",
        "You face tree at your front.",
    ]
    bare = np.full((9, 7), 2)
    assert described(bare, NAMES, (1, 0)) == (
        "You see nothing away from you.\n\nYou face nothing at your front."
    )


def test_status_and_inventory():
    vitals = dict.fromkeys(("health", "food", "drink", "energy"), 9)
    assert carried({**vitals, "wood": 0}).endswith("- energy: 9/9\n\nYou have nothing in your inventory.")
    assert carried({**vitals, "food": 8, "wood": 2}).splitlines()[-1] == "- wood: 2"


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "crafter", None)
    with pytest.raises(UsageError, match=r"pip install .*\[crafter\]"):
        hunch.make("hunch/Crafter-v0")


@pytest.fixture(scope="module")
def env():
    pytest.importorskip("crafter")
    return hunch.make("hunch/Crafter-v0", area=16, max_steps=300)


def test_the_contract(env):
    hunch.envs.check(env, episodes=1, steps=15)


def walked(env, seed, steps=250):
    rng, seen = np.random.default_rng(seed), [env.reset(seed=seed)]
    for _ in range(steps):
        seen.append(env.step(ACTIONS[int(rng.integers(len(ACTIONS)))]))
        if seen[-1][2]:
            break
    return seen


def test_the_same_seed_gives_the_same_episode_creatures_included(env):
    """Crafter's own sets of creatures are in the order of memory."""
    assert walked(env, 3) == walked(copy.deepcopy(env), 3)


def test_rewards_are_crafters(env):
    crafter = pytest.importorskip("crafter")
    env.reset(seed=1)
    game = env.unwrapped._game
    plain = crafter.Env(area=(16, 16), length=0, seed=game._seed)
    plain.reset()
    assert (plain._world._mat_map == game._world._mat_map).all()
    for action in (1, 5, 2, 5, 3, 5, 4, 5):
        assert env.step(action)[1] == plain.step(action)[1]
