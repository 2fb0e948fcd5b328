"""Parses replies of servers: items, texts, token counts, next-token probabilities, tokens of options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.backends.sampling import count_words
from hunch.lm.base import OptionScores
from hunch.lm.speech import estimate_tokens

MOST_TOKENS = 10**9
"""Upper bound for plausible numbers of tokens in a reply."""
WORDS_PER_TOKEN = 4
"""Upper bound for the mean number of words per token of any known tokenizer."""
TEXTS = frozenset(
    ("messages", "system", "prompt", "input", "choices", "message", "content", "text", "reasoning_content")
)
"""Keys in requests and replies whose values contain texts."""
LONGEST_NAME = 1_000
"""Maximum characters of a model's name that are compared."""
Tokens = list[tuple[str, float | None]]
"""Tokens with their log-probabilities; None where a server gives none, as for the first token of a text."""
ROUNDING = 1e-3
"""Largest accepted log-probability, because rounding may exceed 0."""
SIGNS: Final = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n", "ĉ": "\t"})
"""How vocabularies write white space."""
BYTES: Final = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+|bytes:(?:\\x[0-9A-Fa-f]{2})+")
"""How vocabularies and servers write bytes."""


End = Literal["whole", "cut", "refused", "broken", "unknown"]
"""How a text ended: by itself, at a limit of tokens, by a filter, by a fault, or nobody knows how."""
ENDS: Final[dict[End, str]] = {
    "whole": "stop stop_sequence end_turn eos eos_token complete tool_calls function_call tool_use",
    "cut": "length max_tokens max_length model_length model_context_window_exceeded",
    "refused": "content_filter refusal safety recitation blocklist prohibited_content",
    "broken": "abort aborted error cancel cancelled canceled timeout network_error "
    "insufficient_system_resource",
}
"""The names that servers have for the ends that are known (``finish_reason``, ``stop_reason``)."""


def end_of(reason: Any) -> End:
    """Return how a text ended, from the server's name for it; only a known name can mean a whole text."""
    name = str(reason).strip().lower() if isinstance(reason, str) else ""
    return next((end for end, names in ENDS.items() if name in names.split()), "unknown")


class Written(NamedTuple):
    """The text in a reply, and how it ended.

    Attributes:
        text: The text; None if there is none.
        end: How it ended.
        reason: The server's name for that.
        refused: True if the text is a refusal.
        instead: What the model did besides writing: ``thinks``, ``calls a tool``, or nothing.
    """

    text: str | None
    end: End
    reason: Any = None
    refused: bool = False
    instead: str = ""


def one(items: Sequence[Any]) -> Any:
    """Return the only item of a list.

    Raises:
        ValueError: if there is not exactly one item, or its index is wrong.
    """
    if len(items) != 1 or items[0].get("index") not in (None, 0):
        raise ValueError("not the one item that was asked for")
    return items[0]


def message_of(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the chat message of a choice; empty if a filter or a limit left none, as Gemini's then does."""
    if choice.get("message") is None and end_of(choice.get("finish_reason")) in ("refused", "cut"):
        return {}
    message: Mapping[str, Any] = choice["message"]
    return message


def spoken(message: Mapping[str, Any]) -> str | None:
    """Return the text of a chat message, without thoughts; None if there is none.

    Raises:
        TypeError: if the content is not text.
    """
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part["type"] == "text") or None
    text = content or message.get("refusal") or content  # an empty content stays a text, and is not None
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} instead of a text")
    return text


def besides(message: Mapping[str, Any]) -> str:
    """Return what the model did besides writing, as :class:`Written` names it in ``instead``."""
    if message.get("tool_calls") or message.get("function_call"):
        return "calls a tool"
    return "thinks" if message.get("reasoning_content") or message.get("reasoning") else ""


