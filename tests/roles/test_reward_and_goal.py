"""Rewards and goals of others: they reach the agent, and never what is recorded of an episode."""

from itertools import cycle
from threading import Lock

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.core import Agent, Episode, State, Transition, UsageError, World
from hunch.rl.episodes import play
from hunch.rl.rollout import Rollout
from hunch.rl.world import advance
from hunch.roles import (
    Goaled,
    GoalSource,
    Judge,
    Rewarded,
    RewardSource,
    Shaping,
    Similarity,
    TextTable,
    UniformPrior,
)

LAKE = "hunch/FrozenLake-v0"
SMALL = {"k": None, "hidden": 16, "warmup": 10, "batch_size": 8, "update_every": 2}


class Downwards(RewardSource):
    """Moving down is good."""

    evidence = "L0"

    def rewards(self, transitions):
        return [float(t.action == "Go Down") for t in transitions]


class Corners(GoalSource):
    """Goals by turns of the text that the episode begins with."""

    evidence = "L0"

    def suggest(self, states):
        return [(f"go to corner {len(state.observation) % 4}",) for state in states]


class Reached(RewardSource):
    """Reward where the event names the goal."""

    evidence = None

    def rewards(self, transitions):
        return [float("corner" in t.state.aim) for t in transitions]


def learner():
    return methods.DQNPrior(UniformPrior(), TextTable(lm.load("bag-of-words")), **SMALL)


class Practised(Downwards):
    """Its reward changes with what it has learnt, so an evaluation by it would say little."""

    def learn(self):
        return {}


def test_evaluations_report_the_reward_of_a_rule():
    """Else a user who trains on a reward of their own sees only the environment's, which may stay at 0."""
    for source, reports in ((Downwards(), True), (Practised(), False)):
        agent = Rewarded(learner(), source, extrinsic=0.0)
        evaluation = hunch.Evaluation(every=50, episodes=4)
        result = hunch.train(agent, hunch.make(LAKE), 100, evaluation=evaluation)
        assert len(result.evaluations) == 8
        player = agent.player(0)
        turns = cycle(["Go Right", "Go Down"])
        played = list(play(hunch.make(LAKE), lambda state, turns=turns: next(turns), 1))
        player.observe(played)
        assert 0 < downwards(played) < 1
        assert player.figures() == ({"intrinsic": downwards(played)} if reports else {})


class New(RewardSource):
    """A place that was not seen before in an episode; what it keeps is declared by no ``saved``."""

    def __init__(self):
        self.seen = {}

    def rewards(self, transitions):
        rewards = []
        for t in transitions:
            seen = self.seen.setdefault(t.stream, set())
            rewards.append(float(t.next_state.observation not in seen))
            seen.add(t.next_state.observation)
            if t.done:
                del self.seen[t.stream]
        return rewards


class Stored(New):
    """The same; what it keeps is in a checkpoint."""

    def state_dict(self):
        return {"seen": {stream: sorted(places) for stream, places in self.seen.items()}}


class Locked(New):
    """The same; it cannot be copied."""

    def __init__(self):
        super().__init__()
        self.lock = Lock()


@pytest.mark.parametrize("kind", [New, Stored, Locked])
def test_an_evaluation_leaves_no_trace_in_a_source_that_keeps_something(kind):
    """What a stream had seen was forgotten at the end of its evaluation, so training was paid again."""
    rewards = []
    for every in (0, 7):
        agent = Rewarded(learner(), kind(), extrinsic=0.0)
        hunch.train(agent, hunch.make(LAKE), 60, evaluation=hunch.Evaluation(every=every, episodes=2))
        rewards.append([row[3] for row in agent.agent.learner.replay.rows])
    assert rewards[0] == rewards[1]


def downwards(played):
    return sum(t.action == "Go Down" for t in played) / len(played)


def test_the_agent_learns_from_the_sum_and_the_record_keeps_the_environments():
    agent = Rewarded(learner(), Downwards(), weight=2.0, extrinsic=0.5)
    result = hunch.train(agent, hunch.make(LAKE), 100)
    rows = agent.agent.learner.replay.rows[:100]
    assert set(rows[:, 3]) <= {0.0, 2.0, -0.5, 1.5, 0.5, 2.5}
    assert {episode.episode_return for episode in result.episodes} <= {-1.0, 0.0, 1.0}
    assert result.evidence == "L0"


