"""DQN-Prior and DQN: one code, and what it promises."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.begun import begun

import hunch
from hunch import lm
from hunch.core import State, Transition, UsageError, World
from hunch.methods.prior.dqn_prior import DQNPrior, DQNPriorConfig, posterior
from hunch.rl.q_learning import values
from hunch.roles import LikelihoodPrior, SimilarityPrior, TextTable, UniformPrior
from hunch.roles.prior.language import prompt

EAGER = {
    "k": None,
    "hidden": 32,
    "warmup": 20,
    "batch_size": 32,
    "update_every": 1,
    "epsilon": (1.0, 0.05, 300),
}
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
    agent = begun(DQNPrior(SimilarityPrior(table), table, k=3, **SMALL))
    first, again, other = (hunch.train(agent, lake, 300, seed=seed) for seed in (0, 0, 1))
    assert actions(first) == actions(again)
    assert actions(first) != actions(other)


def test_dqn_is_dqn_prior_with_nothing_in_the_role(table, lake):
    dqn = hunch.methods.DQN(table, **SMALL)
    same = begun(DQNPrior(UniformPrior(), table, k=None, **SMALL))
    assert actions(hunch.train(dqn, lake, 300)) == actions(hunch.train(same, lake, 300))


@pytest.mark.parametrize("proposals", ["kept", "visited"])
def test_only_proposals_are_taken(table, lake, proposals):
    """The agent never leaves C^k(s), and a set of k draws has at most k members."""
    agent = begun(DQNPrior(UniformPrior(), table, k=2, proposals=proposals, **SMALL))
    hunch.train(agent, lake, 300)
    assert all(len(p.indices) <= 2 for p in agent.sets.values())
    batch = agent.learner.replay.sample(500, np.random.default_rng(0))
    for action, candidates in zip(batch.action, batch.candidates, strict=True):
        assert action in agent.sets[candidates].indices


def test_when_candidates_are_drawn(table, lake):
    """kept: once a state; visited: on every arrival, where an episode begins and after every step."""
    kept, visited = (DQNPrior(UniformPrior(), table, k=2, proposals=p, **SMALL) for p in ("kept", "visited"))
    hunch.train(kept, lake, 300)
    assert len(kept.sets) == len(kept.features.states)
    result = hunch.train(visited, lake, 300)
    nowhere = visited.learner.replay.rows[:300, 6].sum()  # in a hole, or at the goal
    arrived = len(result.episodes) + (sum(episode.length for episode in result.episodes) < 300)
    assert len(visited.sets) == 300 - nowhere + arrived


@pytest.mark.parametrize("surplus", [None, 0])
def test_candidates_that_no_stored_step_needs_are_forgotten(table, lake, surplus):
    """However long a run, and without a trace in what it does."""
    small = {**SMALL, "replay": 20, "surplus": surplus}
    agents = [begun(DQNPrior(UniformPrior(), table, k=2, **small)) for _ in range(2)]
    agents[1]._forget = lambda: None
    first, second = (actions(hunch.train(agent, lake, 200)) for agent in agents)
    assert first == second
    assert len(agents[0].sets) <= 2 * 20 < len(agents[1].sets)
    hunch.methods.check(agents[0], lake)


def test_what_is_kept_is_kept_by_what_the_prompt_shows(table):
    """Numbers and stream are no part of a prompt; task, history and the order of the actions are."""
    state = State("here", "a task", ("a", "b", "c"), (("there", "a"),))
    same = replace(state, raw=object(), stream=3)
    others = [replace(state, history=()), replace(state, actions=("b", "a", "c")), replace(state, task="new")]
    assert prompt(state) == prompt(same)
    assert len({prompt(each) for each in (state, *others)}) == 4
    agent = begun(DQNPrior(UniformPrior(), table, k=2, proposals="kept", **SMALL))
    agent.begin(World(streams=4), 0)
    for number, each in enumerate((state, same, *others)):
        agent.act([replace(each, stream=number)])
        assert len(agent.sets) == max(1, number)


def test_what_was_drawn_on_arrival_is_what_the_maximum_is_over(table):
    """visited: the set that was drawn when s' was reached, stored with the transition, and used to act."""
    agent = begun(DQNPrior(UniformPrior(), table, k=1, proposals="visited", **SMALL))
    s = State("here", "go", tuple("abcdefghijkl"))
    for _ in range(50):
        (action,) = agent.act([s])
        (drawn,) = [s.options[i] for i in agent.sets[agent.here[0].candidates].indices]
        assert action == drawn
        agent.observe([Transition(s, action, 0.0, s, False, False)])
    rows = agent.learner.replay.rows[:50]
    assert (rows[1:, 3] == rows[:-1, 4]).all()


