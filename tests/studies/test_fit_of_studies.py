"""Methods fit the worlds of the studies."""

import pytest

import hunch
import hunch.envs
from hunch import lm, methods
from hunch.envs.offers import declared
from hunch.methods.planner.examples import build_scorer
from hunch.runs.environments import require_fit


def test_saycan_takes_the_names_of_things_for_no_examples():
    agent = methods.SayCan(build_scorer(hunch.roles.PriorConfig(), lm.load("bag-of-words")))
    assert hunch.train(agent, "hunch/HomeGrid-v0", steps=5).complete


PAIRS = [
    ("saycan", "hunch/HomeGrid-v0"),
    ("glam", "hunch/BabyAI-GoToObj-v0"),
    ("motif", "hunch/KeyCorridor-v0"),
    ("worldcoder", "hunch/MiniGrid-v0"),
    ("task-explore", "hunch/HomeGrid-v0"),
    ("planner-actor-reporter", "hunch/SecretProperty-v0"),
    ("eureka", "hunch/RewardDesign-v0"),
]


@pytest.mark.parametrize(("method", "env"), PAIRS)
def test_what_worked_fits(method, env):
    require_fit(methods.find(method), hunch.make(env))


def test_the_pendulum_declares_its_numbers_when_it_is_made():
    assert declared(hunch.make("hunch/Pendulum-v0")) == {"raw"}
