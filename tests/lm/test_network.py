"""Requests over a network: faults are survived, answers kept as they arrive, and nothing is asked twice."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import pickle
import signal
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from server import FAULTS, SLOW_FAULTS, Server

from hunch import lm
from hunch.core import HunchError, UsageError
from hunch.lm import Budget, BudgetError, Cached, Sampling, Store
from hunch.lm.answers import leases
from hunch.lm.answers.rehearsal import Rehearsal
from hunch.lm.answers.store import Source
from hunch.lm.backends import http as network
from hunch.lm.budget import Ledger
from hunch.seal import read_sealed_json

REQUESTS = int(os.environ.get("HUNCH_NETWORK_REQUESTS", "120"))
SHORT = Sampling(max_tokens=4)
PROMPTS = [f"Room {i}. You see a mug {i}.\nAction:" for i in range(40)]
KEY = "sk-planted-4f1d8c2b7a"
PATIENCE = 300.0  # seconds for what takes a moment on a quiet machine


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "FIRST_WAIT", 0.02)


def load(server: Server, cache: Path | None = None, **options: Any) -> Cached:
    chosen = {"retries": 30, "chat": False, **options}
    return lm.load("openai:gpt2", cache=cache, base_url=server.url, evidence="L0", **chosen)


def stored(path: Path) -> int:
    """How many answers a file holds; none where it is only being made."""
    with contextlib.suppress(sqlite3.OperationalError), sqlite3.connect(path) as link:
        return link.execute("SELECT COUNT(*) FROM answers").fetchone()[0]
    return 0


@pytest.mark.parametrize("fault", FAULTS + SLOW_FAULTS)
def test_every_fault_is_survived(server: Server, fault: str) -> None:
    model = load(server, timeout=0.4 if fault in SLOW_FAULTS else 60)
    wanted = load(server).generate(PROMPTS[:6], sampling=SHORT)
    server.share, server.faults, server.most, server.hold = 1.0, (fault,), 3, 0.8
    assert model.generate(PROMPTS[:6], sampling=SHORT) == wanted
    assert server.met[fault] == 3
    assert model.model.retries >= 3
    assert model.usage.calls == 6 + model.model.retries, "a retry is a request as well"


@pytest.mark.parametrize("verb", ["score", "label", "embed"])
def test_other_verbs_survive_too(server: Server, verb: str) -> None:
    model = load(server)
    ask = {
        "score": lambda: [s.logprobs.tolist() for s in model.score(PROMPTS[:8], [["go", "look"]] * 8)],
        "label": lambda: [row.tolist() for row in model.label(PROMPTS[:8], [["A", "e"]] * 8)],
        "embed": lambda: model.embed(PROMPTS[:8]).tolist(),
    }[verb]
    wanted = ask()
    model = load(server)
    server.share, server.faults, server.most = 0.7, (*FAULTS[4:], "500"), 20
    assert ask() == wanted
    assert model.model.retries > 0


@pytest.mark.parametrize("status", ["400", "401", "403", "404"])
def test_what_cannot_pass_is_not_tried_again(server: Server, status: str) -> None:
    model = load(server)
    server.share, server.faults = 1.0, (status,)
    with pytest.raises(HunchError, match=f"refuses the request with HTTP {status}.*: busy$"):
        model.generate(PROMPTS[:1])
    assert server.met == {"": server.met[""], status: 1}
    assert model.model.retries == 0


def test_after_the_last_attempt_one_sentence(server: Server) -> None:
    model = load(server, retries=2)
    server.share, server.faults = 1.0, ("500",)
    with pytest.raises(HunchError) as caught:
        model.generate(PROMPTS[:1])
    assert str(caught.value) == f"127.0.0.1:{server.server_port} refuses the request with HTTP 500: busy"
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert server.met["500"] == 3


def test_after_a_failure_nothing_is_sent_again(server: Server) -> None:
    model = load(server, retries=4)
    server.rejects = lambda body: "wrong" if "Refuse this." in json.dumps(body) else ""
    server.poison = "Room 3."
    with pytest.raises(HunchError, match="HTTP 400: wrong"):
        model.generate(["Refuse this.", PROMPTS[3]], sampling=SHORT)
    assert server.met["500"] <= 2, "it was under way, and would have been sent five times"


def test_what_was_answered_is_kept(server: Server, tmp_path: Path) -> None:
    model = load(server, tmp_path / "a.sqlite", retries=1)
    server.poison = "Room 3."
    with pytest.raises(HunchError, match="HTTP 500"):
        model.generate(PROMPTS[:6], sampling=SHORT)
    assert stored(tmp_path / "a.sqlite") == 5
    assert model.usage.calls == 5 + 2, "a failed request and its retry"
    server.restore()
    again = load(server, tmp_path / "a.sqlite")
    again.generate(PROMPTS[:6], sampling=SHORT)
    assert again.usage.calls == 1


def test_the_server_says_how_long_to_wait(server: Server) -> None:
    model = load(server)
    server.share, server.faults, server.most = 1.0, ("429-after",), 1
    server.seen.clear()
    model.generate(PROMPTS[:1])
    (first, *_), (second, *_) = server.seen
    assert second - first >= 0.2


def test_an_hour_is_not_waited_for(server: Server) -> None:
    model = load(server)
    server.share, server.faults = 1.0, ("429-hour",)
    with pytest.raises(HunchError, match="asks to wait 3600 s"):
        model.generate(PROMPTS[:1])


@given(st.integers(1, 40))
def test_waits_grow_and_end(attempt: int) -> None:
    longest = min(network.LONGEST_WAIT, network.FIRST_WAIT * 2 ** (attempt - 1))
    assert longest / 2 <= network.waiting(attempt, None) <= longest
    assert max(7.0, longest / 2) <= network.waiting(attempt, 7.0) <= max(7.7, longest)
    assert network.waiting(attempt, 0.0) >= longest / 2


def test_both_forms_of_retry_after() -> None:
    later = datetime.now(UTC) + timedelta(seconds=5000)
    assert network.retry_after({"retry-after": "2.5"}) == 2.5
    assert 4000 < network.retry_after({"retry-after": format_datetime(later, usegmt=True)}) <= 5000
    assert network.retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert network.retry_after({"retry-after": "-3"}) == 0
    far = "Wed, 21 Oct 2015 07:28:00 +99999999999999"
    for nothing in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}, {"retry-after": far}):
        assert network.retry_after(nothing) is None


def test_no_more_at_once_than_asked_for(server: Server) -> None:
    model = load(server, concurrency=3)
    server.delay, server.busiest = 0.02, 0
    server.together, server.hold = 3, 60
    threads = [
        threading.Thread(target=model.generate, args=(PROMPTS[n * 8 :][:8], 1, SHORT)) for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.busiest == 3


def test_threads_do_not_ask_the_same(server: Server, tmp_path: Path) -> None:
    model = load(server, tmp_path / "a.sqlite")
    server.answered.clear()
    server.delay = 0.01
    found: list[Any] = [None] * 4

    def ask(number: int) -> None:
        turned = PROMPTS[number * 10 :] + PROMPTS[: number * 10]
        found[number] = dict(zip(turned, model.generate(turned * 2, 2, SHORT), strict=False))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] == found[2] == found[3]
    empty = sum(not text.strip() for own in found[0].values() for text in own)  # not kept, so asked again
    assert sum(number > 1 for number in server.answered.values()) <= empty
    assert len(server.answered) == 80
    assert 80 <= model.usage.calls <= 80 + 7 * empty
    assert model.usage.completion_tokens == model.model.tokens_written > 0


def test_a_thread_asks_itself_where_another_failed(server: Server) -> None:
    model = load(server, retries=0)
    server.share, server.faults, server.most, server.delay = 1.0, ("500",), 1, 0.1
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(model.generate(PROMPTS[:1], sampling=SHORT)[0][0])
        except HunchError:
            outcomes.append(HunchError)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(HunchError) == 1
    assert len(set(outcomes)) == 2


def _ask_and_die(model: Cached) -> None:
    model.generate(PROMPTS, sampling=SHORT)


def test_kill_9_loses_no_answer_that_arrived(server: Server, tmp_path: Path) -> None:
    path, model = tmp_path / "a.sqlite", load(server, tmp_path / "a.sqlite", concurrency=4)
    server.enough, server.hold = 17, 60.0
    child = multiprocessing.get_context("fork").Process(target=_ask_and_die, args=(model,))
    child.start()
    patience = time.monotonic() + PATIENCE
    while stored(path) < 17 and time.monotonic() < patience:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert stored(path) == 17
    server.restore()
    again = load(server, path)
    again.generate(PROMPTS, sampling=SHORT)
    assert again.usage.calls == len(PROMPTS) - 17


def test_pickles_and_forks_without_the_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUNCH_API_KEY", KEY)
    server.key = KEY
    model = load(server)
    wanted = model.generate(PROMPTS[:3], sampling=SHORT)
    frozen = pickle.dumps(model)
    assert KEY.encode() not in frozen
    assert Cached(pickle.loads(frozen).model).generate(PROMPTS[:3], sampling=SHORT) == wanted
    child = os.fork()
    if child == 0:
        same = Cached(model.model).generate(PROMPTS[:3], sampling=SHORT) == wanted
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"concurrency": 0}, "concurrency must be a whole number of at least 1"),
        ({"concurrency": 1.5}, "concurrency must be a whole number"),
        ({"retries": math.inf}, "retries must be a whole number"),
        ({"timeout": "long"}, "timeout must be a number"),
        ({"retries": -1}, "retries must be a whole number of at least 0"),
        ({"price_in": -1}, "price per million tokens"),
        ({"evidence": "L9"}, "no evidence level 'L9'"),
        ({"chat": "maybe"}, "true, false or auto"),
        ({"base_url": "localhost:8000"}, "base_url must be an address"),
        ({"base_url": "http://0177.0.0.1/v1"}, "base_url must be an address, not .*: Invalid IPv4"),
        ({"base_url": "http://me:secret@[::1/v1"}, "base_url must be an address such as .*: Invalid IPv6"),
        ({"base_url": "http://localhost:99999/v1"}, "base_url must be an address .*: Port out of range"),
        ({"base_url": "http://me:secret@localhost/v1"}, "name, password or query"),
        ({"key_env": "NO_SUCH_KEY"}, "needs a key in the environment variable NO_SUCH_KEY"),
        ({"key_env": KEY}, "needs a key in the environment variable that key_env names"),
        ({"key": KEY}, "has no option 'key'"),
    ],
)
def test_wrong_options(server: Server, option: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        lm.load("openai:gpt2", cache=None, **{"base_url": server.url, **option})
    assert "secret" not in str(caught.value)
    assert KEY not in str(caught.value)


def _answers(model: Cached, first: int) -> dict[str, Any]:
    """What a model says to five kinds of requests on every prompt, by the prompt, beginning with any."""
    prompts = [f"Room {i}. You see a mug {i % 7}.\nAction:" for i in range(REQUESTS // 5)]
    turned = prompts[first:] + prompts[:first]
    texts = model.generate(turned, 2, SHORT)
    scores = model.score(turned, [["go left", "look"]] * len(turned))
    labels = model.label(turned, [["A", "e"]] * len(turned))
    vectors = model.embed(turned)
    return {
        prompt: [own, score.logprobs.tolist(), label.tolist(), vector.tolist()]
        for prompt, own, score, label, vector in zip(turned, texts, scores, labels, vectors, strict=True)
    }


def _work(url: str, cache: Path, number: int) -> None:
    model = lm.load("openai:gpt2", cache=cache, base_url=url, chat=False, retries=60, timeout=2.0)
    answers = _answers(model, number * (REQUESTS // 20))
    figures = {"calls": model.usage.calls, "retries": model.model.retries}
    (cache.parent / f"{number}.json").write_text(json.dumps([answers, figures]))


def test_four_processes_share_one_cache_through_faults(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUNCH_API_KEY", KEY)
    server.key = KEY
    wanted = json.loads(json.dumps(_answers(load(server), 0)))
    server.share, server.hold, server.faults = 0.3, 3.0, FAULTS * 5 + SLOW_FAULTS
    fork = multiprocessing.get_context("fork")
    workers = [
        fork.Process(target=_work, args=(server.url, tmp_path / "a.sqlite", number)) for number in range(4)
    ]
    start = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    told = [json.loads((tmp_path / f"{number}.json").read_text()) for number in range(4)]
    assert [answers for answers, _ in told] == [wanted] * 4
    assert stored(tmp_path / "a.sqlite") == REQUESTS // 5 * 5
    asked = sum(figures["calls"] for _, figures in told)
    assert asked >= REQUESTS // 5 * 5
    assert sum(figures["retries"] for _, figures in told) > 0
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()
    assert KEY not in "".join(capfd.readouterr())
    retried = sum(figures["retries"] for _, figures in told)
    print(f"{REQUESTS} requests, {asked} asked, {retried} retries, {time.monotonic() - start:.1f} s")
    print(dict(server.met))


def test_the_first_stored_answer_holds(tmp_path: Path) -> None:
    """Two processes asked the same at once, and a model by chance said different things."""
    source = Source("generate", "m", "1")
    one, other = Store(tmp_path / "a.sqlite"), Store(tmp_path / "a.sqlite")
    assert one.write({("k", 0): '"left"'}, source) == {}
    assert other.write({("k", 0): '"right"', ("k", 1): '"up"'}, source) == {("k", 0): '"left"'}
    assert one.read([("k", 0), ("k", 1)]) == {("k", 0): '"left"', ("k", 1): '"up"'}


def test_a_question_is_asked_once_by_four_processes_in_the_same_order(server: Server, tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    model = load(server)
    server.answered.clear()
    server.delay = 0.02
    workers = [fork.Process(target=_ask_all, args=(server.url, tmp_path / "a.sqlite")) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    asked = [number for body, number in server.answered.items() if "Room" in body]
    answers = model.generate(PROMPTS, sampling=SHORT)
    empty = sum(not text.strip() for (text,) in answers)  # not kept, so each process asks again
    assert (len(asked), sum(number > 1 for number in asked)) == (len(PROMPTS), empty)


def _ask_all(url: str, cache: Path) -> None:
    model = lm.load("openai:gpt2", cache=cache, base_url=url, chat=False)
    for start in range(0, len(PROMPTS), 4):
        model.generate(PROMPTS[start : start + 4], sampling=SHORT)


def test_the_questions_of_a_killed_process_are_free_at_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its leases would hold for longer than any test may take."""
    monkeypatch.setattr(leases, "SECONDS", 1e6)
    model = load(server, tmp_path / "a.sqlite", concurrency=4)
    server.enough, server.hold = 5, 60.0
    child = multiprocessing.get_context("fork").Process(target=_ask_and_die, args=(model,))
    child.start()
    patience = time.monotonic() + PATIENCE
    while stored(tmp_path / "a.sqlite") < 5 and time.monotonic() < patience:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    server.restore()
    again = load(server, tmp_path / "a.sqlite")
    again.generate(PROMPTS, sampling=SHORT)
    assert again.usage.calls == len(PROMPTS) - 5


