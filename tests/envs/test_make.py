"""Finding environments by name."""

import subprocess
import sys

import gymnasium
import pytest

import hunch.envs
from hunch.core import HunchError, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.wrappers import History


class Coin(TextEnv):
    """Call a coin."""

    def __init__(self, sides=("heads", "tails")):
        super().__init__(max_steps=3)
        self.sides = tuple(sides)

    def _begin(self, options):
        self.side = self.sides[self.np_random.integers(2)]
        return Outcome("Call it.", self.sides)

    def _move(self, action):
        right = action == self.side
        return Outcome(self.side, self.sides, float(right), terminated=True, success=right)


@pytest.fixture
def coin():
    gymnasium.register("test/Coin-v0", Coin)
    yield "test/Coin-v0"
    del gymnasium.registry["test/Coin-v0"]


def test_a_users_own_environment(coin):
    env = hunch.envs.make(id=coin, sides=("up", "down"), history=2)
    env.reset(seed=0)
    assert env.step("up")[-1]["actions"] == ("up", "down")
    assert hunch.envs.describe(coin) == "Call a coin."
    with pytest.raises(UsageError, match=r"no option 'side'.*did you mean 'sides'\?"):
        hunch.envs.make(coin, side="up")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("hunch/Household-Pik-v0", "hunch/Household-Pick-v0"),
        ("Household-Pick-v0", "hunch/Household-Pick-v0"),
        ("hunch/FrozenLake-v1", "hunch/FrozenLake-v0"),
        ("hunch/FrozenLake", "hunch/FrozenLake-v0"),
        ("qwertz", "hunch envs"),
        ("", "hunch envs"),
        (
            "no_such_module:Env-v0",
            "cannot be found, and there is no file no_such_module.py",
        ),
    ],
)
def test_an_unknown_name(wrong, right):
    with pytest.raises(UsageError) as error:
        hunch.envs.make(wrong)
    assert right in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_option():
    with pytest.raises(UsageError, match="did you mean 'games'"):
        hunch.envs.make("hunch/Household-Pick-v0", game=4)
    with pytest.raises(UsageError, match="there are lookahead, "):
        hunch.envs.make("hunch/FrozenLake-v0", qwertz=4)


def test_recommended_history():
    assert not isinstance(hunch.envs.make("hunch/FrozenLake-v0"), History)
    household = hunch.envs.make("hunch/Household-Pick-v0")
    assert isinstance(household, History)
    assert household.n == household.metadata["history"]
    assert not isinstance(hunch.envs.make("hunch/Household-Pick-v0", history=0), History)


def test_every_environment_has_a_line_of_description():
    for id in hunch.envs.names():
        assert 20 < len(hunch.envs.describe(id)) < 80


def test_importing_loads_no_environment():
    code = "import hunch.envs, sys; print([m for m in sys.modules if m.startswith('hunch.envs.')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


GAME = """
import gymnasium
from hunch.envs.base import Outcome, TextEnv


class Game(TextEnv):
    '''Say yes.'''

    def __init__(self, tries: int = 3): super().__init__(max_steps=tries)
    def _begin(self, options): return Outcome('Well?', ('yes', 'no'))
    def _move(self, action): return Outcome('So.', ('yes', 'no'), 1.0, action == 'yes', True)
"""


def test_a_users_own_module_is_imported_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "my_game.py").write_text(f"{GAME}\ngymnasium.register('mine/Game-v0', Game)\n")
    monkeypatch.syspath_prepend(tmp_path)
    env = hunch.envs.make("my_game:mine/Game-v0")
    assert env.reset(seed=0)[1]["actions"] == ("yes", "no")


def test_why_an_environment_cannot_be_made_is_one_sentence():
    with pytest.raises(HunchError, match=r"cannot be made: .* can be imported\.$"):
        hunch.envs.make("hunch/PolicyCode-v0", base="no_such_module:Pump-v0")


def test_a_users_own_class_needs_no_registration(tmp_path, monkeypatch):
    (tmp_path / "own_game.py").write_text(GAME)
    monkeypatch.syspath_prepend(tmp_path)
    env = hunch.envs.make("own_game:Game", tries=5)
    assert env.reset(seed=0)[1]["actions"] == ("yes", "no")
    assert hunch.envs.full_id(env.unwrapped.spec) == "own_game:Game"
    with pytest.raises(UsageError, match="own_game:Game has no option 'time'; did you mean 'tries'"):
        hunch.envs.make("own_game:Game", time=5)
    out = tmp_path / "run"
    result = hunch.train("dqn", "own_game:Game", steps=20, out=out)
    assert result.steps == 20
    assert hunch.load(out).predict("Well?", {"actions": ("yes", "no")}) in ("yes", "no")
    with pytest.raises(UsageError, match="own_game has no class or function 'Gone'"):
        hunch.envs.make("own_game:Gone")


FACTORIES = """
import gymnasium
from hunch.envs import DesignProblem, TextWrapper

def double(*, target: float = 1.0, max_steps: int = 1):
    \"\"\"Write a program that is long.\"\"\"
    return DesignProblem(lambda program: float(len(program)), task="write", function="f", parameters=("x",),
                         start="def f(x):\\n    return x\\n", target=target)

def car(*, max_steps: int = 20):
    return TextWrapper(gymnasium.make("MountainCar-v0"), str, ("left", "wait", "right"), max_steps=max_steps)

def lake(*, render_mode: str | None = None):
    lake = gymnasium.make("FrozenLake-v1", render_mode=render_mode)
    return TextWrapper(lake, str, ("left", "down", "right", "up"), max_steps=9)

def unseen(*, render_mode: str | None = None):
    return car()

def nothing():
    return None

single = car()
"""


def test_a_function_that_makes_an_environment(tmp_path, monkeypatch):
    (tmp_path / "own_makers.py").write_text(FACTORIES, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    env = hunch.envs.make("own_makers:car", max_steps=2)
    env.reset(seed=0)
    assert [env.step("wait")[3] for _ in range(2)] == [False, True]
    _, info = hunch.envs.make("own_makers:lake", picture=True).reset(seed=0)
    assert info["pictures"][0].startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="own_makers:car draws no pictures, because it has no option"):
        hunch.envs.make("own_makers:car", picture=True)
    with pytest.raises(UsageError, match="own_makers:unseen draws no pictures: leave out picture"):
        hunch.envs.make("own_makers:unseen", picture=True)
    with pytest.raises(UsageError, match="own_makers:car has no option 'steps'"):
        hunch.envs.make("own_makers:car", steps=2)
    with pytest.raises(UsageError, match="own_makers:nothing makes no environment"):
        hunch.envs.make("own_makers:nothing")
    with pytest.raises(UsageError, match="own_makers:single is a single environment"):
        hunch.envs.make("own_makers:single")
    monkeypatch.chdir(tmp_path)
    line = "run funsearch --env own_makers:double --env.target 9 --lm scripted:mutator --steps 3 --out out"
    done = subprocess.run([sys.executable, "-m", "hunch", *line.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
