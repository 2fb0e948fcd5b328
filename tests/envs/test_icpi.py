"""ICPI's domains: every rule in every state, starts drawn and given, and the optimum."""

import json
import math
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunch.core import UsageError
from hunch.envs.icpi.chain import Chain
from hunch.envs.icpi.maze import Maze
from hunch_studies.worlds.bulbs import Bulbs
from hunch_studies.worlds.distractor_chain import DistractorChain
from hunch_studies.worlds.mini_catch import MiniCatch
from hunch_studies.worlds.mini_invaders import MiniInvaders
from hunch_studies.worlds.point_mass import PointMass
from hunch_studies.worlds.tug import Tug

DOMAINS = (Chain, DistractorChain, Maze, MiniCatch, MiniInvaders, PointMass, Tug, Bulbs)
every_domain = pytest.mark.parametrize("domain", DOMAINS)
seeds = st.integers(0, 2**31)
choices = st.lists(st.integers(0, 11), max_size=10)


def catch(paddle_x, ball_x, ball_y):
    return {"paddle_x": paddle_x, "ball_x": ball_x, "ball_y": ball_y}


def invasion(ship, *aliens):
    return {"ship": ship, "aliens": list(aliens)}


def haul(dock, barge):
    return {"dock": dock, "barge": barge}


