"""What passes is waited for, what cannot pass is not asked again, and after Ctrl-C nothing new begins."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from talker import Answer, Talker, chat, only_chat
from tests import started

from hunch import lm
from hunch.core import HunchError
from hunch.lm import stopping
from hunch.lm.backends import http as network


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "FIRST_WAIT", 0.02)


def load(server: Talker, **options: Any) -> lm.Cached:
    return lm.load("openai:m", cache=None, base_url=server.url, evidence="L0", **options)


def failing(status: int, message: str, times: int) -> Answer:
    """Chat fails so often."""
    left = [times]

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "chat" in path and left[0]:
            left[0] -= 1
            return status, {"error": {"message": message}}
        return only_chat(path, body)

    return answer


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_that_is_busy_or_loading_is_waited_for_by_patience(talker: Talker, status: int) -> None:
    talker.answer = failing(status, "Loading model", 4)
    assert load(talker, retries=0, patience=30).generate(["Where?"]) == [["go north"]]
    model = load(talker, retries=0, patience=30)
    talker.answer = failing(status, "overloaded", 4)
    assert model.generate(["Where to?"]) == [["go north"]]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "no key"),
        (402, "pay"),
        (404, "gone"),
        (501, "not here"),
        (429, "You exceeded your current quota."),
    ],
)
def test_what_cannot_pass_is_asked_once(talker: Talker, status: int, message: str) -> None:
    model = load(talker, retries=5)
    talker.asked.clear()
    talker.answer = failing(status, message, 99)
    with pytest.raises(HunchError, match=f"HTTP {status}"):
        model.generate(["Where?"])
    assert len(talker.asked) == 1


@pytest.mark.parametrize("late", [504, 0])
def test_what_timed_out_is_asked_once_more_with_twice_the_time(talker: Talker, late: int) -> None:
    model = load(talker, retries=5, timeout=0.2)
    talker.asked.clear()
    ended = threading.Event()

    def slow(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if not late:
            ended.wait(5)
        return 504, {"error": {"message": "upstream timed out"}}

    talker.answer = slow
    start = time.monotonic()
    with pytest.raises(HunchError, match="HTTP 504" if late else r"within 0\.4 seconds: a larger timeout="):
        model.generate(["Where?"])
    ended.set()
    assert len(talker.asked) == 2
    assert late or 0.6 <= time.monotonic() - start < 5


@pytest.mark.parametrize("route", ["/v1/completions", "/v1/embeddings"])
def test_a_probe_that_fails_by_itself_is_not_asked_again_and_again(talker: Talker, route: str) -> None:
    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == route:
            return 500, {"error": {"message": "list index out of range"}}
        return only_chat(path, body)

    talker.answer = answer
    assert "generate" in load(talker, retries=6).verbs
    assert sum(path == route for path, _ in talker.asked) <= 2


def test_nothing_new_begins_once_the_user_wants_to_stop(talker: Talker) -> None:
    """Requests under way are answered and kept; the others are not sent, and no retry begins."""
    model = load(talker, concurrency=2, retries=5)
    begun = threading.Event()

    def slow(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        begun.set()
        time.sleep(0.3)
        return chat("go north")

    talker.answer = slow
    talker.asked.clear()
    timer = threading.Thread(target=lambda: (begun.wait(), time.sleep(0.1), stopping.stop()))
    timer.start()
    prompts = [f"Where, {number}?" for number in range(8)]
    try:
        with pytest.raises(KeyboardInterrupt):
            model.generate(prompts)
        assert len(talker.asked) == 2
    finally:
        timer.join()
        stopping.go_on()
    asked = [body["messages"][-1]["content"] for _, body in talker.asked]
    talker.asked.clear()
    assert model.generate(asked) == [["go north"]] * 2
    assert talker.asked == []


def test_a_run_that_is_stopped_asks_nothing_more(talker: Talker, tmp_path: Path) -> None:
    """By Ctrl-C in a terminal, while the server takes its time; the same command then ends the run."""
    waits = threading.Event()

    def slow(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "chat" in path and body.get("max_tokens", 0) > 4 and not waits.is_set():
            waits.wait(20)
        return only_chat(path, body) if "chat" not in path else chat("Go Right")

    talker.answer = slow
    spec = f"openai:m?base_url={talker.url}&timeout=1&retries=5"
    command = [
        sys.executable,
        "-m",
        "hunch",
        "run",
        "zero-shot",
        "--env",
        "hunch/FrozenLake-v0",
        "--lm",
        spec,
    ]
    command += ["--steps", "6", "--out", str(tmp_path / "run")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while run.poll() is None and not any(body.get("max_tokens", 0) > 4 for _, body in talker.asked):
        time.sleep(0.05)
    asked = len(talker.asked)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=60)
    assert (run.returncode, len(talker.asked)) == (130, asked), said
    assert "Traceback" not in said
    waits.set()
    again = started.run(tmp_path, *command[1:])
    assert again.returncode == 0, again.stderr
