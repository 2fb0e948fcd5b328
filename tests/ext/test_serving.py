"""Environments served by OpenEnv, and servers of OpenEnv and games of TextArena as environments of ours."""

from __future__ import annotations

import gc
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from tests.started import answering, run

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.envs.invalid import is_invalid
from hunch.rl.rollout import Rollout

openenv = pytest.importorskip("openenv", reason="needs the extra 'openenv'")
ext = pytest.importorskip("hunch.ext.openenv", reason="needs the extra 'openenv'")

from hunch.ext.turns import Turns  # noqa: E402

ENV, OPTIONS = "hunch/Household-Pick-v0", {"games": 2, "max_steps": 4}
TEXTS = ("look", "fly away", "examine the moon", "inventory")


def model(corpus):
    return lm.trainable(f'pocket?corpus={corpus}&end="\\n"')


class Running:
    """A server on a free port."""

    def __init__(self, turns, **limits):
        self.socket = ext.listen("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.server = ext.server(turns, ext.Limits(**{"sessions": 8, **limits}))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()
        until(lambda: self.server.started)

    def stop(self):
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()


def until(true):
    """Wait for what happens in another thread or process; the test's own limit ends it."""
    while not true():
        time.sleep(0.02)


def sessions():
    gc.collect()
    return sum(isinstance(one, ext.Session) for one in gc.get_objects())


@pytest.fixture(scope="module")
def served():
    running = Running(Turns(ENV, **OPTIONS))
    yield running.url
    running.stop()


def test_a_served_environment_is_the_environment(served):
    """Two routes: the same seeds and texts here, and through a server and its client."""
    there, here = (
        hunch.make(f"openenv:{served}", listed=False),
        hunch.make(ENV, **OPTIONS, written=True, history=0),
    )
    for seed in (1, 2):
        far, near = there.reset(seed=seed), here.reset(seed=seed)
        assert (far[0], far[1]["task"]) == (near[0], near[1]["task"])
        for text in TEXTS:
            far, near = there.step(text), here.step(text)
            assert far[:4] == near[:4]
            assert all(far[4][name] == near[4][name] for name in ("success", "event", "free_text"))
    there.close()


def test_listed_actions_of_a_served_environment_are_the_admissible_ones(served):
    there, here = hunch.make(f"openenv:{served}"), hunch.make(ENV, **OPTIONS, history=0)
    for seed in (1, 2):
        far, near = there.reset(seed=seed), here.reset(seed=seed)
        assert far[1]["actions"] == near[1]["actions"]
        for _ in range(OPTIONS["max_steps"]):
            action = here.get_wrapper_attr("action_space").actions[seed]
            far, near = there.step(action), here.step(action)
            assert far[:4] == near[:4]
            assert far[4]["actions"] == near[4]["actions"]
        there.reset(seed=seed)
        with pytest.raises(UsageError, match="'fly away' is not admissible here"):
            there.step("fly away")
    with pytest.warns(HunchWarning, match="does not repeat its episodes"):
        result = hunch.train("zero-shot", there, 8, lm="uniform")
    assert result.complete
    assert [episode.length for episode in result.episodes] == [4, 4]
    there.close()


def test_another_client_reads_what_is_declared(served):
    with openenv.GenericEnvClient(served).sync() as client:
        shown = client.reset(seed=1).observation
        assert "look" in shown["actions"]
        result = client.step({"text": "fly away"})
        assert (result.reward, result.done, result.observation["text"]) == (0.0, False, "Nothing happens.")
        assert client.state()["step_count"] == 1
        with pytest.raises(RuntimeError, match=r"Invalid message|validation"):
            client.step({"words": "look"})
        assert client.step({"text": "look"}).observation["text"]  # the session goes on


def test_a_method_trains_on_a_server(served):
    envs = [hunch.make(f"openenv:{served}", listed=False) for _ in range(2)]
    made = methods.find("grpo").agent_class(lm=model("walks"), group=2, episodes=4, max_tokens=4)
    with pytest.warns(HunchWarning, match="does not repeat its episodes"):  # what they do not promise
        result = hunch.train(made, envs, steps=16)
    assert result.complete
    assert len(result.episodes) == 4
    for env in envs:
        env.close()


@pytest.mark.parametrize("end", [pytest.param(signal.SIGKILL, marks=pytest.mark.thorough), signal.SIGSTOP])
def test_a_client_that_vanishes_leaves_nothing(end, monkeypatch):
    """Killed, or silent with its connection open, as on a network that is gone."""
    monkeypatch.setattr(ext, "PING", 0.5)
    running, before = Running(Turns("hunch/FrozenLake-v0")), sessions()
    code = (
        "import sys, time, hunch\n"
        f"env = hunch.make('openenv:{running.url}')\n"
        "env.reset(seed=0); print('ready', flush=True); time.sleep(600)"
    )
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "ready\n"
        assert sessions() == before + 1
        os.kill(client.pid, end)
        until(lambda: sessions() == before)
    finally:
        client.kill()
        client.wait()
        running.stop()


def test_only_this_machine_reaches_it_unless_told():
    with pytest.raises(SystemExit) as end, socket.create_server(("127.0.0.1", 0)) as taken:
        main(["serve", "hunch/FrozenLake-v0", "--port", str(taken.getsockname()[1])])
    assert end.value.code == 2
    from hunch.cli.serve import ServeOptions

    assert ServeOptions().host == "127.0.0.1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name an environment"),
        (["hunch/Heuristic-BinPacking-v0"], "takes programs, which anyone who connects could run"),
        (["hunch/Nowhere-v0"], "There is no environment"),
        (["hunch/FrozenLake-v0", "--env.sise", "3"], "has no option 'sise'"),
        (["hunch/FrozenLake-v0", "--port", "99999"], "port"),
    ],
)
def test_what_cannot_be_served_is_said(arguments, said, capsys):
    with pytest.raises(SystemExit) as end:
        main(["serve", *arguments])
    assert end.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_server_that_is_gone_or_late_or_another_is_said(served):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UsageError, match=r"No OpenEnv server answers at .*: .*timed out"):
            hunch.make(f"openenv:{place}", seconds=0.2)
    with pytest.raises(UsageError, match=r"No OpenEnv server answers at .*: .*refused"):
        hunch.make(f"openenv:{place}")
    other = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    with answering(other), pytest.raises(UsageError, match="No OpenEnv server answers"):
        hunch.make(f"openenv:http://127.0.0.1:{other.server_address[1]}")
    with pytest.raises(UsageError, match="has no field 'words': it has"):
        hunch.make(f"openenv:{served}", text="words").reset(seed=0)
    running = Running(Turns("hunch/FrozenLake-v0"))
    env = hunch.make(f"openenv:{running.url}")
    env.reset(seed=0)
    running.stop()
    with pytest.raises(HunchError, match=r"The OpenEnv server at .* failed"):
        env.step("Go Left")


