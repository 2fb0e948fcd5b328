"""Gymnasium's environments in words: the texts, the successes, and that nothing is lost but decimals."""

import copy
import math
import re
import subprocess
import sys
from collections import deque

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.taxi import TaxiEnv
from hypothesis import given
from hypothesis import strategies as st

import hunch.envs
from hunch.core import UsageError
from hunch.envs.describers import (
    TAXI_ACTIONS,
    Taxi,
    describe_blackjack,
    describe_cart_pole,
    describe_cliff_walking,
    describe_taxi,
)
from hunch.envs.kitchen.world import Scene

CLASSICS = {
    "hunch/CartPole-v0": ("CartPole-v1", describe_cart_pole),
    "hunch/Taxi-v0": ("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3", describe_taxi),
    "hunch/CliffWalking-v0": ("CliffWalking-v1", describe_cliff_walking),
    "hunch/Blackjack-v0": ("Blackjack-v1", describe_blackjack),
}
sizes = st.floats(-3, 3)


@pytest.mark.parametrize("id", CLASSICS)
def test_the_episodes_are_gymnasiums(id):
    original, describe = CLASSICS[id]
    for seed in range(5):
        env, plain = hunch.envs.make(id), gymnasium.make(original)
        observation, info = env.reset(seed=seed)
        plain.action_space.seed(seed)
        raw, done = plain.reset(seed=seed)[0], False
        while not done:
            assert observation == describe(raw)
            action = plain.action_space.sample()
            raw, *expected, _ = plain.step(action)
            observation, *seen, info = env.step(int(action))
            assert set(info) == {"actions", "success", "task", "event", "raw"}
            done = any(seen[1:])
            if id != "hunch/CliffWalking-v0" or not done:  # which has no limit in Gymnasium
                assert seen == expected


def test_cart_pole_in_words():
    assert describe_cart_pole(np.array([-0.034, 0.21, 0.03, -0.3], np.float32)) == (
        "The cart is 0.03 m left of the centre and rolls right at 0.21 m/s. "
        "The pole leans 1.7 degrees to the right and swings left at 17 degrees/s."
    )
    assert describe_cart_pole((0.004, -0.004, 0.0, 0.001)) == (
        "The cart is at the centre and stands still. The pole is upright and does not swing."
    )


@given(x=sizes, speed=sizes, angle=sizes, turning=sizes)
def test_cart_pole_says_all_four_numbers(x, speed, angle, turning):
    text = describe_cart_pole((x, speed, angle, turning))
    forms = (
        r"(\d+\.\d\d) m (left|right) of",
        r"rolls (left|right) at (\d+\.\d\d) m/s",
        r"leans (\d+\.\d) degrees to the (left|right)",
        r"swings (left|right) at (\d+) degrees/s",
    )
    values = (x, speed, math.degrees(angle), math.degrees(turning))
    for form, value, error in zip(forms, values, (0.005, 0.005, 0.05, 0.5), strict=True):
        found = re.search(form, text)
        read = 0.0
        if found:
            side, size = sorted(found.groups(), reverse=True)
            read = float(size) * (-1 if side == "left" else 1)
            assert read != 0
        assert abs(read - value) <= error + 1e-9


def test_every_state_of_the_taxi_has_a_text_of_its_own():
    taxi = TaxiEnv()
    arrived = {taxi.encode(row, column, i, i) for row in range(5) for column in range(5) for i in range(4)}
    texts = {describe_taxi(state) for state in range(500)}
    assert len(texts) == 500
    assert all("arrived" in describe_taxi(state) for state in arrived)
    assert describe_taxi(taxi.encode(3, 1, 2, 0)) == (
        "The taxi is at row 3, column 1. The passenger waits at Yellow (row 4, column 0) and wants to go to "
        "Red (row 0, column 0)."
    )
    assert describe_taxi(taxi.encode(3, 1, 4, 3)).endswith(
        "The passenger is in the taxi and wants to go to Blue (row 4, column 3)."
    )


def test_cliff_walking_and_blackjack_in_words():
    assert len({describe_cliff_walking(state) for state in range(48)}) == 48
    assert describe_cliff_walking(36).startswith("You are at row 3, column 0. The goal")
    hands = [(total, dealer, ace) for total in range(4, 32) for dealer in range(1, 11) for ace in (0, 1)]
    assert len({describe_blackjack(hand) for hand in hands}) == len(hands)
    assert describe_blackjack((14, 1, 1)) == (
        "Your cards sum to 14, with an ace counted as 11. The dealer shows an ace."
    )
    assert describe_blackjack((20, 8, 0)) == "Your cards sum to 20. The dealer shows an 8."


def test_the_masked_taxi_lists_what_changes_something():
    env = Taxi(masked=True)
    table = env.env.unwrapped.P
    for seed in range(20):
        _, info = env.reset(seed=seed)
        for _ in range(20):
            state = env.env.unwrapped.s
            changing = [name for i, name in enumerate(TAXI_ACTIONS) if table[state][i][0][1] != state]
            assert info["actions"] == tuple(changing)
            *_, info = env.step(seed % len(changing))


