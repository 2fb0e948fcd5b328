"""ICPI's other domains: every rule in every state, starts drawn and given, and the optimum."""

import math
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.envs.test_icpi import (  # noqa: F401 - the tests run here with the cases below
    BAD,
    DRAWN,
    ENVS,
    MALFORMED,
    STARTS,
    after,
    chi_square,
    odd,
    pytest_generate_tests,
    test_a_malformed_state_is_refused_and_changes_nothing,
    test_eight_steps_truncate,
    test_every_state_can_be_started_from,
    test_maps,
    test_no_episode_beats_the_optimum,
    test_rules_of_the_chains,
    test_starts_are_uniform,
    test_states_are_not_shared,
    test_the_optimum_is_that_of_value_iteration,
)

from hunch_studies.worlds.bulbs import Bulbs
from hunch_studies.worlds.distractor_chain import DistractorChain
from hunch_studies.worlds.mini_catch import MiniCatch
from hunch_studies.worlds.mini_invaders import MiniInvaders
from hunch_studies.worlds.point_mass import PointMass
from hunch_studies.worlds.tug import Tug

DOMAINS = (DistractorChain, MiniCatch, MiniInvaders, PointMass, Tug, Bulbs)


def catch(paddle_x, ball_x, ball_y):
    return {"paddle_x": paddle_x, "ball_x": ball_x, "ball_y": ball_y}


def invasion(ship, *aliens):
    return {"ship": ship, "aliens": list(aliens)}


def haul(dock, barge):
    return {"dock": dock, "barge": barge}


ALIENS = [None, *([x, y] for x, y in product(range(4), range(6)))]

STARTS |= {
    DistractorChain: [list(state) for state in product(range(8), range(8))],
    MiniCatch: [catch(*state) for state in product(range(4), range(4), range(5))],
    MiniInvaders: [invasion(*state) for state in product(range(4), ALIENS, ALIENS)],
    Tug: [haul(*state) for state in product(range(5), range(2))],
    Bulbs: [list(state) for state in product(range(2), repeat=3)],
    PointMass: [[p, v] for p in (-11, -6, -3.01, -3, -2, 0, 1.5, 2.01, 5.99) for v in (-3, -1, 0, 1, 2)],
}
DRAWN |= {
    DistractorChain: STARTS[DistractorChain],
    MiniCatch: [catch(2, x, 4) for x in range(4)],
    MiniInvaders: [invasion(ship, [a, 5], [b, 5]) for ship, a, b in permutations(range(4), 3)],
    Tug: [haul(dock, 0) for dock in range(5)],
    Bulbs: STARTS[Bulbs],
}
MALFORMED |= {
    DistractorChain: [x for bad in (*BAD, None, 1.0) for x in odd(bad, [9, 1], [1, 9])] + [[1], [1, 2, 3]],
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
ENVS |= {domain: domain() for domain in DOMAINS}
CASES = {
    "test_rules_of_the_chains": [
        DistractorChain,
    ],
    "test_the_optimum_is_that_of_value_iteration": [
        DistractorChain,
        MiniCatch,
        MiniInvaders,
        Tug,
        Bulbs,
    ],
    "test_starts_are_uniform": [d for d in DRAWN if d in DOMAINS],
    "test_eight_steps_truncate": [
        (PointMass, [-5, 0]),
        (Tug, haul(0, 0)),
    ],
    "test_maps": [
        (DistractorChain, [4, 7], ["....@..."]),
        (MiniCatch, catch(2, 0, 3), ["....", "o...", "....", "....", "..@."]),
        (MiniInvaders, invasion(1, [3, 5], [0, 2]), ["...w", "....", "....", "w...", "....", ".@.."]),
        (Tug, haul(0, 0), ["@..G."]),
        (Tug, haul(3, 1), ["...&."]),
        (Bulbs, [1, 0, 1], ["G.G"]),
        (PointMass, [-5.6, 0], ["..@...GGGGG......"]),
        (PointMass, [1e9, 3], ["......GGGGG.....@"]),
    ],
}


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


@pytest.mark.parametrize("game", [MiniCatch, MiniInvaders])
def test_the_games_end_by_themselves(game):
    env = game()
    for state in STARTS[game]:
        env.reset(options={"state": state})
        terminated = False
        while not terminated:
            _, _, terminated, truncated, _ = env.step("left")
            assert not truncated
