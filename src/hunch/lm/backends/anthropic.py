"""Models of the Anthropic API, which generate text. The API has no log-probabilities and no embeddings."""

from __future__ import annotations

from functools import partial
from typing import Any

from hunch.core import EvidenceLevel, HunchError
from hunch.lm.answers.question import Question
from hunch.lm.backends.accepted import QUESTION, USUAL, kept
from hunch.lm.backends.http import Line, Request
from hunch.lm.backends.loop import wait_for
from hunch.lm.backends.remote import RemoteModel, account, formatted
from hunch.lm.backends.replies import Written, end_of
from hunch.lm.backends.sampling import THOUGHTS
from hunch.lm.base import Backend, Verb
from hunch.lm.prompts import Message
from hunch.lm.speech import Sampling
from hunch.lm.usage import Usage, counters

BACKEND = Backend(
    "anthropic:<model>",
    f"{__name__}:load",
    frozenset({"generate", "see"}),
    "a model of the Anthropic API",
    imports=("anthropic",),
)

HOSTED = "https://api.anthropic.com"
TEMPLATE = "messages-1"


def load(
    model: str,
    *,
    base_url: str | None = None,
    key_env: str | None = None,
    concurrency: int = 16,
    timeout: float = 60.0,
    retries: int = 6,
    patience: float = 600.0,
    evidence: EvidenceLevel = "L3",
    see: bool = False,
    price_in: float = 0.0,
    price_out: float = 0.0,
    without: str = "",
) -> AnthropicModel:
    """Load a model by its name, and find out with small requests which fields it refuses.

    Args:
        model: Name of the model in the API.
        base_url: Address of the API. Default: ``ANTHROPIC_BASE_URL``, else that of Anthropic.
        key_env: Environment variable with the key. Default: ``HUNCH_API_KEY``, else, for Anthropic's own
            host only, ``ANTHROPIC_API_KEY``.
        concurrency: Maximum number of simultaneous requests.
        timeout: Seconds per attempt.
        retries: Maximum number of attempts after the first.
        patience: Seconds that a request waits in total for a server that asks to retry later.
        evidence: Evidence level of results with this model.
        see: True if the model accepts pictures; the API does not say.
        price_in: Price per million tokens read.
        price_out: Price per million tokens written.
        without: Fields that are left out of requests, such as ``temperature,top_p``, besides those that the
            API refuses when it is asked at load.

    Raises:
        UsageError: for a wrong option or a missing key.
        HunchError: if the API cannot be reached or refuses the key, or the package is missing.
    """
    server = account("anthropic", base_url, key_env, HOSTED)
    line = Line(server, concurrency=concurrency, timeout=timeout, retries=retries, patience=patience)
    loaded = AnthropicModel(
        model, line, evidence=evidence, price_in=price_in, price_out=price_out, without=without
    )
    wait_for(loaded.probe())
    loaded.verbs |= {"see"} if see else set()
    return loaded


def sent(message: Message) -> dict[str, Any]:
    """Return a message in the format of the API."""
    return formatted(message, _picture)


def _picture(image: str) -> dict[str, Any]:
    kind, _, data = image.removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


class AnthropicModel(RemoteModel):
    """A model behind ``/v1/messages``, prompted like a chat model of :mod:`hunch.lm.backends.openai`.

    The revision is the base URL and the version of the template. The API accepts no seed: samples are random,
    and the first answer is kept.
    """

    verbs: frozenset[Verb] = frozenset({"generate"})
    answer_tokens = THOUGHTS
    prompting = "text as a user message, to be continued; messages unchanged"

    @property
    def revision(self) -> str:  # type: ignore[override]
        """The base URL, the version of the template, and what is left out of requests."""
        return f"{self.line.account.base_url} {TEMPLATE}{self.accepted.named}"

    async def probe(self) -> None:
        """Send small requests to find out which fields the API refuses.

        Raises:
            HunchError: if it refuses all of them.
        """
        asked = 0

        async def ask(sampling: Sampling) -> Any:
            nonlocal asked
            asked += 1
            request = self.request(Question("generate", (QUESTION, sampling.key())))
            # Whatever it writes will do: a model that thinks first says nothing within a few tokens.
            request = request._replace(read=lambda reply: reply["content"])
            try:
                return await self.line.send(request, count=self._count)
            except HunchError as error:
                return error

        answer = await self.accepted.find(ask, await ask(USUAL))
        if isinstance(answer, Exception):
            raise answer
        self._warn_of_fields()
        self.loading = counters(self) + Usage(calls=asked + self.line.retries)
        self.tokens_read = self.tokens_written = self.line.retries = 0

    def request(self, question: Question) -> Request:
        """Return the request for a question."""
        sampling, prompt = Sampling(*question.request[1]), question.request[0]
        asked = self._messages(prompt)
        instructions = "\n\n".join(message.content for message in asked if message.role == "system")
        body = {
            "model": self.model,
            **({"system": instructions} if instructions else {}),
            "messages": [sent(message) for message in asked if message.role != "system"],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
        }
        if sampling.top_p < 1:  # newer models refuse temperature and top_p together
            body["top_p"] = sampling.top_p
        if stops := [mark for mark in sampling.stop if mark.strip()]:  # blank ones are refused, and cut here
            body["stop_sequences"] = stops
        body = kept(body, self.accepted.without)
        return Request("/v1/messages", body, partial(self._read, sampling))

    def _read(self, sampling: Sampling, reply: Any) -> str:
        texts = [block["text"] for block in reply["content"] if block["type"] == "text"]
        kinds = {block["type"] for block in reply["content"]}
        reason = reply["stop_reason"]
        instead = "calls a tool" if "tool_use" in kinds else "thinks" if "thinking" in kinds else ""
        text = "".join(texts) if texts else None if instead else ""
        return self._answer(Written(text, end_of(reason), reason, instead=instead), sampling)
