"""DQN-Prior and DQN: one code, and what it promises."""

import numpy as np
import pytest
import torch

import hunch
from hunch import lm
from hunch.core import Proposal, State, Transition, UsageError
from hunch.methods.prior.dqn_prior import DQNPrior, QLearningConfig
from hunch.methods.prior.proposals import posterior
from hunch.rl.qnetwork import in_order, pad
from hunch.roles import LikelihoodPrior, SimilarityPrior, TextTable, UniformPrior

EAGER = {"hidden": 32, "warmup": 20, "batch_size": 32, "update_every": 1, "epsilon": (1.0, 0.05, 300)}
SMALL = {"hidden": 16, "warmup": 20, "batch_size": 16, "update_every": 4}


@pytest.fixture(scope="module")
def table():
    return TextTable(lm.load("minilm"))


@pytest.fixture
def lake():
    return hunch.make("hunch/FrozenLake-v0")


def actions(result):
    return [episode.actions for episode in result.episodes]


def test_same_seed_same_run_and_another_seed_another(table, lake):
    agent = DQNPrior(SimilarityPrior(table), table, k=3, **SMALL)
    first, again, other = (hunch.train(agent, lake, 300, seed=seed) for seed in (0, 0, 1))
    assert actions(first) == actions(again)
    assert actions(first) != actions(other)


def test_dqn_is_dqn_prior_with_nothing_in_the_role(table, lake):
    dqn = hunch.methods.DQN(table, **SMALL)
    same = DQNPrior(UniformPrior(), table, QLearningConfig(**SMALL))
    assert actions(hunch.train(dqn, lake, 300)) == actions(hunch.train(same, lake, 300))


def test_only_proposals_are_taken(table, lake):
    """The agent never leaves C^k(s): with kept proposals each state has at most k different actions."""
    agent = DQNPrior(UniformPrior(), table, k=2, **SMALL)
    hunch.train(agent, lake, 300)
    assert all(len(p.indices) <= 2 for p in agent.kept.values())
    replayed = zip(agent.replay._ids[:300, 0], agent.replay._ids[:300, 1], strict=True)
    for state, action in replayed:
        row = agent.features.actions[state]
        assert action in row[agent.kept[agent.features.states[state]].indices]


def test_targets_by_hand(table):
    """r + gamma * max over the candidates of s' under the target network; r alone at a terminal s'."""
    agent = DQNPrior(UniformPrior(), table, k=None, gamma=0.9, proposals="kept", **SMALL)
    s, t = State("here", "go", ("left", "right")), State("there", "go", ("left", "right", "up"))
    agent.observe([Transition(s, "right", 0.5, t, False, False), Transition(s, "left", 1.0, t, True, False)])
    batch = agent.replay.sample(64, np.random.default_rng(0))
    everything = Proposal(np.arange(3), np.full(3, 1 / 3))
    best = agent.values(agent.target, [t], [everything])[0].max()
    expected = np.where(batch.terminated == 1, 1.0, 0.5 + 0.9 * best)
    assert agent.targets(batch).numpy() == pytest.approx(expected, abs=1e-6)


def test_truncation_still_bootstraps(table):
    agent = DQNPrior(UniformPrior(), table, k=1, **SMALL)
    s = State("here", "go", ("left",))
    agent.observe([Transition(s, "left", 0.0, s, False, True)])
    assert agent.replay.sample(1, np.random.default_rng(0)).terminated[0] == 0


@pytest.mark.parametrize("target", ["soft", "hard"])
@pytest.mark.parametrize("explore", ["posterior", "epsilon"])
def test_learning_solves_a_one_step_choice(table, target, explore):
    """A bandit in words: after learning, the posterior is on the rewarded action."""
    agent = DQNPrior(
        UniformPrior(), table, QLearningConfig(target=target, explore=explore, target_every=20, **EAGER)
    )
    s = State("A coin lies on the table.", "take the coin", ("take the coin", "leave"))
    for _ in range(600):
        action = agent.act([s])[0]
        reward = float(action == "take the coin")
        agent.observe([Transition(s, action, reward, s, True, False)])
        agent.learn()
    assert agent.explain(s).q[0] == pytest.approx(1, abs=0.2)
    assert [agent.act([s], explore=False)[0] for _ in range(20)].count("take the coin") >= 19


def test_joint_encoding_learns_too(table):
    agent = DQNPrior(UniformPrior(), table, QLearningConfig(joint=True, **EAGER))
    s = State("A coin lies on the table.", "take the coin", ("take the coin", "leave"))
    for i in range(300):
        action = s.actions[i % 2]
        agent.observe([Transition(s, action, float(i % 2 == 0), s, True, False)])
        agent.learn()
    q = agent.explain(s).q
    assert q[0] - q[1] > 0.5