def test_recorded_data_are_relabelled_and_the_mean_is_told():
    s = State("here", "", ("Go Down", "Go Up"))
    data = [Episode((Transition(s, a, 0.0, s, True, False),)) for a in ("Go Down", "Go Up")]
    agent = Rewarded(learner(), Downwards())
    agent.begin(World(streams=0, data=data), 0)
    assert sorted(agent.agent.learner.replay.rows[:2, 3]) == [0.0, 1.0]
    agent.observe(data[0])
    assert agent.learn()["intrinsic"] == 1.0


def test_goals_stand_in_the_task_for_an_episode():
    seen = []

    class Watcher(Downwards):
        def rewards(self, transitions):
            seen.extend(transitions)
            return super().rewards(transitions)

    agent = Goaled(Rewarded(learner(), Watcher()), Corners())
    hunch.train(agent, [hunch.make(LAKE), hunch.make(LAKE)], 80)
    assert all(t.state.aim.startswith("go to corner") for t in seen)
    assert all(t.next_state.goals == t.state.goals for t in seen)
    assert agent.explain(State("x", "own", ("a", "b"), stream=9)).note == "goal: own"


@pytest.mark.parametrize(
    "agent",
    [
        lambda: Rewarded(learner(), Downwards()),
        lambda: Goaled(learner(), Corners()),
        lambda: Goaled(Rewarded(learner(), Reached()), Corners()),
        lambda: Rewarded(methods.ZeroShot(UniformPrior()), Downwards()),
    ],
)
def test_the_contract_is_kept(agent):
    methods.check(agent(), hunch.make(LAKE))


class Named(RewardSource):
    """What an event says it is worth."""

    evidence = None
    known = (0.0, 1.0, 2.0, 3.0)

    def rewards(self, transitions):
        return [float(t.event or 0) for t in transitions]


class Seen(Agent):
    """Keeps what it is shown."""

    def act(self, states):
        return [s.options[0] for s in states]

    def begin(self, world, seed):
        self.rewards, self.tasks = [], []

    def observe(self, transitions):
        self.rewards += [t.reward for t in transitions]
        self.tasks += [(t.state.aim, t.next_state.aim) for t in transitions]

    def player(self, seed):
        raise NotImplementedError


def step(event, done=False, stream=0):
    s = State("here", "", ("a",), stream=stream)
    return Transition(s, "a", 0.0, s, done, False, event=event)


def shaped(events, source=Named, **shaping):
    agent = Rewarded(Seen(), source(), shaping=Shaping(**shaping))
    agent.begin(World(), 0)
    for event, *done in events:
        agent.observe([step(event, bool(done))])
    return agent.agent.rewards


def test_a_reward_fades_with_the_times_its_event_came_in_the_episode():
    assert shaped(["2", "2", ("2", "end"), "2"], beta=3) == [2.0, 2 / 8, 2 / 27, 2.0]
    assert shaped(["2", "2", ("2", "end"), "2"], beta=5_000) == [2.0, 0.0, 0.0, 2.0]  # 2^5000 is no float
    assert shaped(["2", "2", ("3", "end"), "2"], once=True) == [2.0, 0.0, 3.0, 2.0]


class AtEnd(Named):
    """Pays 1 at the end of an episode, as a judge does."""

    def rewards(self, transitions):
        return [float(t.done) for t in transitions]


def test_no_event_is_no_repeated_event():
    for options in ({"once": True}, {"beta": 3}):
        agent = Rewarded(Seen(), AtEnd(), shaping=Shaping(**options))
        agent.begin(World(), 0)
        for done in (False, False, True):
            agent.observe([step("", done)])
        assert agent.agent.rewards == [0.0, 0.0, 1.0]


