"""Stand-ins of vLLM and SGLang that behave as their documents and their source say, where they differ."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.lm.talker import Talker
from tests.started import answering

from hunch import lm
from hunch.lm.answers.calls import read_calls
from hunch.lm.speech import Sampling

Body = dict[str, Any]
CONTEXT = 2048
LEAST = -9999.0
"""What vLLM writes for a log-probability of minus infinity, which JSON does not have."""


def tokens(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+", text)


def logprob(token: str) -> float:
    return -0.25 * len(token)


class StandIn(Talker):
    """What both have in common: chat and completions over a model that says nothing of interest."""

    owner = ""
    thinks = False

    def __init__(self) -> None:
        super().__init__()
        self.answer = self.serve
        self.bodies: list[Body] = []

    def serve(self, path: str, body: Body) -> tuple[int, Body]:
        if path.endswith("/models"):
            listed = {"id": "m", "object": "model", "owned_by": self.owner, "max_model_len": CONTEXT}
            return 200, {"object": "list", "data": [listed]}
        if path.endswith("/embeddings"):
            return self.no_embeddings()
        self.bodies.append(body)
        why = self.refuses(path, body)
        if why:
            return 400, self.error(why)
        chats = path.endswith("/chat/completions")
        choices = [self.chat(body)] if chats else self.texts(body)
        prompts = [json.dumps(body["messages"])] if chats else self.prompts(body)
        read = sum(len(tokens(prompt)) for prompt in prompts)
        written = len(choices) * (body.get("max_tokens") or 0)
        usage = {"prompt_tokens": read, "completion_tokens": max(1, written), "prompt_tokens_details": None}
        return 200, {"id": str(len(self.asked)), "model": "m", "choices": choices, "usage": usage}

    def prompts(self, body: Body) -> list[str]:
        return [body["prompt"]] if isinstance(body["prompt"], str) else body["prompt"]

    def chat(self, body: Body) -> Body:
        message: Body = {"role": "assistant", "content": "blue", "refusal": None, "tool_calls": []}
        if body.get("response_format"):
            schema = body["response_format"]["json_schema"]["schema"]
            message["content"] = json.dumps({"answer": schema["properties"]["answer"]["enum"][0]})
        asked = body.get("chat_template_kwargs", {}).get("enable_thinking", True)
        if self.thinks and asked:
            message |= self.thought()
        listed = None
        if body.get("logprobs"):
            tops = [
                {"token": "A", "logprob": -0.1, "bytes": [65]},
                {"token": "B", "logprob": LEAST, "bytes": [66]},
            ]
            listed = {"content": [tops[0] | {"top_logprobs": tops[: body["top_logprobs"]]}], "refusal": None}
        return {"index": 0, "message": message, "logprobs": listed, "finish_reason": "stop"}

    def texts(self, body: Body) -> list[Body]:
        made = []
        for i, prompt in enumerate(self.prompts(body)):
            parts = tokens(prompt) if body.get("echo") else []
            written = ["x"] * body["max_tokens"]
            values: list[float | None] = [None, *map(logprob, parts[1:])] if parts else []
            values += map(logprob, written)
            row = {
                "tokens": [*parts, *written],
                "token_logprobs": values,
                "top_logprobs": [None] * len(values),
                "text_offset": [self.offset] * len(values),
            }
            text = "".join([*parts, *written])
            made.append({"index": i, "text": text, "logprobs": row, "finish_reason": "length"})
        return made

    offset = 0

    def refuses(self, path: str, body: Body) -> str:
        raise NotImplementedError

    def error(self, message: str) -> Body:
        raise NotImplementedError

    def no_embeddings(self) -> tuple[int, Body]:
        raise NotImplementedError

    def thought(self) -> Body:
        raise NotImplementedError


class VLLM(StandIn):
    """Ignores fields that it does not know, and nests its errors."""

    owner = "vllm"

    def refuses(self, path: str, body: Body) -> str:
        if body.get("n", 1) > 1 and body.get("temperature") == 0:
            return "n must be 1 when using greedy sampling, got 2."
        if max(body.get("top_logprobs") or 0, body.get("logprobs") or 0) > 20:
            return "Requested sample logprobs of 21, which is greater than max allowed: 20"
        if body.get("tools"):
            return '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        if len(json.dumps(body)) > 5 * CONTEXT:
            return (
                f"This model's maximum context length is {CONTEXT} tokens. However, you requested 3000 "
                "tokens in the messages, Please reduce the length of the messages."
            )
        return ""

    def error(self, message: str) -> Body:
        return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}

    def no_embeddings(self) -> tuple[int, Body]:
        return 404, {"detail": "Not Found"}

    def thought(self) -> Body:
        return {"reasoning": "Let me think."}


class SGLang(StandIn):
    """Refuses ``top_k=0`` and ``max_tokens=0``, and has flat errors."""

    owner = "sglang"
    offset = -1

    def refuses(self, path: str, body: Body) -> str:
        if body.get("top_k", -1) == 0:
            return "top_k must be -1 (disable) or at least 1, got 0."
        if body.get("max_tokens", 1) <= 0:
            return "1 validation error: body.max_tokens: Value error, max_tokens must be positive"
        if len(json.dumps(body)) > 5 * CONTEXT:
            return f"The input (3000 tokens) is longer than the model's context length ({CONTEXT} tokens)."
        return ""

    def chat(self, body: Body) -> Body:
        choice = super().chat(body) | {"matched_stop": 151645}
        if body.get("tools"):  # without --tool-call-parser, calls stay in the text
            choice["message"]["content"] = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
            choice["message"]["tool_calls"] = None
        return choice

    def error(self, message: str) -> Body:
        return {"object": "error", "message": message, "type": "BadRequest", "param": None, "code": 400}

    def no_embeddings(self) -> tuple[int, Body]:
        return 400, self.error("This model does not appear to be an embedding model by default.")

    def thought(self) -> Body:
        return {"reasoning_content": "Let me think."}


@pytest.fixture(params=[VLLM, SGLang])
def server(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    with answering(request.param()) as stand_in:
        yield stand_in


def load(server: StandIn, options: str = "") -> Any:
    """Load the model without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return lm.load(f"openai:m?base_url={server.url}{options}", cache=None)


