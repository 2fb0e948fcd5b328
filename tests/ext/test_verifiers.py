"""Our environments in verifiers, and those of verifiers here: the two files of ``examples/verifiers``.

Run with ``make test-verifiers``: verifiers pins other versions of openai and mcp, so that it has an
environment of its own.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.lm.talker import Talker, chat
from tests.started import answering

import hunch
from hunch.core import Agent, HunchError, HunchWarning, State, Transition, World

BIN = os.environ.get("HUNCH_VERIFIERS", "")
"""The folder of programs of an environment into which ``examples/verifiers`` is installed."""
pytestmark = [
    pytest.mark.verifiers,
    pytest.mark.skipif(not BIN, reason="needs an environment of verifiers: make test-verifiers"),
]
TASKS = Path(__file__).parent / "verifiers_tasks"
ENV, OPTIONS = "hunch/FrozenLake-v0", {"max_steps": 12}


@contextmanager
def served(*command: str) -> Iterator[str]:
    """Start a server, and return the address that it prints."""
    variables = {**os.environ, "PYTHONPATH": str(TASKS)}
    process = subprocess.Popen(
        [*command, "--port", "0"], stdout=subprocess.PIPE, text=True, env=variables, start_new_session=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " is at http" in line
        yield line.split()[3] if line.split()[2] == "at" else line.split()[2]
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    pytest.importorskip("openenv", reason="needs the extra 'openenv'")
    options = [part for name, value in OPTIONS.items() for part in (f"--env.{name}", str(value))]
    with served(sys.executable, "-m", "hunch", "serve", ENV, *options) as address:
        yield address


def solution(seed: int) -> list[str]:
    """Return actions that solve the episode of a seed, found by chance."""
    rng = random.Random(0)
    env = hunch.make(ENV, **OPTIONS)
    for _ in range(20_000):
        _, info = env.reset(seed=seed)
        actions = []
        done = False
        while not done:
            actions.append(rng.choice(info["actions"]))
            *_, terminated, truncated, info = env.step(actions[-1])
            done = terminated or truncated
        if info["success"]:
            return actions
    raise AssertionError("no chance")


def evaluated(folder: Path, address: str, talker: Talker, *more: str) -> tuple[list[Any], str]:
    """Run ``vf-eval`` as the page does; return the episodes and the output."""
    asked = [f"{BIN}/vf-eval", "hunch-game", "--env.taskset.url", address, "-m", "m"]
    asked += ["--client.base-url", talker.url, "--no-push", "--no-rich", "-o", "out", *more]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line for file in folder.glob("out/*/traces.jsonl") for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines], done.stdout + done.stderr


@contextmanager
def player(actions: list[str]) -> Iterator[Talker]:
    """A model server that writes these actions, one after the other, in each conversation."""

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        number = sum(message["role"] == "assistant" for message in body["messages"])
        status, said = chat(actions[number % len(actions)])
        said["usage"]["total_tokens"] = 45
        return status, said | {"created": 1, "object": "chat.completion"}

    with answering(Talker()) as talker:
        talker.answer = answer
        yield talker


def test_verifiers_scores_a_model_in_our_environment(ours: str, tmp_path: Path) -> None:
    """Two routes: the return of verifiers is that of the same actions here, and the model reads the same."""
    actions = solution(0)
    with player(actions) as talker:
        episodes, _ = evaluated(tmp_path, ours, talker, "-n", "3")
    by_seed = {episode["task"]["data"]["seed"]: episode["traces"][0] for episode in episodes}
    assert sorted(by_seed) == [0, 1, 2]
    assert by_seed[0]["metrics"] == {"success": 1.0, "invalid_actions": 0.0}
    for seed, trace in by_seed.items():
        env = hunch.make(ENV, **OPTIONS, written=True, history=0)
        observation, _ = env.reset(seed=seed)
        texts = [observation]
        total = 0.0
        done = False
        while not done:
            action = actions[(len(texts) - 1) % len(actions)]
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            done = terminated or truncated
            texts.append(observation)
        assert trace["rewards"]["episode_return"]["score"] == total
        read = [node["message"]["content"] for node in trace["nodes"] if node["message"]["role"] == "user"]
        assert len(read) == len(texts) - 1  # nobody is asked after the end
        assert all(text in shown for text, shown in zip(texts, read, strict=False))


def test_actions_that_are_not_admissible_are_counted(ours: str, tmp_path: Path) -> None:
    with player(["fly away"]) as talker:
        episodes, _ = evaluated(tmp_path, ours, talker, "-n", "1", "--env.taskset.first", "7")
    (trace,) = episodes[0]["traces"]
    assert trace["metrics"] == {"success": 0.0, "invalid_actions": float(OPTIONS["max_steps"])}


def test_a_limit_of_verifiers_ends_an_episode(ours: str, tmp_path: Path) -> None:
    with player(["fly away"]) as talker:
        episodes, _ = evaluated(tmp_path, ours, talker, "-n", "1", "--env.player.max-turns", "2")
    (trace,) = episodes[0]["traces"]
    assert trace["metrics"]["invalid_actions"] == 2.0
    assert trace["stop_condition"] == "max_turns"


def test_a_server_that_is_gone_is_named(tmp_path: Path) -> None:
    with player(["fly away"]) as talker:
        episodes, _ = evaluated(tmp_path, "http://127.0.0.1:9", talker, "-n", "1")
    assert "hunch serve does not answer at http://127.0.0.1:9/ws" in episodes[0]["errors"][0]["message"]


# ---- tools and pictures -----------------------------------------------------------------------------------


@contextmanager
def caller(*replies: list[dict[str, str]] | str) -> Iterator[Talker]:
    """A model server that replies with texts or calls of tools, one after the other, in each conversation."""

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        number = sum(message["role"] == "assistant" for message in body["messages"])
        reply = replies[number % len(replies)]
        if isinstance(reply, str):
            status, said = chat(reply)
        else:
            calls = [
                {"id": f"call{number}{place}", "type": "function", "function": function}
                for place, function in enumerate(reply)
            ]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            status, said = chat("", message=message, finish_reason="tool_calls")
        said["usage"]["total_tokens"] = 45
        return status, said | {"created": 1, "object": "chat.completion"}

    with answering(Talker()) as talker:
        talker.answer = answer
        yield talker


@pytest.fixture(scope="module")
def sums() -> Iterator[str]:
    pytest.importorskip("openenv", reason="needs the extra 'openenv'")
    with served(sys.executable, "-m", "hunch", "serve", "tools_of_sums:sums", "--env.n", "3") as address:
        yield address


def called(a: object, b: object) -> dict[str, str]:
    return {"name": "add", "arguments": json.dumps({"a": a, "b": b})}


def test_tools_are_called_in_the_form_of_the_chat_api(sums: str, tmp_path: Path) -> None:
    """Two calls at once, one with a wrong argument, and the answer: the model is shown what happens here."""
    with caller([called(17, 25), called(1, 2)], [called("x", 1)], "It is 42.") as talker:
        episodes, _ = evaluated(tmp_path, sums, talker, "-n", "1")
        last = talker.asked[-1][1]
    (trace,) = episodes[0]["traces"]
    assert trace["rewards"]["episode_return"]["score"] == 1.0
    assert trace["metrics"] == {"success": 1.0, "invalid_actions": 1.0}
    assert [tool["function"]["name"] for tool in last["tools"]] == ["add"]
    roles = [message["role"] for message in last["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    said = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert said[:2] == ["add returned: 42\nadd returned: 3", "See the result of the first call."]
    assert said[2].startswith('The call is refused: add: "x" does not fit a')


def test_tools_may_be_called_in_words(sums: str, tmp_path: Path) -> None:
    with caller('{"name": "add", "arguments": {"a": 17, "b": 25}}', "It is\n42.") as talker:
        options = ("-n", "1", "--env.taskset.native", "false")
        episodes, _ = evaluated(tmp_path, sums, talker, *options)
        last = talker.asked[-1][1]
    (trace,) = episodes[0]["traces"]
    assert trace["metrics"] == {"success": 1.0, "invalid_actions": 0.0}
    assert "tools" not in last
    assert last["messages"][-1] == {"role": "user", "content": "add returned: 42"}


def test_pictures_are_images(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="needs the extra 'openenv'")
    command = (sys.executable, "-m", "hunch", "serve", ENV, "--env.max_steps", "2")
    shown = ("--env.render_mode", "rgb_array", "--env.picture", "true")
    with served(*command, *shown) as address, player(["Go Down"]) as talker:
        evaluated(tmp_path, address, talker, "-n", "1")
        asked = [body["messages"][-1]["content"] for _, body in talker.asked]
    assert len(asked) == 2
    for text, image in asked:
        assert text["type"] == "text"
        assert image["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


@pytest.fixture(scope="module")
def guessing() -> Iterator[str]:
    pytest.importorskip("websockets", reason="needs the extra 'openenv'")
    with served(f"{BIN}/verifiers-serve", "guessing", "--env.taskset.most", "8") as address:
        yield address


def play(env: Any, seed: int, texts: list[str]) -> list[tuple[str, float, bool, bool, str]]:
    env.reset(seed=seed)
    course = []
    for text in texts:
        observation, reward, terminated, _, info = env.step(text)
        course.append((observation, reward, terminated, info["success"], info["event"]))
    return course


def test_an_environment_of_verifiers_is_one_here(guessing: str) -> None:
    env = hunch.make(f"openenv:{guessing}")
    assert env.reset(seed=1)[0] == "Guess a number from 0 to 7."
    first = ("The number is higher.", 0.0, False, False, "")
    last = ("The episode is over.", 1.0, True, True, "solved 1, turns 2")
    assert play(env, 1, ["3", "5"]) == [first, last]
    assert play(env, 1, ["3", "5"]) == [first, last], "the same seed, the same episode"
    assert play(env, 1001, ["3", "5"]) == [first, last], "seeds count round"
    assert play(env, 2, ["x"] * 4)[-1][3] is False
    env.close()


def test_sessions_do_not_mix(guessing: str) -> None:
    envs = [hunch.make(f"openenv:{guessing}") for _ in range(3)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)  # the numbers 0, 5 and 2
    hints = [env.step("3")[0] for env in envs]
    assert hints == ["The number is lower.", "The number is higher.", "The number is lower."]
    assert [env.step(number)[1] for env, number in zip(envs, "052", strict=True)] == [1.0, 1.0, 1.0]


def test_a_game_that_fails_is_named_and_the_next_begins(guessing: str) -> None:
    env = hunch.make(f"openenv:{guessing}")
    env.reset(seed=0)
    with pytest.raises(HunchError, match="RuntimeError: the game failed"):
        env.step("fail")
    assert play(env, 0, ["0"])[-1][1] == 1.0


class Guesser(Agent):
    """Halves what is left, as the hints say."""

    def begin(self, world: World, seed: int) -> None:
        self.low, self.high = 0, 7

    def act(self, states: Sequence[State]) -> list[str]:
        return [str((self.low + self.high) // 2) for _ in states]

    def observe(self, transitions: Sequence[Transition]) -> None:
        for transition in transitions:
            guess = int(transition.action)
            if transition.done:
                self.low, self.high = 0, 7
            elif "higher" in transition.next_state.observation:
                self.low = guess + 1
            else:
                self.high = guess - 1

    def player(self, seed: int) -> Guesser:
        return Guesser()


def test_a_run_of_ours_plays_it(guessing: str) -> None:
    with pytest.warns(HunchWarning, match="does not repeat its episodes"):
        result = hunch.train(Guesser(), f"openenv:{guessing}", 30)
    assert result.complete
    assert len(result.episodes) >= 8
    assert all(episode.success for episode in result.episodes)


def test_a_task_with_one_answer_is_an_episode_of_one_step() -> None:
    pytest.importorskip("websockets", reason="needs the extra 'openenv'")
    with served(f"{BIN}/verifiers-serve", "reversing") as address:
        env = hunch.make(f"openenv:{address}")
        assert env.reset(seed=0)[0] == "Reverse the word lamp."
        assert play(env, 0, ["pmal"])[0][1:4] == (1.0, True, True)
        assert play(env, 3, ["lamp"])[0][1:4] == (0.0, True, False)
