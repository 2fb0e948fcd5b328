"""Anthropic's protocol, over a local server."""

from __future__ import annotations

from typing import Any

import pytest
from server import Server

from hunch import lm
from hunch.core import HunchError, UsageError
from hunch.lm import Cached, Sampling
from hunch.lm.backends import http as network

PROMPTS = [f"You are in room {i}. You see a mug {i}.\nAction:" for i in range(6)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "FIRST_WAIT", 0.02)


def load(server: Server, **options: Any) -> Cached:
    url = server.url.removesuffix("/v1")
    return lm.load("anthropic:gpt2", cache=None, base_url=url, **{"evidence": "L0", **options})


def test_it_writes_and_nothing_else(server: Server) -> None:
    model = load(server)
    assert model.verbs == {"generate"}
    texts = model.generate(PROMPTS, 2, Sampling(max_tokens=5))
    assert model.generate(PROMPTS, 2, Sampling(max_tokens=5)) == texts
    assert (model.usage.calls, model.usage.cache_hits) == (12, 12)
    assert model.usage.prompt_tokens > model.usage.completion_tokens > 0
    assert "stop_sequences" not in server.seen[-1][2]
    model.generate(PROMPTS[:1], sampling=Sampling(stop=("\n", "END"), top_p=0.5))
    assert (server.seen[-1][2]["stop_sequences"], server.seen[-1][2]["top_p"]) == (["END"], 0.5)
    with pytest.raises(UsageError, match="does not have the verb 'score'"):
        model.score(PROMPTS[:1], [["go"]])


def test_faults_are_survived(server: Server) -> None:
    wanted = load(server).generate(PROMPTS, 3)
    server.share = 0.5
    model = load(server, retries=30)
    assert model.generate(PROMPTS, 3) == wanted
    assert model.model.retries > 0


def test_the_key_is_sent_and_not_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.key = "right"
    monkeypatch.setenv("HUNCH_API_KEY", "wrong-key")
    with pytest.raises(HunchError, match=r"comes from HUNCH_API_KEY\): .*\[key\]") as caught:
        load(server).generate(PROMPTS[:1])
    assert "wrong-key" not in repr(caught.value)
    monkeypatch.setenv("HUNCH_API_KEY", "right")
    assert load(server).generate(PROMPTS[:1])
    monkeypatch.delenv("HUNCH_API_KEY")
    with pytest.raises(UsageError, match="HUNCH_API_KEY or ANTHROPIC_API_KEY"):
        lm.load("anthropic:x", cache=None)