def test_targets_by_hand(table):
    """r + gamma * max over the candidates of s' under the target network; r alone at a terminal s'."""
    agent = begun(DQNPrior(UniformPrior(), table, k=None, gamma=0.9, **SMALL))
    s, t = State("here", "go", ("left", "right")), State("there", "go", ("left", "right", "up"))
    agent.observe([Transition(s, "right", 0.5, t, False, False), Transition(s, "left", 1.0, t, True, False)])
    learner, everything = agent.learner, [np.arange(2), np.arange(3)]
    batch = learner.replay.sample(64, np.random.default_rng(0))
    own, later = (values(q, agent.features, [0, 1], everything) for q in (learner.network, learner.target))
    y = np.where(batch.terminated == 1, 1.0, 0.5 + 0.9 * later[1].max())
    expected = 0.5 * np.mean((own[0][batch.action] - y) ** 2)
    assert learner.update(batch, agent._candidates) == pytest.approx(expected, abs=1e-6)


def test_truncation_still_bootstraps(table):
    agent = begun(DQNPrior(UniformPrior(), table, k=1, **SMALL))
    s = State("here", "go", ("left",))
    agent.observe([Transition(s, "left", 0.0, s, False, True)])
    assert agent.learner.replay.sample(1, np.random.default_rng(0)).terminated[0] == 0


@pytest.mark.parametrize("target", ["soft", "hard"])
@pytest.mark.parametrize("explore", ["posterior", "epsilon"])
def test_learning_solves_a_one_step_choice(table, target, explore):
    """A bandit in words: after learning, the posterior is on the rewarded action."""
    agent = begun(
        DQNPrior(
            UniformPrior(), table, DQNPriorConfig(target=target, explore=explore, target_every=20, **EAGER)
        )
    )
    s = State("A coin lies on the table.", "take the coin", ("take the coin", "leave"))
    for _ in range(600):
        action = agent.act([s])[0]
        reward = float(action == "take the coin")
        agent.observe([Transition(s, action, reward, s, True, False)])
        agent.learn()
    assert agent.explain(s).columns["Q"][0] == pytest.approx(1, abs=0.2)
    assert agent.player(0).act([s] * 20).count("take the coin") >= 19


def test_joint_encoding_learns_too(table):
    agent = begun(DQNPrior(UniformPrior(), table, DQNPriorConfig(joint=True, **EAGER)))
    s = State("A coin lies on the table.", "take the coin", ("take the coin", "leave"))
    for i in range(300):
        action = s.actions[i % 2]
        agent.observe([Transition(s, action, float(i % 2 == 0), s, True, False)])
        agent.learn()
    q = agent.explain(s).columns["Q"]
    assert q[0] - q[1] > 0.5


@pytest.mark.parametrize("joint", [False, True])
def test_state_dict_goes_on_as_the_original(table, lake, joint):
    """Also with another text table, whose rows are other ones."""
    table.add(["a text of another agent"])
    agent = begun(DQNPrior(SimilarityPrior(table), table, k=3, joint=joint, **SMALL))
    hunch.train(agent, lake, 200)
    other = begun(DQNPrior(SimilarityPrior(lm.load("minilm")), None, k=3, joint=joint, **SMALL))
    other.load_state_dict(agent.state_dict())
    state = agent.features.states[0]
    for _ in range(5):
        assert agent.act([state]) == other.act([state])
        agent.learner.updates -= 1
        other.learner.updates -= 1
        assert agent.learn() == other.learn()
    own, theirs = (a.learner.network.parameters() for a in (agent, other))
    assert all(torch.equal(a, b) for a, b in zip(own, theirs, strict=True))


