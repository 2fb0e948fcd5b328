"""ReST keeps the best of all that was written, and imitates it from the initial weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hunch.core import HunchWarning, State, Transition, World
from hunch.rl.policy import Decision, Step

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hunch.lm import trainable
from hunch_contrib.tune.rest import ReST, TopEpisodes

SMALL = {
    "max_tokens": 12,
    "reference": "none",
    "episodes": 4,
    "keep": 1,
    "learning_rate": 3e-2,
    "updates": 100,
}
ASKED = State("dish soup diet vegan pace quick :")


def episode(text, reward):
    return [Step(Transition(ASKED, text, reward, ASKED, True, False), Decision(text))]


def kept(best):
    return [(own[0].decision.text, own[0].transition.reward) for own in best.episodes()]


def test_the_best_different_episodes_of_each_beginning_are_kept():
    best = TopEpisodes(2, None)
    for text, reward in (("a", 1.0), ("b", 0.0), ("a", 3.0), ("c", 2.0), ("a", -1.0)):
        best.add("one", episode(text, reward))
    best.add("other", episode("d", -5.0))
    assert kept(best) == [("a", 3.0), ("c", 2.0), ("d", -5.0)]
    again = TopEpisodes(2, None)
    again.load_state_dict(best.state_dict())
    assert kept(again) == kept(best)


def test_of_equal_returns_the_shorter_episode_is_kept():
    best = TopEpisodes(1, None)
    best.add("one", [*episode("a", 0.0), *episode("b", 1.0)])
    best.add("one", episode("c", 1.0))
    assert kept(best) == [("c", 1.0)]


def test_an_episode_below_the_limit_is_never_kept():
    best = TopEpisodes(2, 1.0)
    best.add("one", episode("bad", 0.5))
    best.add("one", episode("good", 1.0))
    assert kept(best) == [("good", 1.0)]


@pytest.fixture
def agent():
    own = ReST(lm=trainable("scratch?width=16&layers=1&heads=2&vocabulary=32"), **SMALL)
    own.lm.take(["boil carrot serve"])
    own.begin(World(steps=100, streams=4), 0)
    return own


def played(agent, rewards):
    texts = agent.act([replace(ASKED, stream=i) for i in range(4)])
    states = [replace(ASKED, stream=i) for i in range(4)]
    steps = zip(states, texts, rewards, strict=True)
    agent.observe([Transition(state, text, reward, state, True, False) for state, text, reward in steps])
    return texts


def test_a_round_imitates_what_was_best_in_any_round(agent):
    texts = played(agent, [0.0, 9.0, 1.0, 2.0])
    assert agent.learn()["kept"] == 1
    played(agent, [3.0, 3.0, 3.0, 3.0])
    told = agent.learn()
    assert told["kept"] == 1
    assert told["loss"] < 1.0
    again = agent.act([replace(ASKED, stream=i) for i in range(20)])
    assert np.mean([text == texts[1] for text in again]) > 0.5


def test_without_anything_worth_keeping_the_model_stays_as_it_was():
    agent = ReST(lm=trainable("scratch?width=16&layers=1&heads=2&vocabulary=32"), **{**SMALL, "least": 1.0})
    agent.lm.take(["boil carrot serve"])
    agent.begin(World(steps=100, streams=4), 0)
    before = {name: weight.clone() for name, weight in agent.lm.state_dict().items()}
    played(agent, [0.0, 0.5, 0.0, 0.0])
    with pytest.warns(HunchWarning, match="None of the 4 episodes .* at least 1, .* the best has 0.5"):
        assert agent.learn()["kept"] == 0
    played(agent, [0.0] * 4)
    assert agent.learn()["kept"] == 0  # said once
    assert all((before[name] == weight).all() for name, weight in agent.lm.state_dict().items())


def test_what_selects_nothing_is_said(agent):
    """Each prompt is met once: the best of one answer is the answer."""
    states = [replace(ASKED, stream=i, observation=f"{ASKED.observation} {i}") for i in range(4)]
    texts = agent.act(states)
    steps = zip(states, texts, [0.0, 1.0, 0.0, 0.0], strict=True)
    agent.observe([Transition(state, text, reward, state, True, False) for state, text, reward in steps])
    with pytest.warns(HunchWarning, match="Of the 4 episodes of a round 4 were kept"):
        metrics = agent.learn()
    assert metrics["left_out"] == 0


def test_the_best_answer_of_a_group_is_imitated():
    own = ReST(lm=trainable("scratch?width=16&layers=1&heads=2&vocabulary=32"), **{**SMALL, "group": 4})
    own.lm.take(["boil carrot serve"])
    own.begin(World(steps=100, streams=4), 0)
    texts = played(own, [0.0, 9.0, 1.0, 2.0])
    metrics = own.learn()
    assert metrics["kept"] == 1
    assert metrics["left_out"] == (len(set(texts)) - 1) / 4
    assert own.best.episodes()[0][0].decision.text == texts[1]