def test_a_lease_that_nobody_renews_runs_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT", 0.05)
    path = tmp_path / "a.sqlite"
    one, other = Store(path), Store(path)
    keys = [("a", 0), ("b", 1)]
    holder, taken = one.leases.claim(keys)
    assert taken == keys
    first = ends(path)
    while ends(path) == first:  # until it is renewed
        time.sleep(0.02)
    assert other.leases.claim(keys)[1] == []
    one.leases._held.clear()  # as if the process hung
    one.leases._beating.join()
    with contextlib.closing(sqlite3.connect(path)) as link, link:
        link.execute("UPDATE leases SET until = until - ?", (leases.SECONDS,))  # as if the time were over
    successor, taken = other.leases.claim(keys)
    assert taken == keys
    one.leases.release(holder)
    assert one.leases.claim(keys)[1] == []
    other.leases.release(successor)  # else its thread renews them after the test


def ends(path: Path) -> float:
    """When the leases in a file end, if nobody renews them."""
    with contextlib.closing(sqlite3.connect(path)) as link:
        return link.execute("SELECT MIN(until) FROM leases").fetchone()[0]


def test_a_busy_server_is_waited_for_longer_than_a_failing_one(server: Server) -> None:
    """HTTP 429 without Retry-After, or with one in the past, uses up patience, not attempts."""
    model = load(server, retries=1, patience=30)
    server.share, server.faults, server.most = 1.0, ("429", "429-past"), 6
    assert model.generate(PROMPTS[:1], sampling=SHORT)
    assert model.model.retries == 6
    impatient = load(server, retries=1, patience=0.1)
    server.share, server.faults, server.most = 1.0, ("429-past",), 1000
    server.seen.clear()
    with pytest.raises(HunchError, match="HTTP 429"):
        impatient.generate(PROMPTS[:1])
    assert len(server.seen) >= 3, "the longest pauses that chance can draw use it up after the third request"


