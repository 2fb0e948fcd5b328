import pytest

import hunch.envs
from hunch.core import InadmissibleActionError, UsageError
from hunch.envs.household.env import HouseholdPick
from hunch.envs.wrappers import History


def test_history_shows_pairs_then_the_observation():
    env = History(HouseholdPick(games=1), 2)
    first, info = env.reset(seed=0)
    assert "\n\n" not in first
    assert first.startswith("-= Welcome to TextWorld, ALFRED! =-\nYou are in the middle of a room.")
    go = next(action for action in info["actions"] if action.startswith("go to"))
    second, *_, info = env.step(go)
    arrival = second.splitlines()[-1]
    assert second == f"{first}\n> {go}\n{arrival}"
    third, *_, info = env.step(info["actions"].index("inventory"))
    assert third == f"{second}\n> inventory\nYou are not carrying anything."
    fourth, *_ = env.step("help")
    assert fourth.startswith(
        f"{arrival}\n> inventory\nYou are not carrying anything.\n> help\nAvailable commands:"
    )
    assert "Welcome" not in fourth


def test_history_is_forgotten_at_reset_and_kept_at_an_error():
    env = History(HouseholdPick(games=1), 3)
    first, _ = env.reset(seed=0)
    env.step("look")
    with pytest.raises(InadmissibleActionError):
        env.step("fly")
    third, *_ = env.step("look")
    assert third.count("> look") == 2
    assert "fly" not in third
    assert env.reset(seed=0)[0] == first


def test_no_history_is_the_identity():
    wrapped, plain = History(HouseholdPick(games=1), 0), HouseholdPick(games=1)
    assert wrapped.reset(seed=0) == plain.reset(seed=0)
    assert wrapped.step("help") == plain.step("help")


def test_a_negative_history_is_refused():
    with pytest.raises(UsageError, match="-1"):
        hunch.envs.make("hunch/FrozenLake-v0", history=-1)
