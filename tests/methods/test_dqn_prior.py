"""DQN-Prior and DQN: one code, and what it promises."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.begun import begun

import hunch
from hunch import lm
from hunch.core import HunchError, State, Transition, UsageError, World
from hunch.methods.prior import dqn_prior
from hunch.methods.prior.dqn import DQN
from hunch.methods.prior.dqn_prior import DQNPrior, DQNPriorConfig, posterior
from hunch.rl.comparison import difference
from hunch.rl.q_learning import forward
from hunch.roles import LikelihoodPrior, Proposal, SimilarityPrior, TextTable, UniformPrior
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


class Counting(UniformPrior):
    """Counts what it proposes."""

    drawn = 0

    def propose(self, states, k, rng):
        self.drawn += len(states)
        return super().propose(states, k, rng)


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
    batch = agent.learner.replay.sample(500, np.random.default_rng(0))
    for action, own in zip(batch.action, agent.candidates(batch.state, batch.candidates), strict=True):
        assert action in own
        assert len(own) <= 2


def test_when_candidates_are_drawn(table, lake):
    """kept: once a state; visited: on every arrival, where an episode begins and after every step."""
    priors = Counting(), Counting()
    kept, visited = (
        DQNPrior(prior, table, k=2, proposals=p, **SMALL)
        for prior, p in zip(priors, ("kept", "visited"), strict=True)
    )
    hunch.train(kept, lake, 300)
    assert priors[0].drawn == len(kept.proposals.kept) == len(kept.features.states)
    result = hunch.train(visited, lake, 300)
    nowhere = visited.learner.replay.rows[:300, 4].sum()  # in a hole, or at the goal
    arrived = len(result.episodes) + (sum(episode.length for episode in result.episodes) < 300)
    assert priors[1].drawn == 300 - nowhere + arrived


def test_candidates_drawn_on_arrival_are_in_the_rows_only(table, lake):
    """However long a run is, nothing grows but the replay buffer, which holds k indices per state."""
    agent = begun(DQNPrior(UniformPrior(), table, k=3, **SMALL))
    hunch.train(agent, lake, 200)
    batch = agent.learner.replay.sample(100, np.random.default_rng(0))
    assert batch.candidates.shape == batch.next_candidates.shape == (100, 3)
    assert not agent.proposals.kept
    assert len(agent.proposals.pending) <= 1


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
        assert len(agent.proposals.kept) == max(1, number)


def test_what_was_drawn_on_arrival_is_what_the_maximum_is_over(table):
    """visited: the set that was drawn when s' was reached, stored with the transition, and used to act."""
    agent = begun(DQNPrior(UniformPrior(), table, k=1, proposals="visited", **SMALL))
    s = State("here", "go", tuple("abcdefghijkl"))
    for _ in range(50):
        (action,) = agent.act([s])
        (drawn,) = [s.options[i] for i in agent.proposals.pending[0].proposal.indices]
        assert action == drawn
        agent.observe([Transition(s, action, 0.0, s, False, False)])
    rows = agent.learner.replay.rows[:50]
    assert (rows[1:, 5] == rows[:-1, 6]).all()


def test_targets_by_hand(table):
    """r + gamma * max over the candidates of s' under the target network; r alone at a terminal s'."""
    agent = begun(DQNPrior(UniformPrior(), table, k=None, gamma=0.9, **SMALL))
    s, t = State("here", "go", ("left", "right")), State("there", "go", ("left", "right", "up"))
    agent.observe([Transition(s, "right", 0.5, t, False, False), Transition(s, "left", 1.0, t, True, False)])
    learner, everything = agent.learner, [np.arange(2), np.arange(3)]
    batch = learner.replay.sample(64, np.random.default_rng(0))
    with torch.no_grad():
        own, later = (
            torch.split(forward(q, agent.features, np.array([0, 1]), everything), [2, 3])
            for q in (learner.network, learner.target)
        )
    y = np.where(batch.terminated == 1, 1.0, 0.5 + 0.9 * later[1].max().numpy())
    expected = 0.5 * np.mean((own[0].numpy()[batch.action] - y) ** 2)
    assert learner.update(batch, agent.candidates) == pytest.approx(expected, abs=1e-6)


