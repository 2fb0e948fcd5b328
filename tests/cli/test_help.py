"""Help everywhere: what it names, in which order, and how much of it."""

import ast
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from hunch import methods
from hunch.cli.commands import COMMANDS
from hunch.cli.help import meanings, of_method, options
from hunch.cli.run import RunOptions
from hunch.core import HunchError
from hunch.methods import registry


@pytest.fixture
def hunch(hunch_command):
    def run(*arguments):
        code, output, errors = hunch_command(*arguments)
        assert errors == ""
        return code, output

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(hunch, name):
    for asked in ((name, "--help"), (name, "-h"), ("help", name)):
        code, out = hunch(*asked)
        assert code == 0
        assert f"usage: hunch {name}" in out


def test_version_and_overview(hunch):
    assert hunch("--version")[1].startswith("hunch ")
    assert hunch("help")[1] == hunch("--help")[1]


def test_bare_help_of_run_names_methods_and_common_options(hunch):
    for command in ("run", "compare"):
        code, out = hunch(command, "--help")
        assert code == 0
        assert "--eval-every" in out
        for name, method in methods.METHODS.items():
            assert name in out
            assert " ".join(method.summary.split()[:2]) in out


def test_help_of_a_method_is_short_and_the_rest_a_word_away(hunch):
    short, full = (hunch("run", "dqn-prior", word)[1] for word in ("--help", "--help-all"))
    assert "--k N" in short
    assert "--target-rate" not in short
    assert "--help-all" in short
    for option in (*options(RunOptions), *of_method(methods.find("dqn-prior"))):
        assert f"--{option.flag}" in full, option.flag


def test_help_of_a_comparison_has_every_option_once(hunch):
    out = hunch("compare", "dqn", "dqn-prior", "cql-prior", "--help-all")[1]
    assert out.count("--learning-rate") == 1
    assert out.count("--k N") == 1
    assert out.count("--steps N") == 1


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda m: m.name)
def test_every_option_has_a_meaning(method):
    assert [option.flag for option in of_method(method) if not option.meaning] == []
    assert set(meanings(RunOptions)) >= {"steps", "budget", "out"}


def test_an_environment_is_shown_with_options_and_an_example(hunch):
    code, out = hunch("envs", "hunch/Household-Pick-v0")
    assert code == 0
    for part in ("--env.games", "Size of the pool", "[default 'train']", "Task: put", "Actions: ", "history"):
        assert part in out


PLUGIN = """
import gymnasium
from hunch.methods import Method
from hunch.methods.prior.zero_shot import ZeroShot
METHOD = Method(
    "mine", ZeroShot, "a method of my own", "a paper", models={"lm": ("generate",)}, lm="uniform"
)
gymnasium.register("Mine-v0", "hunch.envs.frozen_lake:FrozenLake")
"""


def test_methods_and_environments_of_somebody_elses(tmp_path):
    """A package with an entry point, as an installed one has it, and an environment by module:id."""
    (tmp_path / "plug_in.py").write_text(PLUGIN)
    about = tmp_path / "plug_in-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[hunch.methods]\nmine = plug_in:METHOD\n")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from hunch.cli.main import main; "
    asked = "main(['run', 'mine', '--env', 'plug_in:Mine-v0', '--steps', '30', '--out', 'r'])"
    code = f"{path}main(['methods']); {asked}"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "a method of my own" in run.stdout
    assert "Kept in r" in run.stdout


def test_a_plugin_that_cannot_be_imported_is_named():
    with pytest.raises(HunchError, match="no_such_module:M cannot be imported: ModuleNotFoundError"):
        registry.plugin(EntryPoint("broken", "no_such_module:M", registry.GROUP))
    with pytest.raises(HunchError, match="must be a new hunch"):
        registry.plugin(EntryPoint("dqn", "hunch.methods:find", registry.GROUP))


@dataclass
class Shape:
    depth: int = 1
    """How deep."""


@dataclass
class Box(Shape):
    width: int = 2
    """How wide."""


def test_a_file_is_parsed_once_for_all_of_its_classes(monkeypatch):
    """Parsing was a sixth of the time of a help text."""
    parsed, parse = [], ast.parse
    monkeypatch.setattr(ast, "parse", lambda *given, **more: parsed.append(given) or parse(*given, **more))
    assert meanings(Box) == {"depth": "How deep.", "width": "How wide."}
    assert len(parsed) <= 1


def test_meanings_of_a_class_within_a_function():
    @dataclass
    class Inner(Shape):
        height: int = 3
        """How high."""

    assert meanings(Inner) == {"depth": "How deep.", "height": "How high."}
