"""Reporters: a rule that may lie, and a policy that learns what matters."""

import numpy as np
import pytest

from hunch.core import UsageError
from hunch.roles.prior.base import UniformPrior
from hunch_contrib.planner.planner_actor_reporter import PlannerActorReporter, Scripted, WordReporter

GOOD, BAD = "The vase is red, plain, warm.", "The vase is blue, plain, cold."


def test_a_scripted_reporter_lies_as_often_as_asked():
    assert Scripted("warm").probability(GOOD) == 1
    assert Scripted("warm").probability(BAD) == 0
    assert Scripted("warm", lies=0.25).probability(GOOD) == 0.75
    assert Scripted("warm").probability("It is warmer.") == 0  # a word, and no part of one


def test_a_truth_that_no_event_can_hold_is_refused():
    assert Scripted("Warm").probability(GOOD) == 1
    for truth in ("", "is warm"):
        with pytest.raises(UsageError, match="truth has to be one word"):
            PlannerActorReporter(UniformPrior("L0"), reporter="scripted", truth=truth)


def test_before_it_learns_it_tosses_a_coin():
    assert WordReporter().probability(GOOD) == WordReporter().probability(BAD) == 0.5


def taught(pays, episodes=600, seed=0):
    """A reporter trained on events with a word that matters and one that does not."""
    rng, reporter = np.random.default_rng(seed), WordReporter()
    for _ in range(episodes):
        truth, colour = rng.random() < 0.5, rng.choice(["red", "blue"])
        event = f"The vase is {colour}, {'warm' if truth else 'cold'}."
        said = bool(rng.random() < reporter.probability(event))
        reporter.learn([(event, said)], pays(said, truth))
    return reporter


@pytest.mark.parametrize("seed", range(3))
def test_it_learns_what_pays_whichever_message_that_is(seed):
    honest = taught(lambda said, truth: float(said == truth), seed=seed)
    contrary = taught(lambda said, truth: float(said != truth), seed=seed)
    for colour in ("red", "blue"):
        warm, cold = f"The vase is {colour}, warm.", f"The vase is {colour}, cold."
        assert honest.probability(warm) > 0.9 > 0.1 > honest.probability(cold)
        assert contrary.probability(warm) < 0.1 < 0.9 < contrary.probability(cold)


def test_where_nothing_pays_nothing_is_learnt():
    idle = taught(lambda said, truth: 1.0)
    assert abs(idle.probability(GOOD) - 0.5) < 0.2


def test_a_saved_reporter_goes_on_alike():
    one = taught(lambda said, truth: float(said == truth), episodes=50)
    other = WordReporter()
    other.load_state_dict(one.state_dict())
    for reporter in (one, other):
        reporter.learn([(GOOD, True)], 1.0)
    assert one.probability(GOOD) == other.probability(GOOD)
    assert one.state_dict() == other.state_dict()