def stated(
    body: Mapping[str, Any], reply: Any, *, of_first_text: bool = False
) -> tuple[int | None, int | None]:
    """Return the numbers of tokens read and written that a reply states; None for an impossible number.

    A number that is too small for the words of the texts is impossible. Some services leave thoughts out of
    the tokens written, but not out of the total.

    Args:
        body: The request.
        reply: The reply; anything, since servers may send anything.
        of_first_text: True if the server counts the tokens of the first text only. Those of the others are
            estimated.
    """
    others: list[Any] = []
    if of_first_text and isinstance(reply, dict) and isinstance(reply.get("choices"), list):
        others = reply["choices"][1:]
        reply = {**reply, "choices": reply["choices"][:1]}
    least_read = _words(body) // WORDS_PER_TOKEN
    least_written = 0 if body.get("echo") else _words(reply) // WORDS_PER_TOKEN

    usage = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None, None
    read = _possible(usage.get("prompt_tokens", usage.get("input_tokens")))
    written = _possible(usage.get("completion_tokens", usage.get("output_tokens")))
    total = _possible(usage.get("total_tokens"))
    if read and "input_tokens" in usage:  # there, tokens in the service's cache are not among those read
        cached = (usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens"))
        read += sum(_possible(tokens) or 0 for tokens in cached)
    if read and total and total - read > (written or 0):
        written = total - read

    read = _possible(read, least_read)
    written = _possible(written, least_written)
    if written is not None:
        written += pieces({"choices": others})
    return read, written


def pieces(body: Mapping[str, Any]) -> int:
    """Return an estimate of the tokens of all texts in a request, rather too low than too high."""
    return sum(map(estimate_tokens, _texts(body)))


def _possible(tokens: Any, least: int = 1) -> int | None:
    return tokens if type(tokens) is int and max(1, least) <= tokens <= MOST_TOKENS else None


def _words(data: Any) -> int:
    """Return the number of words in all texts of a request or reply."""
    return sum(len(re.findall(r"\w+", text)) for text in _texts(data))


def _texts(data: Any) -> Iterator[str]:
    """Yield all texts of a request or reply."""
    waiting = [data]  # no recursion, which a deep reply would exhaust
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            waiting += [part[name] for name in TEXTS & part.keys()]
        elif isinstance(part, list):
            waiting += part


def most(body: Mapping[str, Any]) -> tuple[int, int]:
    """Return the maximum numbers of tokens that a request can make a model read and write.

    A token stands for at least one byte, and a text is never longer than its request.
    """
    texts = len(body["prompt"]) if isinstance(body.get("prompt"), list) else 1
    limit = body.get("max_tokens", body.get("max_completion_tokens", 0))
    return len(json.dumps(body)), limit * texts * body.get("n", 1)


def same_model(asked: str, stated: str) -> bool:
    """Return whether two names may be one model: with or without its owner, a date, ``latest``, ``main``."""
    one, other = _without_version(asked), _without_version(stated)
    return one == other or one.rpartition("/")[2] == other.rpartition("/")[2]


def _without_version(name: str) -> str:
    return re.sub(r"[-:@._](latest|main|\d[-.\d]*)$", "", name[:LONGEST_NAME].lower())


def by_name(reply: Any) -> dict[str, Any]:
    """Return the entries of a list of models by name; empty if there is none, and some are bare."""
    entries = reply.get("data") if isinstance(reply, dict) else reply
    named = entries if isinstance(entries, list) else []
    return {entry["id"]: entry for entry in named if isinstance(entry, dict) and type(entry.get("id")) is str}


def context_size(entry: Mapping[str, Any]) -> int | None:
    """Return the maximum number of tokens that a model reads, if its entry in the list states it."""
    meta = entry.get("meta")  # of llama.cpp
    candidates = [
        entry.get("max_model_len"),
        entry.get("context_length"),
        meta.get("n_ctx") if isinstance(meta, dict) else None,
    ]
    return next((size for size in candidates if type(size) is int and size > 0), None)


def whole(text: str) -> str:
    """Return a text with lone surrogates replaced by question marks, since files cannot store them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def tokens_of(logprobs: Mapping[str, Any]) -> Tokens:
    """Return tokens with their log-probabilities; the first token of a text has none."""
    return list(zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True))


def plain_token(token: str, data: Any = None) -> str:
    r"""Return the text of a token, whichever way a server writes it.

    Args:
        token: The token, perhaps as a vocabulary has it: ``Ġ`` or ``▁`` for a space, ``Ċ`` for a line break,
            ``<0x0A>`` or ``bytes:\x0a`` for a byte.
        data: Its bytes as numbers, if the server gives them.
    """
    if isinstance(data, list) and data and all(type(byte) is int and 0 <= byte < 256 for byte in data):
        return bytes(data).decode("utf-8", "replace")
    named_bytes = BYTES.fullmatch(token)
    if named_bytes:
        digits = re.sub(r"\\x|[<>]|0x|bytes:", "", named_bytes[0])
        return bytes.fromhex(digits).decode("utf-8", "replace")
    return token.translate(SIGNS)


def next_output(pairs: Sequence[tuple[str, float]], labels: Sequence[str]) -> FloatArray:
    """Return the log-probability of each label, shape (n_labels,), from the most likely next tokens.

    Several tokens may stand for a label, such as ``"A"`` and ``" A"``: their probabilities are added.
    """
    sums: list[float] = []
    for label in labels:
        log_probs = [
            float(log_prob)
            for token, log_prob in pairs
            if label.strip() in (token.strip(), plain_token(token).strip())
        ]
        if not all(log_prob <= ROUNDING for log_prob in log_probs):  # nan is refused, too
            raise ValueError("no log-probabilities")
        sums.append(float(np.logaddexp.reduce(log_probs)) if log_probs else -np.inf)
    capped: FloatArray = np.minimum(np.array(sums), 0.0)  # rounding may exceed 0
    return capped


def after_prompt(prompt: Tokens, rows: Sequence[Tokens], options: Sequence[str], name: str) -> OptionScores:
    """Return the scores of options, given the tokens of the prompt alone and of the prompt with each option.

    The tokens of an option are those after the prompt's tokens. This needs no offsets, which servers count in
    different ways (characters or bytes, with or without a start token).

    Raises:
        UsageError: if the tokenizer merges the end of the prompt and the beginning of an option.
    """
    prompt_tokens = [token for token, _ in prompt]
    n = len(prompt_tokens)
    sums: list[float] = []
    lengths: list[int] = []
    for row, option in zip(rows, options, strict=True):
        tail = [log_prob for _, log_prob in row[n:]]
        if [token for token, _ in row[:n]] != prompt_tokens or not tail:
            raise UsageError(
                f"The tokenizer of {name} merges the end of the prompt with the option {option!r}, so the "
                "option has no probability of its own; end prompts without white space."
            )
        log_probs = [float(log_prob) for log_prob in tail if log_prob is not None]
        if len(log_probs) != len(tail) or not np.isfinite(log_probs).all() or max(log_probs) > ROUNDING:
            raise ValueError("a token without log-probability")
        sums.append(min(0.0, sum(log_probs)))
        lengths.append(len(log_probs))
    return OptionScores(np.array(sums), np.array(lengths), count_words(options))
