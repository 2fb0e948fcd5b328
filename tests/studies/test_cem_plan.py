"""Planning by the cross-entropy method: a pendulum held and swung up, in its dynamics as code."""

import numpy as np
import pytest

import hunch
from hunch.rl.cem import CEM
from hunch.rl.episodes import play
from hunch.rl.world_model import Prediction, TrueCopy, measure, steps_of
from hunch_studies.plans import plan
from hunch_studies.rules.dynamics import PENDULUM
from hunch_studies.worlds.pendulum import PENDULUM_ACTIONS, describe_pendulum, nearest, torque


class Coded:
    """The scripted dynamics in process, to be quick."""

    def __init__(self):
        scope = {}
        exec(PENDULUM, scope)
        self.run = scope["step"]

    def step(self, states, actions, rngs=()):
        found = [self.run(s, a) for s, a in zip(states, actions, strict=True)]
        return [Prediction(done, reward, after) for after, reward, done in found]


def held(env, steps, act):
    """Return over some steps from slightly off upright."""
    env.reset(seed=0)
    observation, info = env.unwrapped.place([float(np.cos(0.3)), float(np.sin(0.3)), 0.0])
    total = 0.0
    for _ in range(steps):
        observation, reward, _, _, info = env.step(act(tuple(info["raw"])))
        total += reward
    return total, observation


def test_a_plan_holds_the_pendulum_and_random_torques_do_not():
    rng, model = np.random.default_rng(0), Coded()
    cem = CEM(population=24, elites=6, generations=3, spread=2.0, noise=0.5)

    def planned(state):
        return nearest(
            plan(model, state, rng, horizon=12, bound=2.0, name=lambda u: f"torque {u}", cem=cem)[0]
        )

    env = hunch.make("hunch/Pendulum-v0")
    own, _ = held(env, 25, planned)
    drawn, _ = held(env, 25, lambda state: str(rng.choice(PENDULUM_ACTIONS)))
    assert own > -3 > drawn


def test_the_plan_comes_to_the_best_action_of_a_known_problem():
    class Aim:
        def step(self, states, actions, rngs):
            return [Prediction(False, -((a - 0.7) ** 2), s) for s, a in zip(states, actions, strict=True)]

    found = plan(Aim(), 0, np.random.default_rng(0), horizon=3, bound=1.0, cem=CEM(generations=15))
    assert found == pytest.approx([0.7] * 3, abs=0.05)


def test_a_model_that_says_nothing_earns_nothing():
    class Silent:
        def step(self, states, actions, rngs):
            return [Prediction() for _ in states]

    assert plan(Silent(), 0, np.random.default_rng(0), horizon=4, bound=1.0).shape == (4,)


def test_the_pendulum_in_words_is_gymnasiums():
    import gymnasium

    env, theirs = hunch.make("hunch/Pendulum-v0"), gymnasium.make("Pendulum-v1")
    _, info = env.reset(seed=3)
    observed, _ = theirs.reset(seed=3)
    for action in PENDULUM_ACTIONS * 3:
        text, reward, _, _, info = env.step(action)
        observed, other, *_ = theirs.step(np.array([torque(action)], dtype=np.float32))
        assert reward == pytest.approx(float(other))
        assert info["raw"] == observed.tolist()
        assert text == describe_pendulum(observed)
    assert describe_pendulum((1.0, 0.0, 0.0)) == "The pendulum is upright and does not turn."
    assert "90.0 degrees left of upright and turns right at 57" in describe_pendulum((0.0, 1.0, -1.0))


def test_it_can_be_placed():
    env, rng = hunch.make("hunch/Pendulum-v0"), np.random.default_rng(0)
    recorded = [steps_of(list(play(env, lambda s: str(rng.choice(s.options)), 0))[:20])]
    assert measure(TrueCopy(env), recorded, depth=4).by_depth.tolist() == [1.0] * 4
