"""Servers that lie: about what they cost, who they are, what they wrote, and with the key in many forms."""

from __future__ import annotations

import base64
import codecs
import itertools
import json
import logging
import socket
import urllib.parse
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.started import answering

from hunch import lm
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.lm import Budget, BudgetError, Cached, Sampling
from hunch.lm.backends import http as network
from hunch.lm.backends import remote
from hunch.lm.backends.account import is_near, is_provider
from hunch.lm.backends.replies import most, stated
from hunch.lm.budget import Ledger
from hunch.lm.speech import estimate_tokens

KEY = "sk-planted-9e2b71c04d"
USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
SAMPLING = Sampling(max_tokens=8)
PROMPTS = [f"Room {number}.\nAction:" for number in range(80)]
Message = dict[str, Any]


def ours(warned: Any) -> list[Any]:
    """Our own warnings; a file or socket that another test left open may be warned of at any time."""
    return [warning for warning in warned if issubclass(warning.category, HunchWarning)]


class Liar(ThreadingHTTPServer):
    """A chat server that lies as it is told to.

    Attributes:
        lie: Turns an honest reply into the one that is sent; it may return a text.
        headers: Headers that every reply has besides.
        status: Status and reason of every reply, if not 200.
        lists: Names of its models.
        asked: The bodies of the chat requests so far.
        seen: The headers of all requests so far.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lie: Callable[[Message], Any] = lambda reply: reply
        self.headers: dict[str, str] = {}
        self.status, self.reason = 200, "OK"
        self.lists = ["m"]
        self.numbers = itertools.count()
        self.asked: list[Message] = []
        self.seen: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def reply(self, path: str, body: Message | None) -> Any:
        if path == "/v1/models":
            return {"data": [{"id": name} for name in self.lists]}
        if path not in ("/v1/chat/completions", "/v1/messages"):
            return None
        self.asked.append(body or {})
        marks: Message = {"id": f"reply-{next(self.numbers)}", "model": "m"}
        if path == "/v1/messages":
            usage = {"input_tokens": 10, "output_tokens": 2}
            content = [{"type": "text", "text": "go left"}]
            return self.lie(marks | {"content": content, "stop_reason": "end_turn", "usage": usage})
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "go left"},
        }
        return self.lie(marks | {"choices": [choice], "usage": dict(USAGE)})


class Handler(BaseHTTPRequestHandler):
    wbufsize = -1  # headers and body in one packet: the second would wait 40 ms for the first
    protocol_version = "HTTP/1.1"
    server: Liar

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.answer(None)

    def do_POST(self) -> None:
        self.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def answer(self, body: Message | None) -> None:
        self.server.seen.append({name.lower(): value for name, value in self.headers.items()})
        path = urllib.parse.urlsplit(self.path).path  # a proxy gets the whole address
        reply = self.server.reply(path, body)
        status, reason = (404, "Not Found") if reply is None else (self.server.status, self.server.reason)
        text = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
        self.send_response(status, reason)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> Iterator[Liar]:
    for name in ("HUNCH_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(network, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(network, "LONGEST_WAIT", 0.05)
    with answering(Liar()) as server:
        yield server


def load(liar: Liar, cache: Path | None = None, **options: Any) -> Cached:
    chosen = {"base_url": liar.url, "evidence": "L0", "retries": 2, "concurrency": 1, **options}
    return lm.load("openai:m", cache=cache, **chosen)


def claude(liar: Liar, **options: Any) -> Cached:
    url = liar.url.removesuffix("/v1")
    return lm.load("anthropic:m", cache=None, base_url=url, evidence="L0", retries=2, **options)


def one_by_one(model: Cached) -> None:
    for prompt in PROMPTS:
        model.generate([prompt], sampling=SAMPLING)


def stating(usage: Any) -> Callable[[Message], Message]:
    return lambda reply: reply | {"usage": usage}


def saying(finish: str | None = "stop", **message: Any) -> Callable[[Message], Message]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return lambda reply: reply | {"choices": [choice]}


# What it cost


NUMBERS = {
    "none": None,
    "negative": {"prompt_tokens": -10, "completion_tokens": -2},
    "infinite": {"prompt_tokens": float("inf"), "completion_tokens": float("inf")},
    "no number": {"prompt_tokens": float("nan"), "completion_tokens": float("nan")},
    "text": {"prompt_tokens": "10", "completion_tokens": "2"},
    "zero": {"prompt_tokens": 0, "completion_tokens": 0},
    "booleans": {"prompt_tokens": True, "completion_tokens": True},
    "half": {"prompt_tokens": 10},
    "a list": [10, 2],
    "nothing in it": {},
    "fewer than the words": {"prompt_tokens": 1, "completion_tokens": 1},
    "less than the total": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 400},
}


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
@pytest.mark.parametrize("budget", [Budget(money=400), Budget(tokens=400)])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_a_budget_holds_whatever_a_server_says_of_its_tokens(
    liar: Liar, numbers: str, budget: Budget
) -> None:
    """A reply without valid counts costs the most that its request could, after the server was loaded."""
    model = load(liar, price_in=1e6, price_out=1e6)
    ledger = Ledger({"lm": model}, budget)
    liar.lie = stating(NUMBERS[numbers])
    liar.asked.clear()
    with ledger.enforced(), pytest.raises(BudgetError, match="budget of 400"):
        one_by_one(model)
    assert len(liar.asked) <= 400 // 12, "as many as honest counts would allow, or fewer"
    assert ledger.total()["cost"] >= 400


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
@pytest.mark.parametrize("numbers", ["none", "negative", "honest"])
@pytest.mark.parametrize("budget", [Budget(money=400), Budget(tokens=400)])
def test_a_budget_holds_within_a_batch(liar: Liar, tmp_path: Path, numbers: str, budget: Budget) -> None:
    """It ends after as many requests as it pays for, and those under way then; their answers are kept."""
    model = load(liar, tmp_path / "a.sqlite", price_in=1e6, price_out=1e6, concurrency=4)
    ledger = Ledger({"lm": model}, budget)
    liar.lie = stating(NUMBERS.get(numbers, USAGE))
    liar.asked.clear()
    with ledger.enforced(), pytest.raises(BudgetError, match="budget of 400"):
        model.generate(PROMPTS, sampling=SAMPLING)
    served = len(liar.asked)
    assert served <= 400 // 12 + 4
    assert model.in_flight == 0
    assert model.usage.calls == served
    model.generate(PROMPTS, sampling=SAMPLING)
    assert len(liar.asked) == len(PROMPTS)


def test_possible_counts_are_paid_as_stated(liar: Liar) -> None:
    """A token may stand for several words, but a long answer is not one token."""
    model, long = load(liar), "go left and then on " * 40
    liar.lie = lambda reply: (
        saying(content=long)(reply) | {"usage": {"prompt_tokens": 9, "completion_tokens": 60}}
    )
    model.generate(PROMPTS[:1], sampling=Sampling(max_tokens=500))
    assert (model.usage.prompt_tokens, model.usage.completion_tokens) == (9, 60)
    liar.lie = lambda reply: (
        saying(content=long)(reply) | {"usage": {"prompt_tokens": 9, "completion_tokens": 9}}
    )
    with pytest.warns(HunchWarning, match="states no valid token counts"):
        model.generate(PROMPTS[1:2], sampling=Sampling(max_tokens=500))
    assert model.usage.completion_tokens == 60 + 500


def test_a_count_of_the_first_text_is_valid_however_many_there_are() -> None:
    """llama.cpp counts the tokens of the first of several texts, which are fewer than those of all."""
    body = {"prompt": "Tell a story.", "n": 5, "max_tokens": 60}
    texts = [f"Once there was a wise old man who lived in the old age of {age} years." for age in range(5)]
    reply = {
        "choices": [{"index": index, "text": text} for index, text in enumerate(texts)],
        "usage": {"prompt_tokens": 5, "completion_tokens": 17, "total_tokens": 22},
    }
    assert stated(body, reply) == (5, None)  # too few for all the words
    estimate = sum(map(estimate_tokens, texts[1:]))
    assert stated(body, reply, of_first_text=True) == (5, 17 + estimate)
    assert most(body) == (len(json.dumps(body)), 5 * 60)


def test_a_deep_reply_is_counted(liar: Liar) -> None:
    model, deep = load(liar), "x"
    for _ in range(400):
        deep = {"text": [deep]}
    liar.lie = lambda reply: reply | {"choices": [reply["choices"][0] | {"text": deep}]}
    assert model.generate(PROMPTS[:1], sampling=SAMPLING) == [["go left"]]


def test_missing_counts_are_told_once(liar: Liar) -> None:
    model = load(liar)
    liar.lie = stating(None)
    with pytest.warns(HunchWarning, match="states no valid token counts") as told:
        model.generate(PROMPTS[:5], sampling=SAMPLING)
    assert len(ours(told)) == 1


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
def test_a_budget_holds_where_nothing_is_asked_at_load(liar: Liar) -> None:
    model = claude(liar, price_in=1e6, price_out=1e6)
    liar.lie = stating({"input_tokens": -1})
    with Ledger({"lm": model}, Budget(money=400)).enforced(), pytest.raises(BudgetError):
        one_by_one(model)
    assert len(liar.asked) <= 400 // 12


@pytest.mark.parametrize("price", [float("inf"), float("nan"), -1.0])
def test_a_price_is_a_number(liar: Liar, price: float) -> None:
    with pytest.raises(UsageError, match="price per million tokens"):
        load(liar, price_in=price)


def half_the_time(liar: Liar) -> Callable[[Message], Any]:
    """Every other reply breaks off."""
    return lambda reply: json.dumps(reply)[:60] if len(liar.asked) % 2 else reply


def test_a_repeated_request_counts_as_one_more(liar: Liar) -> None:
    """Requests served and recorded are the same number, and a broken reply costs what it could cost."""
    model = load(liar, price_in=1e6)
    liar.asked.clear()
    liar.lie = half_the_time(liar)
    model.generate(PROMPTS[:5], sampling=SAMPLING)
    assert model.usage.calls == len(liar.asked) == 10
    assert model.usage.retries == 5
    assert model.usage.cost > 5 * 10 + 5 * 10


def test_a_budget_of_calls_is_not_exceeded_by_retries(liar: Liar) -> None:
    model = load(liar, retries=50)
    ledger = Ledger({"lm": model}, Budget(calls=20))
    begun = int(ledger.total()["calls"])
    liar.asked.clear()
    liar.lie = lambda _: "<html>"
    with ledger.enforced(), pytest.raises(BudgetError, match="budget of 20 calls is reached"):
        model.generate(PROMPTS[:1], sampling=SAMPLING)
    assert len(liar.asked) == 20 - begun
    assert ledger.total()["calls"] == 20
    assert model.in_flight == 0


def test_requests_that_fail_for_good_are_counted(liar: Liar) -> None:
    model = load(liar)
    liar.asked.clear()
    liar.lie = lambda _: "<html>"
    with pytest.raises(HunchError, match="sent a web page"):
        model.generate(PROMPTS[:1], sampling=SAMPLING)
    assert model.usage.calls == len(liar.asked) == 3


# What it wrote


SILENT = {
    "null": (saying(content=None), "wrote no text"),
    "no content": (saying(), "wrote no text"),
    "a tool": (saying("tool_calls", content=None, tool_calls=[{"id": "1"}]), "calls a tool"),
    "a tool and nothing": (saying("tool_calls", content="", tool_calls=[{"id": "1"}]), "calls a tool"),
    "thoughts to the end": (saying("stop", content="", reasoning="Hm, so"), "the model thinks"),
    "no end": (saying(None, content=""), "wrote no text"),
}


@pytest.mark.parametrize("kind", SILENT)
def test_silence_is_asked_again_then_an_empty_answer_and_never_kept(
    liar: Liar, tmp_path: Path, kind: str
) -> None:
    model = load(liar, tmp_path / "a.sqlite")
    honest = liar.lie
    liar.lie, sentence = SILENT[kind]
    liar.asked.clear()
    with pytest.warns(HunchWarning, match=f"{sentence}.*; such an answer is empty and not stored"):
        assert model.generate(PROMPTS[:1], sampling=SAMPLING) == [[""]]
    assert len(liar.asked) == model.usage.calls == 2
    silent = liar.lie
    liar.lie = lambda reply: silent(reply) if len(liar.asked) < 4 else honest(reply)
    assert model.generate(PROMPTS[:1], sampling=SAMPLING) == [["go left"]]
    assert load(liar, tmp_path / "a.sqlite").generate(PROMPTS[:1], sampling=SAMPLING) == [["go left"]]


CUT = {
    "text": (saying("length", content=""), "the model writes nothing until then"),
    "white space": (saying("length", content="  "), "the model writes nothing until then"),
    "thoughts": (saying("length", content=None, reasoning_content="Hm"), "the model thinks until then"),
}


@pytest.mark.parametrize("kind", CUT)
def test_an_answer_that_is_cut_before_its_first_word_is_empty(liar: Liar, tmp_path: Path, kind: str) -> None:
    """The same request would be cut again, so it is not sent again, and the run goes on."""
    model, honest = load(liar, tmp_path / "a.sqlite"), liar.lie
    liar.lie, sentence = CUT[kind]
    liar.asked.clear()
    with pytest.warns(HunchWarning, match=f"cut an answer at max_tokens=8; {sentence}"):
        assert not model.generate(PROMPTS[:1], sampling=SAMPLING)[0][0].strip()
    assert len(liar.asked) == model.usage.calls == 1
    liar.lie = honest
    assert load(liar, tmp_path / "a.sqlite").generate(PROMPTS[:1], sampling=SAMPLING) == [["go left"]]


@pytest.mark.parametrize(
    "lie",
    [saying(content=""), saying("content_filter", content=None), saying(content="\n\ngo left")],
)
def test_an_empty_answer_is_not_kept(liar: Liar, tmp_path: Path, lie: Callable[[Message], Message]) -> None:
    """The model ended it by itself, so it is an answer, but a mended server is asked again."""
    model, honest = load(liar, tmp_path / "a.sqlite"), liar.lie
    liar.lie = lie
    assert model.generate(PROMPTS[:1], sampling=SAMPLING) == [[""]]
    assert model.usage.refusals == 1
    liar.lie = honest
    assert model.generate(PROMPTS[:1], sampling=SAMPLING) == [["go left"]]


def test_an_answer_that_was_cut_says_so_and_is_not_kept(liar: Liar, tmp_path: Path) -> None:
    model, honest = load(liar, tmp_path / "a.sqlite"), liar.lie
    liar.lie = saying("length", content="go le")
    with pytest.warns(HunchWarning, match="cut an answer at max_tokens=8") as told:
        assert model.generate(PROMPTS[:3], sampling=SAMPLING) == [["go le"]] * 3
    assert len(ours(told)) == 1
    assert type(model.generate(PROMPTS[:1], sampling=SAMPLING)[0][0]) is str
    liar.lie = honest
    assert model.generate(PROMPTS[:1], sampling=SAMPLING) == [["go left"]]
    assert load(liar, tmp_path / "a.sqlite").generate(PROMPTS[:1]) == [["go left"]]


def test_what_reached_its_stop_was_not_cut(liar: Liar) -> None:
    """A server may ignore the stop string and write on."""
    model = load(liar)
    liar.lie = saying("length", content="go left\nYou see a")
    liar.asked.clear()
    assert [model.generate(PROMPTS[:1], sampling=SAMPLING) for _ in range(2)] == [[["go left"]]] * 2
    assert len(liar.asked) == 1


def test_a_model_that_thinks_first_can_be_loaded_and_asked(liar: Liar) -> None:
    honest = liar.lie
    liar.lie = saying("length", content=None, reasoning_content="The sky is")
    model = load(liar)
    assert "generate" in model.verbs
    liar.lie = honest
    assert model.generate(PROMPTS[:1]) == [["go left"]]
    parts = [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "go right"}]
    liar.lie = saying(content=parts, reasoning_content="Hm")
    assert model.generate(PROMPTS[1:2]) == [["go right"]]


def test_the_same_for_anthropic(liar: Liar) -> None:
    model, honest = claude(liar), liar.lie
    tool, thought = {"type": "tool_use", "id": "1"}, {"type": "thinking", "thinking": "Hm"}
    for content, ended, sentence in [
        ([], "max_tokens", "cut an answer at max_tokens=8; the model writes nothing until then"),
        ([tool], "tool_use", "wrote no text: the model calls a tool; such an answer is empty"),
        ([thought], "max_tokens", "cut an answer at max_tokens=8; the model thinks until then"),
    ]:
        liar.lie = lambda reply, said=content, end=ended: reply | {"content": said, "stop_reason": end}
        with pytest.warns(HunchWarning, match=sentence):
            assert model.generate(PROMPTS[:1], sampling=SAMPLING) == [[""]]
    liar.lie = lambda reply: reply | {"stop_reason": "max_tokens"}
    with pytest.warns(HunchWarning, match="cut an answer"):
        model.generate(PROMPTS[:1], sampling=SAMPLING)
    liar.lie = honest
    liar.asked.clear()
    assert [model.generate(PROMPTS[:1], sampling=SAMPLING) for _ in range(2)] == [[["go left"]]] * 2
    assert len(liar.asked) == 1


# Who it is


def test_another_models_name_and_a_repeated_id_are_told_once(liar: Liar) -> None:
    model = load(liar)
    liar.lie = lambda reply: reply | {"model": "tiny-and-cheap"}
    with pytest.warns(HunchWarning, match="answers as another model, 'tiny-and-cheap'") as told:
        model.generate(PROMPTS[:3])
    liar.lie = lambda reply: reply | {"id": "always"}
    with pytest.warns(HunchWarning, match="the same id") as more:
        model.generate(PROMPTS[3:6])
    assert len(ours(told)) == len(ours(more)) == 1


def test_ids_of_old_replies_are_forgotten(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is asked a million times would keep a million of them."""
    monkeypatch.setattr(remote, "MOST_IDS", 2)
    model = load(liar)
    numbers = itertools.count()
    liar.lie = lambda reply: reply | {"id": f"reply {next(numbers)}"}
    model.generate(PROMPTS[:5])
    assert len(model.model._ids) == 2


