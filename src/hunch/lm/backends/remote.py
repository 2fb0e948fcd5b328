"""Base class of models behind a server: it sends questions as requests, and yields answers as they arrive.

Here are also the messages for chat models, and the JSON schema that restricts an answer to given texts.
"""

from __future__ import annotations

import asyncio
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, ClassVar, get_args
from urllib.parse import urlsplit

import numpy as np

from hunch.admitted import require_server
from hunch.core import EvidenceLevel, HunchWarning, UsageError
from hunch.lm.answers.question import Answering, Question
from hunch.lm.backends import llama_server
from hunch.lm.backends.accepted import EFFORT, RESTRICTED, SYSTEM, TOOLS, Accepted
from hunch.lm.backends.account import Account, MissingKeyError, checked_prices, is_provider
from hunch.lm.backends.http import ROLES, Line, Request, RequestError
from hunch.lm.backends.loop import loop
from hunch.lm.backends.replies import Written, most, pieces, same_model, stated, whole
from hunch.lm.backends.sampling import cut
from hunch.lm.backends.secret import key_in
from hunch.lm.base import Model
from hunch.lm.prompts import Message, Prompt, alternating, without_system
from hunch.lm.shorten import shortened
from hunch.lm.speech import Cut, Sampling, Uncached, UncachedNumbers
from hunch.lm.stopping import StoppingError
from hunch.lm.usage import Usage

GROUP_SECONDS = 0.02
"""Seconds within which arriving answers are collected, and then yielded and stored together."""
TRANSPORT = frozenset(("base_url", "key_env", "chat", "concurrency", "timeout", "retries", "patience"))
BILLING = frozenset(("price_in", "price_out", "evidence", "see"))
CONTINUE = "Continue the text of the user. Reply with the continuation alone, and do not repeat the text."
TOO_LONG = re.compile(
    r"context.?(length|size|window|limit)|maximum context|exceed\w*.{0,40}\b(context|tokens?|length)\b"
    r"|(prompt|input|request|message|content)s?\b.{0,40}too (long|large|many)"
    r"|too many (input |prompt )?tokens"
    r"|(input|prompt).{0,30}(longer|more) than|reduce (the|your) (length|prompt|message|input)"
    r"|maximum (input|prompt|sequence) length|(longer|greater) than the (maximum|model)",
    re.IGNORECASE,
)
"""What servers say of a prompt that is longer than the model reads."""
FILTERED = re.compile(
    r"content.?filter|content.management.policy|content.policy|safety system"
    r"|(input|prompt)s? (was|were|is|has been) (flagged|blocked)"
    r"|inappropriate content|data.?inspection|content exists risk",
    re.IGNORECASE,
)
"""What services say of a prompt that they do not pass on to the model."""
OF_THE_REQUEST = re.compile(r"parameter|argument|invalid value|unsupported|verified|api.?key", re.IGNORECASE)
"""What they say of a request or an account that is wrong, which the next prompt does not mend."""
NOT_PASSED_ON = (400, 403, 422, 451)
"""HTTP statuses with which they say it."""
SHARES = tuple(0.75**step for step in range(16))
"""Shares of a prompt that is too long, tried one after the other; the smallest is about a seventieth."""
ANSWER = re.compile(r"max_\w*tokens|completion|output|generat", re.IGNORECASE)
"""What servers say if prompt and answer together are too long."""
LONG_PROMPT = 500
"""Estimated tokens of a prompt from which a server may drop a part."""
MUCH_LESS = 0.75
"""Share of the tokens that a prompt should have, below which a part of it must be missing."""
HALVINGS = 3
"""How often the room of an answer is halved before the prompt is shortened."""
LEAST_ANSWER = 16
"""Tokens that the room of an answer keeps."""
MOST_IDS = 10_000
"""Number of the latest replies whose ids are compared."""