def test_a_reply_without_end_is_not_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "LONGEST_REPLY", 100_000)
    model = load(server)
    for fault in ("long", "endless"):
        server.share, server.faults = 1.0, (fault,)
        with pytest.raises(HunchError, match="a reply of more than 100,000 bytes"):
            model.generate(PROMPTS[:1])
    assert server.wrote < 50_000_000


@pytest.mark.parametrize("fault", ["deep", "infinite"])
def test_json_that_python_cannot_take_is_a_failure_like_others(server: Server, fault: str) -> None:
    model = load(server, retries=1)
    server.share, server.faults = 1.0, (fault,)
    with pytest.raises(HunchError, match="malformed"):
        model.score(PROMPTS[:1], [["go"]])


def test_half_a_character_is_not_sent_again_and_again(server: Server) -> None:
    model = load(server)
    with pytest.raises(HunchError, match="lone surrogate"):
        model.generate(["Action: \ud800"])
    assert model.model.retries == 0


def test_money_is_counted_and_held_to_a_budget(server: Server) -> None:
    model = load(server, price_in=1e6, price_out=2e6)
    model.generate(PROMPTS[:3], sampling=SHORT)
    meter = model.usage
    assert meter.cost == meter.prompt_tokens + 2 * meter.completion_tokens > 0
    ledger = Ledger({"lm": model}, Budget(money=50))
    assert ledger.total()["calls"] == 5, "what was asked at load counts, what came between does not"
    with ledger.enforced(), pytest.raises(BudgetError, match="budget of 50 money"):
        _one_by_one(model)
    assert 50 <= ledger.total()["cost"] < 200
    Budget(money=1).check_prices([model])
    dry = Rehearsal()(model.model, None)
    dry.generate(PROMPTS[:3], sampling=SHORT)
    assert dry.usage.cost > 0


