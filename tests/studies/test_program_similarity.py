"""Rewards from a grammar: what is listed, what is drawn, and a sentence encoder as their writer."""

import math

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.core import UsageError
from hunch.envs.design.reward_grammar import Part, listed, parts_of, quantities
from hunch.roles.writer.programs import Attempt
from hunch_contrib import Text2Reward
from hunch_studies.similarity_writer import SimilarityWriter

WORLDS = ("point-maze", "mountain-car", "docking", "reacher")
TOLD = """success rate: 0.1, 0.2, 0.5, 0.6; max 0.6, mean 0.3, min 0.1
part_0: 4, 3, 2, 1; max 4, mean 2.5, min 1"""


def problem(world="docking"):
    return hunch.make("hunch/RewardDesign-v0", world=world, trials="").unwrapped.problem


def words(**options):
    return SimilarityWriter(lm.load("words", cache=None), **options)


def test_an_interface_is_read_with_units_and_meanings():
    found = {one.name: one for one in listed(problem().interface)}
    assert list(found) == ["position", "velocity", "dock", "action"]
    assert (found["position"].size, found["position"].unit) == (2, "metres")
    assert found["velocity"].unit == "metres per second"
    assert found["action"].description == "action, the force"
    assert [one.size for one in listed(problem("mountain-car").interface)] == [0, 0, 1]


def test_only_variables_of_the_same_unit_are_compared():
    codes = [one.code for one in quantities(listed(problem().interface))]
    assert "np.linalg.norm(position - dock, axis=1)" in codes
    assert not [code for code in codes if "velocity -" in code or "- velocity" in code]
    assert len(set(codes)) == len(codes)


def test_what_has_to_do_with_the_task_is_drawn_more_often():
    found = quantities(listed(problem().interface))
    chances = words().chances(problem().task, found)
    vectors = lm.load("words", cache=None).embed([problem().task, *(one.words for one in found)])
    cosines = vectors[1:] @ vectors[0] / np.linalg.norm(vectors[1:], axis=1) / np.linalg.norm(vectors[0])
    assert chances.sum() == pytest.approx(1)
    assert np.log(chances[0] / chances[1]) == pytest.approx((cosines[0] - cosines[1]) / 0.1, abs=1e-4)
    even = words(temperature=math.inf).chances(problem().task, found)
    assert np.allclose(even, 1 / len(found))


def test_the_number_of_a_program_decides_it():
    together = words().write(problem(), (), "", 5, first=3)
    assert together == [words().write(problem(), (), "", 1, first=3 + i)[0] for i in range(5)]
    assert len(set(together)) > 1


@pytest.mark.parametrize("world", WORLDS)
def test_its_rewards_run(world):
    env = hunch.make("hunch/RewardDesign-v0", world=world, generations=1, trials="")
    for program in words().write(env.unwrapped.problem, (), "", 3):
        env.reset(seed=0)
        assert env.step(program)[-1]["raw"].error == ""


def test_only_numbers_are_weights():
    assert parts_of("    part_0 = -1e+16 * a\n    part_1 = 2-1 * a\n    part_2 = 0.5 * (b - 1)") == [
        Part(-1e16, "a"),
        Part(0.5, "(b - 1)"),
    ]


def test_feedback_decides_what_is_revised():
    program = words().write(problem(), (), "", 1)[0]
    parent = Attempt(0, program, 0.1)
    sign = parts_of(program)[0].weight < 0
    told = [parts_of(p) for p in words().write(problem(), [parent], TOLD, 60)]
    turned = sum(
        found[0].expression == parts_of(program)[0].expression and (found[0].weight < 0) != sign
        for found in told
    )
    assert 15 < turned < 45, "half of the findings: the part falls as the metric rises"
    solved = TOLD.replace("0.1, 0.2, 0.5, 0.6", "0.1, 0.2, 0.5, 1.0").replace("4, 3, 2, 1", "1, 2, 3, 4")
    assert all(parts_of(p) == parts_of(program) for p in words().write(problem(), [parent], solved, 10))
    assert len({*words().write(problem(), [parent], "", 20)}) > 10, "without feedback, random changes"


def test_an_encoder_can_be_the_model_of_a_method_that_writes_rewards():
    envs = [hunch.make("hunch/RewardDesign-v0", world="docking", generations=1, trials="")]
    agent = Text2Reward(lm.load("words", cache=None))
    hunch.train(agent, envs, 3)
    assert len(agent.attempts) == 3
    assert agent.evidence == "L0"
    assert agent.settings["lm"] == "words"


def test_it_writes_rewards_only():
    other = hunch.make("hunch/Heuristic-CapSet-v0").unwrapped.problem
    with pytest.raises(UsageError, match="lists no variables"):
        words().write(other, (), "", 1)
    with pytest.raises(UsageError, match="'embed'"):
        SimilarityWriter(lm.load("uniform", cache=None))
