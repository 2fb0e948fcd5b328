"""Only texts whose end is known are whole, and a prompt that a server cut is noticed by its count."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from talker import Talker, chat, only_chat

from hunch import lm
from hunch.core import HunchError, HunchWarning
from hunch.lm import Sampling
from hunch.lm.backends import http as network
from hunch.lm.backends.replies import end_of

LONG = Sampling(max_tokens=50, stop=())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "FIRST_WAIT", 0.02)


def answers(talker: Talker, text: str, usage: Any = None, **choice: Any) -> None:
    """The server's chat says this from now on."""

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "chat" not in path:
            return only_chat(path, body)
        status, reply = chat(text, **choice)
        return status, reply | ({"usage": usage} if usage else {})

    talker.answer = answer


def asked_twice(talker: Talker, folder: Path, prompt: str = "Where?", **how: Any) -> tuple[bool, list[str]]:
    """Whether an equal question was sent again, and what was warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        url = talker.url
        model = lm.load("openai:m", cache=folder / "a.sqlite", base_url=url, evidence="L0", retries=1)
        model.generate([prompt], 1, how.get("sampling", LONG))
        before = len(talker.asked)
        model.generate([prompt], 1, how.get("sampling", LONG))
    said = [str(one.message) for one in told if one.category is HunchWarning]
    return len(talker.asked) > before, said


@pytest.mark.parametrize("reason", ["stop", "STOP", "eos_token", "end_turn", "tool_calls"])
def test_a_known_end_is_whole_and_stored(talker: Talker, tmp_path: Path, reason: str) -> None:
    answers(talker, "go to the kit", finish_reason=reason)
    assert asked_twice(talker, tmp_path) == (False, [])


@pytest.mark.parametrize(
    "reason", ["model_length", "max_tokens", None, "", "repetition", 7, "content_filter"]
)
def test_another_end_is_used_once(talker: Talker, tmp_path: Path, reason: Any) -> None:
    answers(talker, "go to the kit", finish_reason=reason)
    again, said = asked_twice(talker, tmp_path)
    assert again
    assert [one for one in said if "not stored" in one] or reason == "content_filter"


@pytest.mark.parametrize("reason", ["abort", "error", "cancelled", "insufficient_system_resource"])
def test_an_answer_that_a_server_broke_off_is_asked_again(talker: Talker, reason: str) -> None:
    model = lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0", retries=2)
    talker.asked.clear()
    answers(talker, "go to the kit", finish_reason=reason)
    with pytest.raises(HunchError, match=f"broke off an answer .*{reason}"):
        model.generate(["Where?"], 1, LONG)
    assert len(talker.asked) == 3
    # what stands before a stop text is whole, however the rest ended
    assert model.generate(["Where?"], 1, Sampling(50, stop=(" kit",))) == [["go to the"]]


def test_all_known_ends_are_known() -> None:
    known = {"stop": "whole", "Length": "cut", "refusal": "refused", "ABORT": "broken", "": "unknown"}
    assert {reason: end_of(reason) for reason in known} == known
    assert end_of(None) == end_of({"type": "stop"}) == "unknown"


@pytest.mark.parametrize(
    ("words", "read", "cut"),
    [(8000, 2050, True), (3000, 2048, True), (900, 256, True), (2000, 2600, False), (100, 20, False)],
)
def test_a_prompt_that_the_server_cut_is_noticed(
    talker: Talker,
    tmp_path: Path,
    words: int,
    read: int,
    cut: bool,
) -> None:
    answers(talker, "go", {"prompt_tokens": read, "completion_tokens": 1})
    again, said = asked_twice(talker, tmp_path, "a room, " * (words // 3) + "\nWhat next?")
    assert again == cut
    assert bool([one for one in said if "dropped a part of the prompt" in one]) == cut


def test_numbers_of_a_prompt_that_the_server_cut_are_used_once(talker: Talker, tmp_path: Path) -> None:
    """With the larger context that the warning asks for, the server gives others."""
    usage = {"prompt_tokens": 2050, "completion_tokens": 1}
    likely = {"top_logprobs": [{"token": letter, "logprob": -1.0} for letter in "AB"]}
    _, reply = chat("A", logprobs={"content": [likely]})

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "embeddings" in path:
            return 200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}], "usage": usage}
        return (200, reply | {"id": "", "usage": usage}) if "chat" in path else only_chat(path, body)

    talker.answer = answer
    model = lm.load("openai:m", cache=tmp_path / "a.sqlite", base_url=talker.url, evidence="L0", retries=0)
    for prompt, calls in (("a room, " * 1000, 4), ("a room", 2)):
        before = len(talker.asked)
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HunchWarning)
                assert model.label([prompt], [["A", "B"]])[0].tolist() == [-1.0, -1.0]
                assert model.embed([prompt]).tolist() == [[1.0, 2.0]]
        assert len(talker.asked) == before + calls


def test_a_cut_is_measured_against_shorter_prompts(talker: Talker) -> None:
    """Three tokens to a word here, so two tokens to a word are too few."""
    model = lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0")
    for words, read in ((600, 1800), (900, 2700)):
        answers(talker, "go", {"prompt_tokens": read, "completion_tokens": 1})
        model.generate(["wrd " * words], 1, LONG)
    answers(talker, "go", {"prompt_tokens": 3000, "completion_tokens": 1})
    with pytest.warns(HunchWarning, match="read 3,000 tokens of a prompt of about"):
        model.generate(["wrd " * 1500], 1, LONG)
    assert model.usage.shortened == 1


@pytest.mark.parametrize("verb", ["generate", "label", "embed"])
@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 300 tokens.",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 2100 tokens > 300 maximum",
        "Input length 900 exceeds maximum allowed token size 300",
        "Please reduce the length of the messages",
    ],
)
def test_a_prompt_that_a_server_finds_too_long_loses_its_oldest_part(
    talker: Talker,
    verb: str,
    message: str,
) -> None:
    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/models"):
            return only_chat(path, body)
        if len(str(body.get("messages") or body.get("input"))) > 1200:
            return 400, {"error": {"message": message, "code": "context_length_exceeded"}}
        if "embeddings" in path:
            return 200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}], "usage": {"prompt_tokens": 400}}
        if "chat" not in path:
            return only_chat(path, body)
        top = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2.0}]
        likely = {"content": [{"top_logprobs": top}]} if "logprobs" in body else None
        return chat("go on", read=400, logprobs=likely)

    talker.answer = answer
    model = lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0")
    steps = "".join(f"You see room {number}.\n> go {number}\n" for number in range(200))
    prompt = f"Your task is to: win\n{steps}You see the door.\n- open\n- wait\n>"
    ask: dict[str, Callable[[], Any]] = {
        "generate": lambda: model.generate([prompt], 1, LONG),
        "label": lambda: model.label([prompt], [["A", "B"]])[0].tolist(),
        "embed": lambda: model.embed([prompt]).tolist(),
    }
    with pytest.warns(HunchWarning, match="longer than the model reads"):
        answer_to_it = ask[verb]()
    assert answer_to_it in ([["go on"]], [-0.1, -2.0], [[1.0, 2.0]])
    body = talker.asked[-1][1]
    sent = body["messages"][-1]["content"] if "messages" in body else body["input"]
    assert sent.startswith("Your task is to: win\n")
    assert sent.endswith("You see room 199.\n> go 199\nYou see the door.\n- open\n- wait\n>")
    assert "room 100." not in sent
    assert model.usage.shortened == 1


def test_room_for_the_answer_goes_before_the_prompt(talker: Talker) -> None:
    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body.get("max_tokens", 0) > 600:
            says = "maximum context length is 1000 tokens; you requested 2100 (2048 in the completion)"
            return 400, {"error": {"message": says}}
        return only_chat(path, body)

    talker.answer = answer
    model = lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0")
    with pytest.warns(HunchWarning, match="reads too little for max_tokens=2048, so answers get 512"):
        model.generate(["Where to go now?"], 1, Sampling(2048, stop=()))
    assert talker.asked[-1][1]["max_tokens"] == 512
    assert talker.asked[-1][1]["messages"][-1]["content"] == "Where to go now?"
