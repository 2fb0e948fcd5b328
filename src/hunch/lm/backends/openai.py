"""Models on servers with the OpenAI protocol, such as vLLM, Ollama, llama.cpp and hosted services.

The prompts of this library are plain text to be continued. A chat model receives a prompt as one user message
after a system message (:mod:`hunch.lm.backends.remote`), a server without chat the plain prompt by its
completions route. What a server can do is tested when it is loaded, with one small request per verb.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, HunchError, UsageError
from hunch.lm.answers.calls import calls_of, read_calls, text_of_calls
from hunch.lm.answers.question import Question
from hunch.lm.backends.accepted import (
    EFFORT,
    EVERY_SETTING,
    QUESTION,
    RESTRICTED,
    SYSTEM,
    TOOLS,
    USUAL,
    kept,
)
from hunch.lm.backends.http import Line, Request, RequestError
from hunch.lm.backends.loop import wait_for
from hunch.lm.backends.remote import RemoteModel, account, formatted, one_of
from hunch.lm.backends.replies import (
    Written,
    after_prompt,
    besides,
    by_name,
    context_size,
    end_of,
    message_of,
    next_output,
    one,
    plain_token,
    spoken,
    tokens_of,
)
from hunch.lm.backends.sampling import room_to_think, sample_rng
from hunch.lm.base import Backend, Float32Array, OptionScores, Verb
from hunch.lm.prompts import Message, Prompt
from hunch.lm.speech import Sampling, text_of
from hunch.lm.usage import Usage, counters
from hunch.lm.waiting import waiting

BACKEND = Backend(
    "openai:<model>",
    f"{__name__}:load",
    frozenset({"generate", "score", "label", "embed", "see"}),
    "a model on any OpenAI-compatible server: vLLM, Ollama, llama.cpp, hosted ones",
    imports=("openai",),
)

HOSTED = "https://api.openai.com/v1"
TEMPLATES = {"chat": "chat-1", "text": "text-1"}
"""Version of the format of each route; part of the revision, so raise it when a format changes."""
TOP = (20, 5)
"""Number of most likely tokens to request: most servers return 20, some completions routes only 5."""
STOPS = 4
"""Number of stop texts that OpenAI accepts; the others are cut off here."""
NAMES_SHOWN = 10
NO_ROUTE = (404, 405, 501)
"""HTTP statuses of a route that a server does not have."""

THOUGHT = ("<think", "<reason", "<thought", "[THINK", "<|channel")
"""Beginnings of answers of models that write their thoughts into the answer."""

Route = Literal["chat", "text"]


def load(
    model: str,
    *,
    base_url: str | None = None,
    key_env: str | None = None,
    chat: bool | Literal["auto"] = "auto",
    concurrency: int = 16,
    timeout: float = 60.0,
    retries: int = 6,
    patience: float = 600.0,
    evidence: EvidenceLevel = "L3",
    see: bool = False,
    price_in: float = 0.0,
    price_out: float = 0.0,
    without: str = "",
    think: bool | None = None,
) -> OpenAIModel:
    """Load a model by its name on the server, and find out which verbs it supports.

    Args:
        model: Name of the model on the server.
        base_url: Address of the server. Default: ``OPENAI_BASE_URL``, else OpenAI's own.
        key_env: Environment variable with the key. Default: ``HUNCH_API_KEY``, else, for OpenAI's own host
            only, ``OPENAI_API_KEY``.
        chat: True to send prompts to the chat route; ``auto`` uses completions if chat is refused.
        concurrency: Maximum number of simultaneous requests.
        timeout: Seconds per attempt.
        retries: Maximum number of attempts after the first.
        patience: Seconds that a request waits in total for a server that asks to retry later.
        evidence: Evidence level of results; a server does not say how its weights were made.
        see: True if the model accepts pictures through chat; servers do not say.
        price_in: Price per million tokens read.
        price_out: Price per million tokens written.
        without: Fields that are left out of requests, such as ``temperature,top_p``, besides those that the
            server refuses when it is asked at load.
        think: False to ask the server's chat template for an answer without thoughts, True for one with
            thoughts (``chat_template_kwargs``). vLLM, SGLang and llama.cpp pass it on to the template.

    Raises:
        UsageError: for a wrong option, a missing key, a model that the server does not have, or a price where
            the server states no token counts.
        HunchError: if the server cannot be reached or refuses the key, or the package is missing.
    """
    if chat not in (True, False, "auto"):
        raise UsageError(f"chat must be true, false or auto, not {chat!r}.")
    line = Line(
        account("openai", base_url, key_env, HOSTED),
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        patience=patience,
    )
    loaded = OpenAIModel(
        model, line, evidence=evidence, price_in=price_in, price_out=price_out, without=without, think=think
    )
    routes: list[Route] = ["chat", "text"] if chat == "auto" else ["chat" if chat else "text"]
    with waiting(f"{loaded.name}: trying what it can do"):
        wait_for(loaded.probe(routes))
    if (price_in or price_out) and not loaded.states:
        raise UsageError(
            f"{loaded.name} has a price, but its server states no token counts: leave the prices out."
        )
    if see and loaded.route != "chat":
        raise UsageError(f"{loaded.name} uses the completions route, which accepts no pictures.")
    loaded.verbs |= {"see"} if see else set()
    return loaded


def sent(message: Message) -> dict[str, Any]:
    """Return a message in the format of the protocol."""
    return formatted(message, lambda image: {"type": "image_url", "image_url": {"url": image}})


def with_calls(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages in which earlier calls, which are texts, have the form of the protocol.

    The user's message after a call is what the tools returned. It is one text, so that with several calls
    the first has it, and the others point to it.
    """
    formed: list[dict[str, Any]] = []
    unanswered: list[str] = []  # numbers of the calls of the last message
    number = 0
    for message in messages:
        content = message["content"]
        calls = read_calls(content) if message["role"] == "assistant" and isinstance(content, str) else []
        if calls and all(isinstance(call.arguments, dict) for call in calls):
            entries: list[dict[str, Any]] = []
            for call in calls:
                number += 1
                # Some servers want the arguments as JSON, and some templates want numbers of nine signs.
                function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
                entries.append({"id": f"call{number:05d}", "type": "function", "function": function})
            formed.append({"role": "assistant", "content": "", "tool_calls": entries})
            unanswered = [str(entry["id"]) for entry in entries]
        elif unanswered and message["role"] == "user":
            for place, call_id in enumerate(unanswered):
                said = "See the result of the first call." if place else content
                formed.append({"role": "tool", "tool_call_id": call_id, "content": said})
            unanswered = []
        else:
            formed.append(message)
            unanswered = []
    return formed


