"""ICPI's domains: every rule in every state, starts drawn and given, and the optimum."""

import json
import math
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunch.core import UsageError
from hunch.envs.icpi.chain import Chain
from hunch.envs.icpi.maze import Maze

DOMAINS = (Chain, Maze)
seeds = st.integers(0, 2**31)
choices = st.lists(st.integers(0, 11), max_size=10)


STARTS = {
    Chain: [[place] for place in range(8)],
    Maze: [list(cell) for cell in product(range(3), range(3))],
}
DRAWN = {
    Chain: STARTS[Chain],
    Maze: STARTS[Maze],
}


ENVS = {domain: domain() for domain in DOMAINS}


def after(domain, state, *actions):
    """Play actions from a state; return what the last one, or the reset, led to."""
    env = ENVS[domain]
    seen = env.reset(options={"state": state})
    for action in actions:
        seen = env.step(action)
    return seen


def key(state):
    return json.dumps(state)


def place(state, action):
    """Where an action leads on the chain."""
    return {"left": max(state - 1, 0), "try_goal": state, "right": min(state + 1, 7)}[action]


def test_rules_of_the_chains(domain):
    for state, action in product(STARTS[domain], ("left", "try_goal", "right")):
        _, reward, terminated, truncated, info = after(domain, state, action)
        assert info["state"][0] == place(state[0], action)
        assert all(number in range(8) for number in info["state"])
        assert len(info["state"]) == len(state)
        assert (terminated, truncated) == (action == "try_goal", False)
        assert reward == info["success"] == (action == "try_goal" and state[0] == 4)


# Cell by cell: left, down, up, right.
WAYS = {
    (0, 0): [(0, 0), (1, 0), (0, 0), (0, 1)],
    (0, 1): [(0, 0), (1, 1), (0, 1), (0, 2)],
    (0, 2): [(0, 1), (1, 2), (0, 2), (0, 2)],
    (1, 0): [(1, 0), (2, 0), (0, 0), (1, 0)],
    (1, 1): [(1, 1), (1, 1), (0, 1), (1, 2)],
    (1, 2): [(1, 1), (2, 2), (0, 2), (1, 2)],
    (2, 0): [(2, 0), (2, 0), (1, 0), (2, 1)],
    (2, 1): [(2, 0), (2, 1), (2, 1), (2, 2)],
    (2, 2): [(2, 1), (2, 2), (1, 2), (2, 2)],
}


def test_rules_of_the_maze():
    for cell, ways in WAYS.items():
        for action, way in zip(("left", "down", "up", "right"), ways, strict=True):
            _, reward, terminated, truncated, info = after(Maze, list(cell), action)
            assert info["state"] == list(way)
            assert reward == terminated == info["success"] == (cell == (1, 0))
            assert not truncated


def test_the_optimum_is_that_of_value_iteration(domain):
    env = domain()
    actions = env.reset(seed=0)[1]["actions"]
    optimal, steps = {}, {}
    for state in STARTS[domain]:
        for action in actions:
            optimal[key(state)] = env.reset(options={"state": state})[1]["optimal"]
            _, reward, terminated, _, info = env.step(action)
            steps.setdefault(key(state), []).append((reward, None if terminated else key(info["state"])))
    values, changed = dict.fromkeys(steps, 0.0), True
    while changed:
        before, gamma = values, domain.wording.log_gamma
        values = {s: max(r + gamma * before.get(n, 0.0) for r, n in ways) for s, ways in steps.items()}
        changed = values != before
    assert values == pytest.approx(optimal, abs=1e-12)
    assert all(type(value) is float for value in optimal.values())


@given(seed=seeds, choices=choices)
@settings(max_examples=50)
def test_no_episode_beats_the_optimum(domain, seed, choices):
    env, total, gamma = domain(), 0.0, domain.wording.log_gamma
    _, info = env.reset(seed=seed)
    for step, choice in enumerate(choices):
        _, reward, terminated, truncated, later = env.step(choice % len(info["actions"]))
        total += gamma**step * reward
        assert later["optimal"] == info["optimal"]  # that of the start, all along
        assert total <= info["optimal"] + 1e-12
        if terminated or truncated:
            break


@given(seed=seeds, choices=choices)
@settings(max_examples=50)
def test_every_state_can_be_started_from(domain, seed, choices):
    env, other = domain(), domain()
    text, info = env.reset(seed=seed)
    for choice in choices:
        again, same = other.reset(seed=0, options={"state": json.loads(json.dumps(info["state"]))})
        assert (again, same["state"]) == (text, info["state"])
        text, _, terminated, truncated, info = env.step(choice % len(info["actions"]))
        if terminated or truncated:
            break