def test_truncation_still_bootstraps(table):
    agent = begun(DQNPrior(UniformPrior(), table, k=1, **SMALL))
    s = State("here", "go", ("left",))
    agent.observe([Transition(s, "left", 0.0, s, False, True)])
    assert agent.learner.replay.sample(1, np.random.default_rng(0)).terminated[0] == 0


def test_relearning_from_earlier_steps_leaves_the_state_that_awaits_an_action(table):
    """Steps whose rewards have changed are stored as they were, and the next action is chosen where it is."""
    agent = begun(DQN(table, **SMALL))
    a, b, c = (State(place, "go", ("left", "right")) for place in ("here", "there", "yonder"))
    past = [Transition(a, "left", 0.0, b, False, False), Transition(b, "right", 0.0, c, True, False)]
    other = State("elsewhere", "go", ("stay",))
    for t in (*past, Transition(a, "left", 0.0, other, False, False)):
        agent.act([t.state])
        agent.observe([t])
    agent.relearn([replace(t, reward=1.0) for t in past])  # the last one ends an episode
    rows = agent.learner.replay.rows[:2]
    numbers = agent.features.number([a, b])
    assert rows[:, 0].tolist() == numbers
    assert rows[0, 2] == numbers[1]
    assert agent.act([other]) == ["stay"]
    assert agent.proposals.pending[0].state == agent.features.find(other)


def test_a_q_that_is_not_finite_any_more_is_said(table, lake):
    with pytest.raises(HunchError, match="lower learning_rate"):
        hunch.train(DQNPrior(UniformPrior(), table, learning_rate=1e6, **SMALL), lake, 200)


@pytest.mark.parametrize(("explore", "hard"), [("posterior", False), ("epsilon", True)])
def test_learning_solves_a_one_step_choice(table, explore, hard):
    """A bandit in words: after learning, the posterior is on the rewarded action."""
    agent = begun(DQNPrior(UniformPrior(), table, DQNPriorConfig(explore=explore, **EAGER)))
    if hard:
        agent.learner.target_rate = 1.0
        agent.learner.target_every = 20
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


class Opinionated(UniformPrior):
    """Gives the first action of each state the probability in the state's observation."""

    def _compute(self, states):
        return [np.array([float(s.observation), *[(1 - float(s.observation)) / 2] * 2]) for s in states]


def test_a_confident_prior_acts_and_q_acts_elsewhere(table):
    agent = begun(DQNPrior(Opinionated(), table, confidence=0.8, alpha=10.0, **SMALL))
    sure, unsure = (State(p, "go", ("left", "right", "up")) for p in ("0.8", "0.79"))
    assert {agent.act([replace(sure, stream=i)])[0] for i in range(40)} == {"left"}
    assert {agent.act([replace(unsure, stream=i)])[0] for i in range(40, 80)} == set(unsure.options)
    assert agent.learn()["by_prior"] == 0.5
    assert "by_prior" not in agent.learn()
    player = agent.player(0)
    assert {player.act([unsure])[0] for _ in range(40)} == set(unsure.options)
    assert {player.act([sure])[0] for _ in range(40)} == {"left"}
    agent.observe([Transition(replace(unsure, stream=99), "up", 0.0, sure, False, False)])
    batch = agent.learner.replay.sample(8, np.random.default_rng(0))
    assert [own.tolist() for own in agent.candidates(batch.next_state, batch.next_candidates)] == [[0]] * 8
    assert [own.tolist() for own in agent.candidates(batch.state, batch.candidates)] == [[0, 1, 2]] * 8


