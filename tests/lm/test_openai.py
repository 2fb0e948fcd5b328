"""Models behind a server: the same answers as in this process, and what the server can do is found out."""

from __future__ import annotations

import shlex
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from server import Server
from talker import Talker, chat, only_chat

from hunch import lm
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.lm import Cached, Sampling, probe
from hunch.lm.backends.http import Request
from hunch.lm.backends.remote import CONTINUE
from hunch.lm.backends.replies import after_prompt, next_output, plain_token

SETTINGS = "min_p,repeat_penalty,repetition_penalty,top_k"
PROMPTS = [f"You are in room {i}. You see a mug {i}.\nYour task is to: take it.\nAction:" for i in range(5)]
OPTIONS = [["go left", "take mug 3 from table 2", "look around", "café ß"][: 2 + i % 3] for i in range(5)]


def load(server: Server, model: str = "gpt2", **options: Any) -> Cached:
    return lm.load(f"openai:{model}", cache=None, base_url=server.url, **{"evidence": "L0", **options})


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("silent", [False, True])
def test_two_routes_to_the_same_score(
    server: Server, folders: dict[str, Path], name: str, silent: bool
) -> None:
    """In this process and over HTTP, also where the server insists on writing a token."""
    server.refuses = {"max_tokens=0"} if silent else set()
    options = [own[:3] for own in OPTIONS] if name == "llama" else OPTIONS  # no byte tokens: é is unknown
    local = lm.load(f"hf:{folders[name]}", cache=None).score(PROMPTS, options)
    remote = load(server, name).score(PROMPTS, options)
    for ours, theirs in zip(remote, local, strict=True):
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, rtol=1e-5, atol=1e-4)
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        assert ours.words.tolist() == theirs.words.tolist()


def test_two_routes_to_the_same_vector(server: Server, folders: dict[str, Path]) -> None:
    for name in server.networks:
        local = lm.load(f"hf:{folders[name]}", cache=None)
        np.testing.assert_allclose(load(server, name).embed(PROMPTS), local.embed(PROMPTS), atol=1e-5)


def test_a_label_is_as_likely_as_its_token(server: Server) -> None:
    """Against the network's own log-probabilities of the next token."""
    model, network = load(server, chat=False), server.networks["gpt2"]
    for prompt in PROMPTS:
        after = network.logprobs(network.ids(prompt))[-1]
        values, numbers = after.topk(20)
        pairs = [(network.token(int(n)), float(v)) for v, n in zip(values, numbers, strict=True)]
        # the completions route tells a table by text, in which tokens of half a character are one
        labels = sorted({token.strip() for token, _ in pairs if token.strip() and "�" not in token})
        [told] = model.label([prompt], [[*labels, "nowhere"]])
        for label, value in zip(labels, told, strict=False):
            alike = [np.exp(p) for token, p in pairs if token.strip() == label]
            assert value == pytest.approx(np.log(sum(alike)), abs=1e-6)
        assert told[-1] == -np.inf


def test_a_seam_inside_a_token_is_refused(server: Server) -> None:
    model = load(server)
    with pytest.raises(UsageError, match="merges the end of the prompt with the option 'is to'"):
        model.score(["Your task "], [["is to"]])
    assert np.isfinite(model.score(["Your task"], [["is to"]])[0].logprobs).all()
    with pytest.raises(UsageError, match="empty prompt"):
        model.score([""], [["go"]])


@given(st.lists(st.sampled_from(["a", "b", "ab", " a", " "]), min_size=1), st.data())
def test_an_option_is_what_follows_the_prompts_tokens(prompt: list[str], data: st.DataObject) -> None:
    own = [(token, -1.0) for token in prompt]
    tail = data.draw(st.lists(st.tuples(st.text(), st.floats(-50, 0)), min_size=1))
    [value] = after_prompt(own, [own + tail], ["x"], "m").logprobs
    assert value == pytest.approx(sum(p for _, p in tail))
    with pytest.raises(UsageError, match="merges"):
        after_prompt(own, [[*own[:-1], ("merged", -1.0), *tail]], ["x"], "m")
    with pytest.raises(UsageError, match="merges"):
        after_prompt(own, [own], ["x"], "m")


def test_labels_add_up_and_are_probabilities() -> None:
    told = next_output([("A", np.log(0.25)), (" A", np.log(0.5)), ("B", np.log(0.2)), ("a", -9.0)], "ABC")
    np.testing.assert_allclose(np.exp(told), [0.75, 0.2, 0.0])
    for wrong in (float("nan"), 3.0):
        with pytest.raises(ValueError, match="no log-probabilities"):
            next_output([("A", wrong)], "A")


