"""The classes by name: in ``dir``, for a type checker, and without torch."""

import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

import hunch_contrib
from hunch import methods
from hunch.methods.registry import CONTRIB

ROOT = Path(__file__).parents[2]
GOOD = """
import hunch
import hunch_contrib
from hunch.methods import DQNPriorConfig

config = DQNPriorConfig(k=3, learning_rate=1e-3)
k: int | None = config.k
agent = hunch.methods.DQNPrior(hunch.roles.UniformPrior(), config=config)
method: hunch.methods.Method = hunch.methods.METHODS["dqn"]
"""
WRONG = {
    'hunch.methods.DQNPriorConfig(k="three")': "arg-type",
    "hunch.methods.DQNPriorConfig(kk=3)": "call-arg",
    "hunch.methods.DQNPrio": "attr-defined",
    'hunch.methods.EurekaConfig(temperature="hot")': "arg-type",
    "hunch.methods.DQNPrior(hunch.roles.UniformPrior(), config=hunch.methods.PPOConfig())": "arg-type",
}


def test_tab_shows_every_class():
    for method in methods.METHODS.values():
        place = hunch_contrib if method.name in CONTRIB else methods
        assert getattr(place, method.agent_class.__name__) is method.agent_class
        assert {method.agent_class.__name__, method.config_class.__name__} <= set(dir(place))
    assert {"Method", "METHODS", "check", "find"} <= set(dir(methods))
    for place in (methods, hunch_contrib):
        assert all(hasattr(place, name) for name in dir(place))


@pytest.mark.parametrize("package", ["hunch.methods", "hunch_contrib"])
def test_neither_the_import_nor_dir_loads_torch(package):
    code = f"import sys, {package}; dir({package}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.thorough
def test_a_type_checker_knows_every_class_and_the_types_of_options(tmp_path):
    names = sorted(
        {
            f"{'hunch_contrib' if method.name in CONTRIB else 'hunch.methods'}.{cls.__name__}"
            for method in methods.METHODS.values()
            for cls in (method.agent_class, method.config_class)
            if cls.__module__.startswith("hunch_contrib." if method.name in CONTRIB else "hunch.methods.")
        }
    )
    every = "\n".join(f"c{i}: type[object] = {name}" for i, name in enumerate(names))
    program = tmp_path / "program.py"
    program.write_text(GOOD + every + "\n" + "\n".join(WRONG) + "\n")
    options = ("--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"))
    out, errors, _ = api.run([*options, str(program)])
    said = [line for line in out.splitlines() if line.startswith(str(program)) and ": error:" in line]
    first = program.read_text().splitlines().index(next(iter(WRONG))) + 1
    assert [(int(line.split(":")[1]), line.rpartition("[")[2][:-1]) for line in said] == [
        (first + number, code) for number, code in enumerate(WRONG.values())
    ], out + errors