def success_of(env, actions, seed=0):
    _, info = env.reset(seed=seed)
    for action in actions:
        assert not info["success"]
        _, reward, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    return reward, terminated, truncated, info["success"]


def test_success():
    cart = hunch.envs.make("hunch/CartPole-v0", max_steps=5)
    assert success_of(cart, ["push left", "push right"] * 3) == (1.0, False, True, True)
    falling = hunch.envs.make("hunch/CartPole-v0")
    assert success_of(falling, ["push left"] * 20) == (1.0, True, False, False)
    cliff = hunch.envs.make("hunch/CliffWalking-v0")
    way = ["go up", *["go right"] * 11, "go down"]
    assert success_of(cliff, way) == (-1.0, True, False, True)
    assert success_of(cliff, ["go right", *way]) == (-1.0, True, False, True)
    assert success_of(cliff, ["go right"] * 200) == (-100.0, False, True, False)
    blackjack = hunch.envs.make("hunch/Blackjack-v0")
    ends = {success_of(blackjack, ["stick"], seed) for seed in range(50)}
    assert ends == {(1.0, True, False, True), (0.0, True, False, False), (-1.0, True, False, False)}


def way_home(table, state):
    """The shortest way to drop the passenger off, by breadth."""
    queue, seen = deque([(state, [])]), {state}
    while True:
        here, way = queue.popleft()
        for name, [(_, there, reward, _)] in zip(TAXI_ACTIONS, table[here].values(), strict=True):
            if reward == 20:
                return [*way, name]
            if there not in seen:
                seen.add(there)
                queue.append((there, [*way, name]))


def test_success_of_the_taxi():
    for masked in (False, True):
        env = Taxi(masked=masked)
        for seed in range(5):
            env.reset(seed=seed)
            way = way_home(env.env.unwrapped.P, env.env.unwrapped.s)
            assert success_of(env, way, seed) == (20.0, True, False, True)
    assert success_of(Taxi(), ["drop off the passenger"] * 200) == (-10.0, False, True, False)


def test_a_game_of_blackjack_ends_by_itself():
    env = hunch.envs.make("hunch/Blackjack-v0")
    assert all(success_of(env, ["hit"] * 20, seed)[:3] == (-1.0, True, False) for seed in range(200))


@pytest.mark.parametrize("id", CLASSICS)
def test_rendering(id):
    env = hunch.envs.make(id, render_mode="ansi")
    observation, _ = env.reset(seed=0)
    assert env.render() == observation
    with pytest.raises(UsageError, match="render_mode"):
        hunch.envs.make(id).render()
    with pytest.raises(UsageError, match="render_mode must be ansi"):
        hunch.envs.make(id, render_mode="colour")
    pytest.importorskip("pygame")
    env = hunch.envs.make(id, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().dtype == np.uint8


def test_playing_needs_no_pygame():
    code = (
        "import sys, hunch.envs; sys.modules['pygame'] = None\n"
        f"for id in {list(CLASSICS)}:\n"
        "    env = hunch.envs.make(id); env.reset(seed=0); env.step(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("id", "made_up", "form"),
    [
        ("hunch/FrozenLake-v0", ((9, 9), (-1, -1), (1.7, 2.2), (0,), "ab", None), "a row and a column"),
        ("hunch/Taxi-v0", (500, -1, 3.7, "x"), "from 0 to 499"),
        ("hunch/CliffWalking-v0", (48, -5, None), "from 0 to 47"),
        ("hunch/CartPole-v0", ([1.0, 2.0], [math.nan] * 4, "abcd"), "four finite numbers"),
        ("hunch/Kitchen-v0", (None, Scene((0, 0), ("sink",) * 7), Scene((0, 1), ("x",))), "a scene"),
    ],
)
def test_a_state_that_does_not_exist_is_refused_and_changes_nothing(id, made_up, form):
    env, twin = (hunch.envs.make(id).unwrapped for _ in range(2))
    for each in (env, twin):
        _, info = each.reset(seed=0)
        each.step(0)
    for raw in made_up:
        with pytest.raises(UsageError, match=form):
            env.place(raw)
    assert env.step(1) == twin.step(1)
    assert env.place(info["raw"])[1]["raw"] == info["raw"]


@pytest.mark.parametrize("id", CLASSICS)
def test_an_environment_that_was_drawn_can_be_copied_and_both_are_drawn(id):
    pytest.importorskip("pygame")
    env = hunch.envs.make(id, render_mode="rgb_array")
    env.reset(seed=0)
    env.render()
    twin = copy.deepcopy(env)
    before = env.render()
    assert (twin.render() == before).all()
    twin.step(0)
    twin.render()
    assert (env.render() == before).all()
    env.close()
    assert twin.render().shape == before.shape


def test_a_wrapped_environment_that_was_drawn_can_be_copied():
    pytest.importorskip("pygame")
    car = gymnasium.make("MountainCar-v0", render_mode="rgb_array")
    env = hunch.envs.TextWrapper(car, str, ("left", "wait", "right"))
    env.reset(seed=0)
    env.render()
    twin = copy.deepcopy(env)
    twin.step("left")
    assert twin.step("left") != env.step("right")
    assert env.render().shape == twin.render().shape
