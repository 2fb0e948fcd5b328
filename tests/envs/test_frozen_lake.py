import pytest

from hunch.audition.prior import PRIOR
from hunch.core import State
from hunch.envs.frozen_lake import FrozenLake
from hunch.roles.prior.blank import aimless

SHORTEST = ("Go Down", "Go Down", "Go Right", "Go Right", "Go Down", "Go Right")


def test_the_papers_prompt():
    observation, info = FrozenLake().reset()
    assert observation == (
        "You are in a 4x4 grid where each cell is either a frozen cell (F) indicating a safe position, You "
        "must avoid to reach a hole (H), and the goal (G) that we aim to reach. Input: Currently the agent "
        "is at position (0, 0), which direction need to take?\n"
        "Go Left leads to position (0, 0), start position.\n"
        "Go Right leads to position (0, 1), a frozen cell (F).\n"
        "Go Up leads to position (0, 0), start position.\n"
        "Go Down leads to position (1, 0), a frozen cell (F)."
    )
    assert info["actions"] == ("Go Left", "Go Right", "Go Up", "Go Down")


def test_without_lookahead():
    observation, _ = FrozenLake(lookahead=False).reset()
    assert observation.endswith("position (0, 0), which direction need to take?")


def test_the_goal():
    env = FrozenLake()
    env.reset()
    *steps, last = [env.step(action) for action in SHORTEST]
    assert all(step[1:4] == (0.0, False, False) and not step[4]["success"] for step in steps)
    assert "Go Right leads to position (3, 3), the goal (G)." in steps[-1][0]
    assert last[1:4] == (1.0, True, False)
    assert last[4]["success"]


@pytest.mark.parametrize("way", ["RD", "RRRD", "DDDL", "DDD", "DDRRR", "DR"])
def test_holes(way):
    env = FrozenLake()
    observation, _ = env.reset()
    names = {"R": "Go Right", "D": "Go Down", "L": "Go Left"}
    for letter in way:
        warned = f"{names[letter]} leads to" in observation and "a hole (H)" in observation
        observation, reward, terminated, truncated, info = env.step(names[letter])
        if terminated:
            break
    assert (reward, terminated, truncated, info["success"], warned) == (-1.0, True, False, False, True)


def test_the_horizon_truncates():
    env = FrozenLake()
    env.reset()
    steps = [env.step("Go Up") for _ in range(20)]
    assert [step[3] for step in steps] == [False] * 19 + [True]
    assert not any(step[2] for step in steps)


def test_the_goal_on_the_last_step_is_no_truncation():
    env = FrozenLake(max_steps=6)
    env.reset()
    assert [env.step(action)[2:4] for action in SHORTEST][-1] == (True, False)


def test_the_blank_prompt_is_that_of_the_audition():
    """Without task and rules; where each action leads is still said."""
    explained, blank = FrozenLake(), FrozenLake(explained=False)
    text, info = explained.reset()
    [bed] = [bed for bed in PRIOR.beds if bed.env == "hunch/FrozenLake-v0"]
    left = aimless(State(text, task=info["task"]), bed.manual)
    observation, info = blank.reset()
    assert (observation, info["task"]) == (left.observation, left.task)
    assert "reach" not in observation
    assert observation.endswith("Go Down leads to position (1, 0), a frozen cell (F).")
