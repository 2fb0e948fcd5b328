"""The contract of agents (``tests/methods/test_registry.py``) in worlds of the studies."""

import pytest
from tests.methods.test_registry import JUDGED, OF_STUDIES, prompts, small

import hunch
from hunch import methods

ROOM = ("hunch/BabyAI-GoToRedBallNoDists-v0", {"history": 0, "picture": True, "tile": 8}, 36)
PLACES = {
    "alpha-proof": ("hunch/Proof-v0", {"pool": "textbook", "theorems": 4, "whole": True}, 9),
    "syndicom": ("hunch/Repair-v0", {"demonstrations": 60}, 6),  # its demonstrations have two texts
    "task-explore": ("hunch/HomeGrid-v0", {}, 24),
    "rl-vlm-f": ROOM,
    "vlm-rm": ROOM,
}
ELSEWHERE = ("decision-pretrained",)
"""Its contract is checked in ``test_decision_pretrained_in_dark_rooms.py``, where there are histories."""


@pytest.mark.parametrize("name", PLACES)
def test_a_method_keeps_the_contract_in_its_world(name):
    env, options, steps = PLACES[name]
    methods.check(small(methods.find(name)), hunch.make(env, **options), steps=steps)


@pytest.mark.thorough
@pytest.mark.parametrize("name", JUDGED)
def test_a_judged_method_keeps_the_contract(name, tmp_path):
    made = small(methods.find(name), judge="scripted:critic")
    methods.check(made, prompts(tmp_path), steps=10, streams=2)


def test_no_method_is_left_out():
    assert set(OF_STUDIES) == {*PLACES, *JUDGED, *ELSEWHERE}
