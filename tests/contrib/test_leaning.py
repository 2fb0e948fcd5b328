"""Q-learning that leans on a prior: instruct-q and likelihood-value."""

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.core import State, Transition, UsageError, World
from hunch.methods.q_learning import QLearning
from hunch.rl.episodes import evaluate
from hunch.roles.prior.base import UniformPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch.runs.checkpoints import BEST, read_checkpoint
from hunch.runs.files import read_lines
from hunch_contrib.prior.instruct_q import InstructQ
from hunch_contrib.prior.likelihood_value import LikelihoodValue
from hunch_studies.instruct_rl import Follower, Pair, rules, situations, trained

SAY = "hunch/SaySelect-v0"
LAKE = "hunch/FrozenLake-v0"
INSTRUCTION = "select the same number as your partner"
READING = PriorConfig(way="likelihood", normalise="sum")


def prior(spec, config=READING):
    return build_prior(config, lm.load(spec))


def actions(agent, steps=200, env=SAY):
    result = hunch.train(agent, hunch.make(env), steps, seed=3)
    return [episode.actions for episode in result.episodes]


@pytest.mark.parametrize("weight", [(0.0,), (0.0, 0.0), ()])
def test_without_weight_it_is_q_learning_and_asks_nobody(weight):
    rule = lm.Cached(lm.load("scripted:partner"))
    own = InstructQ(build_prior(READING, rule), weight=weight)
    plain = QLearning(gamma=1.0, epsilon=(0.15, 0.15, 1))
    assert actions(own) == actions(plain)
    assert own.evidence is None
    assert rule.usage.calls == 0


def test_a_prior_that_knows_nothing_changes_nothing():
    """The scores differ in their last bits, so that ties are compared by what is learnt."""
    own = InstructQ(UniformPrior(), weight=(0.25,), epsilon=(1.0, 1.0, 1))
    plain = QLearning(gamma=1.0, epsilon=(1.0, 1.0, 1))
    assert actions(own) == actions(plain)


def test_the_instruction_decides_the_convention():
    agent = InstructQ(
        prior("scripted:partner?error=0.1"), weight=(0.0, 0.25), learning_rate=0.05, instruction=INSTRUCTION
    )
    hunch.train(agent, hunch.make(SAY), 4_000, seed=0)
    env = hunch.make(SAY, deals="in turn")
    player = agent.player(0)
    follows = [player.act([s])[0] in allowed for s, allowed in situations(env.unwrapped)]
    assert np.mean(follows) > 0.9
    ended = evaluate(lambda _: Pair(Follower(), player), [env], 25, 0)
    assert np.mean([e.episode_return for e in ended]) > 1.5, "of 2.2, with a speaker it has never met"


def test_the_study_keeps_the_agent_of_the_best_evaluation(tmp_path):
    agent = trained(rules()[0], False, 3_000, 0, tmp_path)
    (run,) = tmp_path.glob("runs/*/seed-0")
    by_step = {}
    for episode in read_lines(run / "episodes.jsonl"):
        if episode["evaluation"]:
            by_step.setdefault(episode["step"], []).append((episode["success"], episode["return"]))
    assert {len(deals) for deals in by_step.values()} == {25}, "every deal once"
    best = max(by_step, key=lambda step: tuple(np.mean(by_step[step], axis=0)))
    kept = read_checkpoint(run, BEST)
    assert kept["step"] == best < 3_000, "of this seed, not the last"
    assert agent.state_dict() == kept["agent"]


def test_q_has_no_bonus_in_it():
    """One state, two actions, the reward of the dull one 1: the prior decides, and Q is the truth."""
    state = State("here", "", ("dull", "told"))
    sure = prior("scripted:first")  # the first of the list
    agent = InstructQ(sure, weight=(10.0,), learning_rate=1.0)
    agent.begin(World(streams=1), 0)
    flipped = State("here", "", ("told", "dull"))
    agent.observe([Transition(flipped, "dull", 1.0, state, True, False)])
    agent.learn()
    assert agent.q(flipped).tolist() == [0.0, 1.0]
    assert agent.player(0).act([flipped]) == ["told"]


def test_the_instruction_stands_in_the_place_of_the_task():
    asked = []

    class Listens(UniformPrior):
        def _compute(self, states):
            asked.extend(s.task for s in states)
            return super()._compute(states)

    agent = InstructQ(Listens(), instruction=INSTRUCTION)
    agent.begin(World(streams=1), 0)
    agent.act([State("Your partner says 3.", "collect balls", ("select 3", "quit"))])
    assert asked == [INSTRUCTION]


def test_weights_go_by_player():
    agent = InstructQ(prior("scripted:partner"), weight=(0.0, 0.25))
    states = [
        State("Your partner says 3.", "", ("select 1", "select 3"), stream=n, seat=n % 2) for n in range(4)
    ]
    assert [agent.leans(s) for s in states] == [False, True, False, True]


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (lambda: InstructQ(prior("scripted:partner?error=0.2"), weight=(0.0, 0.25)), SAY),
        (lambda: InstructQ(prior("bag-of-words", PriorConfig()), alpha=0.1), LAKE),
        (lambda: LikelihoodValue(prior("scripted:frozenlake?error=0.2"), factor="likelihood"), LAKE),
        (lambda: LikelihoodValue(prior("scripted:frozenlake?error=0.2"), factor="value"), LAKE),
    ],
)
def test_the_contract_is_kept(agent, env):
    methods.check(agent(), hunch.make(env), steps=40)


def test_either_factor_alone():
    """The value alone does not ask; the likelihood alone does not heed what came."""
    value = LikelihoodValue(prior("scripted:frozenlake"), factor="value")
    assert value.evidence is None
    assert value.leaning(State("here", "", ("a", "b"))) == ()
    q = np.array([0.9, 0.1])
    both = LikelihoodValue(prior("scripted:first"))
    likely = LikelihoodValue(prior("scripted:first"), factor="likelihood")
    leaning = (np.log(0.3), np.log(0.7))
    assert likely.scores(q, leaning).tolist() == list(leaning)
    assert np.allclose(np.exp(both.scores(q, leaning)), [0.27, 0.07])
    assert np.allclose(np.exp(value.scores(q, ())), q)


def test_the_value_is_the_probability_of_success():
    """On the lake, by a rule that knows the way: it comes to 1 for the last step, and is never above."""
    agent = LikelihoodValue(prior("scripted:frozenlake"), epsilon=(0.1, 0.1, 1))
    hunch.train(agent, hunch.make(LAKE), 400, seed=0)
    found = agent.table.entries.values()
    assert 0.9 < max(found) <= 1
    assert min(found) >= 0


@pytest.mark.parametrize("options", [{"weight": (-1.0,)}, {"floor": 2.0}, {"weights": 1}])
def test_settings_out_of_range(options):
    with pytest.raises(UsageError):
        InstructQ(UniformPrior(), **options)
    with pytest.raises(UsageError, match="action prior"):
        InstructQ(lm.load("scripted:first"))
