"""Texts that a model in training writes; each token is drawn and its log-probability recorded.

This module imports torch, so import it only where a model is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hunch.core import UsageError
from hunch.lm.scoring.lockstep import draw
from hunch.lm.scoring.writer import Draft
from hunch.lm.speech import Sampling

Allowed: TypeAlias = Callable[[tuple[int, ...]], NDArray[np.bool_]]
"""Function that returns which tokens may follow the tokens so far, shape (vocabulary,)."""
Limit: TypeAlias = Callable[[Tensor], Tensor]
"""Function that returns which tokens may come next, given logits, in the same shape."""
Inputs: TypeAlias = dict[str, Tensor]
"""Inputs of a network by name, with one row per text."""


class Written(NamedTuple):
    """A text that a model wrote after a prompt.

    Attributes:
        text: The text, without the end token.
        tokens: The drawn tokens with the end token; tokenising the text may give others.
        logprobs: Natural log-probability of each token under the unrestricted model at temperature 1; with a
            nucleus, among its tokens; empty for a given text.
        finished: False if the text was cut at ``max_tokens``, so that it has no end token.
    """

    text: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    finished: bool


class Texts:
    """Texts in progress.

    Args:
        network: Called with the inputs and a cache.
        inputs: The prompts, one per row.
        following: Returns the inputs of the next pass, given the last ones and one token per row.

    Attributes:
        logits: Logits of the next token of each text, shape (texts, vocabulary).
    """

    def __init__(
        self, network: Callable[..., Any], inputs: Inputs, following: Callable[[Inputs, Tensor], Inputs]
    ) -> None:
        self._network, self._following, self._cache = network, following, None
        self._pass(inputs)

    def _pass(self, inputs: Inputs) -> None:
        out = self._network(**inputs, past_key_values=self._cache, use_cache=True)
        self._inputs, self._cache, self.logits = inputs, out.past_key_values, out.logits[:, -1]

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these texts, in this order; a text may occur several times."""
        chosen: Any = torch.tensor(rows, device=self.logits.device)
        self._cache.batch_select_indices(chosen)  # type: ignore[attr-defined]
        self._inputs = {name: value[chosen] for name, value in self._inputs.items()}
        self.logits = self.logits[chosen]

    def read(self, tokens: Sequence[int]) -> None:
        """Append a token to each text."""
        self._pass(self._following(self._inputs, torch.tensor(tokens, device=self.logits.device)[:, None]))


class Limited:
    """Texts whose next token is limited (``limit``) by the logits of ``guide``, a copy of the texts.

    The guide is the same network with other weights, which are ``held`` within a ``with`` block.
    """

    def __init__(self, texts: Texts, guide: Texts, held: Callable[[], Any], limit: Limit) -> None:
        self.texts, self.guide, self.held, self.limit = texts, guide, held, limit

    @property
    def logits(self) -> Tensor:
        """Logits of the next token of each text, -inf for tokens that are not allowed."""
        own: Tensor = self.texts.logits.float()
        return own.masked_fill(~self.limit(self.guide.logits), -torch.inf)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these texts."""
        self.texts.keep(rows)
        self.guide.keep(rows)

    def read(self, tokens: Sequence[int]) -> None:
        """Append a token to each text."""
        self.texts.read(tokens)
        with self.held():
            self.guide.read(tokens)


def nucleus(logits: Tensor, top_p: float, always: Sequence[int] = ()) -> Tensor:
    """Return which tokens are among the likeliest with total probability ``top_p``, or in ``always``.

    Logits and result have the shape (..., vocabulary); a ``top_p`` of 1 allows all.
    """
    ranked, order = logits.float().softmax(-1).sort(dim=-1, descending=True, stable=True)
    inside = (ranked.cumsum(-1) - ranked < top_p) | (top_p >= 1)
    allowed = torch.zeros_like(inside).scatter(-1, order, inside)
    allowed[..., list(always)] = True
    return allowed


def fill(
    texts: Texts | Limited,
    drafts: Sequence[Draft],
    sampling: Sampling,
    ends: Sequence[int],
    allowed: Allowed | None,
) -> list[list[float]]:
    """Write drafts token by token until all have ended; return the log-probabilities of their tokens."""
    logprobs: list[list[float]] = [[] for _ in drafts]
    going = list(range(len(drafts)))
    while going:
        own, every = [drafts[i] for i in going], torch.log_softmax(texts.logits.float(), dim=-1)
        drawn = draw(every if allowed is None else _only(every, own, allowed), sampling, own)
        each = chances(every, torch.tensor(drawn, device=every.device), ends).tolist()
        for i, token, logprob in zip(going, drawn, each, strict=True):
            drafts[i].tokens.append(token)
            logprobs[i].append(logprob)
        left = [
            row
            for row, draft in enumerate(own)
            if drawn[row] not in ends and len(draft.tokens) < sampling.max_tokens
        ]
        if left:
            if len(left) < len(going):
                texts.keep(left)
            texts.read([drawn[row] for row in left])
        going = [going[row] for row in left]
    return logprobs


def chances(logprobs: Tensor, tokens: Tensor, ends: Sequence[int]) -> Tensor:
    """Return the log-probability of each token; the probabilities of all end tokens are added.

    Args:
        logprobs: Log-probabilities of the vocabulary, shape (..., vocabulary).
        tokens: The tokens, shape (...).
        ends: The end tokens.
    """
    own = logprobs.gather(-1, tokens[..., None]).squeeze(-1)
    if len(ends) == 1:
        return own
    last = torch.tensor(ends, device=tokens.device)
    return torch.where(torch.isin(tokens, last), logprobs[..., last].logsumexp(dim=-1), own)


def _only(logprobs: Tensor, drafts: Sequence[Draft], allowed: Allowed) -> Tensor:
    """Return log-probabilities of the tokens that may follow each draft, -inf for others."""
    masks = torch.from_numpy(np.stack([allowed(tuple(draft.tokens)) for draft in drafts]).astype(bool))
    if masks.shape != logprobs.shape or not bool(masks.any(dim=1).all()):
        raise UsageError(f"allowed must return a mask of {logprobs.shape[1]} tokens, at least one True.")
    return logprobs.masked_fill(~masks.to(logprobs.device), -torch.inf)
