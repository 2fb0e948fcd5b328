"""What programs give for numbers is read in one way, whoever reads it."""

import math

import numpy as np
import pytest

from hunch.envs.design.program_model import Patient, ProgramModel
from hunch.envs.design.running import box
from hunch.numbers import number
from hunch.rl.world_model import Prediction
from hunch.roles.world_model.program import CodedModel, earning

LARGE = "2 ** 1024 - 1"
"""An int that passes, and that no float can hold."""
READ = {"1": 1.0, "0.5": 0.5, "True": 1.0, "np.float32(0.5)": 0.5, "np.where(1, 2, 3)": 2.0, LARGE: None}
READ |= {"'1'": None, "None": None, "[1]": None, "np.ones(1)": None, "1e308 * 10": None}
EACH = pytest.mark.parametrize(("written", "read"), READ.items(), ids=READ)


@EACH
def test_in_a_world_model(written, read):
    found = Prediction() if read is None else Prediction(False, read, (1,))
    source = f"import numpy as np\ndef step(state, action):\n    return [1], {written}, False"
    with box().load(source, "step") as program:
        assert ProgramModel(program).step([(0,)], ["a"]) == [found]
    source = (
        "import numpy as np\ndef transition(state, action):\n    return [1]\n"
        f"def reward(state, action, next_state):\n    return {written}, False"
    )
    with box().load(source, "transition") as moves, box().load(source, "reward") as earns:
        assert CodedModel(Patient(moves), Patient(earns)).step([(0,)], ["a"]) == [found]


@EACH
def test_as_a_float(written, read):
    with box().load(f"import numpy as np\ndef f():\n    return {written}", "f", float) as program:
        assert Patient(program).map([()]) == [read]


def test_an_end_is_a_bool():
    assert earning((1, True)) == (1.0, True)
    assert earning((1, 1)) == (None, None)


def test_numbers_of_numpy_count():
    assert [number(x) for x in (np.int64(3), np.float32(0.5), np.bool_(True), np.array(2))] == [3, 0.5, 1, 2]
    assert number(-math.inf) is None
    assert number(-math.inf, finite=False) == -math.inf
