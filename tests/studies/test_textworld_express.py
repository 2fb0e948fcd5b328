"""TextWorld-Express: the contract, the engine's own solutions, copies, and a process of Java that ends."""

import copy
import pickle
import shutil
from typing import get_args

import pytest

import hunch
from hunch.core import HunchError, UsageError
from hunch_studies.worlds import textworld_express
from hunch_studies.worlds.textworld_express import Game

ID = "hunch/TextWorldExpress-v0"
GAMES = get_args(Game)


def made(**options):
    pytest.importorskip("textworld_express")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    return hunch.make(ID, **options).unwrapped


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "textworld_express.constants", None)
    textworld_express._java.cache_clear()
    with pytest.raises(UsageError, match=r"pip install .*\[express\]"):
        hunch.make(ID)


def test_without_java_a_sentence_says_how_to_get_it(monkeypatch):
    pytest.importorskip("textworld_express")
    monkeypatch.setenv("PATH", "/nowhere")
    textworld_express._java.cache_clear()
    with pytest.raises(UsageError, match="apt-get install default-jre-headless"):
        hunch.make(ID)


def test_the_checker_finds_nothing():
    hunch.envs.check(made())


@pytest.mark.parametrize("game", GAMES)
def test_the_engines_solution_solves_the_game_and_a_copy_goes_its_own_way(game):
    env = made(game=game, split="test", max_steps=300)
    env.reset(seed=1)
    plan, rewards, ended = env.oracle(), [], False
    assert env.oracle() is not None
    for number, command in enumerate(plan):
        if number == 2:
            twin, again = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
        seen, reward, ended, _, info = env.step(command)
        if number == 2:  # a copy sees what the first one sees, and changes nothing of it
            for other in (twin, again):
                assert other.step(command)[0] == seen
        rewards.append(reward)
        if ended:
            break
    assert ended
    assert info["success"]
    assert sum(rewards) == pytest.approx(1)


def test_a_seed_is_a_game_and_another_command_leaves_the_solution():
    env = made(game="twc", split="dev")
    first, info = env.reset(seed=3)
    assert env.reset(options={"game": info["game"]})[0] == first
    assert 10_000 <= info["game"] < 11_000
    env.step(next(c for c in info["actions"] if c != env.oracle()[0]))
    assert env.oracle() is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"game": "chess"}, "game .*must be one of cookingworld"),
        ({"split": "held-out"}, "split .*must be one of train, dev, test"),
        ({"params": "doors=1"}, "refuses 'coin' with the settings 'doors=1'"),
    ],
)
def test_bad_options_are_one_sentence(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        made(**options)


def test_a_game_that_is_not_in_the_split_is_refused():
    env = made()
    with pytest.raises(UsageError, match="no game 20000 in split train, which has 0 to 999"):
        env.reset(options={"game": 20_000})
    with pytest.raises(UsageError, match="no reset option 'seed'"):
        env.reset(options={"seed": 1})


def test_a_process_of_java_that_ended_is_a_sentence_and_the_next_game_starts_another():
    env = made()
    env.reset(seed=0)
    java = textworld_express._java(__import__("os").getpid())
    java.java_process.kill()
    java.java_process.wait()
    with pytest.raises(HunchError, match="process of Java ended"):
        env.step(0)
    assert made().reset(seed=0)[0]


def test_a_command_that_the_engine_names_twice_is_one_action():
    env = made(game="simonsays", split="test")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        assert len(set(info["actions"])) == len(info["actions"])
