"""What hosted services and their gateways send besides answers: limits, filters, redirects, odd lists."""

from __future__ import annotations

import json
from typing import Any

import pytest
from talker import Talker, chat, only_chat

from hunch import lm
from hunch.core import HunchError
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