def test_state_dict_goes_on_as_the_original(table, lake):
    """Also with another text table, whose rows are other ones."""
    table.add(["a text of another agent"])
    agent = DQNPrior(SimilarityPrior(table), table, k=3, **SMALL)
    hunch.train(agent, lake, 200)
    other = DQNPrior(SimilarityPrior(lm.load("minilm")), None, k=3, **SMALL)
    other.load_state_dict(agent.state_dict())
    state = agent.features.states[0]
    for _ in range(5):
        assert agent.act([state]) == other.act([state])
        agent.updates -= 1
        other.updates -= 1
        assert agent.learn() == other.learn()
    for a, b in zip(agent.network.parameters(), other.network.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bag-of-words", "embeddings of minilm; with those of bag-of-words it"),
        ("bag-of-words?dim=64", r"those of bag-of-words\?dim=64 it"),
    ],
)
def test_a_checkpoint_of_another_encoder_is_refused(table, lake, spec, message):
    agent, other = (DQNPrior(UniformPrior(), t, k=2, **SMALL) for t in (table, TextTable(lm.load(spec))))
    hunch.train(agent, lake, 60)
    hunch.train(other, lake, 60, seed=1)
    before = {name: weight.clone() for name, weight in other.network.named_parameters()}
    with pytest.raises(UsageError, match=message) as caught:
        other.load_state_dict(agent.state_dict())
    assert "\n" not in str(caught.value)
    assert other.steps == 60
    assert all(torch.equal(weight, before[name]) for name, weight in other.network.named_parameters())


def test_a_checkpoint_that_names_no_encoder(table, lake):
    """The first ones did not; they load where the numbers fit."""
    agent = DQNPrior(UniformPrior(), table, k=2, **SMALL)
    hunch.train(agent, lake, 60)
    state = {name: value for name, value in agent.state_dict().items() if name != "encoder"}
    same, narrow = (
        DQNPrior(UniformPrior(), t, k=2, **SMALL) for t in (table, TextTable(lm.load("bag-of-words?dim=8")))
    )
    same.load_state_dict(state)
    assert same.steps == 60
    with pytest.raises(UsageError, match="another size"):
        narrow.load_state_dict(state)
    assert narrow.steps == 0


def test_an_empty_text_table_is_taken(lake):
    mine = TextTable(lm.load("bag-of-words"))
    assert DQNPrior(UniformPrior(), mine, k=2).features.table is mine


def test_a_text_table_shared_with_others_changes_nothing(lake):
    """What else the process has embedded must not reach the last bit of a run."""
    fresh, used = TextTable(lm.load("minilm")), TextTable(lm.load("minilm"))
    used.add(["Go Up", "something else", "Go Left"])
    runs = [hunch.train(DQNPrior(SimilarityPrior(t), t, k=3, **SMALL), lake, 300) for t in (fresh, used)]
    assert actions(runs[0]) == actions(runs[1])


def test_an_empty_text_table_is_taken_as_it_is(table):
    """A table has a length, and an empty one must not count as none."""
    own = TextTable(table.lm)
    assert DQNPrior(UniformPrior(), own, k=2).features.table is own


def test_explanation(table):
    agent = DQNPrior(UniformPrior(), table, k=2, **SMALL)
    state = State("here", "go", ("a", "b", "c", "d"))
    opinion = agent.explain(state)
    assert opinion.prior.sum() == pytest.approx(1)
    assert opinion.posterior.sum() == pytest.approx(1)
    assert ((opinion.posterior > 0) == (opinion.prior > 0)).all()
    assert np.isfinite(opinion.q).all()


def test_posterior_weighs_repeats():
    assert posterior(np.array([0.75, 0.25]), np.array([1.0, 1.0]), 0.1).tolist() == [0.75, 0.25]


def test_order_of_appearance():
    distinct, index = in_order(np.array([[7, 3], [3, 9]]))
    assert distinct.tolist() == [7, 3, 9]
    assert distinct[index].tolist() == [[7, 3], [3, 9]]
    assert pad([np.array([4, 5]), np.array([6])]).tolist() == [[4, 5], [6, 6]]


def test_scored_prior_drives_the_same_agent(table, lake):
    agent = DQNPrior(LikelihoodPrior(lm.load("scripted:frozenlake"), normalise="sum"), table, k=2, **SMALL)
    result = hunch.train(agent, lake, 300)
    assert result.evidence == "L0"
    assert result.success.value > 0.8, "a rule that knows the way hardly needs learning"


def test_too_many_proposals_are_refused_at_once(table, lake):
    with pytest.raises(UsageError, match="at most 4"):
        hunch.train(DQNPrior(UniformPrior(), table, k=9), lake, 10)


@pytest.mark.parametrize("options", [{"k": 0}, {"kk": 3}])
def test_bad_options(table, options):
    with pytest.raises(UsageError):
        DQNPrior(UniformPrior(), table, **options)
