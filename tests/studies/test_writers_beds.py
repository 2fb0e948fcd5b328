"""Beds for the searches of writers: any environment of Gymnasium with numbers, and its measured floor."""

import logging

import gymnasium as gym
import pytest

from hunch.core import UsageError
from hunch.envs import make
from hunch.envs.design.problem import DesignProblem
from hunch.roles.writer.programs import Attempt
from hunch_studies.writers import result, tried
from hunch_studies.writers_beds import BEDS, bed_of, constant, first_program, some_actions
from hunch_studies.writers_openevolve import rejections


def problem_of(bed):
    made = gym.make(bed.env, **bed.options).unwrapped
    assert isinstance(made, DesignProblem)
    return made.problem


def test_any_environment_with_numbers_is_a_bed_whose_floor_is_its_worst_constant_policy():
    bed = bed_of("MountainCarContinuous-v0")
    fitness = [
        tried(bed.env, bed.options, constant(problem_of(bed), action)).fitness
        for action in some_actions("MountainCarContinuous-v0")
    ]
    assert bed.floor == min(fitness) < max(fitness) == 0  # to do nothing costs nothing
    assert bed_of("Blackjack-v1").floor >= -1


def test_the_first_program_of_every_bed_runs():
    for bed in (*BEDS.values(), bed_of("MountainCarContinuous-v0"), bed_of("hunch/Chain-v0")):
        program = first_program(bed, problem_of(bed))
        assert tried(bed.env, bed.options, program).fitness is not None


def test_an_environment_for_which_no_policy_can_be_written_is_refused():
    assert make("hunch/Heuristic-BinPacking-v0")
    with pytest.raises(UsageError, match="hunch/Heuristic-BinPacking-v0 gives none"):
        bed_of("hunch/Heuristic-BinPacking-v0")


def test_a_run_in_which_every_program_failed_has_the_floor():
    bed = BEDS["MountainCar-v0"]
    row = result(bed, [Attempt(number, "", None, error="no program") for number in range(8)])
    assert (row["best"], row["unseen"], row["failed"]) == ({8: -200.0}, -200.0, 1.0)


def test_reasons_of_openevolve_are_collected_from_its_log():
    log = logging.getLogger("openevolve.process_parallel")
    with rejections() as reasons:
        log.warning("Iteration 3 error [diff]: Rewrite is identical to the parent | tokens: 12 (prompt: 10)")
        log.warning("Iteration 4 error: no code: none")
        log.warning("Iteration 5: something else")
    assert reasons == ["Rewrite is identical to the parent", "no code: none"]
    log.warning("Iteration 6 error: afterwards")
    assert len(reasons) == 2
