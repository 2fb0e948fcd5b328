"""MiniGrid by its own numbers: placed states and rules as code agree, levels follow one another."""

import numpy as np
import pytest

import hunch
from hunch.core import State, Transition, UsageError
from hunch.rl.world_model import TrueCopy, alike, frozen, steps_of
from hunch_studies.rules.dynamics import GRID_GOAL, GRID_MOVES, GRID_OPENED
from hunch_studies.worlds.minigrid_numbers import LEVELS

pytest.importorskip("minigrid")
EARNS = {"empty": GRID_GOAL, "door-key": GRID_GOAL, "unlock": GRID_OPENED}


def function(code, name):
    scope = {}
    exec(code, scope)
    return scope[name]


def played(env, seed, steps):
    """Random play that picks up, drops and toggles whatever is in front every other step."""
    rng, (observation, info) = np.random.default_rng(seed), env.reset(seed=seed)
    state, found = State.read(observation, info), []
    for i in range(steps):
        options = state.options[2:] if i % 2 else state.options[:3]
        action = str(rng.choice(options))
        observation, reward, terminated, truncated, info = env.step(action)
        after = State.read(observation, info)
        found.append(Transition(state, action, reward, after, terminated, truncated))
        state = after
        if terminated:
            break
    return steps_of(found)


@pytest.mark.parametrize("level", LEVELS)
def test_the_rules_as_code_and_placed_states_are_minigrids(level):
    env = hunch.make("hunch/MiniGrid-v0", levels=(level,), max_steps=400)
    moves, true = (
        function(GRID_MOVES, "transition"),
        TrueCopy(hunch.make("hunch/MiniGrid-v0", levels=(level,))),
    )
    true.env.reset(seed=0)
    for seed in range(2):
        for step in played(env, seed, 100):
            assert alike(frozen(moves(step.state, step.action)), step.next_state), step
            if level not in EARNS:
                continue
            earns = function(EARNS[level], "reward")
            assert earns(step.state, step.action, step.next_state) == (step.reward, step.done)
            (found,) = true.step([step.state], [step.action], [np.random.default_rng(0)])
            assert (found.next_state, found.reward, found.done) == (step.next_state, step.reward, step.done)


def test_the_contract():
    hunch.envs.check(hunch.make("hunch/MiniGrid-v0", levels=("door-key",)))


def test_levels_follow_one_another():
    env = hunch.make("hunch/MiniGrid-v0", levels=("empty", "unlock"), each=2)
    tasks = []
    for episode in range(5):
        env.reset(seed=episode, options={"episode": episode})
        tasks.append(env.unwrapped.task)
    assert tasks == ["get to the green goal square"] * 2 + ["open the door"] * 3
    with pytest.raises(UsageError, match="Name a level"):
        hunch.make("hunch/MiniGrid-v0", levels=())