def odd(value, *lists):
    """States with one number replaced by ``value``, made from lists and dictionaries."""
    return [json.loads(json.dumps(item).replace("9", json.dumps(value))) for item in lists]


BAD = (True, 0.5, "1", [], {}, math.nan, -1, 8)
MALFORMED = {
    Chain: [x for bad in (*BAD, None, 1.0) for x in odd(bad, [9])] + [[], [1, 2]],
    Maze: [x for bad in (*BAD, None, 3) for x in odd(bad, [9, 1], [1, 9])] + [[1], [1, 1, 1]],
}


def test_a_malformed_state_is_refused_and_changes_nothing(domain):
    env, twin = domain(), domain()
    for each in (env, twin):
        each.reset(seed=5)
        each.step(0)
    for state in (*MALFORMED[domain], None, 3, "text", (), {}, b"12", math.nan, object()):
        with pytest.raises(UsageError, match=rf"^A state of {domain.__name__} must be .*, not ") as error:
            env.reset(seed=1, options={"state": state})
        assert "\n" not in str(error.value)
    assert env.step(0) == twin.step(0)
    assert env.reset() == twin.reset()
    with pytest.raises(UsageError, match="there is: state"):
        env.reset(options={"state": twin.reset()[1]["state"], "hints": True})


def test_states_are_not_shared(domain):
    env, twin = domain(), domain()
    given = json.loads(json.dumps(env.reset(seed=5)[1]["state"]))
    infos = [each.reset(seed=5, options={"state": given})[1] for each in (env, twin)]
    for state in (given, infos[0]["state"]):
        (state.get("aliens") or state if isinstance(state, dict) else state).clear()
    assert env.step(0) == twin.step(0)


def chi_square(seen, expected):
    return sum((seen[key] - expected) ** 2 / expected for key in seen)


def test_starts_are_uniform(domain):
    env = domain()
    env.reset(seed=0)
    seen = Counter(key(env.reset()[1]["state"]) for _ in range(100 * len(DRAWN[domain])))
    assert seen.keys() == set(map(key, DRAWN[domain]))
    freedom = len(seen) - 1
    assert chi_square(seen, 100) < freedom + 3 * math.sqrt(2 * freedom)


def test_eight_steps_truncate(domain, start):
    *_, terminated, truncated, info = after(domain, start, *[0] * 8)
    assert (terminated, truncated, info["success"]) == (False, True, False)


def test_the_goal_on_the_eighth_step_is_no_truncation():
    assert after(Chain, [4], *["left", "right"] * 3, "left", "try_goal")[2:4] == (True, False)
    assert after(Chain, [3], *["left", "right"] * 3, "right", "try_goal")[1:4] == (1.0, True, False)
    assert after(Maze, [0, 0], *["left"] * 6, "down", "up")[1:4] == (1.0, True, False)


def test_maps(domain, state, rows):
    env = domain(render_mode="ansi")
    text, _ = env.reset(options={"state": state})
    assert env.render() == "\n".join([*rows, text])
    drawn = domain(render_mode="rgb_array")
    drawn.reset(options={"state": state})
    assert drawn.render().shape == (32 * len(rows), 32 * len(rows[0]), 3)


ARGUMENTS = {
    "test_rules_of_the_chains": "domain",
    "test_the_optimum_is_that_of_value_iteration": "domain",
    "test_starts_are_uniform": "domain",
    "test_eight_steps_truncate": ("domain", "start"),
    "test_maps": ("domain", "state", "rows"),
}
CASES = {
    "test_rules_of_the_chains": [
        Chain,
    ],
    "test_the_optimum_is_that_of_value_iteration": [
        Chain,
        Maze,
    ],
    "test_starts_are_uniform": DRAWN,
    "test_eight_steps_truncate": [
        (Chain, [0]),
        (Maze, [0, 2]),
    ],
    "test_maps": [
        (Chain, [2], ["..@.G..."]),
        (Maze, [2, 2], ["#######", "#.....#", "#.#.#.#", "#G#...#", "#.###.#", "#....@#", "#######"]),
    ],
}


def pytest_generate_tests(metafunc):
    """Run a test with the cases of the module that holds or imports it: the studies have more domains."""
    if rows := metafunc.module.CASES.get(metafunc.function.__name__):
        metafunc.parametrize(ARGUMENTS[metafunc.function.__name__], rows)
    elif "domain" in metafunc.fixturenames:
        metafunc.parametrize("domain", metafunc.module.DOMAINS)