def test_kept_candidates_of_another_prior_are_forgotten(table, lake):
    agent = begun(DQNPrior(SimilarityPrior(table), table, k=3, **SMALL))
    hunch.train(agent, lake, 60)
    same, fewer = (begun(DQNPrior(SimilarityPrior(table), table, k=k, **SMALL)) for k in (3, 2))
    for other in (same, fewer):
        other.load_state_dict(agent.state_dict())
    assert same.sets.keys() == agent.sets.keys()
    assert not fewer.sets


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bag-of-words", "embeddings of minilm; .* those of bag-of-words,"),
        ("bag-of-words?dim=64", r"those of bag-of-words\?dim=64,"),
    ],
)
def test_a_checkpoint_of_another_encoder_is_refused(table, lake, spec, message):
    agent, other = (DQNPrior(UniformPrior(), t, k=2, **SMALL) for t in (table, TextTable(lm.load(spec))))
    hunch.train(agent, lake, 60)
    hunch.train(other, lake, 60, seed=1)
    before = {name: weight.clone() for name, weight in other.learner.network.named_parameters()}
    with pytest.raises(UsageError, match=message) as caught:
        other.load_state_dict(agent.state_dict())
    assert "\n" not in str(caught.value)
    assert other.schedule.steps == 60
    assert all(torch.equal(weight, before[name]) for name, weight in other.learner.network.named_parameters())


def test_an_empty_text_table_is_taken(lake):
    mine = TextTable(lm.load("bag-of-words"))
    assert begun(DQNPrior(UniformPrior(), mine, k=2)).table is mine


def test_a_text_table_shared_with_others_changes_nothing(lake):
    """What else the process has embedded must not reach the last bit of a run."""
    fresh, used = TextTable(lm.load("minilm")), TextTable(lm.load("minilm"))
    used.add(["Go Up", "something else", "Go Left"])
    runs = [hunch.train(DQNPrior(SimilarityPrior(t), t, k=3, **SMALL), lake, 300) for t in (fresh, used)]
    assert actions(runs[0]) == actions(runs[1])


def test_explanation(table):
    agent = begun(DQNPrior(UniformPrior(), table, k=2, **SMALL))
    state = State("here", "go", ("a", "b", "c", "d"))
    opinion = agent.explain(state)
    assert opinion.columns["prior"].sum() == pytest.approx(1)
    assert opinion.chosen.sum() == pytest.approx(1)
    assert ((opinion.chosen > 0) == (opinion.columns["prior"] > 0)).all()
    assert np.isfinite(opinion.columns["Q"]).all()


def test_posterior_weighs_repeats():
    assert posterior(np.array([0.75, 0.25]), np.array([1.0, 1.0]), 0.1).tolist() == [0.75, 0.25]


def test_scored_prior_drives_the_same_agent(table, lake):
    agent = begun(
        DQNPrior(LikelihoodPrior(lm.load("scripted:frozenlake"), normalise="sum"), table, k=2, **SMALL)
    )
    result = hunch.train(agent, lake, 300)
    assert result.evidence == "L0"
    assert result.success.value > 0.8, "a rule that knows the way hardly needs learning"


def test_more_draws_than_actions_are_draws_with_replacement(table, lake):
    agent = begun(DQNPrior(UniformPrior(), table, k=9, **SMALL))
    hunch.train(agent, lake, 30)
    assert all(p.weights.sum() == pytest.approx(1) and len(p.indices) <= 4 for p in agent.sets.values())


def test_an_environment_without_listed_actions_is_refused(table):
    with pytest.raises(UsageError, match="accepts any text"):
        begun(DQNPrior(UniformPrior(), table, **SMALL)).act([State("Write a program.")])


def test_data_and_streams_together(table, lake):
    """Recorded transitions are in the buffer from the beginning, and stay there beside those of its own."""
    s = State("here", "go", ("left", "right"))
    data = [[Transition(s, "left", 1.0, s, True, False)]] * 5
    agent = begun(DQNPrior(UniformPrior(), table, **{**SMALL, "replay": 10}))
    hunch.train(agent, lake, 8, data=data)
    assert len(agent.learner.replay) == 13
    assert agent.learner.updates == 0, "its own warm-up is still on"
    agent.begin(World(streams=0, data=data), 0)
    assert agent.learn()["loss"] > 0


