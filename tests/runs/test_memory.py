"""The memory of a run stops growing once its buffers are full."""

import gc
import tracemalloc

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hunch
from hunch.lm.answers import memory
from hunch.methods.prior import dqn_prior
from hunch.rl import q_learning
from hunch.rl.rollout import Finished
from hunch.roles.encoder import features
from hunch.roles.policy import perceptron
from hunch.roles.prior import base
from hunch.runs.result import Episodes

A_STEP = 52
"""Bytes that a step may leave: 1 % of 500 MB, which a run with torch takes, in 100,000 steps."""
NUMBER = st.integers(0, 2**40)
EPISODE = st.builds(
    Finished,
    seed=NUMBER,
    step=NUMBER,
    episode_return=st.floats(allow_nan=False),
    length=st.integers(0, 2**33),
    success=st.booleans(),
    actions=st.lists(st.sampled_from(["left", "right", "é"]) | st.text()).map(tuple),
    number=NUMBER,
    task_seed=st.none() | NUMBER,
)


@given(st.lists(EPISODE))
def test_episodes_in_columns_are_what_was_added(episodes):
    columns = Episodes(episodes)
    assert columns == episodes
    assert len(columns) == len(episodes)
    assert columns[1:] == episodes[1:]
    assert columns[-2:] == episodes[-2:]
    assert [columns[i] for i in range(-len(episodes), 0)] == episodes
    with pytest.raises(IndexError):
        columns[len(episodes)]


class Numbers(gym.Env):
    """No observation comes again; an episode has ten steps."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observed()

    def _observed(self):
        info = {"actions": ("up", "down", "left"), "task": "Count.", "success": False}
        number = self.np_random.integers(10**12)
        return f"You have come to number {number}.\nIt looks like the others.", info

    def step(self, action):
        self.steps += 1
        observation, info = self._observed()
        return observation, float(action == "up"), False, self.steps == 10, info


class Growth(hunch.Callback):
    """Measures what is allocated at two steps."""

    def __init__(self, first, last):
        self.measured = dict.fromkeys((first, last), 0)

    def on_step(self, run, transitions):
        if run.steps == 50:  # what is loaded takes long to trace
            tracemalloc.start()
        if run.steps in self.measured:
            gc.collect()
            self.measured[run.steps] = tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["dqn-prior", *(pytest.param(m, marks=pytest.mark.thorough) for m in ("dqn", "ppo", "zero-shot"))],
)
def test_memory_grows_by_the_episodes_only_once_buffers_are_full(monkeypatch, method, tmp_path):
    monkeypatch.setattr(dqn_prior, "FORGET_EVERY", 100)
    if method != "dqn":  # its uniform prior keeps no states, whatever the limit
        monkeypatch.setattr(base, "KNOWN", 200)
    monkeypatch.setattr(perceptron, "KNOWN", 200)
    monkeypatch.setattr(features, "RECENT", 200)
    monkeypatch.setattr(memory, "MOST_ANSWERS", 200)
    monkeypatch.setattr(q_learning.Replay, "__init__", small_replay(q_learning.Replay.__init__))
    # Two settings of which the second has a prior; a model that embeds new texts at each step.
    options = {"encoder": "bag-of-words?dim=8"} if method != "zero-shot" else {"lm": "bag-of-words?dim=8"}
    if method == "dqn-prior":
        options |= {"lm": "bag-of-words?dim=8", "k": 2}
    if method in ("dqn", "dqn-prior"):
        options |= {"hidden": 4, "batch_size": 4, "update_every": 50}
    growth = Growth(700, 1_700)
    try:
        watch = hunch.Watch(callbacks=[growth])
        hunch.train(method, Numbers(), 1_700, out=tmp_path / "run", watch=watch, **options)
    finally:
        tracemalloc.stop()
    before, after = growth.measured.values()
    assert 0 < after - before < A_STEP * 1_000


def small_replay(make):
    def begin(self, capacity, k=0):
        make(self, 150, k)

    return begin
