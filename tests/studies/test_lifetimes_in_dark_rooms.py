"""Learners of whole lives, in DarkRoom."""

import numpy as np
import pytest
from tests.studies.dark_rooms import lives, room

import hunch
from hunch.core import Episode, State, Transition, UsageError, World
from hunch.methods.in_context.algorithm_distillation import AlgorithmDistillation
from hunch.methods.in_context.in_context_lm import InContextLM
from hunch.methods.in_context.nearest_history import NearestHistory
from hunch.methods.q_learning import QLearningConfig
from hunch.rl.dataset import as_episodes
from hunch.roles import UniformPrior
from hunch.runs.config import RunConfig
from hunch.runs.histories import Lives, histories

SMALL = {"episodes": 4, "width": 16, "layers": 1, "heads": 2, "batch_size": 4}


@pytest.fixture(scope="module")
def data():
    return lives()


def agents():
    return {
        "algorithm-distillation": AlgorithmDistillation(**{**SMALL, "episodes": 3}),
        "nearest-history": NearestHistory(),
        "in-context-lm": InContextLM(UniformPrior()),
    }


@pytest.mark.parametrize("name", agents())
def test_the_contract(name):
    hunch.methods.check(agents()[name], room())


@pytest.mark.parametrize("name", ["algorithm-distillation", "nearest-history"])
def test_stopped_and_resumed_equals_uninterrupted(name, data, tmp_path):
    options = SMALL if name == "algorithm-distillation" else {}

    def trained(steps, out):
        evaluation = hunch.Evaluation([room(), room()], every=5, episodes=8)
        return hunch.train(
            name,
            room(),
            data=data,
            steps=steps,
            streams=hunch.Streams(lifetime=4),
            evaluation=evaluation,
            out=out,
            **options,
        )

    whole = trained(20, tmp_path / "whole")
    trained(10, tmp_path / "parts")
    parts = trained(20, tmp_path / "parts")
    assert [e.actions for e in whole.evaluations] == [e.actions for e in parts.evaluations]
    assert len(whole.evaluations) == 32
    tasks = {e.number: e.task_seed for e in whole.evaluations}
    assert len({tasks[n] for n in range(4)}) == len({tasks[n] for n in range(4, 8)}) == 1
    assert tasks[0] != tasks[4]
    loaded = hunch.load(tmp_path / "whole")
    observation, info = room().reset(seed=0)
    assert loaded.predict(observation, info) in info["actions"]


def test_workers_record_the_same_lives(data):
    options = {"size": 3, "length": 4, "goals": "all"}
    learner = QLearningConfig(epsilon=(1.0, 0.02, 40))
    config = RunConfig(method="q-learning", env="hunch/DarkRoom-v0", env_options=options, options=learner)
    again = histories(config, Lives(tasks=6, copies=2, episodes=20, every=2), workers=2)
    assert again.episodes == data.episodes
    assert sorted({e.lifetime for e in data.episodes}) == list(range(12))
    assert all(len({e.number % 2 for e in data.episodes if e.lifetime == life}) == 1 for life in range(12))
    with pytest.raises(UsageError, match="plays 6 episodes after the first 0, fewer than --every 20"):
        histories(config, Lives(tasks=1, copies=1, episodes=6))


def test_the_network_learns_what_the_data_do(data):
    """In recorded lives whose only action is 'stay', it stays; the accuracy says so."""
    lazy = [e.with_steps(_replaced(t, "stay") for t in e) for e in as_episodes(data)]
    agent = AlgorithmDistillation(**SMALL, warmup=1, learning_rate=0.01)
    result = hunch.train(agent, room(), data=lazy, steps=60, streams=hunch.Streams(lifetime=4))
    assert result.steps == 60
    player = agent.player(0)
    env = room()
    observation, info = env.reset(seed=1)
    [policy] = player.policy([State.read(observation, info)])
    assert policy[info["actions"].index("stay")] > 0.95