def test_the_verbs_are_found_and_nothing_is_left_out(server: StandIn) -> None:
    model = load(server)
    assert model.verbs == {"generate", "score", "label"}
    assert {"choices", "effort"} <= model.takes
    assert model.context == CONTEXT
    assert "without" not in model.revision


def test_answers_are_drawn_from_the_whole_distribution(server: StandIn) -> None:
    model = load(server)
    model.generate(["Pick."], 3, Sampling(8, 0.7))
    sent = server.bodies[-3:]
    assert {body["top_k"] for body in sent} == {-1 if isinstance(server, SGLang) else 0}
    assert all((body["min_p"], body["repetition_penalty"]) == (0.0, 1.0) for body in sent)
    assert {body["n"] for body in sent} == {1}, (
        "n > 1 shares one seed, and vLLM refuses it for greedy answers"
    )
    assert len({body["seed"] for body in sent}) == 3


def test_scores_are_those_of_the_tokens_after_the_prompt(server: StandIn) -> None:
    """SGLang writes a token beyond the echo, which is no part of it."""
    model = load(server)
    (scores,) = model.score(["The sky is"], [["blue today", "red"]])
    expected = [logprob(" blue") + logprob(" today"), logprob(" red")]
    np.testing.assert_allclose(scores.logprobs, expected)
    assert list(scores.tokens) == [2, 1]


def test_a_token_without_probability_is_a_label_that_is_never_chosen(server: StandIn) -> None:
    model = load(server)
    (labels,) = model.label(["A or B?"], [["A", "B", "C"]])
    assert labels[0] == pytest.approx(-0.1)
    assert labels[1] == LEAST
    assert labels[2] == -math.inf


def test_answers_are_restricted_by_the_form_that_both_have(server: StandIn) -> None:
    """Not by guided_choice, which newer versions of vLLM ignore without a word."""
    model = load(server)
    ((answer,),) = model.generate(["Pick."], 1, Sampling(16, choices=("red", "blue")))
    assert json.loads(answer) == {"answer": "red"}
    sent = server.bodies[-1]
    assert "guided_choice" not in sent
    assert sent["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"] == ["red", "blue"]


def test_a_prompt_that_is_too_long_loses_its_oldest_part(server: StandIn) -> None:
    model = load(server)
    with pytest.warns(match="read only a part of a prompt"):
        assert model.generate(["word " * 3000], 1, Sampling(8)) == [["blue"]]
    assert model.model.shortened == 1


def test_thoughts_are_no_answer_and_can_be_turned_off(server: StandIn) -> None:
    server.thinks = True
    assert load(server).thinks is True
    model = load(server, "&think=false")
    assert model.thinks is False
    assert "think=false" in model.name.lower()
    assert model.generate(["Pick."]) == [["blue"]]
    assert server.bodies[-1]["chat_template_kwargs"]["enable_thinking"] is False
    assert load(server, "&think=true").thinks is True


def test_calls_of_tools_need_a_parser_at_the_server(server: StandIn) -> None:
    model = load(server)
    if isinstance(server, VLLM):
        assert "tools" not in model.takes
        return
    tool = json.dumps({"type": "function", "function": {"name": "add", "parameters": {}}})
    ((answer,),) = model.generate(["Add."], 1, Sampling(64, stop=(), tools=(tool,)))
    assert read_calls(answer) == [("add", {"a": 1})]


def test_a_server_that_loads_its_model_is_waited_for(server: StandIn) -> None:
    serve, left = server.serve, [2]

    def warming_up(path: str, body: Body) -> tuple[int, Body]:
        if left[0] and "completions" in path:
            left[0] -= 1
            return 503, server.error("Service Unavailable: the model is loading.")
        return serve(path, body)

    server.answer = warming_up
    assert "generate" in load(server).verbs
