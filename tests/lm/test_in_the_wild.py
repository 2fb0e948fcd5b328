"""What hosted services and their gateways send besides answers: limits, filters, redirects, odd lists."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from talker import Handler, Talker, chat, only_chat

from hunch import lm
from hunch.core import HunchError, HunchWarning
from hunch.lm import Sampling
from hunch.lm.backends import http as network

SAMPLING = Sampling(max_tokens=8)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "FIRST_WAIT", 0.02)


def load(talker: Talker) -> lm.Cached:
    model = lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0", chat=True)
    talker.asked.clear()
    return model


QUOTA = "You exceeded your current quota, please check your plan and billing details."
ADVICE = "To increase it, add a payment method at https://x.com/account/billing."


@pytest.mark.parametrize(
    ("says", "passes"),
    [
        (f"{QUOTA} Head to: https://x.dev/rate-limits. GenerateRequestsPerDayPerProject", False),
        (f"{QUOTA} Head to: https://x.dev/rate-limits. GenerateRequestsPerMinutePerProject", True),
        (f"Rate limit reached on requests per min: Limit 3. {ADVICE}", True),
        (f"{QUOTA} Quota exceeded for free tier requests, limit: 15. Please retry in 3s.", True),
        (QUOTA, False),
        ("Your credit balance is too low. See our rate limits.", False),
        ("Billing hard limit has been reached", False),
    ],
)
def test_a_limit_per_minute_passes_and_a_used_up_quota_does_not(
    talker: Talker, says: str, passes: bool
) -> None:
    model = load(talker)
    refusals = iter([(429, {"error": {"message": says}})])
    talker.answer = lambda path, body: next(refusals, None) or only_chat(path, body)
    if passes:
        assert model.generate(["Where?"], 1, SAMPLING) == [["go north"]]
    else:
        with pytest.raises(HunchError, match="HTTP 429"):
            model.generate(["Where?"], 1, SAMPLING)
    assert len(talker.asked) == 1 + passes


FILTERS = {
    "azure": (400, "The response was filtered due to Azure OpenAI's content management policy."),
    "openrouter": (403, "The model requires moderation and your input was flagged for violence."),
    "openai": (400, "Your request was rejected as a result of our safety system."),
    "dashscope": (400, "Input data may contain inappropriate content."),
    "deepseek": (400, "Content Exists Risk"),
}


@pytest.mark.parametrize("service", FILTERS)
def test_a_prompt_that_a_filter_keeps_from_the_model_is_a_refused_answer(
    talker: Talker, service: str
) -> None:
    """A game in which one kills a troll need not pass: that is no reason to end a run."""
    model = load_that_labels(talker)
    honest, (status, says) = talker.answer, FILTERS[service]
    talker.answer = lambda path, body: (status, {"error": {"message": says}})
    with pytest.warns(HunchWarning, match="refuses a prompt for its content"):
        assert model.generate(["Kill the troll?"], 1, SAMPLING) == [[""]]
    assert model.label(["Kill the troll?"], [["A", "B"]])[0].tolist() == [-np.inf] * 2
    assert (len(talker.asked), model.usage.calls, model.usage.refusals) == (2, 2, 2)
    talker.answer = honest  # neither is kept
    assert model.generate(["Kill the troll?"], 1, SAMPLING) == [["A"]]
    assert model.label(["Kill the troll?"], [["A", "B"]])[0].tolist() == [-0.1, -2.0]


@pytest.mark.parametrize(
    "says",
    [
        "Unknown parameter: 'content_filter'.",
        "Your organization must be verified to use this model; see our content policy.",
    ],
)
def test_what_is_wrong_with_a_request_is_no_refused_prompt(talker: Talker, says: str) -> None:
    model = load_that_labels(talker)
    talker.answer = lambda path, body: (400, {"error": {"message": says}})
    with pytest.raises(HunchError, match="HTTP 400"):
        model.generate(["Where?"], 1, SAMPLING)


def load_that_labels(talker: Talker) -> lm.Cached:
    top = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2.0}]

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        likely = {"content": [{"top_logprobs": top}]} if "logprobs" in body else None
        return chat("A", logprobs=likely) if "chat" in path else only_chat(path, body)

    talker.answer = answer
    model = load(talker)
    assert "label" in model.verbs
    return model


@pytest.mark.parametrize(
    "choice",
    [
        {"logprobs": None, "finish_reason": "content_filter"},
        {"logprobs": {"content": []}},
        {"logprobs": {"content": [{"token": "", "logprob": 0.0, "top_logprobs": []}]}},
    ],
)
def test_a_reply_without_candidates_is_a_choice_that_cannot_be_read(
    talker: Talker, choice: dict[str, Any]
) -> None:
    model = load_that_labels(talker)
    honest = talker.answer
    talker.answer = lambda path, body: chat("", **choice)
    with pytest.warns(HunchWarning, match="(log-probabilities|candidates).*; such an answer is empty"):
        assert model.label(["Which?"], [["A", "B"]])[0].tolist() == [-np.inf] * 2
    assert len(talker.asked) == 1
    talker.answer = honest
    assert model.label(["Which?"], [["A", "B"]])[0].tolist() == [-0.1, -2.0]


@pytest.mark.parametrize(
    "listed", [[{"id": "m", "context_length": 4096}], {"models": ["m"]}, "<html>", {"data": None}]
)
def test_a_list_of_models_in_another_form_does_not_delay_the_load(talker: Talker, listed: Any) -> None:
    """One service sends a bare list; its context is read all the same."""
    talker.answer = lambda path, body: (200, listed) if "models" in path else only_chat(path, body)
    model = lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0", chat=True)
    assert len([path for path, _ in talker.asked if "models" in path]) == 1
    assert model.context == (4096 if isinstance(listed, list) else None)


def test_a_list_of_models_that_fails_does_not_delay_the_load(talker: Talker) -> None:
    talker.answer = lambda path, body: (500, {}) if "models" in path else only_chat(path, body)
    lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0", chat=True)
    assert len([path for path, _ in talker.asked if "models" in path]) == 2


def test_a_redirect_is_not_followed_and_says_where_it_leads(talker: Talker) -> None:
    class Moved(Handler):
        def reply(self, body: dict[str, Any]) -> None:
            self.send_response(308)
            self.send_header("location", f"https://api.example.org{self.path}")
            self.send_header("content-length", "0")
            self.end_headers()

    talker.RequestHandlerClass = Moved
    with pytest.raises(
        HunchError, match=r"HTTP 308: it moved to https://api\.example\.org/v1/chat.*base_url="
    ):
        load(talker)


def test_a_reply_is_utf8_whatever_its_header_says(talker: Talker) -> None:
    class Spring(Handler):
        def reply(self, body: dict[str, Any]) -> None:
            text = json.dumps(chat("geh zur Tür ☃")[1], ensure_ascii=False).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json;charset=ISO-8859-1")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    talker.RequestHandlerClass = Spring
    assert load(talker).generate(["Wohin?"], 1, SAMPLING) == [["geh zur Tür ☃"]]


def test_routes_that_answer_with_nonsense_do_not_delay_the_load(talker: Talker) -> None:
    """LM Studio answers unknown routes with 200; others answer a list of prompts as one prompt."""

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/embeddings"):
            return 200, {"error": "Unexpected endpoint or method. (POST /v1/embeddings)"}
        if path.endswith("/v1/completions"):
            _, reply = chat("")
            return 200, reply | {"choices": [{"index": 0, "text": " blue", "finish_reason": "length"}]}
        return only_chat(path, body)

    talker.answer = answer
    model = lm.load("openai:m", cache=None, base_url=talker.url, evidence="L0", chat=True)
    assert model.verbs == {"generate"}
    assert len([path for path, _ in talker.asked if "chat" not in path]) <= 10


@pytest.mark.parametrize("reason", ["content_filter", "length"])
def test_a_choice_without_a_message_says_why_in_its_end(talker: Talker, reason: str) -> None:
    """So does Gemini, if a filter or the limit of tokens ends its thoughts."""
    model = load(talker)
    ended = {"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": reason}]}
    talker.answer = lambda path, body: (200, ended | {"usage": {"prompt_tokens": 40, "completion_tokens": 5}})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*cut an answer", HunchWarning)
        assert model.generate(["Where?"], 1, SAMPLING) == [[""]]
    assert (len(talker.asked), model.usage.refusals) == (1, 1)