def test_a_preset_changes_what_was_left_at_our_defaults(table):
    agent = begun(DQNPrior(UniformPrior(), table, preset="released", gamma=0.95))
    assert (agent.config.target, agent.config.target_every, agent.config.clip) == ("hard", 20, 1.0)
    assert (agent.config.proposals, agent.config.round, agent.config.copies) == ("visited", 10, 1)
    assert agent.config.gamma == 0.95
    dqn = hunch.methods.DQN(table, preset="released-kitchen")
    assert (dqn.config.proposals, dqn.config.k, dqn.config.explore, dqn.config.copies) == (
        "kept",
        None,
        "epsilon",
        2,
    ), "what makes DQN what it is stays"
    assert hunch.methods.CQLPrior(UniformPrior(), table, preset="released").config.beta == 5


@pytest.mark.parametrize("preset", ["released", "released-kitchen"])
def test_a_preset_keeps_the_contract(table, preset):
    """Resume, evaluation without a trace, and the like, with episodes that are held until they end."""
    agent = begun(DQNPrior(UniformPrior(), table, preset=preset, k=2, joint=False))
    hunch.methods.check(agent, hunch.make("hunch/FrozenLake-v0"))


def test_failures_are_stored_while_they_do_not_outweigh_successes(table):
    agent = begun(DQNPrior(UniformPrior(), table, surplus=1, copies=2, **SMALL))
    s = State("here", "go", ("left", "right"))

    def play(success):
        agent.act([s])
        agent.observe([Transition(s, "left", 0.0, s, False, False)])
        agent.act([s])
        agent.observe([Transition(s, "right", float(success), s, True, False, success)])
        return len(agent.learner.replay)

    sizes = [play(success) for success in (False, False, True, False)]
    assert sizes == [4, 4, 6, 6], "twice each failure; the second is one too many, and so is the third"
    assert play(True) == 8
    agent.observe([Transition(s, "left", 0.0, s, False, False)])
    assert len(agent.learner.replay) == 8, "an episode in flight is not stored yet"


def test_updates_in_rounds(table):
    """Four passes over what is stored, or a number, when an episode of so many ends."""
    s = State("here", "go", ("left", "right"))
    for options, after in (({"round_updates": 7}, [0, 7, 7, 14]), ({}, [0, 1, 1, 3])):
        agent = begun(DQNPrior(UniformPrior(), table, **{**SMALL, "round": 2, "batch_size": 8, **options}))
        made = []
        for _ in range(4):
            agent.observe([Transition(s, "left", 0.0, s, True, False)])
            agent.learn()
            made.append(agent.learner.updates)
        assert made == after


def test_a_gradient_is_clipped(table):
    """Plain descent on a huge error moves the weights no further than the clip allows; Adam hides it."""
    s = State("here", "go", ("left", "right"))
    norms = []
    for clip in (0.0, 1.0):
        agent = begun(DQNPrior(UniformPrior(), table, clip=clip, **SMALL))
        agent.observe([Transition(s, "left", 1000.0, s, True, False)])
        agent.learner.update(agent.learner.replay.sample(8, np.random.default_rng(0)), agent._candidates)
        grads = [p.grad for p in agent.learner.network.parameters() if p.grad is not None]
        norms.append(float(torch.linalg.vector_norm(torch.cat([g.flatten() for g in grads]))))
    assert norms[0] > 10
    assert norms[1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"preset": "paper"}, "preset must be one of own, released, released-kitchen"),
        ({"k": 0}, "k must be at least 1"),
        ({"kk": 3}, "no option 'kk'; did you mean 'k'"),
        ({"gamma": float("nan")}, "gamma must be a finite number"),
        ({"gamma": 1.5}, "gamma must be from 0 to 1"),
        ({"beta": 1.0}, "no option 'beta'"),
        ({"proposals": "stale"}, "proposals must be one of kept, visited, fresh"),
    ],
)
def test_bad_options(table, options, said):
    with pytest.raises(UsageError, match=said):
        begun(DQNPrior(UniformPrior(), table, **options))
