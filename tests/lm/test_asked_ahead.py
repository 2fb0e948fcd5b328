"""Questions that go out while Q learns: to a real server that takes its time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from talker import Talker, chat, only_chat

import hunch
from hunch import lm
from hunch.core import HunchError, UsageError
from hunch.lm.ahead import Ahead
from hunch.lm.answers.archive import Archive
from hunch.methods.prior.dqn_prior import DQNPrior, DQNPriorConfig
from hunch.roles import PriorConfig, TextTable, build_prior

DIRECTIONS = ("left", "down", "right", "up")
SECONDS = 0.02
"""How long the server takes for an answer."""
SMALL = {"hidden": 16, "warmup": 4, "batch_size": 16, "update_every": 1, "k": 2}


class Timed(DQNPrior):
    """Notes when it learns."""

    def learn(self) -> dict[str, float]:
        begin = time.monotonic()
        metrics = super().learn()
        self.learnt.append((begin, time.monotonic()))
        return metrics


class Server:
    """How the talker answers: slowly, by the seed of the request; it notes when."""

    def __init__(self, talker: Talker) -> None:
        self.talker = talker
        self.answered: list[tuple[float, float]] = []
        self.fails_after = 10**9
        talker.answer = self.answer

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "chat" not in path or "seed" not in body:
            return only_chat(path, body)
        begin = time.monotonic()
        time.sleep(SECONDS)
        self.answered.append((begin, time.monotonic()))
        if len(self.answered) > self.fails_after:
            return 400, {"error": {"message": "no more"}}
        return chat(DIRECTIONS[body["seed"] % 4])

    def agent(self, **options: Any) -> Timed:
        model = lm.load("openai:m", base_url=self.talker.url, chat=True, evidence="L0", cache=None, retries=0)
        prior = build_prior(PriorConfig(way="text"), model)
        agent = Timed(prior, TextTable(lm.load("bag-of-words")), **{**SMALL, **options})
        agent.learnt = []
        self.answered.clear()
        return agent


@pytest.fixture
def slow(talker: Talker) -> Server:
    return Server(talker)


def trained(agent: DQNPrior, steps: int = 40, **more: Any) -> list[Any]:
    result = hunch.train(agent, "hunch/FrozenLake-v0", steps, streams=hunch.Streams(envs=2), **more)
    return [episode.actions for episode in result.episodes]


def overlap(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    """Return the seconds in which a span of each list lies over another."""
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in one for b in other)


def test_the_model_answers_while_q_learns(slow: Server) -> None:
    """Without the setting, no answer is under way while Q learns; with it, many are."""
    large = {"hidden": 256, "batch_size": 512}  # so that an update takes about as long as an answer
    agent = slow.agent(**large)
    trained(agent)
    assert overlap(slow.answered, agent.learnt) == 0.0
    agent = slow.agent(ahead=True, **large)
    trained(agent)
    meanwhile = [answer for answer in slow.answered if overlap([answer], agent.learnt) > 0]
    assert len(meanwhile) > len(slow.answered) / 4


@pytest.mark.parametrize("proposals", ["visited", "kept"])
def test_the_same_seed_is_the_same_run(slow: Server, proposals: str, tmp_path: Path) -> None:
    """However fast the server is; and answers from a file, which come at once, give the same run, too."""
    first, again = (trained(slow.agent(ahead=True, proposals=proposals)) for _ in range(2))
    assert first == again
    other = trained(slow.agent(ahead=True, proposals=proposals), seed=1)
    assert first != other

    asked = lm.load(
        "openai:m", base_url=slow.talker.url, chat=True, evidence="L0", cache=tmp_path / "a.sqlite"
    )
    config = DQNPriorConfig(ahead=True, proposals=proposals, prior=PriorConfig(way="text"), **SMALL)
    table = TextTable(lm.load("bag-of-words"))
    stored = trained(DQNPrior(build_prior(config.prior, asked), table, config))
    Archive(tmp_path / "a.sqlite").export(tmp_path / "a.jsonl")
    replayed = lm.load(f"replay:{tmp_path / 'a.jsonl'}", cache=None)
    assert trained(DQNPrior(build_prior(config.prior, replayed), table, config)) == stored


def test_a_run_that_is_resumed_goes_on_as_if_it_had_not_stopped(slow: Server, tmp_path: Path) -> None:
    whole = trained(slow.agent(ahead=True), 40)
    trained(slow.agent(ahead=True), 20, out=tmp_path / "run")
    assert trained(slow.agent(ahead=True), 40, out=tmp_path / "run") == whole


def test_every_step_is_stored_before_the_next_action(slow: Server) -> None:
    agent = slow.agent(ahead=True)
    trained(agent, 40)
    agent.store_awaited()
    assert len(agent.learner.replay) == 40


def test_what_the_model_refuses_ends_the_run_with_one_sentence(slow: Server) -> None:
    agent = slow.agent(ahead=True)
    slow.fails_after = 12
    with pytest.raises(HunchError, match="no more"):
        trained(agent)


def test_what_is_drawn_at_each_use_cannot_be_asked_ahead() -> None:
    with pytest.raises(UsageError, match="proposals"):
        DQNPrior(build_prior(PriorConfig(), lm.load("uniform")), None, ahead=True, proposals="fresh")


@pytest.mark.parametrize("in_thread", [True, False])
def test_an_error_is_raised_where_the_answer_is_wanted(in_thread: bool) -> None:
    def ask() -> None:
        raise KeyboardInterrupt

    question = Ahead(ask, in_thread=in_thread)
    with pytest.raises(KeyboardInterrupt):
        question.result()