@pytest.mark.parametrize("name", ["m-2026-01-05", "m:latest", "owner/m", "M", "m@20260105", None, ""])
def test_a_models_name_may_have_a_date_or_an_owner(liar: Liar, name: str | None) -> None:
    model = load(liar)
    liar.lie = lambda reply: reply | {"model": name}
    assert model.generate(PROMPTS[:1]) == [["go left"]]


def test_a_name_without_end_is_another_model(liar: Liar) -> None:
    model = load(liar)
    liar.lie = lambda reply: (
        reply | {"model": "0." * 1_000_000}
    )  # which a search in squared time would never leave
    with pytest.warns(HunchWarning, match="another model"):
        model.generate(PROMPTS[:1])


def test_the_answer_to_another_index_is_refused(liar: Liar) -> None:
    model, honest = load(liar), liar.lie

    def other(reply: Message) -> Message:
        return reply | {"choices": [reply["choices"][0] | {"index": 3}]}

    liar.lie = other
    with pytest.raises(HunchError, match="malformed"):
        model.generate(PROMPTS[:1])
    liar.lie = lambda reply: (other if len(liar.asked) % 2 else honest)(reply)
    assert model.generate(PROMPTS[:2]) == [["go left"]] * 2


# Who gets the key


def test_only_the_provider_gets_the_providers_key(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server works without a key; if it wants one, the message says how to name it."""
    secrets = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "OPENAI_ORG_ID": "org-of-mine",
               "OPENAI_PROJECT_ID": "proj-of-mine", "OPENAI_ADMIN_KEY": "admin-of-mine",
               "ANTHROPIC_AUTH_TOKEN": "token-of-mine", "OPENAI_CUSTOM_HEADERS": "x-own: header-of-mine",
               "ANTHROPIC_CUSTOM_HEADERS": "authorization: header-of-mine"}  # fmt: skip
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    assert load(liar).generate(PROMPTS[:1]) == claude(liar).generate(PROMPTS[:1]) == [["go left"]]
    monkeypatch.setenv("OPENAI_BASE_URL", liar.url)
    lm.load("openai:m", cache=None)
    sent = json.dumps(liar.seen)
    assert KEY not in sent
    assert "of-mine" not in sent
    liar.status = 401
    with pytest.raises(HunchError, match=r"OPENAI_API_KEY goes to openai\.com only; .* by key_env="):
        load(liar)
    liar.status = 200
    load(liar, key_env="OPENAI_API_KEY")
    assert liar.seen[-1]["authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("HUNCH_API_KEY", "a-key-for-this-one")
    load(liar)
    assert liar.seen[-1]["authorization"] == "Bearer a-key-for-this-one"


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://API.OpenAI.com/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://api.openai.com.evil.org/v1", False),
        ("https://evil-openai.com/v1", False),
        ("https://openai.azure.com/openai/v1", False),
        ("https://api.openai.com@evil.org/v1", False),
        ("https://evil.org/api.openai.com", False),
        ("http://localhost:8000/v1", False),
    ],
)
def test_the_providers_own_addresses(url: str, own: bool) -> None:
    assert is_provider("openai", url) is own


def test_a_near_host_is_reached_without_a_proxy(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy is a real one that writes down what it gets."""
    monkeypatch.setenv("HUNCH_API_KEY", KEY)
    with answering(Liar()) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        for host in ("127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]"):
            try:
                socket.create_connection((host.strip("[]"), liar.server_port), timeout=5).close()
            except OSError:
                continue
            url = f"http://{host}:{liar.server_port}/v1"
            assert load(liar, base_url=url).generate(PROMPTS[:1]) == [["go left"]]
            base = url.removesuffix("/v1")
            assert lm.load("anthropic:m", cache=None, base_url=base).generate(PROMPTS[:1]) == [["go left"]]
            assert proxy.seen == [], host
        assert load(liar, base_url="http://8.8.8.8/v1").generate(PROMPTS[:1]) == [["go left"]]
        assert proxy.seen, "another host is reached through the proxy"


@pytest.mark.parametrize(
    ("host", "near"),
    [("10.1.2.3", True), ("192.168.1.5", True), ("172.20.0.1", True), ("169.254.1.1", True), ("::1", True),
     ("fd00::1", True), ("100.64.0.1", True), ("8.8.8.8", False), ("2606:4700::1111", False),
     ("no-such-gpu-here", True), ("localhost.", True), ("127.0.0.1.", True), ("gpu.internal", True),
     ("x.lan", True), ("localhost.localdomain", True), ("mylan", True), ("no.such.host.example", False)],
)  # fmt: skip
def test_private_networks_are_near(host: str, near: bool) -> None:
    assert is_near(host) is near


# Where the key shows


def spaced(key: str) -> str:
    return " ".join(key)


DISGUISES: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of more": lambda key: base64.b64encode(f"Bearer {key}!".encode()).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(f"{{{key}}}".encode()).decode(),
    "hex": lambda key: key.encode().hex(),
    "HEX": lambda key: key.encode().hex(":").upper(),
    "escaped hex": lambda key: "".join(f"\\x{sign:02x}" for sign in key.encode()),
    "reversed": lambda key: key[::-1],
    "reversed base64": lambda key: base64.b64encode(key[::-1].encode()).decode(),
    "spaced": spaced,
    "dotted": lambda key: ".".join(key),
    "lines": lambda key: "\n".join(key),
    "zero width": lambda key: "\u200b".join(key),
    "reversed and spaced": lambda key: spaced(key[::-1]),
    "upper case": str.upper,
    "numbers": lambda key: ", ".join(hex(sign) for sign in key.encode()),
    "wide": lambda key: "".join(chr(ord(sign) + 0xFEE0) for sign in key),
    "two halves": lambda key: f"{key[:11]} and then {key[11:]}",
    "an address twice": lambda key: urllib.parse.quote("".join(f"%{sign:02X}" for sign in key.encode())),
}