def test_what_named_no_action_is_no_confidence(table):
    """Such an answer stands for the last action: without a word read, the prior must not act."""

    class Sampled:
        evidence = "L0"

        def propose(self, states, k, rng):
            shares = [float(state.observation) for state in states]
            return [Proposal(np.array([2]), np.ones(1), fallbacks=share) for share in shares]

    agent = begun(DQNPrior(Sampled(), table, confidence=0.75, k=4, alpha=10.0, **SMALL))
    for unread, chosen in (("0.25", {"up"}), ("0.5", {"left", "right", "up"})):
        state = State(unread, "go", ("left", "right", "up"))
        assert {agent.act([replace(state, stream=i)])[0] for i in range(60)} == chosen
        agent.proposals.pending.clear()


def test_confidence_is_reached_by_counted_answers(table):
    """Three of five answers name the last action and one of them was not read: 0.6 - 0.2 is below 0.4."""

    class Sampled:
        evidence = "L0"

        def propose(self, states, k, rng):
            return [Proposal(np.array([0, 1, 2]), np.array([0.2, 0.2, 0.6]), fallbacks=0.2) for _ in states]

    agent = begun(DQNPrior(Sampled(), table, confidence=0.4, k=5, alpha=10.0, **SMALL))
    state = State("here", "go", ("left", "right", "up"))
    assert {agent.act([replace(state, stream=i)])[0] for i in range(30)} == {"up"}


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"proposals": "fresh"}, True),
        ({"proposals": "visited", "k": None}, True),
        ({"proposals": "kept", "k": None}, False),
        ({"proposals": "fresh", "confidence": 0.5}, False),
    ],
)
def test_only_candidates_that_are_drawn_in_updates_cannot_be_asked_for_ahead(options, refused):
    config = DQNPriorConfig(ahead=True, **options)
    if refused:
        with pytest.raises(UsageError, match="cannot be asked for ahead"):
            DQNPrior.check(config, {})
    else:
        DQNPrior.check(config, {})


def test_a_prior_that_is_never_confident_leaves_dqn(table, lake):
    dqn = hunch.methods.DQN(table, **SMALL)
    same = begun(DQNPrior(UniformPrior(), table, confidence=1.0, **SMALL))
    assert actions(hunch.train(dqn, lake, 300)) == actions(hunch.train(same, lake, 300))


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
    keeps = {**SMALL, "proposals": "kept"}
    agent = begun(DQNPrior(SimilarityPrior(table), table, k=3, **keeps))
    hunch.train(agent, lake, 60)
    same, fewer = (begun(DQNPrior(SimilarityPrior(table), table, k=k, **keeps)) for k in (3, 2))
    for other in (same, fewer):
        other.load_state_dict(agent.state_dict())
    assert same.proposals.kept.keys() == agent.proposals.kept.keys()
    assert not fewer.proposals.kept


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
    assert other.steps == 60
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


def test_a_greedy_player_is_explained_as_greedy(table):
    agent = begun(DQNPrior(UniformPrior(), table, explore="epsilon", k=None, **SMALL))
    state = State("here", "go", ("a", "b", "c"))
    opinion = agent.explain(state)
    assert sorted(opinion.chosen) == [0, 0, 1]
    assert {agent.player(i).act([state])[0] for i in range(9)} == {state.options[opinion.chosen.argmax()]}


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
    agent = begun(DQNPrior(UniformPrior(), table, k=9, proposals="kept", **SMALL))
    hunch.train(agent, lake, 30)
    assert all(
        p.weights.sum() == pytest.approx(1) and len(p.indices) <= 4 for p in agent.proposals.kept.values()
    )


def test_an_environment_without_listed_actions_is_refused(table):
    with pytest.raises(UsageError, match="accepts any text"):
        begun(DQNPrior(UniformPrior(), table, **SMALL)).act([State("Write a program.")])


