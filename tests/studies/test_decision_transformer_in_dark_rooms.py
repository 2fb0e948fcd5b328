"""Decision transformers, in DarkRoom."""

import numpy as np
import pytest
from tests.studies.dark_rooms import lives, room

import hunch
from hunch.core import State, Transition
from hunch.rl.dataset import as_episodes
from hunch_contrib.in_context.decision_transformer import DecisionTransformer

TINY = {"lm": "scratch?width=16&layers=1&heads=2&vocabulary=3", "context": 3, "batch_size": 4}


@pytest.fixture(scope="module")
def data():
    return lives()


def test_the_contract():
    hunch.methods.check(DecisionTransformer(**TINY), room())


def test_stopped_and_resumed_equals_uninterrupted(data, tmp_path):
    def trained(steps, out):
        evaluation = hunch.Evaluation([room(), room()], every=5, episodes=8)
        return hunch.train(
            "decision-transformer",
            room(),
            data=data,
            steps=steps,
            streams=hunch.Streams(lifetime=4),
            evaluation=evaluation,
            out=out,
            **TINY,
        )

    whole = trained(20, tmp_path / "whole")
    trained(10, tmp_path / "parts")
    parts = trained(20, tmp_path / "parts")
    assert [e.actions for e in whole.evaluations] == [e.actions for e in parts.evaluations]
    assert len(whole.evaluations) == 32
    loaded = hunch.load(tmp_path / "whole")
    observation, info = room().reset(seed=0)
    assert loaded.predict(observation, info) in info["actions"]


def _replaced(t, action, reward):
    return Transition(t.state, action, reward, t.next_state, t.terminated, t.truncated)


def test_a_decision_transformer_does_what_had_the_wanted_return(data):
    """Half of the recorded episodes stay and are paid for it, the others move."""
    paid = [e.with_steps(_replaced(t, "stay", 1.0) for t in e) for e in as_episodes(data)]
    moved = [e.with_steps(_replaced(t, "go up", 0.0) for t in e) for e in as_episodes(data)]
    for target, action in ((4.0, "stay"), (0.0, "go up")):
        agent = DecisionTransformer(**TINY, target=target, warmup=1, learning_rate=0.01)
        hunch.train(agent, room(), data=paid + moved, steps=60)
        observation, info = room().reset(seed=1)
        [policy] = agent.player(0).policy([State.read(observation, info)])
        assert policy[info["actions"].index(action)] > 0.9


def test_a_decision_transformer_reads_at_most_its_context(data):
    """And what is padded behind a step does not change it."""
    agent = DecisionTransformer(**TINY)
    hunch.train(agent, room(), data=data, steps=2)
    own = agent.episodes[0]
    two, three = (type(own)(*(part[:n] for part in own)) for n in (2, 3))
    together = agent.logits([two, three]).detach().numpy()
    assert np.allclose(together[0, :2], agent.logits([two]).detach().numpy()[0], atol=1e-6)
    assert np.allclose(together[1, :2], together[0, :2], atol=1e-6)
