"""The known dynamics of the worlds of the studies are true."""

from tests.envs.test_world_model_code import tried

import hunch
from hunch.rl.episodes import play
from hunch_studies.rules.dynamics import PENDULUM


def test_the_true_dynamics_of_the_pendulum():
    env = hunch.make("hunch/Pendulum-v0", max_steps=30)
    data = [tuple(play(env, lambda state, n=n: state.options[n % 5], n)) for n in range(4)]
    trial = tried(hunch.make("hunch/WorldModelCode-v0", base="hunch/Pendulum-v0", data=data), PENDULUM)
    assert (trial.fitness, trial.components["held_out_exact"]) == (1.0, 1.0)
