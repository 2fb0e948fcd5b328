"""What a server refuses is found out at load, left out, said once, and part of the revision."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from server import Server

from hunch import lm
from hunch.core import HunchWarning, UsageError
from hunch.lm import AskConfig, Cached, Message, Sampling
from hunch.lm.asking import Asking
from hunch.lm.backends.accepted import EVERY_SETTING
from hunch.lm.backends.account import Account
from hunch.lm.backends.http import Line
from hunch.lm.backends.openai import OpenAIModel
from hunch.lm.ways import has_way

ASK = (Message("system", "Be brief."), Message("user", "Where is the mug?"))
WARM = Sampling(6, 0.7, 0.9, ("END",))
Body = dict[str, Any]


def load(server: Server, sdk: str = "openai", **options: Any) -> tuple[Cached, list[str]]:
    """A model, and what loading it warned of."""
    url = server.url if sdk == "openai" else server.url.removesuffix("/v1")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = lm.load(f"{sdk}:gpt2", cache=None, base_url=url, evidence="L0", **options)
    return model, [str(one.message) for one in told if one.category is HunchWarning]


def test_nothing_is_left_out_of_what_a_server_takes(server: Server) -> None:
    for sdk in ("openai", "anthropic"):
        model, told = load(server, sdk)
        assert told == []
        assert "without" not in model.revision
        assert model.model.loading.calls == len([one for one in server.seen if one[2]])
        server.seen.clear()


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("rejects", "without"),
    [
        (lambda body: "temperature" in body and "`temperature` is deprecated for this model.", "temperature"),
        (lambda body: "temperature" in body and "Bad request", "temperature"),  # no field is named
        (
            lambda body: body.get("temperature", 1.0) != 1 and "'temperature' does not support 0 here",
            "temperature",
        ),
        (
            lambda body: body.get("temperature", 1.0) == 0 and "`temperature` has to be positive",
            "temperature=0",
        ),
        (
            lambda body: "temperature" in body and body.get("top_p", 1) < 1 and "Please use only one.",
            "top_p",
        ),
        (
            lambda body: (
                {"temperature", "top_p"} <= body.keys()
                and body["top_p"] < 1
                and "`temperature` and `top_p` cannot both be specified for this model."
            ),
            "top_p",
        ),
        (lambda body: body.get("top_p", 1.0) < 1 and "Unsupported parameter: 'top_p'", "top_p"),
        (
            lambda body: (
                ("top_p" in body and "Unsupported parameter: 'top_p'")
                or ("temperature" in body and "Unsupported parameter: 'temperature'")
            ),
            "temperature,top_p",
        ),
    ],
)  # fmt: skip
def test_sampling_that_is_refused_is_left_out(
    server: Server, sdk: str, rejects: Callable[[Body], str], without: str
) -> None:
    server.rejects = rejects
    model, told = load(server, sdk)
    assert model.revision.endswith(f" without {without}")
    assert len(told) == 1
    assert f"refuses {without.replace(',', ', ')}" in told[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sampling in (WARM, Sampling(4, 0.0, 0.7), Sampling(4)):
            assert len(model.generate(["Pick."], 1, sampling)[0]) == 1
    if without == "temperature=0":
        assert server.seen[-1][2]["temperature"] == 1.0


@pytest.mark.parametrize(
    ("rejects", "without"),
    [
        (lambda body: "seed" in body and "Extra inputs are not permitted: seed", "seed"),
        (lambda body: "n" in body and "Unknown parameter: 'n'.", "n"),
        (lambda body: "stop" in body and "Unsupported parameter: 'stop' is not supported here.", "stop"),
        (lambda body: body.get("top_p") == 1.0 and "`top_p` must be > 0.0 and < 1.0", "top_p=1"),
        (lambda body: "system" in str(body.get("messages")) and "System role not supported", "system"),
        (lambda body: "system" in str(body.get("messages")) and "Bad template", "system"),
        (
            lambda body: (
                ("seed" in body and "seed?") or ("system" in str(body.get("messages")) and "roles?")
            ),
            "seed,system",
        ),
    ],
)  # fmt: skip
def test_other_fields_and_the_system_role_too(
    server: Server, rejects: Callable[[Body], str], without: str
) -> None:
    server.rejects = rejects
    model, told = load(server)
    assert model.model.route == "chat"
    assert model.revision.endswith(f" without {without}")
    assert len(told) == len(without.split(","))
    for prompt in (ASK, "Pick."):
        assert len(model.generate([prompt], 1, WARM)[0]) == 1
    if "system" in without:
        assert model.generate([ASK], 1, Sampling(4))
        assert server.seen[-1][2]["messages"] == [
            {"role": "user", "content": "Be brief.\n\nWhere is the mug?"}
        ]
        assert "instructions in the user's message" in model.model.prompting


SETTINGS = {"top_k", "min_p", "repeat_penalty", "repetition_penalty"}


def test_settings_of_the_server_are_turned_off_and_recorded(server: Server) -> None:
    model, told = load(server)
    assert told == []
    assert model.revision.endswith(" chat-1 with min_p,repeat_penalty,repetition_penalty,top_k")
    model.generate(["Pick."], 1, WARM)
    sent = server.seen[-1][2]
    assert {name: sent[name] for name in SETTINGS} == EVERY_SETTING


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (SETTINGS, "Bad request"),  # no field is named
        (SETTINGS, "Extra inputs are not permitted: {}"),  # one after the other
        ({"top_k"}, "top_k must be -1 (disable), or at least 1, got 0."),
        ({"min_p", "repeat_penalty"}, "Unrecognized request argument supplied: {}"),
    ],
)
def test_settings_that_a_server_refuses_are_named_and_change_nothing_else(
    server: Server, refused: set[str], says: str
) -> None:
    server.rejects = lambda body: "".join(says.format(name) for name in sorted(refused & body.keys())[:1])
    model, told = load(server)
    assert len(told) == 1
    for name in refused:
        assert name in told[0]
    taken = ",".join(sorted(SETTINGS - refused))
    assert model.revision.endswith(" chat-1" + (f" with {taken}" if taken else ""))
    assert len(model.generate(["Pick."], 1, WARM)[0]) == 1
    assert SETTINGS & server.seen[-1][2].keys() == SETTINGS - refused


def test_openai_itself_is_not_sent_settings_that_it_refuses() -> None:
    for url, settings in (("https://api.openai.com/v1", {}), ("http://127.0.0.1:1/v1", EVERY_SETTING)):
        line = Line(Account("openai", url), concurrency=1, timeout=1.0, retries=0, patience=1.0)
        assert OpenAIModel("gpt", line, evidence="L0").accepted.settings == settings


def test_a_server_without_restricted_answers_says_so_once(server: Server) -> None:
    server.rejects = lambda body: "response_format is not supported" if "response_format" in body else ""
    model, told = load(server)
    assert len(told) == 1
    assert "answers cannot be restricted" in told[0]
    assert model.takes == {"effort", "tools"}
    assert model.revision.endswith(" without response_format")
    assert not has_way(model, "structured")
    model.generate(["Pick."], 1, Sampling(4, choices=("a", "b")))
    assert "response_format" not in server.seen[-1][2]


def test_a_server_without_reasoning_effort_is_as_before_until_a_role_asks_for_it(server: Server) -> None:
    server.rejects = lambda body: "Unknown parameter" if "reasoning_effort" in body else ""
    model, told = load(server)
    assert told == []
    assert model.takes == {"choices", "tools"}
    assert "without" not in model.revision
    with pytest.raises(UsageError, match="does not support reasoning effort"):
        Asking(model, AskConfig(effort="low"))


def test_a_field_is_left_out_by_hand(server: Server) -> None:
    model, told = load(server, without="temperature, stop")
    assert told == []
    assert model.revision.endswith(" without stop,stop_sequences,temperature")
    assert "without=temperature, stop" in model.name
    model.generate(["Pick."], 1, WARM)
    assert not {"temperature", "stop"} & server.seen[-1][2].keys()
    with pytest.raises(
        UsageError, match="without=messages names no field that can be left out; there are n,"
    ):
        load(server, without="messages")


def test_a_chat_route_that_cannot_be_used_is_not_left_without_a_word(server: Server) -> None:
    server.rejects = lambda body: "This model has no chat template." if "messages" in body else ""
    model, told = load(server)
    assert model.model.route == "text"
    assert any("refuses chat" in one and "no chat template" in one for one in told)
    assert "without" not in model.revision


def demands_turns(body: Body) -> str:
    roles = [message["role"] for message in body.get("messages", ()) if message["role"] != "system"]
    wrong = any(role != ("user", "assistant")[place % 2] for place, role in enumerate(roles))
    return "Conversation roles must alternate user/assistant/user/assistant/..." if wrong else ""


def test_speakers_take_turns_where_a_server_demands_it(server: Server) -> None:
    """Found out in the middle of a run, and from then on done at once."""
    server.rejects = demands_turns
    model, told = load(server)
    assert told == []
    twice = (Message("user", "One."), Message("user", "Two."))
    assert model.generate([twice], 1, Sampling(4))
    assert server.seen[-1][2]["messages"] == [{"role": "user", "content": "One.\n\nTwo."}]
    before = len(server.seen)
    begun = (Message("assistant", "Hello."), Message("user", "Two."), Message("user", "Three."))
    assert model.generate([begun], 1, Sampling(4))
    assert len(server.seen) == before + 1
    assert [message["role"] for message in server.seen[-1][2]["messages"]] == ["user", "assistant", "user"]


def test_several_conversations_that_are_refused_at_once_are_all_sent_again(server: Server) -> None:
    server.rejects = demands_turns
    model, _ = load(server)
    server.busiest, server.together = 0, 3  # all are under way when the first one is refused
    twice = [(Message("user", f"One {i}."), Message("user", "Two.")) for i in range(3)]
    assert len(model.generate(twice, 1, Sampling(4))) == 3
