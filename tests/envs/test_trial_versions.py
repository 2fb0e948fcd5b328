"""Each design problem has a written version, and this file ties it to the trials that the problem makes.

Finished trials are stored by the version, so that none is run twice. Code may be renamed or reformatted.

If a test fails, a program is scored differently. If that was meant, write a new ``version`` in the problem's
class (any text that was not used before), and put it here with the trials that the message shows. If it was
not, restore the scoring: stored trials belong to it.
"""

import pytest

from hunch.envs.design.bin_packing import BEST_FIT, BinPacking
from hunch.envs.design.gym_reward import GymRewardDesign
from hunch.envs.design.policy import PolicyCode
from hunch.envs.design.world_model import START, WorldModelCode

POLICY = "def act(observation, memory):\n    return int(observation[2] > 0), memory"
REWARD = "def reward(observation, action, next_observation):\n    return {}, {{}}"
PROBLEMS = {
    "packing": (
        BinPacking,
        {"items": 10, "instances": 2},
        [BEST_FIT, "def priority(item, bins): return bins"],
    ),
    "policy": (PolicyCode, {"episodes": 2, "max_steps": 20}, [POLICY, POLICY.replace("2", "9")]),
    "world model": (WorldModelCode, {"episodes": 2}, [START]),
    "reward, in a table": (
        GymRewardDesign,
        {"base": "FrozenLake-v1", "steps": 2000},
        [REWARD.format("next_observation / 15.0")],
    ),
    "reward, by cross-entropy": (
        GymRewardDesign,
        {"steps": 400},
        [REWARD.format("-abs(next_observation[:, 2])")],
    ),
}
KNOWN = {
    "packing": (
        "imports-1",
        [(-0.5, [-0.0, -1.0], {"excess": 0.1111}, False), (-5.5, [-5.0, -6.0], {"excess": 1.2222}, False)],
    ),
    "policy": ("arrays-1", [(20.0, [20.0, 20.0], {"steps": 20.0}, False), (None, [], {}, True)]),
    "world model": ("imports-1", [(0.5741, [], {"held_out": 0.3544, "held_out_exact": 0.0}, False)]),
    "reward, in a table": ("copies-1", [(0.1, [], {"final": 0.1, "max": 0.2}, False)]),
    "reward, by cross-entropy": ("copies-1", [(9.5, [], {"final": 9.5, "max": 9.6}, False)]),
}


def trials(name):
    """Return the version, and fitness, scores and components of each program."""
    problem, options, programs = PROBLEMS[name]
    env = problem(**options, trials="")
    found = []
    for program in programs:
        env.reset(seed=0)
        trial = env.step(program)[-1]["raw"]
        components = {key: round(value, 4) for key, value in trial.components.items()}
        fitness = None if trial.fitness is None else round(trial.fitness, 4)
        found.append((fitness, [round(score, 4) for score in trial.scores], components, bool(trial.error)))
    return env.version, found


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_version_of_a_problem_is_that_of_its_trials(name):
    found = trials(name)
    assert KNOWN.get(name) == found, f"Programs are scored differently; if that is meant: {name!r}: {found!r}"