def test_threads_share_a_budget_and_a_journal(server: Server, tmp_path: Path) -> None:
    """What others have under way counts, and no thread stumbles over another's note."""
    model = load(server)
    ledger = Ledger({"lm": model}, Budget(calls=20), tmp_path / "journal.json")
    server.answered.clear()
    server.delay = 0.02
    ended: list[str] = []

    def spend(number: int) -> None:
        try:
            for start in range(0, 20, 2):
                own = [f"Thread {number}, {start + i}" for i in range(2)]
                model.generate(own, sampling=SHORT)
        except BudgetError as reached:
            ended.append(str(reached))

    with ledger.enforced():
        threads = [threading.Thread(target=spend, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(ended) == 6
    assert sum(server.answered.values()) <= 20 - model.model.loading.calls
    assert 18 <= ledger.total()["calls"] <= 20
    assert model.in_flight == 0
    assert read_sealed_json((tmp_path / "journal.json").read_bytes()) == ledger.by_name()


def _one_by_one(model: Cached) -> None:
    for prompt in PROMPTS:
        model.generate([prompt], sampling=SHORT)


def _spend(url: str, journal: Path, cache: Path) -> None:
    model = lm.load("openai:gpt2", cache=cache, base_url=url, chat=False)
    with contextlib.suppress(BudgetError), Ledger({"lm": model}, Budget(calls=30), journal).enforced():
        _one_by_one(model)


def test_a_budget_holds_through_kills(server: Server, tmp_path: Path) -> None:
    """The journal counts what a killed process asked, probes and requests under way included."""
    server.hold = 60.0
    cache = tmp_path / "a.sqlite"
    for _ in range(3):
        server.enough = 12
        child = multiprocessing.get_context("fork").Process(
            target=_spend, args=(server.url, tmp_path / "journal.json", cache)
        )
        child.start()
        wanted, patience = server.met["hang"] + 1, time.monotonic() + PATIENCE
        while server.met["hang"] < wanted and child.is_alive() and time.monotonic() < patience:
            time.sleep(0.02)
        child.kill()
        child.join()
    answered = sum(server.met.values()) - server.met["hang"]
    assert answered <= 30 + 3, "and a list of models at each load, which is no call"
    spent = read_sealed_json((tmp_path / "journal.json").read_bytes())["lm"]["calls"]
    assert 25 <= spent <= 30
