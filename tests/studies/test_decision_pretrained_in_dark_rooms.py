"""The Decision-Pretrained Transformer in a dark room of 3 x 3 cells."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.dark_rooms import lives, room

import hunch
from hunch.core import State, Transition, UsageError, World
from hunch.methods.in_context.algorithm_distillation import AlgorithmDistillation
from hunch.rl.dataset import as_episodes
from hunch.rl.lifetimes import histories
from hunch_contrib.in_context.decision_pretrained import DecisionPretrained, PosteriorPlayer, make_network

torch = pytest.importorskip("torch")
SMALL = {"transitions": 16, "width": 32, "layers": 1, "heads": 2}


@pytest.fixture(scope="module")
def data():
    return lives()


@pytest.fixture(scope="module")
def learnt(data):
    """An agent that was told the best actions until it knows them."""
    agent = DecisionPretrained(**SMALL, learning_rate=3e-3)
    agent.begin(World(data=as_episodes(data), copy=lambda: room()), 0)
    for _ in range(250):
        agent.learn()
    return agent


def transitions(cells, goal, stream=0):
    """Steps between cells, of which only those into the goal pay."""
    steps = []
    for here, (action, there) in cells:
        state = State(text(here), actions=room().reset(seed=0)[1]["actions"], stream=stream)
        next_state = State(text(there), actions=state.actions, stream=stream)
        steps.append(Transition(state, action, float(there == goal), next_state, False, False))
    steps[-1] = Transition(
        steps[-1].state, steps[-1].action, steps[-1].reward, steps[-1].next_state, True, False
    )
    return steps


def text(cell):
    return "You are in row {}, column {}.".format(*cell)


def test_the_contract():
    hunch.methods.check(DecisionPretrained(**{**SMALL, "transitions": 4}), room())


def test_stopped_and_resumed_equals_uninterrupted(data, tmp_path):
    def trained(steps, out):
        return hunch.train(
            "decision-pretrained",
            room(),
            data=data,
            steps=steps,
            streams=hunch.Streams(lifetime=4),
            evaluation=hunch.Evaluation([room(), room()], every=5, episodes=8),
            out=out,
            **SMALL,
        )

    whole = trained(20, tmp_path / "whole")
    trained(10, tmp_path / "parts")
    parts = trained(20, tmp_path / "parts")
    assert [e.actions for e in whole.evaluations] == [e.actions for e in parts.evaluations]


def test_what_it_has_seen_tells_it_where_to_go(learnt):
    way = [((2, 2), ("go up", (1, 2))), ((1, 2), ("go left", (1, 1))), ((1, 1), ("stay", (1, 1)))]
    player = learnt.player(0)
    here = State(text((1, 1)), actions=room().reset(seed=0)[1]["actions"])
    stay = here.options.index("stay")
    before = player.policy([here])[0][stay]
    player.observe(transitions(way, goal=(1, 1)))
    assert player.policy([here])[0][stay] > max(0.5, before)


def test_the_order_of_what_it_has_seen_means_nothing_to_its_tokens(learnt):
    way = [((2, 2), ("go up", (1, 2))), ((1, 2), ("go left", (1, 1))), ((1, 1), ("stay", (1, 1)))]
    here = State(text((2, 2)), actions=room().reset(seed=0)[1]["actions"])
    one, other = learnt.player(0), learnt.player(0)
    for player, steps in ((one, way), (other, way[::-1])):
        player.observe(transitions(steps, goal=(1, 1)))
    first, second = (player._arrays([player._seen(0)]) for player in (one, other))
    for a, b in zip(first, second, strict=True):
        assert (np.flip(a, 1) == b).all()
    assert len(one.policy([here])[0]) == len(here.options)


def test_an_episode_counts_from_its_end_on(learnt):
    player = learnt.player(0)
    way = transitions([((2, 2), ("go up", (1, 2))), ((1, 2), ("stay", (1, 2)))], goal=(1, 2))
    player.observe(way[:1])
    assert player._seen(0) == []
    player.observe(way[1:])
    assert [after for _, after in player._seen(0)] == [text((1, 2)), text((1, 2))]


def test_only_the_newest_transitions_are_read(learnt):
    player = PosteriorPlayer(learnt, 0)
    for _ in range(12):
        player.observe(transitions([((2, 2), ("go up", (1, 2))), ((1, 2), ("stay", (1, 2)))], goal=(1, 2)))
    assert len(player._seen(0)) == SMALL["transitions"]
    player.forget([0])
    assert player._seen(0) == []


def test_data_that_cannot_be_read_are_refused(data):
    short = DecisionPretrained(**{**SMALL, "transitions": 1_000})
    with pytest.raises(UsageError, match="needs 1000 transitions of a task"):
        short.begin(World(data=as_episodes(data), copy=lambda: room()), 0)
    unknown = DecisionPretrained(**SMALL)
    with pytest.raises(UsageError, match="knows its best action"):
        unknown.begin(World(data=as_episodes(data)), 0)


def test_padding_is_nothing():
    """An observation of two words is the same input beside longer ones as beside others of two words."""
    network = make_network(pieces=5, actions=3, width=8, layers=1, heads=2)
    rows = torch.tensor([[[1, 2], [3, 4]]])  # of two steps: (n, T, P)
    wider = torch.nn.functional.pad(rows, (0, 3))
    acted, rewards = torch.tensor([[1, 2]]), torch.zeros(1, 2)
    logits = network(rows[:, 0], rows, acted, rows, rewards)
    padded = network(wider[:, 0], wider, acted, wider, rewards)
    torch.testing.assert_close(padded, logits)


def test_an_observation_that_only_ends_episodes_is_read(data):
    def ended(episode):
        *others, last = episode
        won = replace(last, next_state=replace(last.next_state, observation="You have won."))
        return episode.with_steps([*others, won])

    agent = DecisionPretrained(**SMALL)
    agent.begin(World(data=[ended(episode) for episode in as_episodes(data)], copy=lambda: room()), 0)
    assert agent.learn()["loss"] > 0


def test_shuffled_labels_are_never_those_of_another_lifetime_in_the_same_task(data):
    agent = DecisionPretrained(**SMALL, labels="shuffled")
    agent.begin(World(data=as_episodes(data), copy=lambda: room()), 0)
    goals = [history[0][0].state.raw[1] for history in histories(as_episodes(data))]
    assert any(goals.count(goal) > 1 for goal in goals)
    number_of = {id(task): number for number, task in enumerate(agent.tasks)}
    for goal, others in zip(goals, agent.others, strict=True):
        assert goal not in [goals[number_of[id(other)]] for other in others]


def test_lifetimes_of_one_task_have_no_labels_to_shuffle(data):
    episodes = as_episodes(data)
    goals = {history[0].lifetime: str(history[0][0].state.raw[1]) for history in histories(episodes)}
    of_one_task = [episode for episode in episodes if goals[episode.lifetime] == goals[0]]
    assert len({episode.lifetime for episode in of_one_task}) > 1
    agent = DecisionPretrained(**SMALL, labels="shuffled")
    with pytest.raises(UsageError, match="There is one task"):
        agent.begin(World(data=of_one_task, copy=lambda: room()), 0)


@pytest.mark.parametrize(
    "agent",
    [
        DecisionPretrained(**SMALL),
        AlgorithmDistillation(labels="best", episodes=2, width=16, layers=1, heads=2),
    ],
)
def test_data_without_the_states_of_the_environment_are_refused_in_a_sentence(agent, data):
    bare = [replace(recording, raw=()) for recording in data.episodes]
    world = World(data=as_episodes(replace(data, episodes=tuple(bare))), copy=lambda: room())
    with pytest.raises(UsageError, match="recorded without these: record them by hunch data histories"):
        agent.begin(world, 0)
