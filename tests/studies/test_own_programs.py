"""Programs of our own rules in this process: the trials are those of the sandbox."""

import numpy as np
import pytest

from hunch.envs.design.bin_packing import BEST_FIT, BinPacking
from hunch.envs.design.cap_set import START, CapSet
from hunch.envs.design.mutation import mutate
from hunch.envs.design.policy import PolicyCode
from hunch.envs.design.reward import RewardDesign
from hunch.envs.design.worlds import Docking
from hunch.sandbox import ProgramRefused
from hunch.studies.own_programs import Here, OwnCaps, OwnPacking, OwnPolicies, OwnRewards
from hunch.studies.programs_funsearch import tried

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::RuntimeWarning")


@pytest.mark.parametrize(
    "program",
    [
        Docking.dense,
        Docking.dense.replace("position - dock", "positin - dock"),
        Docking.dense.replace("-np.linalg.norm(", "np.log(-np.linalg.norm("),
        Docking.dense.replace("distance + motion, ", "distance + motion"),
    ],
)
def test_a_reward_has_the_same_trial_in_either_place(program):
    options = {"world": "docking", "generations": 3, "trials": ""}
    here, there = (tried(kind(**options), program, seed=5) for kind in (OwnRewards, RewardDesign))
    assert here.fitness == there.fitness
    assert here.feedback == there.feedback
    assert here.error[:40] == there.error[:40]


@pytest.mark.parametrize(
    ("own", "boxed", "start", "function"),
    [
        (OwnPacking(items=8, instances=2), BinPacking(items=8, instances=2), BEST_FIT, "priority"),
        (OwnCaps(n=2), CapSet(n=2), START, "priority"),
        (OwnPolicies(episodes=2, max_steps=9), PolicyCode(episodes=2, max_steps=9), "", "act"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_so_has_what_the_mutator_writes(own, boxed, start, function):
    start = start or own.problem.start
    mutants = [mutate([start], function, np.random.default_rng(i)) for i in range(6)]
    found = [(tried(own, mutant).fitness, tried(boxed, mutant).fitness) for mutant in mutants]
    assert [here for here, _ in found] == [there for _, there in found]
    assert len(set(found)) > 1, "they differ"


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "for _ in [1]: pass",
        "y = [x for x in (1, 2)]",
        "y = 2" + " ** 3" * 9,
    ],
)
def test_what_is_no_program_of_ours_is_refused(line):
    with pytest.raises(ProgramRefused):
        Here(f"def f(a):\n    {line}\n    return a", "f", None, finite=True)
