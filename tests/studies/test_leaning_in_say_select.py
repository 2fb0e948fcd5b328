"""InstructRL with its partner in Say-Select."""

import numpy as np
import pytest
from tests.contrib.test_leaning import INSTRUCTION, LAKE, READING, prior

import hunch
from hunch import lm, methods
from hunch.core import State
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