class RemoteModel(Answering, Model):
    """A model that answers over a network.

    Attributes:
        unnamed: Options that do not affect the answers, and so are left out of the model's name.
        line: The connection to its server.
        told: Information that the server gives about itself, for provenance; not part of any key.
        refusals: Number of answers so far that are empty or that the server marked as refused.
        shortened: Number of prompts so far that were longer than the model reads and lost a part.
        accepted: What the server accepts of a request, and what is left out.
        every_setting: Settings of servers of one's own, each with the value that turns it off.
        states: True if the server states how many tokens a request cost.
        counts_first_text: True if of several texts it states the tokens of the first only.
        cuts_only_at_max_tokens: True if the server has no limit of its own on an answer. Then a cut answer is
            what the model says within ``max_tokens``, which is a part of the question, and is stored.
        price_in: Price per million tokens read, in the currency of your bill.
        price_out: Price per million tokens written.
        context: Maximum number of tokens that the model reads; None if the server does not say.
        lacking: The reason why a verb is not available, by verb.
        loading: Usage while the model was loaded.
    """

    messages = True
    states = True
    counts_first_text: ClassVar[bool] = False
    cuts_only_at_max_tokens: ClassVar[bool] = False
    every_setting: ClassVar[Mapping[str, float]] = {}
    unnamed: ClassVar[frozenset[str]] = TRANSPORT | BILLING
    context: int | None = None

    def __init__(
        self,
        model: str,
        line: Line,
        *,
        evidence: EvidenceLevel,
        price_in: float,
        price_out: float,
        without: str = "",
    ) -> None:
        if evidence not in get_args(EvidenceLevel):
            raise UsageError(f"There is no evidence level {evidence!r}; there are L0, L1, L2, L3.")
        self.model, self.line, self.evidence = model, line, evidence
        self.name = f"{line.account.sdk}:{model}"
        self.price_in, self.price_out = checked_prices(price_in, price_out)
        own_server = not is_provider(line.account.sdk, line.account.base_url)
        self.accepted = Accepted(without, self.every_setting if own_server else None)
        self.told = ""
        self.refusals = 0
        self.shortened = 0
        self._counted = 0
        self._alternates = False
        self._tokens_a_piece: float | None = None  # the least so far, of prompts that were read in full
        self._warned = set[str]()
        self._ids = dict[str, int]()
        self.lacking: dict[str, str] = {}
        self.loading = Usage()

    @property
    def retries(self) -> int:
        """Number of retries so far."""
        return self.line.retries

    def request(self, question: Question) -> Request:
        """Return the request for a question."""
        raise NotImplementedError

    def request_for(self, asked: Question, now: Question) -> Request:
        """Return the request for a question in the form in which it is sent, shortened perhaps.

        Args:
            asked: The question as it was asked.
            now: The question as it is sent.
        """
        return self.request(now)

    def stream(
        self, questions: Sequence[Question], known: Callable[[Question], bool] | None = None
    ) -> Iterator[dict[Question, Any]]:
        """Send many questions at once, and yield answers in small groups as they arrive.

        Args:
            questions: Distinct questions.
            known: Called before each attempt; True means that the answer is known by now, and skips it. If it
                raises an error, nothing more is sent.

        Raises:
            HunchError: if a question has no answer after the last attempt. After such a failure nothing new
                is sent; answers to requests in progress are still yielded before the error is raised.
        """
        lacking = {question.verb for question in questions} - self.verbs
        if lacking:
            raise self._lacks(lacking.pop())
        arrivals: SimpleQueue[tuple[Question, Any] | None] = SimpleQueue()
        asking = asyncio.run_coroutine_threadsafe(self._ask(questions, known, arrivals.put), loop())
        asking.add_done_callback(lambda _: arrivals.put(None))
        try:
            while part := _gathered(arrivals):
                yield part
            asking.result()
        except StoppingError:
            raise KeyboardInterrupt from None
        finally:
            asking.cancel()

    def _lacks(self, verb: str) -> UsageError:
        why = self.lacking.get(verb, "")
        has = ", ".join(sorted(self.verbs))
        return UsageError(
            f"The model {self.name} does not have the verb {verb!r}; it has {has}."
            + (f" Tried when it was loaded: {why}" if why else "")
        )

    def _answers(self, asked: list[Question]) -> dict[Question, Any]:
        parts = self.stream(list(dict.fromkeys(asked)))
        return {
            question: answer.numbers if isinstance(answer, UncachedNumbers) else answer
            for part in parts
            for question, answer in part.items()
        }

    def _messages(self, prompt: Prompt) -> Sequence[Message]:
        """Return a prompt as messages in the form that the server accepts."""
        messages = messages_of(prompt)
        if SYSTEM in self.accepted.without:
            return without_system(messages)
        return alternating(messages) if self._alternates else messages

    async def _send(self, question: Question, skip: Callable[[], bool] | None) -> Any:
        """Send a question; if the server refuses its form or its length, send it as it may accept it.

        Raises:
            HunchError: if it refuses that, too, or does not answer.
        """
        halvings = step = 0
        now = question
        while True:
            alternates = self._alternates  # as this attempt is written; another question may change it
            try:
                answer = await self.line.send(
                    self._watched(self.request_for(question, now)), skip, self._count
                )
            except RequestError as error:
                if error.silent:
                    problem = str(error).removeprefix(self.line.account.host).strip(" .")
                    self._warn(f"{problem}; such an answer is empty and not stored")
                    return self._nothing(question)
                if _is_filtered(error) and question.verb in ("generate", "label"):
                    self.refusals += 1
                    self._warn("refuses a prompt for its content; that counts as a refused answer")
                    return self._nothing(question)
                if not alternates and _may_alternate(now, error):
                    self._alternates = True
                    continue
                if not _is_too_long(error) or step == len(SHARES) - 1:
                    raise
                if question.verb == "generate" and ANSWER.search(error.says) and halvings < HALVINGS:
                    halvings += 1
                else:
                    step += 1
                now = _smaller(question, halvings, step)
                continue
            if halvings and answer is not None:
                most, least = question.request[1][0], now.request[1][0]
                self._warn(f"reads too little for max_tokens={most}, so answers get {least}")
            if step and answer is not None:
                self.shortened += 1
                self._warn("read only a part of a prompt that is longer than the model reads")
            return answer

    def _nothing(self, question: Question) -> Any:
        """Return the answer to a question that has none: no text, or no label that is likely."""
        if question.verb == "label":
            return UncachedNumbers(np.full(len(question.request[1]), -np.inf))
        return Uncached("")

    def _watched(self, request: Request) -> Request:
        """Return a request whose answer is not stored if the server read only a part of its prompt."""

        def read(reply: Any) -> Any:
            answer = request.read(reply)
            if not self._lost_a_part(request.body or {}, reply):
                return answer
            self.shortened += 1
            return _uncached(answer)

        return request._replace(read=read)

    def _lost_a_part(self, body: Mapping[str, Any], reply: Any) -> bool:
        """Return whether a server read far fewer tokens than a long prompt has, and say so once.

        Some servers drop the beginning of a prompt that is too long, and answer as if nothing had happened.
        Their count of tokens tells: against an estimate, and against what shorter prompts came to.
        """
        read, _ = stated(body, reply)
        asked = pieces(body)
        if read is None or not asked or body.get("echo"):
            return False
        ratio = read / asked
        least = self._tokens_a_piece
        if asked < LONG_PROMPT or ratio >= max(MUCH_LESS, 0.0 if least is None else MUCH_LESS * least):
            self._tokens_a_piece = ratio if least is None else min(ratio, least)
            return False
        self._warn(
            f"read {read:,} tokens of a prompt of about {asked:,}, so it dropped a part of the prompt; start "
            "it with a larger context; such an answer is used once and not stored"
        )
        return True

    async def _ask(
        self,
        questions: Sequence[Question],
        known: Callable[[Question], bool] | None,
        arrived: Callable[[tuple[Question, Any]], None],
    ) -> None:
        """Send the questions to the server, with the allowed number of simultaneous requests."""
        waiting, failures = iter(questions), list[Exception]()

        def needless(question: Question) -> bool:
            """Return whether a question need not be sent, or sent again: after a failure nothing is."""
            return bool(failures) or (known is not None and known(question))

        async def work() -> None:
            for question in waiting:
                try:
                    answer = await self._send(question, partial(needless, question))
                except Exception as error:
                    failures.append(error)
                    break
                if answer is not None:
                    arrived((question, answer))
                if failures:
                    break

        await asyncio.gather(*(work() for _ in range(min(self.line.concurrency, len(questions)))))
        if failures:
            raise failures[0]

    def _count(self, request: Request, reply: Any) -> None:
        """Count the tokens of an attempt: those that its reply states, or the most that it could cost.

        So a budget also holds if replies break off, or if the server states no numbers or impossible ones.
        """
        body = request.body or {}
        read, written = stated(body, reply, of_first_text=self.counts_first_text)
        most_read, most_written = most(body)
        missing = read is None or (written is None and most_written > 0)
        if missing and reply is not None and self.states:
            self._warn("states no valid token counts, so a reply counts as the most that it could cost")
        self._counted += not missing
        self.tokens_read += most_read if read is None else read
        self.tokens_written += most_written if written is None else written
        if reply is not None:
            self._check_origin(request, reply)

    def _check_origin(self, request: Request, reply: dict[str, Any]) -> None:
        """Keep what a reply says of its origin, and warn if it belongs to another model or request."""
        origin = {name: reply[name] for name in ("model", "system_fingerprint") if reply.get(name)}
        self.told = self.line.clean(" ".join(f"{name}={value}" for name, value in origin.items()))
        if "model" in origin and not same_model(self.model, str(origin["model"])):
            self._warn(f"answers as another model, {self.line.clean(str(origin['model']))!r}")
        number = zlib.crc32(repr((request.path, request.body)).encode())
        if reply.get("id") and self._ids.setdefault(str(reply["id"]), number) != number:
            self._warn("gives answers to different requests the same id, so they may be mixed up")
        if len(self._ids) > MOST_IDS:
            del self._ids[next(iter(self._ids))]  # the oldest

    def _warn(self, problem: str) -> None:
        """Warn once of each problem."""
        if problem not in self._warned:
            self._warned.add(problem)
            warnings.warn(f"{self.line.account.host} {problem} ({self.name}).", HunchWarning, stacklevel=2)

    def _warn_of_fields(self) -> None:
        """Say once what the server refused at load, so that requests leave it out."""
        refused = self.accepted.found
        if SYSTEM in refused:
            self._warn("refuses a system message, so instructions stand in the user's message")
        if RESTRICTED in refused:
            self._warn(f"refuses {RESTRICTED}, so answers cannot be restricted to given texts")
        fields = [field for field in refused if field not in (SYSTEM, RESTRICTED, EFFORT, TOOLS)]
        if fields:
            names = ", ".join(fields)
            self._warn(f"refuses {names}, so requests leave that out and the server's own setting holds")

    def _answer(self, written: Written, sampling: Sampling) -> str:
        """Return a text as an answer.

        Args:
            written: The text and what the server says about it.
            sampling: How it was asked for.

        Raises:
            RequestError: if it is broken off, or has no text and was not cut; another attempt may have one.
        """
        full = whole(written.text or "")
        text = cut(full, sampling.stop)
        # What was cut off here at a stop text is whole, however the server ended it.
        end = "whole" if text != full else written.end
        if end == "broken":
            raise RequestError(
                f"{self.line.account.host} broke off an answer (it ended with {written.reason!r})."
            )
        refused = written.refused or end == "refused"
        self.refusals += refused or not text
        if text.strip() and end == "cut" and self.cuts_only_at_max_tokens:
            self._warn(f"cut an answer at max_tokens={sampling.max_tokens}; raise max_tokens for whole ones")
            end = "whole"
        elif text.strip() and end == "cut":
            self._warn(
                f"cut an answer at max_tokens={sampling.max_tokens}; such an answer is used once and not "
                "stored, so raise max_tokens"
            )
        elif text.strip() and end == "unknown":
            self._warn(
                f"ended an answer in a way that is not known ({written.reason!r}); such an answer is used "
                "once and not stored"
            )
        elif end == "cut":  # another attempt would cost as much, and be cut as well
            does = written.instead or "writes nothing"
            self._warn(
                f"cut an answer at max_tokens={sampling.max_tokens}; the model {does} until then, and the "
                "answer is empty, so raise max_tokens"
            )
        if end == "cut":
            return Cut(text)
        if text.strip() or refused:
            return text if text and end == "whole" else Uncached(text)
        if end != "whole" or written.text is None or written.instead:
            why = written.instead and f": the model {written.instead}"
            raise RequestError(f"{self.line.account.host} wrote no text{why}.", silent=True)
        return Uncached(text)


