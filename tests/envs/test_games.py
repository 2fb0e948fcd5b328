"""Games of one move: outcomes that are good by definition, and episodes that end at once."""

import copy
from math import isclose

import pytest

import hunch
from hunch.core import InadmissibleActionError, UsageError
from hunch.envs.games import CONCEPTS, GAMES, good_outcomes, wanted

# The sets of good outcomes in the released code of Kwon et al., in the order of its actions.
RELEASED = {
    "battle": {"welfare": [0, 3], "equality": [1, 2], "rawlsian": [0, 3], "pareto": [0, 3]},
    "prisoners": {"welfare": [0], "equality": [0, 3], "rawlsian": [0], "pareto": [0, 1, 2]},
    "stag": {"welfare": [0], "equality": [0, 3], "rawlsian": [0], "pareto": [0]},
    "chicken": {"welfare": [0, 1, 2], "equality": [0, 3], "rawlsian": [0], "pareto": [0, 1, 2]},
}


def test_the_definitions_give_the_released_sets():
    assert {g: {c: good_outcomes(p, c) for c in CONCEPTS} for g, p in GAMES.items()} == RELEASED


@pytest.mark.parametrize("id", ["hunch/MatrixGame-v0", "hunch/Ultimatum-v0"])
def test_one_move_ends_the_episode_and_the_oracle_wins(id):
    env = hunch.make(id)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        twin = copy.deepcopy(env)
        with pytest.raises(InadmissibleActionError):
            env.step("fly")
        good = env.unwrapped.oracle()[0]
        step = env.step(good)
        assert step == twin.step(good)
        _, reward, terminated, truncated, info = step
        assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
        with pytest.raises(UsageError, match="reset"):
            env.step(good)


def test_any_game_comes_up():
    env = hunch.make("hunch/MatrixGame-v0")
    seen = {(env.reset(seed=seed)[0], env.unwrapped.task) for seed in range(300)}
    assert len(seen) == 16


@pytest.mark.parametrize("rule", ["percentage", "payoff", "equality"])
def test_the_pool_is_split_by_the_rule(rule):
    env = hunch.make("hunch/Ultimatum-v0", rule=rule, threshold=10.0 if rule == "payoff" else 0.5)
    pool = env.unwrapped.pool
    assert len(pool) == 50
    assert hunch.make("hunch/Ultimatum-v0", rule=rule, threshold=0.5).unwrapped.pool == pool
    if rule != "payoff":
        assert all(isclose(sum(split), 10.0) for split in pool)
    else:
        assert all(kept >= got for kept, got in pool)
    wants = [wanted(rule, env.unwrapped.threshold, *split) for split in pool]
    assert {"accept", "reject"} == set(wants)


@pytest.mark.parametrize("percent", range(1, 101))
def test_a_split_at_the_threshold_is_not_below_it(percent):
    for share in range(101):
        split = round(10.0 - share / 10, 2), round(share / 10, 2)
        assert wanted("percentage", percent / 100, *split) == ("reject" if share < percent else "accept")


@pytest.mark.parametrize(
    ("rule", "threshold", "says"),
    [
        ("percentage", 0.3, "less than 30% of"),
        ("percentage", 0.305, "less than 30.5% of"),
        ("percentage", 0.57, "less than 57% of"),
        ("payoff", 100.0, "less than $100.00,"),
        ("payoff", 0.3, "less than $0.30,"),
        ("payoff", 0.001, "less than $0.001,"),
    ],
)
def test_the_task_states_the_threshold_that_counts(rule, threshold, says):
    assert says in hunch.make("hunch/Ultimatum-v0", rule=rule, threshold=threshold).unwrapped.task


def test_a_percentage_is_a_share():
    with pytest.raises(UsageError, match="share from 0 to 1, not 30"):
        hunch.make("hunch/Ultimatum-v0", threshold=30.0)