@pytest.mark.parametrize("way", DISGUISES)
def test_a_key_shows_nowhere_however_a_server_repeats_it(
    liar: Liar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """As a model's name, an answer, another model's name, an id, a header, a reason, an error, noise."""
    monkeypatch.setenv("HUNCH_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    shown = DISGUISES[way](KEY)
    headed = shown.replace("\n", "").encode("ascii", "ignore").decode() or "none"
    model = load(liar, tmp_path / "a.sqlite")

    def attempt(asked: Cached | None = None) -> None:
        try:
            told.append(str((asked or load(liar, tmp_path / "a.sqlite")).generate(PROMPTS[:1])))
        except HunchError as error:
            told.append(repr(error) + repr(vars(error)) + repr(error.__cause__))

    honest = liar.lie
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        liar.lists = [shown, "other"]
        attempt()
        told.append(repr(lm.describe("openai:x", base_url=liar.url)))
        liar.lists = ["m"]
        for lie in (
            saying(content=shown),
            saying(content=f"go left, {shown} and on"),
            saying(content=None, reasoning_content=shown),
            lambda reply: reply | {"model": shown, "system_fingerprint": shown},
            lambda reply: reply | {"id": shown},
            lambda reply: reply | {"usage": {"prompt_tokens": shown}},
            lambda _: f"<html>{shown}</html>",
        ):
            liar.lie = lie
            attempt(model)
        attempt()
        liar.lie = honest
        liar.headers = {"x-echo": headed, "retry-after": headed, "x-request-id": headed}
        attempt()
        liar.status, liar.reason = 401, headed
        attempt()
        liar.lie = lambda _: {"error": {"message": f"Wrong key {shown}."}}
        attempt()
        liar.status, liar.reason = 302, "Found"
        liar.headers = {"location": f"http://127.0.0.1:9/{urllib.parse.quote(headed)}"}
        attempt()
    told += [str(warning.message) for warning in warned] + [record.getMessage() for record in caplog.records]
    told += [caplog.text] + [file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()]
    everything = "\n".join(told)
    assert "x-echo" in caplog.text or "[a text with the key]" in caplog.text, "the logs are there"
    assert not [
        text for text in told if KEY in text or shown in text or (headed in text and headed != "none")
    ]
    assert shown.strip("=").lower() not in everything.lower()


@pytest.mark.parametrize("key", ["EMPTY", "none", "not-needed", "ollama", "lm-studio"])
def test_what_is_no_secret_is_no_reason_to_refuse_an_answer(
    liar: Liar, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("HUNCH_API_KEY", key)
    model = load(liar)
    liar.lie = saying(content=f"the {key} box")
    assert model.generate(PROMPTS[:1]) == [[f"the {key} box"]]


def test_half_of_a_long_key_is_hidden_too(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    long = f"sk-proj-{codecs.encode(KEY, 'rot13')}-0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t"
    monkeypatch.setenv("HUNCH_API_KEY", long)
    model = load(liar)
    for part in (long[: len(long) // 2], long[len(long) // 2 :], long.encode().hex()[: len(long)]):
        liar.lie = saying(content=part)
        with pytest.raises(HunchError, match="repeats the key") as caught:
            model.generate(PROMPTS[:1])
        assert part not in str(caught.value)
