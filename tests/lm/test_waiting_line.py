"""Whoever waits for a model sees a line that moves, in a terminal and nowhere else."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from talker import Talker, chat, only_chat

from hunch.lm import waiting
from hunch.lm.waiting import Wait

ASKS = """
import sys
from hunch import lm
model = lm.load("openai:m", cache=None, base_url=sys.argv[1], concurrency=2)
print(len(model.generate([f"Question {n}" for n in range(4)])))
"""
RUNS = """
import sys
from hunch.cli.main import main
main(["run", "zero-shot", "--env", "hunch/FrozenLake-v0", "--lm", f"openai:m?base_url={sys.argv[1]}",
      "--steps", "2", "--eval-episodes", "1", "--env.max-steps", "1", "--out", sys.argv[2]])
"""


def slow(server: Talker, *seconds: float) -> None:
    """Let each of the first answers to questions take so long, and all others as long as the last."""
    ended = threading.Event()
    left = itertools.chain(seconds, itertools.repeat(seconds[-1]))

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "Question" in str(body) or "allowed to take" in str(body):
            ended.wait(next(left))
            return chat("Go Right")
        return only_chat(path, body)

    server.answer = answer


def in_terminal(code: str, *arguments: str) -> str:
    """Run a program whose standard error is a terminal; return what it showed there."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
    program = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    assert program.wait() == 0, shown.decode()
    return shown.decode()


def test_the_line_moves_and_is_gone_at_the_end(talker: Talker) -> None:
    slow(talker, 2.5, 2.5, 1.0)
    shown = in_terminal(ASKS, talker.url)
    assert "openai:m: 0 of 4 answered, waiting for 2 s" in shown
    assert "openai:m: 2 of 4 answered," in shown
    assert "tokens/s, about " in shown
    assert shown.endswith(f"{waiting.CLEAR}\r")


def test_below_two_seconds_there_is_no_line(talker: Talker) -> None:
    slow(talker, 0.1)
    assert "answered" not in in_terminal(ASKS, talker.url)


def test_in_a_pipe_there_is_no_line(talker: Talker) -> None:
    slow(talker, 2.5, 2.5, 0.0)
    program = subprocess.run([sys.executable, "-c", ASKS, talker.url], capture_output=True, text=True)
    assert (program.stdout, program.stderr) == ("4\n", "")


def test_progress_bars_show_the_line(talker: Talker, tmp_path: Any) -> None:
    slow(talker, 2.6, 0.0)
    shown = in_terminal(RUNS, talker.url, str(tmp_path / "run"))
    assert "openai:m: 0 of 1 answered, waiting for" in shown
    assert waiting.CLEAR + "openai:m:" not in shown, "the bars show it, and nothing else writes among them"


def test_the_line_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [100]
    now = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    wait = Wait("m", 40, lambda: written[0])
    assert wait.line() == "m: 0 of 40 answered, waiting for 0 s"
    now[0], written[0], wait.answered = 60.0, 350, 10
    assert wait.line() == "m: 10 of 40 answered, 25.0 tokens/s, about 30 s left"
    now[0] = 50.0 + 3600
    assert wait.line() == "m: 10 of 40 answered, 0.1 tokens/s, about 3.0 h left"
    assert len(Wait("m" * 300, 4).line()) == waiting.WIDTH
