"""Learning from recorded data: the losses by hand, what they lead to, and runs that go on."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch

import hunch
from hunch import lm
from hunch.core import State, Transition, UsageError, World
from hunch.methods.prior.cql_prior import CQLPrior
from hunch.rl.dataset import Dataset, as_episodes
from hunch.roles import TextTable, UniformPrior
from hunch.runs.record import collect, parse_mix

SMALL = {"hidden": 16, "batch_size": 32}
LAKE = "hunch/FrozenLake-v0"


@pytest.fixture(scope="module")
def table():
    return TextTable(lm.load("minilm"))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return collect(LAKE, {}, parse_mix("oracle,random"), 120)


def q_values(agent, network, i):
    """Q of all admissible actions of a numbered state, one pair at a time, not in the agent's batches."""
    features = agent.features
    with torch.no_grad():
        vector = torch.from_numpy(features.vectors[[i]])
        texts = [torch.from_numpy(features.table.matrix[[row]]) for row in features.actions[i]]
        first = torch.zeros(1, dtype=torch.long)
        return [float(network(vector, text, first, first)) for text in texts]


def _columns(agent, batch):
    sets = (
        agent.candidates(batch.state, batch.candidates),
        agent.candidates(batch.next_state, batch.next_candidates),
    )
    return zip(*batch[:5], *sets, strict=True)


@pytest.mark.parametrize("proposals", ["kept", "visited"])
@pytest.mark.parametrize("k", [2, 4])
def test_the_loss_of_cql_prior_by_hand(table, data, k, proposals):
    """The paper's loss, summed up pair by pair over the candidates that the agent has."""
    agent = CQLPrior(UniformPrior(), table, k=k, beta=5.0, proposals=proposals, **SMALL)
    agent.begin(World(streams=0, data=as_episodes(data)), 0)
    learner = agent.learner
    with torch.no_grad():
        for weight in learner.target.parameters():
            weight += 0.1
    batch = learner.replay.sample(16, np.random.default_rng(0))
    terms = []
    for s, a, t, r, end, own, following in _columns(agent, batch):
        q, target = q_values(agent, learner.network, s), r
        if not end:
            later = q_values(agent, learner.target, t)
            target += agent.config.gamma * max(later[i] for i in following)
        candidates = [q[i] for i in own]
        terms.append(0.5 * (q[a] - target) ** 2 + 5.0 * (np.log(np.sum(np.exp(candidates))) - q[a]))
    assert learner.update(batch, agent.candidates) == pytest.approx(np.mean(terms), rel=1e-5)


def test_the_floor_keeps_the_conservative_term_above_zero(table):
    """The recorded action is outside C^k(s): without the floor the loss falls, with it not below 0."""
    s, end = State("a door and a wall", "get out", ("open door", "hit wall")), State("out", "get out", ())
    losses = {}
    for floor in (False, True):
        agent = CQLPrior(UniformPrior(), table, k=1, floor=floor, learning_rate=0.01, **SMALL)
        agent.begin(World(streams=0, data=[[Transition(s, "open door", 1.0, end, True, False)]] * 8), 0)
        agent.learner.replay.rows[:8, 5] = 1
        losses[floor] = [agent.learn()["loss"] for _ in range(200)]
    assert min(losses[False]) < -1
    assert min(losses[True]) >= 0
    assert losses[True][-1] < losses[True][0]


def test_a_sum_over_the_batch_is_the_mean_times_its_size(table, data):
    found = []
    for reduction in ("mean", "sum"):
        agent = hunch.methods.DQN(table, **SMALL)
        agent.begin(World(streams=0, data=as_episodes(data)), 0)
        agent.learner.reduction = reduction
        found.append(
            agent.learner.update(agent.learner.replay.sample(32, np.random.default_rng(0)), agent.candidates)
        )
    assert found[1] == pytest.approx(32 * found[0], rel=1e-5)


