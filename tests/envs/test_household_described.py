"""What is known of each place beside the household's actions, for models that choose among described ones."""

from __future__ import annotations

import copy

import pytest

import hunch
from hunch.core import State


@pytest.fixture
def home():
    return hunch.make("hunch/Household-Pick-v0", games=4, described=True)


def test_the_contract_holds(home):
    hunch.envs.check(home)


def test_only_what_was_seen_is_told(home):
    observation, info = home.reset(seed=0)
    told = info["action_descriptions"]
    goes = [action for action in info["actions"] if action.startswith("go to ")]
    assert set(told) == set(goes)
    assert set(told.values()) == {"not visited yet"}
    first, second = goes[:2]
    arrived, *_ = home.step(first)
    *_, info = home.step(second)
    told = info["action_descriptions"]
    assert told[first] == arrived.partition(". ")[2]
    assert set(told.values()) - {told[first]} == {"not visited yet"}
    state = State.read(observation, info)
    assert state.descriptions[state.options.index(first)] == told[first]


def test_what_was_done_at_a_place_is_told(home):
    home.reset(seed=0)
    go, take, *_ = home.unwrapped.oracle()
    place = go.removeprefix("go to ")
    arrived, _, _, _, info = home.step(go)
    taken, _, _, _, info = home.step(take)
    elsewhere = next(action for action in info["actions"] if action.startswith("go to "))
    *_, info = home.step(elsewhere)
    assert info["action_descriptions"][f"go to {place}"] == f"{arrived.partition('. ')[2]} {taken}"
    home.reset(seed=0)
    *_, info = home.step(go)
    assert set(info["action_descriptions"].values()) == {"not visited yet"}  # nothing of the last episode


def test_a_copy_remembers_for_itself(home):
    home.reset(seed=0)
    go = home.unwrapped.oracle()[0]
    twin = copy.deepcopy(home)
    home.step(go)
    assert not twin.unwrapped._seen


def test_without_the_option_nothing_is_told():
    _, info = hunch.make("hunch/Household-Pick-v0", games=4).reset(seed=0)
    assert "action_descriptions" not in info