ALIENS = [None, *([x, y] for x, y in product(range(4), range(6)))]
STARTS = {
    Chain: [[place] for place in range(8)],
    DistractorChain: [list(state) for state in product(range(8), range(8))],
    Maze: [list(cell) for cell in product(range(3), range(3))],
    MiniCatch: [catch(*state) for state in product(range(4), range(4), range(5))],
    MiniInvaders: [invasion(*state) for state in product(range(4), ALIENS, ALIENS)],
    Tug: [haul(*state) for state in product(range(5), range(2))],
    Bulbs: [list(state) for state in product(range(2), repeat=3)],
    PointMass: [[p, v] for p in (-11, -6, -3.01, -3, -2, 0, 1.5, 2.01, 5.99) for v in (-3, -1, 0, 1, 2)],
}
DRAWN = {
    Chain: STARTS[Chain],
    DistractorChain: STARTS[DistractorChain],
    Maze: STARTS[Maze],
    MiniCatch: [catch(2, x, 4) for x in range(4)],
    MiniInvaders: [invasion(ship, [a, 5], [b, 5]) for ship, a, b in permutations(range(4), 3)],
    Tug: [haul(dock, 0) for dock in range(5)],
    Bulbs: STARTS[Bulbs],
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


@pytest.mark.parametrize("domain", [Chain, DistractorChain])
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


def test_rules_of_mini_catch():
    for state, (action, way) in product(STARTS[MiniCatch], (("left", -1), ("stay", 0), ("right", 1))):
        paddle, ball, height = state.values()
        _, reward, terminated, truncated, info = after(MiniCatch, state, action)
        if height == 0:
            assert info["state"] == state
            assert (reward, terminated, info["success"]) == (float(paddle == ball), True, paddle == ball)
        else:
            assert info["state"] == catch(min(max(paddle + way, 0), 3), ball, height - 1)
            assert (reward, terminated, truncated, info["success"]) == (0, False, False, False)


def test_rules_of_mini_invaders():
    for state, (action, way) in product(STARTS[MiniInvaders], (("left", -1), ("shoot", 0), ("right", 1))):
        ship, aliens = state["ship"], state["aliens"]
        shot = [i for i in (0, 1) if aliens[i] and action == "shoot" and aliens[i][0] == ship]
        left = [None if i in shot else aliens[i] for i in (0, 1)]
        _, reward, terminated, truncated, info = after(MiniInvaders, state, action)
        assert reward == len(shot)
        assert terminated == (left == [None, None] or any(alien and alien[1] == 0 for alien in left))
        assert info["success"] == (left == [None, None])
        assert not truncated
        lower = [alien and [alien[0], alien[1] - 1] for alien in left]
        assert info["state"] == invasion(min(max(ship + way, 0), 3), *lower)


def test_rules_of_the_tug():
    for state, (action, way) in product(STARTS[Tug], (("aft", -1), ("winch", 0), ("fore", 1))):
        dock, barge = state.values()
        home = action == "winch" and (dock, barge) == (3, 1)
        _, reward, terminated, truncated, info = after(Tug, state, action)
        assert (reward, terminated, info["success"], truncated) == (float(home), home, home, False)
        taken = barge or (action == "winch" and dock == 1)
        assert info["state"] == haul(min(max(dock + way, 0), 4), int(taken))


def test_rules_of_the_bulbs():
    turned = {"tap": [1, 1, 0], "nudge": [1, 1, 1], "knock": [0, 1, 1]}
    for state, (action, way) in product(STARTS[Bulbs], turned.items()):
        _, reward, terminated, truncated, info = after(Bulbs, state, action)
        assert info["state"] == [(on + turn) % 2 for on, turn in zip(state, way, strict=True)]
        assert (reward, terminated, info["success"]) == (float(all(state)), all(state), all(state))
        assert not truncated


@given(
    position=st.floats(-1e6, 1e6), velocity=st.integers(-20, 20), action=st.sampled_from(["decel", "accel"])
)
def test_rules_of_point_mass(position, velocity, action):
    _, reward, terminated, truncated, info = after(PointMass, [position, velocity], action)
    push = {"decel": -1, "accel": 1}[action]
    assert info["state"] == [position + velocity, velocity + push]
    assert reward == terminated == info["success"] == (-2 <= position <= 2 and velocity == 0)
    assert not truncated


@pytest.mark.parametrize("domain", [Chain, DistractorChain, Maze, MiniCatch, MiniInvaders, Tug, Bulbs])
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


@pytest.mark.parametrize("start", STARTS[PointMass], ids=str)
def test_the_optimum_of_point_mass_is_that_of_a_search(start):
    env, steps, now = PointMass(), 0, {tuple(start)}
    optimal = env.reset(options={"state": start})[1]["optimal"]
    while not any(after(PointMass, list(state), "accel")[2] for state in now):
        ways = product(now, ("decel", "accel"))
        steps, now = steps + 1, {tuple(after(PointMass, list(s), a)[4]["state"]) for s, a in ways}
    assert optimal == pytest.approx(0.8**steps, abs=1e-12)


@given(distance=st.floats(2, 6, exclude_min=True, exclude_max=True), side=st.sampled_from([-1, 1]))
def test_the_optimum_of_point_mass_at_rest(distance, side):
    steps = 2 * math.ceil(math.sqrt(distance - 2))
    assert steps == (2 if distance <= 3 else 4)
    assert after(PointMass, [side * distance, 0])[1]["optimal"] == 0.8**steps


@pytest.mark.parametrize("state", [[0, 0.5], [1e308, 0], [0, -1e308], [0, 5000]])
def test_the_optimum_of_a_mass_that_never_rests_in_time(state):
    assert after(PointMass, state)[1]["optimal"] == 0


@every_domain
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


@every_domain
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
    DistractorChain: [x for bad in (*BAD, None, 1.0) for x in odd(bad, [9, 1], [1, 9])] + [[1], [1, 2, 3]],
    Maze: [x for bad in (*BAD, None, 3) for x in odd(bad, [9, 1], [1, 9])] + [[1], [1, 1, 1]],
    MiniCatch: [
        *(x for bad in (*BAD, None, 5) for x in odd(bad, catch(9, 1, 1), catch(1, 9, 1), catch(1, 1, 9))),
        *([2, 1, 4], {"paddle_x": 1, "ball_x": 1}, {**catch(1, 1, 1), "paddle_y": 0}, catch(4, 0, 0)),
    ],
    MiniInvaders: [
        *(
            x
            for bad in (*BAD, None, 6)
            for x in odd(bad, invasion(9, [1, 5], None), invasion(1, [9, 5], None))
        ),
        *(x for bad in (*BAD, None, 6) for x in odd(bad, invasion(1, None, [1, 9]))),
        *(x for bad in BAD for x in odd(bad, invasion(1, 9, [1, 5]))),
        *({"ship": 1, "aliens": None}, {"ship": 1}, invasion(1, [1, 5]), invasion(1, None, None, None)),
        *({**invasion(1, None, [2, 2]), "score": 1}, invasion(1, [1, 2, 3], None), [1, [1, 5], None]),
    ],
    Tug: [
        *(x for bad in (*BAD, None, 5) for x in odd(bad, haul(9, 0), haul(1, 9))),
        *([1, 0], {"dock": 1}, {**haul(1, 1), "load": 0}, haul(1, 2)),
    ],
    Bulbs: [x for bad in (*BAD, None, 2) for x in odd(bad, [9, 0, 1], [1, 0, 9])] + [[1], [1, 0, 1, 0]],
    PointMass: [
        x
        for bad in (True, "1", None, [], {}, math.nan, math.inf, -math.inf, 10**400)
        for x in odd(bad, [9, 1], [1, 9])
    ]
    + [[1], [1, 1, 1]],
}