def _replaced(t, action, reward=None):
    return Transition(
        t.state, action, t.reward if reward is None else reward, t.next_state, t.terminated, t.truncated
    )


def test_a_lifetime_is_remembered_and_forgotten(data):
    agent = AlgorithmDistillation(**SMALL)
    hunch.train(agent, room(), data=data, steps=20, streams=hunch.Streams(lifetime=4))
    env, player = room(), agent.player(0)
    observation, info = env.reset(seed=0)
    state = State.read(observation, info)
    first = player.policy([state])
    paid = Transition(state, "stay", 1.0, state, False, True)
    player.observe([paid])
    assert not np.array_equal(player.policy([state])[0], first[0])
    player.forget([0])
    assert np.array_equal(player.policy([state])[0], first[0])


def test_look_up_repeats_the_history_that_is_most_alike(data):
    agent = NearestHistory()
    hunch.train(agent, room(), data=data, steps=1)
    history = [e for e in as_episodes(data) if e.lifetime == 3]
    player = agent.player(0)
    for episode in history:
        for t in episode:
            assert player.act([t.state]) == [t.action] or len(player.lived.get(0, [])) < 4
            player.observe([t])


@pytest.mark.parametrize(
    ("options", "lifetime", "message"),
    [
        (SMALL, 5, "A lifetime of 5 episodes is longer than the examples, which have 4"),
        ({**SMALL, "episodes": 11}, 4, "An example needs 11 episodes of a history, but one has only 10"),
        ({**SMALL, "stride": 4}, 4, "An example needs 13 episodes of a history"),
        ({**SMALL, "heads": 3}, 4, "width must be a multiple of heads"),
    ],
)
def test_what_cannot_be_learnt_is_refused_before_training(options, lifetime, message, data):
    with pytest.raises(UsageError, match=message):
        hunch.train(
            "algorithm-distillation",
            room(),
            data=data,
            steps=5,
            streams=hunch.Streams(lifetime=lifetime),
            **options,
        )


@pytest.mark.parametrize("order", ["ends", "shuffled"])
def test_only_parts_of_histories_need_room_for_their_stride(order, data):
    agent = AlgorithmDistillation(**SMALL, histories=order, stride=4)
    agent.begin(World(data=as_episodes(data), copy=lambda: room()), 0)
    assert agent.learn()["loss"] > 0


def test_a_room_that_the_data_never_show(data):
    agent = AlgorithmDistillation(**SMALL)
    hunch.train(agent, room(), data=data, steps=2, streams=hunch.Streams(lifetime=4))
    with pytest.raises(UsageError, match="never have 'row 1 5'"):
        agent.player(0).act([State("You are in row 5, column 5.", actions=("stay",))])


def test_the_best_action_is_asked_of_the_environment(data):
    hunch.train(
        "algorithm-distillation",
        room(),
        data=data,
        steps=2,
        labels="best",
        streams=hunch.Streams(lifetime=4),
        **SMALL,
    )
    lake = hunch.make("hunch/FrozenLake-v0")
    with pytest.raises(UsageError, match="knows its best action"):
        hunch.train(AlgorithmDistillation(**SMALL, labels="best"), lake, data=as_episodes(data), steps=2)


def test_a_batch_without_labels_teaches_nothing():
    """The states of the first episodes are none of those in which the end of the history shows an action."""
    life = []
    for number in range(10):
        state = State(f"place {number}", actions=("left", "right"))
        life.append(Episode((Transition(state, "left", 0.0, state, True, False),), number=number))
    agent = AlgorithmDistillation(labels="final", **{**SMALL, "episodes": 1, "batch_size": 1})
    agent.begin(World(steps=20, data=life), 0)
    metrics = [agent.learn() for _ in range(20)]
    assert {} in metrics
    losses = [metric["loss"] for metric in metrics if metric]
    assert losses
    assert np.isfinite(losses).all()
    assert np.isfinite(agent.player(0).policy([life[0][0].state])).all()
