"""The environment as its own world model, the look-up, and how models are measured."""

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.rl.episodes import play
from hunch.rl.world_model import LookUp, Prediction, Step, TrueCopy, alike, frozen, measure, right, steps_of

PLANNED = ["CliffWalking", "Taxi", "CartPole", "FrozenLake", "Gripper"]


def episodes(id, n=3, seed=0):
    env, rng = hunch.make(id), np.random.default_rng(seed)
    act = lambda state: str(rng.choice(state.options))  # noqa: E731
    return [steps_of(play(env, act, seed + i)) for i in range(n)]


@pytest.mark.parametrize("name", PLANNED)
def test_an_environment_that_is_placed_goes_on_as_it_did(name):
    id = f"hunch/{name}-v0"
    recorded = episodes(id)
    env = hunch.make(id)
    env.reset(seed=0)  # Gripper's problem is that of its seed
    quality = measure(TrueCopy(env), recorded[:1], depth=4)
    assert quality.by_depth.tolist() == [1.0] * 4
    assert quality.steps_per_second > 0


def test_what_a_place_does_not_tell_is_drawn_by_the_query():
    """Two queries with the same chance agree; a cart that is placed may be pushed on after the step limit."""
    env = hunch.make("hunch/CartPole-v0", max_steps=2)
    env.reset(seed=0)
    model = TrueCopy(env)
    state = (0.0, 0.0, 0.0, 0.0)
    found = [model.step([state], ["push left"], [np.random.default_rng(0)])[0] for _ in range(5)]
    assert len({str(p) for p in found}) == 1
    assert found[0].done is False


def test_blackjack_cannot_be_placed():
    env = hunch.make("hunch/Blackjack-v0")
    _, info = env.reset(seed=0)
    with pytest.raises(UsageError, match="cannot be set"):
        TrueCopy(env).step([info["raw"]], ["hit"], [np.random.default_rng(0)])


def test_a_look_up_knows_what_it_saw_and_drifts_into_silence():
    seen, held = episodes("hunch/Taxi-v0", 1), episodes("hunch/Taxi-v0", 2, seed=5)
    model = LookUp(step for episode in seen for step in episode)
    assert measure(model, seen).by_depth.tolist() == [1.0] * 5
    shares = measure(model, held).by_depth
    assert shares[0] < 0.9
    assert (np.diff(shares) <= 0.02).all()
    assert model.step([-1], ["no"], [None]) == [Prediction()]


class Coin:
    """Right with a share of its draws."""

    def __init__(self, share):
        self.share = share

    def step(self, states, actions, rngs):
        drawn = [rng.random() < self.share for rng in rngs]
        return [Prediction(False, float(r), s) for r, s in zip(drawn, states, strict=True)]


def test_calibration_by_hand():
    """A model that is sure and half right is off by a half; one that is sure and right by nothing."""
    half = [[Step(0, "on", float(i % 2), False, 0) for i in range(200)]]
    sure = measure(Coin(1.0), half, draws=5)
    assert (sure.confidence, sure.calibration_error) == (1.0, 0.5)
    ones = [[Step(0, "on", 1.0, False, 0)] * 100]
    assert measure(Coin(1.0), ones, draws=5).calibration_error == 0
    unsure = measure(Coin(0.7), ones, draws=9)
    assert 0.6 < unsure.confidence < 0.9
    assert measure(Coin(1.0), ones, draws=5).by_depth[0] == 1 > measure(Coin(0.7), ones).by_depth[0]


@pytest.mark.parametrize(
    ("value", "other", "agree"),
    [
        (1.0, 1.0 + 1e-6, True),
        (1.0, 1.1, False),
        (1e6, 1e6 + 1, True),
        (float("nan"), float("nan"), False),
        (float("nan"), 1.0, False),
        (float("inf"), float("inf"), True),
        (float("inf"), float("-inf"), False),
        (float("inf"), 1.0, False),
        ((1, float("-inf")), (1.0, float("-inf")), True),
        (None, 1, False),
        (True, 1, False),
        ((1, (2.0, "a")), (1, (2.0, "a")), True),
        ((1, 2), (1, 2, 3), False),
        ((1,), 1, False),
        (2**1024 - 1, 2**1024 - 1, True),
        (2**1024 - 1, 2**1024 - 3, False),
        (2**1024 - 1, 0.5, False),
        (0.5, 2**1024 - 1, False),
        (np.int64(1), 1.0, True),
        ("a", "b", False),
    ],
)
def test_which_states_agree(value, other, agree):
    assert alike(value, other) is agree


def test_what_follows_the_end_does_not_count_and_an_end_is_no_number():
    step = Step(0, "on", 1.0, True, 5)
    assert right(Prediction(True, 1.0, None), step)
    assert not right(Prediction(1, 1.0, 5), step)
    assert not right(Prediction(True, None, 5), step)


def test_bad_input_is_one_sentence():
    with pytest.raises(UsageError, match="numbers, texts and lists"):
        frozen({"a": 1})
    with pytest.raises(UsageError, match="no recorded steps"):
        measure(LookUp([]), [])
    assert frozen(np.array([[1, 2.5]])) == ((1.0, 2.5),)