def test_what_a_server_lacks_is_found_out(server: Server) -> None:
    everything = {"generate", "score", "label", "embed"}
    assert load(server).verbs == everything
    for without, verbs in [
        ({"lacks": {"/v1/embeddings"}}, everything - {"embed"}),
        ({"lacks": {"/v1/completions"}}, everything - {"score"}),
        ({"refuses": {"echo"}}, everything - {"score"}),
        ({"ignores": {"logprobs", "top_logprobs"}}, everything - {"score", "label"}),
        ({"refuses": {"top_logprobs"}}, everything - {"label"}),
        ({"refuses": {"top_logprobs=20"}}, everything),
        ({"refuses": {"max_tokens"}}, everything - {"score"}),
        ({"lacks": {"/v1/models"}}, everything),
    ]:
        server.restore()
        vars(server).update(without)
        model = load(server)
        assert model.verbs == verbs, without
        assert model.model.context == (None if "/v1/models" in server.lacks else 128)
        assert model.model.retries == 0
    server.restore()
    assert load(server, "bert").verbs == {"embed"}


def test_a_missing_verb_is_explained(server: Server) -> None:
    server.lacks = {"/v1/embeddings"}
    model = load(server)
    for ask in (lambda: model.embed(["a"]), lambda: lm.require(model, "embed", "The encoder")):
        with pytest.raises(UsageError, match=r"Tried when it was loaded: .* HTTP 404.*Not Found"):
            ask()


def test_what_cannot_be_a_log_probability_or_a_count_is_refused(server: Server) -> None:
    tokens = [("Action", None), (":", -1.0), (" go", 0.7)]
    with pytest.raises(ValueError, match="without log-probability"):
        after_prompt(tokens[:2], [tokens], ["go"], "m")
    model = load(server).model
    choice = {"text": "x", "finish_reason": "stop", "logprobs": {"top_logprobs": [{}]}}
    with pytest.raises(HunchError, match="lists no candidates"):
        model._read_labels(["A"], {"choices": [choice]})
    request = Request("/completions", {"prompt": "x" * 80, "max_tokens": 9}, str)
    with pytest.warns(HunchWarning, match="states no valid token counts"):
        model._count(request, {})
    for times, wrong in enumerate((-50, "many", None, True, 1.5, 10**400, float("inf"), 0), 2):
        model._count(request, {"usage": {"prompt_tokens": wrong, "completion_tokens": wrong}})
        assert model.tokens_read > 80 * times
        assert model.tokens_written == 9 * times


def test_a_price_needs_counted_tokens(server: Server) -> None:
    server.hides = {"usage"}
    assert "generate" in load(server).verbs
    with pytest.raises(UsageError, match="has a price, but its server states no token counts"):
        load(server, price_in=1.0)


@pytest.mark.parametrize(
    "told", [{"max_model_len": float("inf")}, {"max_model_len": "many"}, {"meta": 5}, {"context_length": -5}]
)
def test_what_is_no_length_of_a_context_is_none(server: Server, told: dict[str, Any]) -> None:
    server.lists = told
    assert load(server).context is None


def test_half_a_character_in_an_answer_is_replaced(server: Server) -> None:
    model = load(server, chat=False).model
    reply = {"choices": [{"text": " caf\ud800\u00e9", "finish_reason": "stop"}], "usage": {}}
    assert model._read_text(Sampling(), reply) == " caf?é"


def test_chat_or_plain_text(server: Server) -> None:
    chat, plain = load(server), load(server, chat=False)
    server.seen.clear()
    answers = [model.generate(PROMPTS[:2]) for model in (chat, plain)]
    assert answers[0] != answers[1]
    paths = [path for _, path, _ in server.seen]
    assert paths == ["/v1/chat/completions"] * 2 + ["/v1/completions"] * 2
    assert server.seen[0][2]["messages"][0] == {"role": "system", "content": CONTINUE}
    assert server.seen[-1][2]["prompt"] in PROMPTS
    server.lacks = {"/v1/chat/completions"}
    assert load(server).generate(PROMPTS[:2]) == answers[1]
    assert load(server).revision == plain.revision != chat.revision
    server.lacks |= {"/v1/completions", "/v1/embeddings"}
    with pytest.raises(HunchError, match="HTTP 404"):
        load(server)


def test_samples_differ_and_come_again(server: Server) -> None:
    model = load(server)
    texts = model.generate(PROMPTS, 4, Sampling(max_tokens=6))
    assert all(len(set(own)) > 1 for own in texts)
    assert load(server).generate(PROMPTS, 2, Sampling(max_tokens=6), first=2) == [own[2:] for own in texts]
    assert all("\n" not in text for own in texts for text in own)


def test_only_the_address_and_the_template_key_the_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.sqlite"
    first = lm.load(f"openai:gpt2?base_url={server.url}&concurrency=3&evidence=L0", cache=path)
    first.generate(PROMPTS)
    assert (first.name, first.revision) == ("openai:gpt2", f"{server.url} chat-1 with {SETTINGS}")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
    second = lm.load("openai:gpt2?timeout=9&price_in=2.5&chat=true", cache=path)
    second.generate(PROMPTS)
    assert second.usage.calls == 0
    assert (second.evidence, second.model.price_in) == ("L3", 2.5)
    with sqlite3.connect(path) as link:
        [(name, told)] = link.execute("SELECT model, told FROM told").fetchall()
    assert (name, told) == ("openai:gpt2", "model=gpt2-2026 system_fingerprint=fp_test")