# ---- TextArena --------------------------------------------------------------------------------------------


def test_games_of_textarena_for_one_and_for_two():
    pytest.importorskip("textarena", reason="needs the extra 'textarena'")
    one = hunch.make("textarena:GuessTheNumber-v0")
    found = []
    for _ in range(2):
        told = [one.reset(seed=5)[0]]
        for number in range(1, 21):
            observation, reward, terminated, _, info = one.step(f"[{number}]")
            told.append(observation)
            if terminated:
                break
        found.append((told, reward, info["success"]))
    assert found[0] == found[1]
    rollout = Rollout([hunch.make("textarena:TicTacToe-v0")])
    taken = [rollout.step([move]) for move in ("[0]", "[4]", "[1]", "[5]", "[2]")]
    assert [(t.stream, t.reward, t.terminated) for t in taken[-1]] == [(0, 1.0, True), (1, -1.0, True)]


def test_a_move_that_a_game_refuses_is_named():
    """Once by a question for another, then by the end; in a game of two with the player."""
    pytest.importorskip("textarena", reason="needs the extra 'textarena'")
    one = hunch.make("textarena:GuessTheNumber-v0")
    one.reset(seed=0)
    events = [one.step(move)[4]["event"].splitlines() for move in ("[3]", "none", "none")]
    assert events[:2] == [[], ["Invalid move"]]
    assert events[2][0] == "Invalid move"
    two = Rollout([hunch.make("textarena:TicTacToe-v0")])
    refused = [
        [(t.stream, is_invalid(t)) for t in two.step([move])] for move in ("[0]", "none", "[4]", "[1]")
    ]
    assert refused == [[], [(1, True)], [(0, False)], [(1, False)]]


def test_games_of_textarena_that_are_odd():
    """One needs four players, and one gives the reason of an invalid move in place of its reward."""
    pytest.importorskip("textarena", reason="needs the extra 'textarena'")
    assert hunch.make("textarena:Taboo-v0").players == 4
    game = hunch.make("textarena:Cryptarithm-v0")
    game.reset(seed=0)
    steps = [game.step("none") for _ in range(2)]
    assert [reward for _, reward, *_ in steps] == [0.0, 0.0]
    assert steps[-1][2]


def test_a_game_without_its_words_is_one_line(tmp_path):
    """What nltk says on nine lines, in a frame of asterisks."""
    pytest.importorskip("textarena", reason="needs the extra 'textarena'")
    nowhere = {"NLTK_DATA": "/nowhere", "https_proxy": "http://127.0.0.1:9", "HOME": "/nowhere"}
    done = run(tmp_path, "-m", "hunch", "envs", "textarena:Wordle-v0", **nowhere)
    assert "python -m nltk.downloader words" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_textarena_has_not_is_said():
    pytest.importorskip("textarena", reason="needs the extra 'textarena'")
    with pytest.raises(UsageError, match="TextArena has no game 'Nope-v0'"):
        hunch.make("textarena:Nope-v0")
    with pytest.raises(UsageError, match="TicTacToe-v0 cannot be played by 1"):
        hunch.make("textarena:TicTacToe-v0", players=1)
    with pytest.raises(UsageError, match="needs two players"):
        Turns("textarena:TicTacToe-v0")
    made = methods.find("grpo").agent_class(lm=model("households"), group=2, max_tokens=4)
    games = [hunch.make("textarena:TicTacToe-v0") for _ in range(2)]
    single = pytest.raises(UsageError, match="Groups need environments of a single player")
    with pytest.warns(HunchWarning, match="does not repeat its episodes"), single:
        hunch.train(made, games, steps=16)


def test_a_game_that_an_invalid_move_ends_is_no_success_even_if_it_pays():
    pytest.importorskip("textarena", reason="needs the extra 'textarena'")
    env = hunch.make("textarena:GuessTheNumber-v0")
    env.reset(seed=0)
    env.step("[10]")  # a guess, which the game pays for by its distance
    ended = False
    while not ended:
        _, reward, ended, _, info = env.step("higher")
    assert reward > 0
    assert info["success"] is False
