"""TextWorld-Express: the contract, the engine's own solutions, copies, and a process of Java that ends."""

import copy
import gc
import os
import pickle
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import numpy as np
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
    monkeypatch.setitem(sys.modules, "textworld_express.constants", None)
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


def java():
    """Return the process of Java that all games but sorting share."""
    return textworld_express._java(os.getpid())


@pytest.mark.parametrize("what", ["step", "reset"])
def test_a_process_of_java_that_ended_is_a_sentence_and_the_next_game_starts_another(what):
    env = made()
    env.reset(seed=0)
    java().java_process.kill()
    java().java_process.wait()
    with pytest.raises(HunchError, match="process of Java ended"):
        env.step(0) if what == "step" else env.reset()
    assert env.reset(seed=0)[0]


def test_a_seed_may_be_a_number_of_numpy():
    env = made()
    assert env.reset(options={"game": np.int64(5)})[1]["game"] == 5


def test_environments_of_several_threads_share_a_process_of_java():
    made()
    textworld_express._java.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        envs = list(pool.map(lambda _: made(), range(4)))
    assert len({env._play.engine._gateway_client.port for env in envs}) == 1


def test_ctrl_c_in_a_terminal_does_not_end_java():
    """It goes to the whole group of processes, and a run may need another step before it is saved."""
    made()
    assert os.getpgid(java().java_process.pid) != os.getpgrp()


def test_a_killed_process_leaves_no_java():
    made()
    code = (
        "import os, hunch; from hunch_studies.worlds import textworld_express as world\n"
        f"env = hunch.make({ID!r}); print(world._java(os.getpid()).java_process.pid, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        of_java = int(process.stdout.readline())
        process.kill()
    until = time.monotonic() + 20
    while running(of_java) and time.monotonic() < until:
        time.sleep(0.1)
    assert not running(of_java)


def running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_stranger_on_the_machine_gives_java_no_commands():
    env = made()
    py4j = pytest.importorskip("py4j.java_gateway")
    port = env._play.engine._gateway_client.port
    stranger = py4j.JavaGateway(gateway_parameters=py4j.GatewayParameters(port=port))
    with pytest.raises(Exception, match=r"(?i)auth|answer from Java side is empty"):
        stranger.jvm.java.lang.System.getProperty("user.home")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # py4j has threads
@pytest.mark.parametrize("game", ["coin", "sorting"])
def test_a_fork_that_forgets_its_copy_of_a_game_leaves_the_game_alone(game):
    env = made(game=game)
    env.reset(seed=0)
    child = os.fork()
    if not child:
        env._play = None
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert env.step(0)[0]


def test_a_command_that_the_engine_names_twice_is_one_action():
    env = made(game="simonsays", split="test")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        assert len(set(info["actions"])) == len(info["actions"])