@pytest.mark.parametrize("method", ["CQL", "BC", "DQN"])
def test_the_recorded_good_action_is_learnt(table, method):
    """Two actions in words, of which the recorded one is rewarded; the other is never seen."""
    s, end = State("a door and a wall", "get out", ("open door", "hit wall")), State("out", "get out", ())
    agent = getattr(hunch.methods, method)(table, learning_rate=0.01, **SMALL)
    agent.begin(World(streams=0, data=[[Transition(s, "open door", 1.0, end, True, False)]] * 8), 0)
    for _ in range(100):
        agent.learn()
    believed = agent.explain(s)
    q = believed.columns["logit" if method == "BC" else "Q"]
    if method != "DQN":  # nothing tells it what the action is worth that is not in the data
        assert believed.chosen[0] > 0.95
        assert q[0] - q[1] > 3
    if method != "BC":
        assert q[0] > 0.7


def test_episodes_reach_an_agent_as_episodes(data):
    """Three episodes of three steps are three episodes, and no stream of theirs stays open."""
    agent = hunch.methods.Matching(texts=hunch.make("hunch/Chain-v0").unwrapped.wording)
    s = State("assert state == [3]\n", "", ("left", "right"))
    steps = [Transition(s, "left", 0.0, s, False, False)] * 2 + [Transition(s, "left", 1.0, s, True, False)]
    agent.begin(World(streams=0, data=[steps] * 3), 0)
    assert [len(episode) for episode in agent.experience.episodes] == [3, 3, 3]
    assert not agent.running


def test_a_run_is_not_taken_up_with_other_data(table, data, tmp_path):
    agent = CQLPrior(UniformPrior(), table, k=2, **SMALL)
    hunch.train(agent, data=data, steps=20, out=tmp_path)
    negated = [[replace(t, reward=-t.reward) for t in episode] for episode in as_episodes(data)]
    with pytest.raises(UsageError, match="another run"):
        hunch.train(agent, data=negated, steps=20, out=tmp_path)


def test_success_is_that_of_the_evaluations(table, data):
    agent = hunch.methods.BC(table, **SMALL)
    judge = hunch.Evaluation([hunch.make(LAKE)], every=30, episodes=4)
    result = hunch.train(agent, data=data, steps=60, evaluation=judge)
    late = [e.success for e in result.evaluations if e.step > 45]
    assert result.success.value == np.mean(late)
    assert not result.episodes


def test_settings_are_checked(table):
    with pytest.raises(UsageError, match="k must be at least 1"):
        CQLPrior(UniformPrior(), table, k=0)
    with pytest.raises(UsageError, match="no option 'explore'"):
        CQLPrior(UniformPrior(), table, explore="epsilon")
    with pytest.raises(UsageError, match="DQN has no option 'k'"):
        hunch.methods.DQN(table, hunch.methods.DQNPriorConfig())
    with pytest.raises(UsageError, match="BC has no option 'gamma'"):
        hunch.methods.BC(table, gamma=0.5)


class Watched:
    """A config that notes which of its fields are read."""

    def __init__(self, config):
        self.config, self.read = config, set()

    def __getattr__(self, name):
        self.read.add(name)
        return getattr(self.config, name)


@pytest.mark.parametrize("method", ["DQN", "DQNPrior", "CQL", "CQLPrior", "BC"])
def test_a_config_has_exactly_the_fields_that_its_method_reads(method, table):
    agent_class = getattr(hunch.methods, method)
    parts, read = (table,), {"encoder"}  # read by whoever builds the encoder, and the prior
    if method.endswith("Prior"):
        parts, read = (UniformPrior(), table), {"encoder", "prior"}
    explore = ["posterior", "epsilon"] if "DQN" in method else [None]
    for how in explore:
        agent = agent_class(*parts, **({"explore": how} if how else {}))
        agent.config = watched = Watched(agent.config)
        s = State("a door and a wall", "get out", ("open door", "hit wall"))
        for streams in (0, 1):
            agent.begin(World(streams=streams, data=[[Transition(s, "open door", 1.0, s, True, False)]]), 0)
            agent.act([s])
            agent.observe([Transition(s, "open door", 1.0, s, False, False)])
            agent.learn()
            agent.player(0).act([s])
        read |= watched.read
    fields = {entry.name for entry in dataclasses.fields(agent_class.config_class)}
    assert fields == read