def test_what_is_learnt_from_goals_alone_earns_nothing_by_the_task():
    encoder = lm.load("bag-of-words")
    state = State("a forest", "chop a tree", ("chop",))
    t = Transition(state, "chop", 0.0, state, False, False, event="chop a tree")
    for of_task, earned in ((True, 1.0), (False, 0.0)):
        source = Similarity(encoder, of_task=of_task)
        assert source.rewards([t]) == [pytest.approx(earned)]
        assert len(source.reached([t])[0]) == earned
    with_goal = Transition(
        State("a forest", "chop a tree", ("chop",), goals=("chop a tree",)),
        *("chop", 0.0, state, False, False),
        event="chop a tree",
    )
    assert Similarity(encoder, of_task=False).rewards([with_goal]) == [pytest.approx(1.0)]


def test_the_agent_is_told_which_paying_events_came_before():
    agent = Rewarded(Seen(), Named(), shaping=Shaping(recall=True))
    agent.begin(World(), 0)
    for event, done in (("0", False), ("2", False), ("3", True), ("3", False)):
        agent.observe([step(event, done)])
    told = ["", "\nBefore: 2", "\nBefore: 2 3"]
    assert agent.agent.tasks == [
        (told[0], told[0]),
        (told[0], told[1]),
        (told[1], told[2]),
        ("", "\nBefore: 3"),
    ]


def test_streams_count_apart():
    agent = Rewarded(Seen(), Named(), shaping=Shaping(beta=1))
    agent.begin(World(), 0)
    agent.observe([step("2", stream=0), step("2", stream=1)])
    agent.observe([step("2", stream=1)])
    assert agent.agent.rewards == [2.0, 2.0, 1.0]


def test_only_rewards_above_the_quantile_count():
    assert shaped("0123", quantile=0.5) == [0.0, 0.0, 2.0, 3.0]
    assert shaped("0123", quantile=2 / 3) == [0.0, 0.0, 0.0, 3.0], "one that equals it is nothing"


def test_rewards_are_standardised_by_all_so_far():
    class Unknown(Named):
        known = None

    assert shaped("11", Unknown, standardise=True) == [0.0, 0.0]
    assert shaped("13", Unknown, standardise=True) == [0.0, 1.0]
    with pytest.raises(UsageError, match="known rewards"):
        Rewarded(learner(), Unknown(), shaping=Shaping(quantile=0.5))
    with pytest.raises(UsageError, match="quantile"):
        Rewarded(learner(), Named(), shaping=Shaping(quantile=1.5))


def test_steps_that_are_not_judged_are_not_standardised():
    class JudgesEnds(AtEnd):
        ends_only = True

        def rewards(self, transitions):
            return [float(t.event) if t.done else 0.0 for t in transitions]

    events = [("",), ("1", "end"), ("",), ("",), ("3", "end"), ("",)]
    assert shaped(events, JudgesEnds, standardise=True) == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert Judge.ends_only


class Options(GoalSource):
    """Every action is a goal."""

    evidence = None

    def suggest(self, states):
        return [state.options for state in states]


class Did:
    """The goal of the same name."""

    def reached(self, transitions):
        return [[goal for goal in t.state.goals if goal == t.action] for t in transitions]


def test_goals_are_renewed_in_every_state_and_reached_ones_are_dropped():
    agent = Goaled(Seen(), Options(), Did(), renew=True)
    agent.begin(World(), 0)
    s = State("here", "own", ("a", "b"))
    agent.act([s])
    agent.observe([Transition(s, "a", 0.0, s, False, False)])
    agent.act([s])
    agent.observe([Transition(s, "b", 0.0, s, False, False)])
    agent.observe([Transition(s, "b", 0.0, s, True, False)])
    assert agent.agent.tasks == [("a\nb", "b"), ("b", "own"), ("own", "own")]
    agent.act([s])
    assert agent.goals.of(s).goals == ("a", "b")  # another episode
    assert agent.learn() == {"goals": 5.0, "reached": 2.0}


def test_goals_that_cannot_be_reached_are_told_of():
    class Hopeless(GoalSource):
        evidence = None

        def suggest(self, states):
            return [("fly to the moon",)] * len(states)

    agent = Goaled(Seen(), Hopeless(), Did(), renew=True)
    agent.begin(World(), 0)
    s = State("here", "own", ("a", "b"))
    for _ in range(3):
        agent.act([s])
        agent.observe([Transition(s, "a", 0.0, s, False, False)])
    assert agent.learn() == {"goals": 4.0, "reached": 0.0}


