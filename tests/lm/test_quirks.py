"""Servers that nearly speak the protocol: a right answer, or one sentence that says what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.lm.talker import Talker, chat
from tests.started import answering

from hunch import lm
from hunch.core import HunchError
from hunch.lm import Message, Sampling

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*states no valid token counts:hunch.core.HunchWarning"),
    pytest.mark.filterwarnings("ignore:.*ended an answer in a way that is not known:hunch.core.HunchWarning"),
]
ASKED = (Message("user", "Where to?"),)


@pytest.fixture
def talker() -> Iterator[Talker]:
    with answering(Talker()) as running:
        yield running


def load(talker: Talker, said: Any, status: int = 200) -> lm.Cached:
    def answer(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        return (status, said) if "chat" in path else (404, {"error": {"message": "no such route"}})

    talker.answer = answer
    return lm.load("openai:m", base_url=talker.url, retries=0, timeout=20, cache=None)


def reply(**more: Any) -> dict[str, Any]:
    said = chat("go north")[1] | more
    del said["id"]  # one that comes again would be warned of
    return said


def choice(content: Any = "go north", **more: Any) -> dict[str, Any]:
    return reply(choices=[{"index": 0, "finish_reason": "stop", "message": {"content": content}} | more])


def without_index() -> dict[str, Any]:
    said = reply()
    del said["choices"][0]["index"]
    return said


RIGHT = {
    "usage null": reply(usage=None),
    "usage list": reply(usage=[1, 2]),
    "usage in words": reply(usage={"prompt_tokens": "4", "completion_tokens": "two"}),
    "counts null": reply(usage={"prompt_tokens": None, "completion_tokens": None}),
    "count NaN": json.dumps(reply(usage={"prompt_tokens": float("nan"), "completion_tokens": 2})),
    "no index": without_index(),
    "content in parts": choice([{"type": "text", "text": "go north"}]),
    "end null": choice(finish_reason=None),
    "end in capitals": choice(finish_reason="STOP"),
    "log-probabilities null": choice(logprobs=None),
    "log-probabilities in words": choice(logprobs={"content": [{"token": "go", "logprob": "x"}]}),
    "byte order mark": "\ufeff" + json.dumps(reply()),
    "marks of direction": choice("\u202ego north\u202c"),
    "invisible spaces": choice("go\u200b north\ufeff"),
    "half a character": json.dumps(choice("go north")).replace("north", "north \\ud800"),
}


@pytest.mark.parametrize("quirk", RIGHT)
def test_a_quirk_does_not_hide_the_answer(talker: Talker, quirk: str) -> None:
    model = load(talker, RIGHT[quirk])
    assert "go" in model.generate([ASKED], 1, Sampling(max_tokens=8))[0][0]
    assert not {"label", "score"} & model.verbs  # no number is made of what is none
    (chosen,) = lm.choose(model, ["Which?"], [["go north", "go south"]])
    assert chosen.probabilities.tolist() == [1.0, 0.0]


STREAM = 'data: {"choices": [{"index": 0, "delta": {"content": "go north"}}]}\n\ndata: [DONE]\n\n'
WRONG = {
    "streams": (STREAM, "streams its answer, which was not asked for: turn that off"),
    "web page": ("<html><body>Welcome</body></html>", "sent a web page: does base_url= lead to its API"),
    "nothing": ("", "malformed reply: nothing"),
    "error with success": ({"error": {"message": "out of memory"}}, "answers with an error: out of memory"),
    "error as a text": ({"error": "busy"}, "answers with an error: busy"),
    "no choices": (reply(choices=[]), "malformed reply"),
    "choices null": (reply(choices=None), "malformed reply"),
    "a list": ([reply()], "malformed reply"),
    "content a number": (choice(3), "malformed reply"),
    "index a text": (choice(index="0"), "malformed reply"),
    "too deep": ("[" * 100_000, "malformed reply"),
    "number too long": (json.dumps(reply()).replace("40", "9" * 5000, 1), "malformed reply"),
}


@pytest.mark.parametrize("quirk", WRONG)
def test_what_is_no_answer_is_one_sentence(talker: Talker, quirk: str) -> None:
    said, says = WRONG[quirk]
    with pytest.raises(HunchError, match=says):
        load(talker, said).generate([ASKED], 1, Sampling(max_tokens=8))


@pytest.mark.parametrize("status", [302, 501])
def test_a_status_is_named(talker: Talker, status: int) -> None:
    with pytest.raises(HunchError, match=f"HTTP {status}"):
        load(talker, "", status).generate([ASKED], 1, Sampling(max_tokens=8))
