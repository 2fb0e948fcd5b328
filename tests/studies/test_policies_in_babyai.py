"""Policies in BabyAI."""

import pytest
from tests.methods.test_policies import FAST

import hunch

torch = pytest.importorskip("torch")

from hunch.methods.policy.gflan_prior import GFlanPrior  # noqa: E402
from hunch.roles import UniformPrior  # noqa: E402


def test_proposals_are_those_of_a_run_and_a_player_draws_its_own():
    room = hunch.make("hunch/BabyAI-GoToObj-v0", history=0, max_steps=4)
    agent = GFlanPrior(UniformPrior(), k=2, space="proposals", **FAST)
    hunch.methods.check(agent, room, steps=12)
