"""Cloning the oracle of Overcooked."""

import numpy as np
import pytest
from tests.methods.test_bc_lm import FAST

import hunch
from hunch.methods.prior.bc_lm import BCLM
from hunch.roles import UniformPrior
from hunch.runs.record import collect, parse_mix

TOMATO = "hunch/Overcooked-Tomato-v0"


@pytest.fixture(scope="module")
def data():
    return collect(TOMATO, {}, parse_mix("oracle"), 30)


def success(agent):
    return np.mean([episode.success for episode in hunch.evaluate(agent, hunch.make(TOMATO), 40)])


def test_it_clones_the_oracle(data):
    agent = BCLM(**FAST)
    hunch.train(agent, data=data, steps=60)
    chance = success(hunch.methods.ZeroShot(UniformPrior()))
    assert success(agent) > chance + 0.3