def begins_to_think(text: str | None, instead: str) -> bool:
    """Return whether an answer of a few tokens begins with thoughts: shown apart, inline, or hidden."""
    said = (text or "").strip()
    return instead == "thinks" or not said or said.startswith(THOUGHT)


class OpenAIModel(RemoteModel):
    """A model on an OpenAI-compatible server.

    The revision is the base URL and the version of the template, because a server does not say which weights
    it uses. Sample i is requested with a seed drawn from (model, prompt, sampling, i), which most servers
    respect.

    Attributes:
        route: How prompts are sent: ``chat``, or plain ``text``.
    """

    route: Route = "chat"
    every_setting: ClassVar[Mapping[str, float]] = EVERY_SETTING
    verbs: frozenset[Verb] = frozenset({"generate", "score", "label", "embed"})  # until it is probed

    def __init__(
        self,
        model: str,
        line: Line,
        *,
        evidence: EvidenceLevel,
        price_in: float = 0.0,
        price_out: float = 0.0,
        without: str = "",
        think: bool | None = None,
    ) -> None:
        super().__init__(
            model, line, evidence=evidence, price_in=price_in, price_out=price_out, without=without
        )
        if think not in (True, False, None):
            raise UsageError(f"think must be true or false, not {think!r}.")
        # Qwen and GLM call it enable_thinking, DeepSeek and Granite thinking; templates ignore other names.
        self._template_options = {} if think is None else {"enable_thinking": think, "thinking": think}
        self._top = TOP[0]
        self._echo = 0
        self._limit = "max_tokens"
        self._asked = 0
        self.states = False

    @property
    def prompting(self) -> str:  # type: ignore[override]
        """How a prompt is presented to the model."""
        if self.route == "text":
            return "text unchanged; messages joined to one text"
        system = "; instructions in the user's message" if SYSTEM in self.accepted.without else ""
        return f"text as a user message, to be continued; messages unchanged, joined for score{system}"

    @property
    def answer_tokens(self) -> int:  # type: ignore[override]
        """Tokens for thoughts and answer with chat; 0 for plain text."""
        return room_to_think(self.context) if self.route == "chat" else 0

    @property
    def takes(self) -> frozenset[str]:  # type: ignore[override]
        """The optional settings that the server has with chat: an effort, restricted answers, tools."""
        if self.route != "chat":
            return frozenset()
        fields = {"effort": EFFORT, "choices": RESTRICTED, "tools": TOOLS}
        return frozenset(name for name, field in fields.items() if field not in self.accepted.without)

    @property
    def revision(self) -> str:  # type: ignore[override]
        """The base URL, the version of the template, and what is left out of requests."""
        return f"{self.line.account.base_url} {TEMPLATES[self.route]}{self.accepted.named}"

    def request(self, question: Question) -> Request:
        """Return the request for a question; each question is one request, so answers are independent."""
        prompt = question.request[0]
        if question.verb == "generate":
            return self._written(prompt, Sampling(*question.request[1]), question.sample)
        if question.verb == "label":
            return self._labelled(prompt, question.request[1])
        if question.verb == "score":
            return self._scored(text_of(prompt), question.request[1])
        body = {"model": self.model, "input": prompt, "encoding_format": "float"}
        return Request("/embeddings", body, self._read_vector)

    def _prompted(self, prompt: Prompt, sampling: Sampling) -> tuple[str, dict[str, Any]]:
        """Return the path and body of a request for one continuation of a prompt."""
        body: dict[str, Any] = {
            "model": self.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "n": 1,
            **self.accepted.settings,
        }
        if sampling.stop:
            body["stop"] = list(sampling.stop[:STOPS])  # the rest is cut off here
        if sampling.effort:
            body[EFFORT] = sampling.effort
        if sampling.choices:
            body[RESTRICTED] = {"type": "json_schema", "json_schema": one_of(sampling.choices)}
        if self.route == "text":
            return "/completions", body | {"prompt": text_of(prompt), "max_tokens": sampling.max_tokens}
        body["messages"] = [sent(message) for message in self._messages(prompt)]
        if self._template_options:
            body["chat_template_kwargs"] = self._template_options
        if sampling.tools:
            body[TOOLS] = [json.loads(tool) for tool in sampling.tools]
            body["messages"] = with_calls(body["messages"])
        return "/chat/completions", body | {self._limit: sampling.max_tokens}

    def _written(self, prompt: Prompt, sampling: Sampling, sample: int) -> Request:
        path, body = self._prompted(prompt, sampling)
        seed = int(sample_rng(self.model, prompt, sampling, sample).integers(2**31))
        body = kept(body | {"seed": seed}, self.accepted.without)
        return Request(path, body, partial(self._read_text, sampling))

    def _read_text(self, sampling: Sampling, reply: Any) -> str:
        choice = one(reply["choices"])
        reason = choice.get("finish_reason")
        text, instead = self._said(choice)
        message = message_of(choice) if self.route == "chat" else {}
        calls = calls_of(message) if sampling.tools else []
        if calls:  # what is written beside a call is a thought
            text = text_of_calls(calls)
            instead = ""
        refused = bool(message.get("refusal"))
        return self._answer(Written(text, end_of(reason), reason, refused, instead), sampling)

    def _said(self, choice: Any) -> tuple[str | None, str]:
        """Return the text of a choice, and what the model did besides."""
        message = {"content": choice["text"]} if self.route == "text" else message_of(choice)
        return spoken(message), besides(message)

    def _labelled(self, prompt: Prompt, labels: Sequence[str]) -> Request:
        path, body = self._prompted(prompt, Sampling(max_tokens=1, stop=()))
        body = kept(body, self.accepted.without)
        if self.route == "chat":
            body |= {"logprobs": True, "top_logprobs": self._top}
        else:
            body |= {"logprobs": self._top}
        return Request(path, body, partial(self._read_labels, labels))

    def _read_labels(self, labels: Sequence[str], reply: Any) -> FloatArray:
        """Return the log-probability of each label, shape (n_labels,).

        Raises:
            RequestError: if the reply has no log-probabilities.
        """
        choice = one(reply["choices"])
        log_probs = choice.get("logprobs")
        if not log_probs and "\ufffd" in (self._said(choice)[0] or ""):
            # llama.cpp lists nothing if the drawn token is only a part of a character: draw another one.
            raise RequestError(f"{self.line.account.host} drew a part of a character in place of a label.")
        if not log_probs or not (log_probs.get("content") or log_probs.get("top_logprobs")):
            raise self._cannot("returns no log-probabilities of the next token", silent=True)
        if log_probs.get("content"):  # of the chat route
            entries = log_probs["content"][0]["top_logprobs"]
            pairs = [(plain_token(entry["token"], entry.get("bytes")), entry["logprob"]) for entry in entries]
        else:
            pairs = list(log_probs["top_logprobs"][0].items())
        if not pairs:
            raise self._cannot("lists no candidates for the next token", silent=True)
        return next_output(pairs, labels)

    def _scored(self, prompt: str, options: Sequence[str]) -> Request:
        if not prompt:
            raise UsageError(f"{self.name} cannot score options after an empty prompt: add a text.")
        joint = "" if prompt[-1].isspace() else " "
        texts = [prompt, *(f"{prompt}{joint}{option}" for option in options)]
        body = {
            "model": self.model,
            "prompt": texts,
            "echo": True,
            "logprobs": 1,
            "max_tokens": self._echo,
            "temperature": 1.0,
            "top_p": 1.0,
            "n": 1,
        }
        body = kept(body, self.accepted.without)
        return Request("/completions", body, partial(self._read_scores, texts, options))

    def _read_scores(self, texts: list[str], options: Sequence[str], reply: Any) -> OptionScores:
        """Return the scores of options, from the echo of the prompt and of the prompt with each option.

        Raises:
            RequestError: if the server does not echo prompts with log-probabilities.
            ValueError: if the reply does not fit the request.
        """
        echoed = sorted(reply["choices"], key=lambda choice: int(choice["index"]))
        if [choice["index"] for choice in echoed] != list(range(len(texts))):
            raise ValueError("the numbers of choices and prompts differ")
        for text, choice in zip(texts, echoed, strict=True):
            if not choice.get("logprobs") or not str(choice["text"]).startswith(text):
                raise self._cannot("does not return the log-probabilities of a prompt (echo)")
        if not reply.get("usage"):
            raise self._cannot("does not count the tokens of a prompt")
        rows = [tokens_of(choice["logprobs"]) for choice in echoed]
        # Some servers write a token, since they refuse max_tokens=0: it is no part of the echo.
        written = sum(map(len, rows)) - reply["usage"]["prompt_tokens"]
        if written not in (0, len(rows) * self._echo):
            raise ValueError("the numbers of log-probabilities and tokens differ")
        written_each = written // len(rows)
        rows = [row[: len(row) - written_each] for row in rows]
        return after_prompt(rows[0], rows[1:], options, self.name)

    def _read_vector(self, reply: Any) -> Float32Array:
        vector = np.array(one(reply["data"])["embedding"], dtype=np.float32)
        if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
            raise ValueError("no vector")
        if self.dim and vector.size != self.dim:
            raise ValueError("a vector of another length")
        return vector

    def _cannot(self, what: str, *, silent: bool = False) -> RequestError:
        return RequestError(f"{self.line.account.host} {what}.", passing=False, silent=silent)

    async def probe(self, routes: Sequence[Route]) -> None:
        """Send one small request per verb to find out what the server supports.

        Raises:
            UsageError: if the server has no model of this name.
            HunchError: if all requests fail.
        """
        listed = await self._listed()
        writes = await self._try_text(routes)  # first, since it finds out which fields are refused
        if isinstance(writes, RequestError) and writes.slow:
            raise writes  # what else it can do would take as long to find out
        scores, vector = await asyncio.gather(
            self._try_score(), self._ask_one("embed", ("The sky is blue.",))
        )
        answers: dict[Verb, Any] = {"generate": writes, "score": scores, "embed": vector}
        answers["label"] = await self._try_label(writes)
        self.thinks = None if isinstance(writes, Exception) else begins_to_think(*writes)
        self.lacking = {verb: str(said) for verb, said in answers.items() if isinstance(said, Exception)}
        self.verbs = frozenset(answers.keys() - self.lacking.keys())
        if not self.verbs:
            raise self._unknown(listed) if listed and self.model not in listed else writes
        self.dim = 0 if isinstance(vector, Exception) else len(vector)
        self.context = context_size(listed.get(self.model, {}))
        self.loading = counters(self) + Usage(calls=self._asked + self.line.retries)
        self.tokens_read = self.tokens_written = self.line.retries = 0
        self.states = self._counted > 0

    async def _listed(self) -> dict[str, Any]:
        """Return the models that the server lists, by name; empty if it does not list models."""
        try:
            listed: dict[str, Any] = await self.line.send(Request("/models", None, by_name), probe=True)
        except RequestError as error:
            if error.unreached:
                raise
            return {}
        return listed

    def _unknown(self, listed: Mapping[str, Any]) -> UsageError:
        near = get_close_matches(self.model, listed, n=3) or list(listed)[:NAMES_SHOWN]
        more = len(listed) - len(near)
        has = ", ".join(near) + (f" and {more} more" if more else "")
        return UsageError(f"{self.line.account.host} has no model {self.model!r}; it has {has}.")

    async def _ask_one(self, verb: Verb, request: tuple[Any, ...]) -> Any:
        """Return the answer to a question, or the error."""
        self._asked += 1
        asked = self.request(Question(verb, request))
        if verb == "generate":  # a model that thinks first says nothing within a few tokens
            asked = asked._replace(read=lambda reply: self._said(one(reply["choices"])))
        try:
            return await self.line.send(asked, count=self._count, probe=verb != "generate")
        except HunchError as error:
            return error

    async def _try_text(self, routes: Sequence[Route]) -> Any:
        """Find the first route that works, its name for the maximum number of tokens, and what it refuses."""
        failures: list[Exception] = []
        for route in routes:
            self.route = route
            for limit in ("max_tokens", "max_completion_tokens"):
                self._limit = limit
                answer = await self._ask_one("generate", (QUESTION, USUAL.key()))
                if "max_completion_tokens" not in str(answer):
                    break
            if isinstance(answer, RequestError) and answer.slow:
                return answer  # the same question is no faster by another route
            answer = await self.accepted.find(self._ask_text, answer)
            if not isinstance(answer, Exception):
                if route == "chat":
                    await self.accepted.find_optional(self._ask_text)
                self._say_what_is_left_out(failures)
                return answer
            failures.append(answer)
        return failures[0]

    def _say_what_is_left_out(self, failures: Sequence[Exception]) -> None:
        """Warn of fields that are refused, and of a chat route that exists and could not be used."""
        self._warn_of_fields()
        for failure in failures:
            if not isinstance(failure, RequestError) or failure.status not in NO_ROUTE:
                why = str(failure).rstrip(".")
                self._warn(f"refuses chat, so prompts go to its completions route as plain text: {why}")

    async def _ask_text(self, sampling: Sampling, prompt: Prompt = QUESTION) -> Any:
        return await self._ask_one("generate", (prompt, sampling.key()))

    async def _try_label(self, writes: Any) -> Any:
        if isinstance(writes, Exception):
            return writes
        if writes[1] == "thinks":
            return self._cannot("begins its answers with thoughts, so the next token is no letter")
        for top in TOP:
            self._top = top
            answer = await self._ask_one("label", ("Answer with A or B.\nAnswer:", ("A", "B")))
            if not isinstance(answer, RequestError) or answer.status >= 500 or answer.slow:
                break
        return answer

    async def _try_score(self) -> Any:
        for tokens in (0, 1):
            self._echo = tokens
            answer = await self._ask_one("score", ("The sky is", ("blue",)))
            if not isinstance(answer, RequestError) or answer.status >= 500 or answer.slow:
                break
        return answer