@every_domain
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


@every_domain
def test_states_are_not_shared(domain):
    env, twin = domain(), domain()
    given = json.loads(json.dumps(env.reset(seed=5)[1]["state"]))
    infos = [each.reset(seed=5, options={"state": given})[1] for each in (env, twin)]
    for state in (given, infos[0]["state"]):
        (state.get("aliens") or state if isinstance(state, dict) else state).clear()
    assert env.step(0) == twin.step(0)


def chi_square(seen, expected):
    return sum((seen[key] - expected) ** 2 / expected for key in seen)


@pytest.mark.parametrize("domain", DRAWN)
def test_starts_are_uniform(domain):
    env = domain()
    env.reset(seed=0)
    seen = Counter(key(env.reset()[1]["state"]) for _ in range(100 * len(DRAWN[domain])))
    assert seen.keys() == set(map(key, DRAWN[domain]))
    freedom = len(seen) - 1
    assert chi_square(seen, 100) < freedom + 3 * math.sqrt(2 * freedom)


def test_starts_of_point_mass_are_uniform_on_both_sides():
    env = PointMass()
    env.reset(seed=0)
    states = [env.reset()[1]["state"] for _ in range(1600)]
    assert all(2 <= abs(position) <= 6 and velocity == 0 for position, velocity in states)
    seen = np.histogram([math.copysign(abs(p) - 2, p) for p, _ in states], bins=16, range=(-4, 4))[0]
    assert chi_square(dict(enumerate(seen)), 100) < 15 + 3 * math.sqrt(30)


def test_the_distractor_is_drawn_anew_by_every_action():
    for action in range(3):
        env, seen = DistractorChain(), Counter()
        env.reset(seed=action)
        for _ in range(800):
            env.reset(options={"state": [4, 4]})
            seen[env.step(action)[4]["state"][1]] += 1
        assert seen.keys() == set(range(8))
        assert chi_square(seen, 100) < 7 + 3 * math.sqrt(14)


@pytest.mark.parametrize(
    ("domain", "start"), [(Chain, [0]), (Maze, [0, 2]), (PointMass, [-5, 0]), (Tug, haul(0, 0))]
)
def test_eight_steps_truncate(domain, start):
    *_, terminated, truncated, info = after(domain, start, *[0] * 8)
    assert (terminated, truncated, info["success"]) == (False, True, False)


def test_the_goal_on_the_eighth_step_is_no_truncation():
    assert after(Chain, [4], *["left", "right"] * 3, "left", "try_goal")[2:4] == (True, False)
    assert after(Chain, [3], *["left", "right"] * 3, "right", "try_goal")[1:4] == (1.0, True, False)
    assert after(Maze, [0, 0], *["left"] * 6, "down", "up")[1:4] == (1.0, True, False)


@pytest.mark.parametrize("domain", [MiniCatch, MiniInvaders])
def test_the_games_end_by_themselves(domain):
    env = domain()
    for state in STARTS[domain]:
        env.reset(options={"state": state})
        terminated = False
        while not terminated:
            _, _, terminated, truncated, _ = env.step("left")
            assert not truncated


@pytest.mark.parametrize(
    ("domain", "state", "rows"),
    [
        (Chain, [2], ["..@.G..."]),
        (DistractorChain, [4, 7], ["....@..."]),
        (Maze, [2, 2], ["#######", "#.....#", "#.#.#.#", "#G#...#", "#.###.#", "#....@#", "#######"]),
        (MiniCatch, catch(2, 0, 3), ["....", "o...", "....", "....", "..@."]),
        (MiniInvaders, invasion(1, [3, 5], [0, 2]), ["...w", "....", "....", "w...", "....", ".@.."]),
        (Tug, haul(0, 0), ["@..G."]),
        (Tug, haul(3, 1), ["...&."]),
        (Bulbs, [1, 0, 1], ["G.G"]),
        (PointMass, [-5.6, 0], ["..@...GGGGG......"]),
        (PointMass, [1e9, 3], ["......GGGGG.....@"]),
    ],
)
def test_maps(domain, state, rows):
    env = domain(render_mode="ansi")
    text, _ = env.reset(options={"state": state})
    assert env.render() == "\n".join([*rows, text])
    drawn = domain(render_mode="rgb_array")
    drawn.reset(options={"state": state})
    assert drawn.render().shape == (32 * len(rows), 32 * len(rows[0]), 3)