@pytest.mark.parametrize("renew", [False, True])
def test_dropping_goals_keeps_the_contract(renew):
    methods.check(Goaled(Rewarded(learner(), Reached()), Options(), Did(), renew=renew), hunch.make(LAKE))


@pytest.mark.parametrize("threshold", [0.5, 0.99])
def test_similarity_rewards_and_reaches_the_same_goals(threshold):
    source = Similarity(lm.load("bag-of-words"), threshold)
    s = State("here", "chop the tree\neat an apple", ("a",))
    cases = [
        Transition(s, "a", 0.0, s, False, False, event=e) for e in ("chop the tree", "chop the bush", "")
    ]
    rewards, reached = source.rewards(cases), source.reached(cases)
    assert rewards[0] == pytest.approx(1.0)
    assert reached[0] == ["chop the tree"]
    assert [bool(r) for r in rewards] == [bool(goals) for goals in reached] == [True, threshold == 0.5, False]


def test_the_threshold_of_one_is_reached_by_the_same_text():
    texts = ("collect wood", "make wood pickaxe", "place table near tree", "eat the red cow now")
    source = Similarity(lm.load("bag-of-words"), 1.0, of_task=False)
    for text in texts:
        s = State("here", "", ("a",), goals=(*texts, "collect stone"))
        t = Transition(s, "a", 0.0, s, False, False, event=text)
        assert source.reached([t]) == [[text]]
        assert source.rewards([t]) == [pytest.approx(1.0)]


def test_a_source_may_set_its_evidence():
    class Judge(hunch.roles.RewardSource):
        def __init__(self):
            self.models = {"judge": hunch.lm.load("uniform")}

        def rewards(self, transitions):
            return [0.0 for _ in transitions]

    judge = Judge()
    assert judge.evidence == "L0"  # that of its model
    judge.evidence = "L2"
    assert judge.evidence == "L2"
    judge.evidence = None
    assert judge.evidence is None
    with pytest.raises(UsageError, match="There is no evidence level 'L9'"):
        judge.evidence = "L9"


class Remembers(Agent):
    """Draws actions at random, and keeps which streams it had to forget."""

    saved = ("rng",)

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.forgotten = []

    def act(self, states):
        return [str(self.rng.choice(state.options)) for state in states]

    def observe(self, transitions):
        pass

    def forget(self, streams):
        self.forgotten += streams

    def figures(self):
        return {"forgotten": float(len(self.forgotten))}

    def player(self, seed):
        return Remembers(seed)


WRAPPED = [
    lambda agent: Rewarded(agent, Downwards()),
    lambda agent: Rewarded(agent, Downwards(), shaping=Shaping(recall=True)),
    lambda agent: Goaled(agent, Corners()),
]


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_the_end_of_a_lifetime_reaches_a_wrapped_agent_and_its_player(wrapped):
    agent = wrapped(Remembers())
    rollout = Rollout([hunch.make(LAKE, max_steps=2)], lifetime=3)
    agent.begin(World(), 0)
    while rollout.steps < 20:
        advance(rollout, agent)
    assert len(agent.agent.forgotten) == len(rollout.take_finished()) // 3 > 0
    player = agent.player(0)
    player.forget([0, 1])
    assert player.figures() == {"forgotten": 2.0}


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_a_wrapped_player_goes_on_where_it_was_saved(wrapped):
    """Skills of planners are such players, and may run when a checkpoint is written."""
    agent = wrapped(Remembers())
    agent.begin(World(), 0)
    rollout = Rollout([hunch.make(LAKE)])
    player = agent.player(1)
    advance(rollout, player)
    restored = agent.player(2)
    restored.load_state_dict(player.state_dict())
    for _ in range(20):
        actions = player.act(rollout.states)
        assert restored.act(rollout.states) == actions
        transitions = rollout.step(actions)
        player.observe(transitions)
        restored.observe(transitions)
    assert restored.state_dict() == player.state_dict()
