"""Servers that have no structured output, ignore it, or answer 501: what is said, and what is read."""

from __future__ import annotations

from typing import Any

import pytest
from talker import Talker, chat, only_chat

from hunch import lm
from hunch.core import HunchError
from hunch.lm.scoring.choose import choose

OPTIONS = ("go north", "go south", "wait")


def model(talker: Talker) -> lm.Cached:
    return lm.load(f"openai:m?base_url={talker.url}&retries=0", cache=None)


def test_a_server_that_ignores_structured_output_is_read_as_free_text(talker: Talker) -> None:
    (choice,) = choose(model(talker), ["Where?"], [OPTIONS], way="structured", samples=2)
    assert choice.probabilities.tolist() == [1.0, 0.0, 0.0]  # it says "go north" as plain text


def test_one_that_ignores_it_and_rambles_is_named(talker: Talker) -> None:
    asked = model(talker)
    talker.answer = lambda path, body: chat("I would rather talk about the weather.")
    with pytest.raises(HunchError, match=r"in a row could not be used.*an answer has to name an action"):
        choose(asked, ["Where?"] * 40, [OPTIONS] * 40, way="structured", samples=5, patience=3)


@pytest.mark.parametrize("status", [400, 422, 501])
def test_one_that_has_none_says_so_in_a_sentence(talker: Talker, status: int) -> None:
    asked = model(talker)

    def refuses(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "response_format" in body:
            return status, {"error": {"message": "response_format is not implemented"}}
        return only_chat(path, body)

    talker.answer = refuses
    before = len(talker.asked)
    with pytest.raises(HunchError, match=f"HTTP {status}.*response_format is not implemented"):
        choose(asked, ["Where?"], [OPTIONS], way="structured", samples=1)
    assert len(talker.asked) == before + 1  # it is not asked again in vain
