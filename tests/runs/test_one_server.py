"""Many runs ask one model server: all of them get on, and their budget holds."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lm.talker import Talker, chat
from tests.started import answering, run

STEPS = 8
PROBES = ("The sky is", "What is 1 + 2?", "Answer with A or B.")
"""What the small requests at load ask."""


class Busy(Talker):
    """A server with eight places, and a queue of 64; who comes then is sent away for a moment."""

    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__()
        self.places = threading.Semaphore(8)
        self.counting = threading.Lock()
        self.waiting = 0
        self.counts: Counter[str] = Counter()
        self.answer = self.serve

    def serve(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asked.clear()  # thousands of bodies are not needed
        if path.endswith("/models"):
            return 200, {"data": [{"id": "m"}]}
        if "chat" not in path or body.get("logprobs"):
            return 404, {"error": {"message": "no such route"}}
        kind = "probes" if any(probe in json.dumps(body) for probe in PROBES) else "answers"
        with self.counting:
            if self.waiting >= 64:
                self.counts["sent away"] += 1
                return 429, {"error": {"message": "the queue is full"}}
            self.waiting += 1
        with self.places:
            time.sleep(0.005)
        with self.counting:
            self.waiting -= 1
            self.counts[kind] += 1
        return chat("look", read=len(json.dumps(body)) // 4)


@pytest.fixture
def server() -> Iterator[Busy]:
    with answering(Busy()) as busy:
        yield busy


def compared(folder: Path, server: Busy, runs: int, *more: str) -> Any:
    """Start the runs, all at once, each with games of its own, whose questions nobody else asks."""
    options = (
        f"--env.pool_seed seed --env.games 1 --steps {STEPS} --seeds {runs} --workers {runs} --no-control"
    )
    arguments = ["zero-shot", "--env", "hunch/Household-Pick-v0", *options.split()]
    model = f"openai:m?base_url={server.url}&concurrency=2"
    settings = {"HUNCH_CACHE": str(folder / "cache.sqlite")}
    asked = (
        "-m",
        "hunch",
        "compare",
        *arguments,
        "--lm",
        model,
        "--prior.way",
        "text",
        "--out",
        "runs",
        *more,
    )
    return run(folder, *asked, **settings)


def summaries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("runs/**/summary.json")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "runs", [6, pytest.param(200, marks=[pytest.mark.thorough, pytest.mark.timeout(3600)])]
)
def test_nobody_starves_and_the_budget_holds(server: Busy, tmp_path: Path, runs: int) -> None:
    budget = runs * STEPS // 2
    stopped = compared(tmp_path, server, runs, "--budget.calls", str(budget))
    assert stopped.returncode == 1
    assert "were stopped by the budget" in stopped.stderr
    first = server.counts["answers"]
    assert budget // 2 <= first <= budget

    done = compared(tmp_path, server, runs)
    assert done.returncode == 0, done.stderr[-2000:]
    ends = summaries(tmp_path)
    assert [end["steps"] for end in ends] == [STEPS] * runs
    assert all(end["complete"] for end in ends)
