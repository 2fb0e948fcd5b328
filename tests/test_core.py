"""The words of the library: what a state holds, the one codec, and what an agent saves."""

import json
from typing import ClassVar

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from hunch.core import Agent, Episode, Memoryless, Picture, State, Transition

TEXT = st.text(max_size=20)
STATES = st.builds(
    State,
    TEXT,
    TEXT,
    st.none() | st.lists(TEXT, max_size=3).map(tuple),
    st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple),
    st.lists(TEXT, max_size=2).map(tuple),
    st.lists(st.binary(min_size=1, max_size=9).map(Picture.read), max_size=2).map(tuple),
    st.none() | st.integers() | st.dictionaries(TEXT, st.lists(st.integers())),
    st.integers(0, 9),
    st.integers(0, 3),
    st.lists(TEXT, max_size=3).map(tuple),
)


def everything(state):
    return (state, state.raw, state.stream, state.seat, [p.data for p in state.pictures])


@given(STATES)
def test_a_state_survives_json(state):
    again = State.of(json.loads(json.dumps(state.plain())))
    assert everything(again) == everything(state)


@given(STATES, STATES)
def test_a_transition_survives_json(one, other):
    t = Transition(one, "go", 0.5, other, True, False, True, "it rains")
    again = Transition.of(json.loads(json.dumps(t.plain())))
    assert again == t
    assert everything(again.next_state) == everything(other)


def test_states_with_other_pictures_or_goals_differ():
    here = State("a room", pictures=(Picture.read(b"one"),))
    assert here != State("a room", pictures=(Picture.read(b"other"),))
    assert here == State("a room", pictures=(Picture.read(b"one"),), raw=3, stream=2, seat=1)
    assert len({State("a room"), State("a room", goals=("sit",)), State("a room", goals=("rest",))}) == 3


def test_the_aim_is_the_goals_or_else_the_task():
    assert State("", "win").aim == "win"
    assert State("", "win", goals=("sit", "rest")).aim == "sit\nrest"


def test_what_is_not_plain_is_left_out_and_what_is_not_compared_on_request():
    assert State("x", raw=np.zeros(2)).plain() == {"observation": "x"}
    assert State("x", raw=[1], stream=3, seat=1).plain(compared=True) == {"observation": "x"}


class Learner(Agent):
    """Saves what it names."""

    saved: ClassVar = ("rng", "layer", "seen", "steps")

    def begin(self, world, seed):
        self.rng, self.layer = np.random.default_rng(seed), torch.nn.Linear(2, 1)
        self.seen, self.steps = {3: [("a", 1.0)]}, seed

    def act(self, states):
        raise NotImplementedError

    def observe(self, transitions):
        raise NotImplementedError

    def player(self, seed):
        raise NotImplementedError


def test_an_agent_restores_what_it_names_and_shares_nothing():
    first, second = Learner(), Learner()
    first.begin(None, 7)
    second.begin(None, 8)
    first.rng.random()
    state = first.state_dict()
    second.load_state_dict(state)
    assert second.rng.random() == first.rng.random()
    assert torch.equal(second.layer.weight, first.layer.weight)
    second.seen[3].append(("b", 0.0))
    assert first.seen == {3: [("a", 1.0)]} == state["seen"]
    assert second.steps == 7


def test_a_player_without_memory_saves_its_chance():
    def draw(states, rng):
        return [str(rng.integers(1000)) for _ in states]

    one, other = Memoryless(draw, 1), Memoryless(draw, 2)
    one.act([State("")])
    other.load_state_dict(one.state_dict())
    assert one.act([State("")]) == other.act([State("")])


def test_an_episode_is_its_steps():
    s = State("here")
    steps = tuple(Transition(s, a, 0.0, s, a == "b", False) for a in "ab")
    episode = Episode(steps, lifetime=2, number=5, group=1)
    assert (list(episode), len(episode), episode[-1].action) == (list(steps), 2, "b")
    assert episode.with_steps(steps[1:]) == Episode(steps[1:], 2, 5, 1)