def test_data_and_streams_together(table, lake):
    """Recorded transitions are in the buffer from the beginning, and stay there beside those of its own."""
    s = State("here", "go", ("left", "right"))
    data = [[Transition(s, "left", 1.0, s, True, False)]] * 5
    agent = begun(DQNPrior(UniformPrior(), table, **SMALL))
    hunch.train(agent, lake, 8, data=data)
    assert len(agent.learner.replay) == 13
    assert agent.learner.replay.capacity == 50_000 + 5
    assert agent.learner.updates == 0, "its own warm-up is still on"
    agent.begin(World(streams=0, data=data), 0)
    assert agent.learn()["loss"] > 0


def test_a_gradient_is_clipped(table):
    """Plain descent on a huge error moves the weights no further than max_norm allows; Adam hides it."""
    s = State("here", "go", ("left", "right"))
    norms = []
    for max_norm in (0.0, 1.0):
        agent = begun(DQNPrior(UniformPrior(), table, max_norm=max_norm, **SMALL))
        agent.observe([Transition(s, "left", 1000.0, s, True, False)])
        agent.learner.update(agent.learner.replay.sample(8, np.random.default_rng(0)), agent.candidates)
        grads = [p.grad for p in agent.learner.network.parameters() if p.grad is not None]
        norms.append(float(torch.linalg.vector_norm(torch.cat([g.flatten() for g in grads]))))
    assert norms[0] > 10
    assert norms[1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"explore": "mixed"}, "explore must be one of posterior, epsilon"),
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


# ---- memory ----------------------------------------------------------------------------------------------


def trained_with_a_small_buffer(monkeypatch, forget_every, table, prior=None, **options):
    monkeypatch.setattr(dqn_prior, "FORGET_EVERY", forget_every)
    prior = prior or SimilarityPrior(table)
    agent = DQNPrior(prior, table, warmup=20, batch_size=8, hidden=8, **options)
    make = agent.new_learner

    def small(seed, recorded):
        learner = make(seed, recorded)
        learner.replay.capacity = 40
        return learner

    agent.new_learner = small
    result = hunch.train(agent, hunch.make("hunch/Household-Pick-v0", games=2, max_steps=30), 300)
    return agent, result


@pytest.mark.parametrize("proposals", ["visited", "kept", "fresh"])
def test_forgotten_states_change_nothing(monkeypatch, proposals):
    table = TextTable(lm.load("bag-of-words?dim=16"))
    whole, first = trained_with_a_small_buffer(monkeypatch, 10**9, table, proposals=proposals)
    small, second = trained_with_a_small_buffer(monkeypatch, 10, table, proposals=proposals)
    assert first.episodes == second.episodes
    assert difference(whole.learner.state_dict()["network"], small.learner.state_dict()["network"]) is None
    if proposals == "kept":  # a state that comes again must have the same proposals
        assert len(small.features.states) == len(whole.features.states)
    else:
        assert len(small.features.states) <= 2 * 40 + 11 < len(whole.features.states)
    again = DQNPrior(SimilarityPrior(table), table, config=small.config)
    begun(again)
    again.load_state_dict(small.state_dict())
    assert again.features.states == small.features.states
    (new,) = again.features.number([State("never seen", "do it", ("left",))])
    assert new not in small.features.states


class Sampling:
    """Answers that name one action each, whose shares are the prior's probabilities."""

    evidence = "L0"

    def propose(self, states, k, rng):
        proposals = []
        for state in states:
            drawn = rng.integers(len(state.options), size=k)
            indices, counts = np.unique(drawn, return_counts=True)
            proposals.append(Proposal(indices, counts / k))
        return proposals


def test_forgotten_states_change_nothing_where_sampled_answers_hand_over(monkeypatch):
    table = TextTable(lm.load("bag-of-words?dim=16"))
    options = {"prior": Sampling(), "k": 2, "confidence": 0.9}
    whole, first = trained_with_a_small_buffer(monkeypatch, 10**9, table, **options)
    small, second = trained_with_a_small_buffer(monkeypatch, 10, table, **options)
    assert first.episodes == second.episodes
    assert len(small.proposals.kept) == len(whole.proposals.kept) > 2 * 40 + 11
