"""Models of the Anthropic API, which generate text. The API has no log-probabilities and no embeddings."""

from __future__ import annotations

from functools import partial
from typing import Any

from hunch.core import EvidenceLevel
from hunch.lm.answers.question import Question
from hunch.lm.backends.http import Line, Request
from hunch.lm.backends.remote import RemoteModel, account, formatted, messages_of
from hunch.lm.backends.replies import Written
from hunch.lm.backends.sampling import THOUGHTS
from hunch.lm.base import Backend, Verb
from hunch.lm.prompts import Message
from hunch.lm.speech import Sampling

BACKEND = Backend(
    "anthropic:<model>",
    f"{__name__}:load",
    frozenset({"generate", "see"}),
    "a model of the Anthropic API",
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
) -> AnthropicModel:
    """Load a model by its name; nothing is sent before the first request.

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

    Raises:
        UsageError: for a wrong option or a missing key.
        HunchError: if the package is missing.
    """
    server = account("anthropic", base_url, key_env, HOSTED)
    line = Line(server, concurrency=concurrency, timeout=timeout, retries=retries, patience=patience)
    found = AnthropicModel(model, line, evidence=evidence, price_in=price_in, price_out=price_out)
    found.verbs |= {"see"} if see else set()
    return found


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
        """The base URL and the version of the template."""
        return f"{self.line.account.base_url} {TEMPLATE}"

    def request(self, question: Question) -> Request:
        """Return the request for a question."""
        sampling, prompt = Sampling(*question.request[1]), question.request[0]
        asked = messages_of(prompt)
        told = "\n\n".join(message.content for message in asked if message.role == "system")
        body = {
            "model": self.model,
            **({"system": told} if told else {}),
            "messages": [sent(message) for message in asked if message.role != "system"],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
        }
        if sampling.top_p < 1:  # newer models refuse temperature and top_p together
            body["top_p"] = sampling.top_p
        if stops := [mark for mark in sampling.stop if mark.strip()]:  # blank ones are refused, and cut here
            body["stop_sequences"] = stops
        return Request("/v1/messages", body, partial(self._read, sampling))

    def _read(self, sampling: Sampling, reply: Any) -> str:
        texts = [block["text"] for block in reply["content"] if block["type"] == "text"]
        kinds, ended = {block["type"] for block in reply["content"]}, reply["stop_reason"]
        instead = "calls a tool" if "tool_use" in kinds else "thinks" if "thinking" in kinds else ""
        done = ended in ("end_turn", "stop_sequence")
        text = "".join(texts) if texts else None if instead else ""
        return self._answer(Written(text, ended == "max_tokens", ended == "refusal", done, instead), sampling)