def test_wrong_names_and_addresses(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no model 'gpt3'; it has gpt2 and 2 more"):
        load(server, "gpt3")
    with pytest.raises(UsageError, match="has no model 'x'; it has gpt2, llama, bert"):
        load(server, "x")
    with pytest.raises(HunchError, match=r"127\.0\.0\.1:9 cannot be reached"):
        lm.load("openai:x", cache=None, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(
        UsageError, match="needs a key in the environment variable HUNCH_API_KEY or OPENAI_API_KEY"
    ):
        lm.load("openai:x", cache=None)
    server.key = "right"
    monkeypatch.setenv("HUNCH_API_KEY", "wrong-key")
    with pytest.raises(
        HunchError, match=r"HTTP 401 \(the key comes from HUNCH_API_KEY\): .*: \[key\]"
    ) as caught:
        load(server)
    assert "wrong-key" not in str(caught.value)
    monkeypatch.setenv("MINE", "right")
    assert "generate" in load(server, key_env="MINE").verbs


def test_the_probe_tells(server: Server) -> None:
    seen = lm.describe("openai:gpt2", base_url=server.url, evidence="L0")
    assert seen.answers
    assert set(seen.verbs) == set(seen.speed) == {"generate", "score", "label", "embed"}
    assert (seen.context, seen.dim, seen.evidence, seen.logprobs) == (128, 32, "L0", True)
    assert seen.tokens_per_second > 0
    server.lacks = {"/v1/completions"}
    server.refuses = {"logprobs"}
    assert lm.describe("openai:gpt2", base_url=server.url).logprobs is False
    server.key = "right"
    assert "HTTP 401" in lm.describe("openai:gpt2", base_url=server.url).problem


@pytest.mark.parametrize(
    ("written", "data", "text"),
    [
        ("ĠA", None, " A"),
        ("▁A", None, " A"),
        ("Ċ", None, "\n"),
        ("<0x0A>", None, "\n"),
        ("<0xC3><0xA9>", None, "é"),
        ("bytes:\\xc3\\xa9", None, "é"),
        ("\ufffd", [195, 169], "é"),
        (" A", [32, 65], " A"),
        ("A", None, "A"),
        ("A", ["x"], "A"),
    ],
)
def test_tokens_in_any_form_are_texts(written: str, data: Any, text: str) -> None:
    assert plain_token(written, data) == text


def test_labels_are_found_in_tokens_of_any_form() -> None:
    for forms in (["A", " A"], ["A", "ĠA"], ["A", "▁A"], ["<0x41>", "bytes:\\x20\\x41"]):
        pairs = [(form, float(np.log(0.25))) for form in forms]
        np.testing.assert_allclose(np.exp(next_output(pairs, ["A", "B"])), [0.5, 0.0])


def test_the_probe_is_short_on_a_slow_server(talker: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few requests of few tokens; those that there is no time for are left out, and the rest is said."""
    asked = threading.Event()

    def slow(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "kitchen" in str(body):
            asked.wait(0.7)
        return only_chat(path, body)

    talker.answer = slow
    monkeypatch.setattr(probe, "SECONDS", 0.5)
    spec = f"openai:m?base_url={talker.url}"
    seen = lm.describe(spec)
    measured = [body for _, body in talker.asked if "kitchen" in str(body)]
    assert len(measured) == 1
    assert measured[0]["max_tokens"] <= 32
    assert 1 < seen.speed["generate"] ** -1 / 0.7 < 2
    assert seen.tokens_per_second == pytest.approx(5 * seen.speed["generate"])
    assert seen.answer == "'go north'"
    assert seen.next.startswith(f"hunch run zero-shot --env hunch/FrozenLake-v0 --lm {shlex.quote(spec)} ")
    assert "structured" in seen.best_way


def test_what_took_too_long_is_not_asked_again(talker: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def dead(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "messages" in body or "prompt" in body:
            ended.wait(2)
        return only_chat(path, body)

    talker.answer = dead
    monkeypatch.setattr(probe, "TIMEOUT", 0.2)
    seen = lm.describe(f"openai:m?base_url={talker.url}")
    ended.set()
    assert not seen.answers
    assert "did not answer within 0.2 seconds" in seen.problem
    assert len([path for path, body in talker.asked if body]) == 1


def test_a_model_that_thinks_is_named(talker: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    def thinking(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "kitchen" not in str(body):
            return only_chat(path, body)
        thought = {"role": "assistant", "content": None, "reasoning_content": "Well"}
        return chat("", message=thought, finish_reason="length")

    talker.answer = thinking
    monkeypatch.setattr(probe, "SECONDS", 0.0)  # as on a slow server
    seen = lm.describe(f"openai:m?base_url={talker.url}")
    assert seen.answer == "none within 32 tokens: it thinks first, or says nothing"