def _may_alternate(question: Question, error: RequestError) -> bool:
    """Return whether a refused conversation may pass if its speakers take turns."""
    prompt = question.request[0]
    if isinstance(prompt, str) or not 400 <= error.status < 600:
        return False
    return bool(ROLES.search(error.says)) and alternating(prompt) != tuple(prompt)


def _uncached(answer: Any) -> Any:
    """Return an answer to a part of a prompt in a form that is used once and not stored."""
    if isinstance(answer, str):
        return answer if isinstance(answer, Uncached) else Uncached(answer)
    if isinstance(answer, list):  # several samples of one prompt
        return [text if isinstance(text, Uncached) else Uncached(text) for text in answer]
    return UncachedNumbers(answer)


def _is_filtered(error: RequestError) -> bool:
    refused = error.status in NOT_PASSED_ON and FILTERED.search(error.says)
    return bool(refused) and not OF_THE_REQUEST.search(error.says)


def _is_too_long(error: RequestError) -> bool:
    return error.status == 413 or (error.status >= 400 and bool(TOO_LONG.search(error.says)))


def _smaller(question: Question, halvings: int, step: int) -> Question:
    """Return a question with less room for the answer and a shorter prompt."""
    prompt, *rest = question.request
    most = SHARES[step] * _length(prompt)
    if question.verb == "generate":
        tokens, *how = rest[0]
        rest = [(max(min(tokens, LEAST_ANSWER), tokens >> halvings), *how)]
    return question._replace(request=(shortened(prompt, lambda part: _length(part) <= most), *rest))


