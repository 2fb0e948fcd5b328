"""Texts that a model in training writes; each token is drawn and its log-probability recorded.

This module imports torch, so import it only where a model is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
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
    """Texts in progress, one per row.

    Args:
        network: Called with the inputs and a cache.
        inputs: The prompts, one per row.
        following: Returns the inputs of the next pass, given the last ones and one token per row, shape
            (texts, 1).

    Attributes:
        logits: Logits of the next token of each text, shape (texts, vocabulary).
    """

    def __init__(
        self, network: Callable[..., Any], inputs: Inputs, following: Callable[[Inputs, Tensor], Inputs]
    ) -> None:
        self._network = network
        self._following = following
        self._cache: Any = None
        self._pass(inputs)

    def _pass(self, inputs: Inputs) -> None:
        outputs = self._network(**inputs, past_key_values=self._cache, use_cache=True)
        self._inputs = inputs
        self._cache = outputs.past_key_values
        self.logits: Tensor = outputs.logits[:, -1]  # (texts, vocabulary)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these texts, in this order; a text may occur several times."""
        chosen = torch.tensor(rows, device=self.logits.device)
        self._cache.batch_select_indices(chosen)
        self._inputs = {name: value[chosen] for name, value in self._inputs.items()}
        self.logits = self.logits[chosen]

    def read(self, tokens: Sequence[int]) -> None:
        """Append a token to each text."""
        column = torch.tensor(tokens, device=self.logits.device)[:, None]  # (texts, 1)
        self._pass(self._following(self._inputs, column))


class NucleusTexts:
    """Texts whose next token is limited by the logits of ``guide``, a copy of the texts.

    Args:
        texts: The texts.
        guide: The same texts, read by the same network with other weights.
        other_weights: Gives the network these weights within a ``with`` block.
        allowed: Returns which tokens may come next, given the logits of the guide.
    """

    def __init__(
        self,
        texts: Texts,
        guide: Texts,
        other_weights: Callable[[], AbstractContextManager[None]],
        allowed: Callable[[Tensor], Tensor],
    ) -> None:
        self.texts = texts
        self.guide = guide
        self.other_weights = other_weights
        self.allowed = allowed

    @property
    def logits(self) -> Tensor:
        """Logits of the next token of each text, shape (texts, vocabulary); -inf where it is not allowed."""
        logits = self.texts.logits.float()
        return logits.masked_fill(~self.allowed(self.guide.logits), -torch.inf)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these texts."""
        self.texts.keep(rows)
        self.guide.keep(rows)

    def read(self, tokens: Sequence[int]) -> None:
        """Append a token to each text."""
        self.texts.read(tokens)
        with self.other_weights():
            self.guide.read(tokens)


def in_nucleus(logits: Tensor, top_p: float, always: Sequence[int] = ()) -> Tensor:
    """Return which tokens are among the likeliest with total probability ``top_p``, or in ``always``.

    Logits and result have the shape (..., vocabulary); a ``top_p`` of 1 allows all.
    """
    ranked, order = logits.float().softmax(-1).sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(-1) - ranked  # total probability of the likelier tokens
    inside = (before < top_p) | (top_p >= 1)
    allowed = torch.zeros_like(inside).scatter(-1, order, inside)
    allowed[..., list(always)] = True
    return allowed


def write_tokens(
    texts: Texts | NucleusTexts,
    drafts: Sequence[Draft],
    sampling: Sampling,
    ends: Sequence[int],
    allowed: Allowed | None,
) -> list[list[float]]:
    """Write drafts token by token until all have ended; return the log-probabilities of their tokens.

    Args:
        texts: The prompts, which were read, one row for each draft.
        drafts: The drafts, to which the tokens are appended.
        sampling: How tokens are drawn, and how many at most.
        ends: The tokens that end a text.
        allowed: Returns the mask of the possible next tokens; None allows all.
    """
    written: list[list[float]] = [[] for _ in drafts]
    going_on = list(range(len(drafts)))  # the drafts that have not ended, one per row of the texts
    while going_on:
        # Draw the next token of each row. What is recorded is its probability without ``allowed``.
        open_drafts = [drafts[i] for i in going_on]
        every_log_prob = torch.log_softmax(texts.logits.float(), dim=-1)  # (rows, vocabulary)
        possible = every_log_prob
        if allowed is not None:
            possible = _only_allowed(every_log_prob, open_drafts, allowed)
        drawn = draw(possible, sampling, open_drafts)  # rows
        tokens = torch.tensor(drawn, device=every_log_prob.device)  # (rows,)
        drawn_log_probs = log_probs_of(tokens, every_log_prob, ends)
        for i, token, log_prob in zip(going_on, drawn, drawn_log_probs.tolist(), strict=True):
            drafts[i].tokens.append(token)
            written[i].append(log_prob)

        # Go on with the rows that have not ended.
        rows = [
            row
            for row, draft in enumerate(open_drafts)
            if drawn[row] not in ends and len(draft.tokens) < sampling.max_tokens
        ]
        if rows and len(rows) < len(going_on):
            texts.keep(rows)
        if rows:
            texts.read([drawn[row] for row in rows])
        going_on = [going_on[row] for row in rows]
    return written


def log_probs_of(tokens: Tensor, every_log_prob: Tensor, ends: Sequence[int]) -> Tensor:
    """Return the log-probability of each token; the probabilities of all end tokens are added.

    Args:
        tokens: The tokens, shape (...).
        every_log_prob: Log-probabilities of the vocabulary, shape (..., vocabulary).
        ends: The end tokens.

    Returns:
        Shape (...), natural logarithm.
    """
    log_probs = every_log_prob.gather(-1, tokens[..., None]).squeeze(-1)
    if len(ends) == 1:
        return log_probs
    end_tokens = torch.tensor(ends, device=tokens.device)
    to_end = every_log_prob[..., end_tokens].logsumexp(dim=-1)
    return torch.where(torch.isin(tokens, end_tokens), to_end, log_probs)


def _only_allowed(every_log_prob: Tensor, drafts: Sequence[Draft], allowed: Allowed) -> Tensor:
    """Return log-probabilities, shape (drafts, vocabulary), with -inf where a token may not follow.

    Raises:
        UsageError: if no token may follow, or a mask has another shape.
    """
    masks = torch.from_numpy(np.stack([allowed(tuple(draft.tokens)) for draft in drafts]).astype(bool))
    if masks.shape != every_log_prob.shape or not bool(masks.any(dim=1).all()):
        vocabulary = every_log_prob.shape[1]
        raise UsageError(f"allowed must return a mask of {vocabulary} tokens, at least one True.")
    return every_log_prob.masked_fill(~masks.to(every_log_prob.device), -torch.inf)