def _length(prompt: Prompt) -> int:
    """Return the characters of a prompt."""
    return len(prompt) if isinstance(prompt, str) else sum(len(message.content) for message in prompt)


def _gathered(arrivals: SimpleQueue[tuple[Question, Any] | None]) -> dict[Question, Any]:
    """Wait for an answer and return it with those that follow soon; empty when there are no more."""
    part: dict[Question, Any] = {}
    arrival, end = arrivals.get(), monotonic() + GROUP_SECONDS
    while arrival is not None:
        part[arrival[0]] = arrival[1]
        try:
            arrival = arrivals.get(timeout=max(0.0, end - monotonic()))
        except Empty:
            return part
    if part:
        arrivals.put(None)
    return part


def account(sdk: str, base_url: str | None, key_env: str | None, hosted: str) -> Account:
    """Return the address and the key variable of a server, from options and the environment.

    Args:
        sdk: ``openai`` or ``anthropic``.
        base_url: Address of the server. Default: from ``OPENAI_BASE_URL`` or ``ANTHROPIC_BASE_URL``.
        key_env: Environment variable with the key. Default: for the user's own llama.cpp server the file
            with its key, else ``HUNCH_API_KEY``, then, for the provider's own host only, ``OPENAI_API_KEY``
            or ``ANTHROPIC_API_KEY``.
        hosted: Default address; it needs a key.

    Raises:
        UsageError: for an invalid address, one that contains a secret, or a missing key.
        HunchError: if the package is missing; the message names the extra to install.
    """
    variable_of_sdk = f"{sdk.upper()}_API_KEY"
    url = (base_url or os.environ.get(f"{sdk.upper()}_BASE_URL") or hosted).rstrip("/")
    form = "base_url must be an address such as http://localhost:8000/v1"
    try:
        parts = urlsplit(url)
    except ValueError as error:  # the address is not shown, as it may hold a password
        raise UsageError(f"{form}: {error}.") from None
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            "base_url must not contain a user name, password or query: the key comes from the environment."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{form}, not {url!r}.")
    try:
        parts.port  # noqa: B018 - it is read from the text only now, and may be none
    except ValueError as error:
        raise UsageError(f"{form}, not {url!r}: {error}.") from None
    names = [key_env] if key_env else ["HUNCH_API_KEY", *([variable_of_sdk] if is_provider(sdk, url) else [])]
    variable = next((name for name in names if key_in(name)), "")
    if not variable and (key_env or is_provider(sdk, url)):
        # If the key itself was given instead of the variable's name, it must not be shown.
        plain = all(re.fullmatch("[A-Z_][A-Z0-9_]*", name) for name in names)
        where = f"variable {' or '.join(names)}" if plain else "variable that key_env names"
        raise MissingKeyError(f"{url} needs a key in the environment {where}.")
    if not is_provider(sdk, url):
        require_server(url, "Prompts")
    file = None if key_env or is_provider(sdk, url) else llama_server.key_file(url)
    account = Account(sdk, url, "" if file else variable, file)
    account.check_key()
    if account.holds_key(url):
        raise UsageError("base_url must not contain the key: the address is stored with the answers.")
    account.library()
    return account


def messages_of(prompt: Prompt) -> Sequence[Message]:
    """Return a prompt as messages; a text follows the instruction to continue it."""
    return (Message("system", CONTINUE), Message("user", prompt)) if isinstance(prompt, str) else prompt


def formatted(message: Message, picture: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return a message with its pictures first, each as ``picture`` writes it."""
    shown = [picture(image) for image in message.images]
    content: Any = [*shown, {"type": "text", "text": message.content}] if shown else message.content
    return {"role": message.role, "content": content}


def one_of(choices: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an object whose ``answer`` is one of the given texts."""
    answer = {"type": "string", "enum": list(dict.fromkeys(choices))}
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    return {"name": "answer", "strict": True, "schema": schema | {"additionalProperties": False}}
