"""A language model whose weights are trained: it scores, reads, writes and evaluates texts, with gradients.

Other models are frozen, and their answers are cached. The answers of this one change with every update, so it
has a meter but no cache. What differs between a causal model and one with an encoder and a decoder is in
:mod:`~hunch.lm.training.causal` and :mod:`~hunch.lm.training.encoder_decoder`.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Final, Literal

import numpy as np
import torch
from torch import Tensor

from hunch.core import UsageError
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.backends.transformer import TransformerModel
from hunch.lm.prompts import Prompt, as_prompt
from hunch.lm.scoring.trie import Tokens
from hunch.lm.scoring.writer import Draft
from hunch.lm.speech import ONE_LINE, Sampling, choices
from hunch.lm.training.outputs import Answer, Judged, Nucleus, Row, places, sums
from hunch.lm.training.weights import Weights
from hunch.lm.training.writing import Allowed, Limited, Texts, Written, chances, fill, nucleus
from hunch.lm.usage import Metered, counters

KNOWN: Final = 4096
"""Maximum number of prompts whose tokens are cached."""
LARGE: Final = 50_000_000
"""Number of weights above which a model is large (ours): unless its spec says otherwise, only adapters are
trained, since a few steps on all weights at the rates of small models destroy it."""
RANK: Final = 8
ALPHA: Final = 16.0
"""Rank and scale of adapters, unless the spec says otherwise: their term is multiplied by ALPHA / RANK."""
SHORTEN: Final = " With context=N in its spec the beginnings of longer prompts are left out."


def is_large(model: TransformerModel) -> bool:
    """Return whether a model has more than :data:`LARGE` weights."""
    return model.parameters > LARGE


class Trainable(Weights, Metered, ABC):
    """A model in training: all weights are trained, or only adapters.

    No dropout is applied, so that updates are repeatable. The scores equal those of the frozen model ``hf:``
    with the same weights. Results do not depend on the batch, up to 1e-5.

    Args:
        model: The frozen model; this object takes ownership of it.
        train: ``all`` for all weights, or ``lora`` for low-rank adapters on the linear layers of its body.
        rank: Rank of the adapters.
        alpha: Scale of the adapters, applied as alpha / rank.
        seed: Seed of the adapters' initial weights.
        context: Maximum number of tokens of a prompt; a longer one loses its beginning. None: a prompt that
            does not fit is refused.
        end: What ends a written text: all tokens that begin with these characters, as one event. Empty for
            the model's end tokens.

    Attributes:
        words: The words of a growing vocabulary (:meth:`take`); none for a pretrained model.
        dim: Length of a hidden state.
        large: True if the model has more than :data:`LARGE` weights, adapters apart.

    Raises:
        UsageError: for an unknown value of ``train``, or a rank or context below 1.
        HunchError: if adapters are requested and peft is missing.
    """

    words: tuple[str, ...] = ()

    def __init__(
        self,
        model: CausalModel,
        train: Literal["all", "lora"] = "all",
        rank: int = RANK,
        alpha: float = ALPHA,
        seed: int = 0,
        context: int | None = None,
        end: str = "",
    ) -> None:
        super().__init__()
        if train not in ("all", "lora") or rank < 1:
            raise UsageError(f"train must be all or lora, and rank at least 1, not {train!r} and {rank}.")
        if context is not None and context < 1:
            raise UsageError(f"The context of a model to train must be at least 1 token, not {context}.")
        self.model, self.network, self.dim = model, model.network, model.dim
        self.large = is_large(model)
        self.context, self._end = context, end
        self._select(train == "all", rank, alpha, seed)
        # The same prompts recur in every epoch of an update.
        self._row = lru_cache(KNOWN)(self._asked)
        self._head = lru_cache(KNOWN)(self._cut)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a text; the first one is appended to given texts.

        Raises:
            UsageError: if the model has no end tokens.
        """
        tokenizer, marks = self.model.tokenizer, self.network.generation_config.eos_token_id
        own = [tokenizer.eos_token_id, *(marks if isinstance(marks, list) else [marks])]
        own += sorted(getattr(self.model, "ends", ()))  # with that of a turn, which a chat template writes
        if self._end:
            texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
            own = [token for token, text in enumerate(texts) if text.startswith(self._end)]
            own.sort(key=lambda token: len(texts[token]))
        if not (ends := tuple(dict.fromkeys(token for token in own if token is not None))):
            raise UsageError(f"{self.name} cannot be trained to write: its tokenizer has no end token.")
        return ends

    # ---- scores and states ----------------------------------------------------------------------------

    def scores(
        self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], ended: bool = False
    ) -> list[Tensor]:
        """Return log p(option | prompt) for the options of each prompt, with gradients.

        A prompt is computed once for all its options, and shared beginnings of options are computed once.
        With ``ended`` an option has an end token, so that the probabilities of all texts after a prompt sum
        to at most 1, and "shelf 1" differs from the beginning of "shelf 1 2".

        Raises:
            UsageError: if a prompt with its longest option does not fit into the model's context.
        """
        return [answer.logprobs for answer in self.answers(prompts, options, ended)]

    def answers(
        self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], ended: bool = False
    ) -> list[Answer]:
        """Return :meth:`scores` and :meth:`states` of the same pass, at the cost of the scores alone.

        Repeated requests are computed once.
        """
        asked = choices(prompts, options)
        once = list(dict.fromkeys(asked))
        rows = [self._row(prompt, own, ended) for prompt, own in once]
        found = dict(zip(once, self._told(rows), strict=True)) if once else {}
        return [found[pair] for pair in asked]

    def ended(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Answer]:
        """Return :meth:`answers` for options with end tokens, whose probabilities are added."""
        asked, counts = [as_prompt(prompt) for prompt in prompts], [*map(len, options)]
        written = [
            Written(text, (*tail, self.ends[0]), (), True)
            for prompt, own in zip(asked, options, strict=True)
            for text, tail in zip(own, self.model.tails(prompt, own), strict=True)
        ]
        found = self.judged([p for p, n in zip(asked, counts, strict=True) for _ in range(n)], written)
        parts = [torch.split(own, counts) for own in (found.logprobs.sum(1), found.mask.sum(1), found.states)]
        answers = zip(*parts, strict=True)
        return [Answer(own, lengths.cpu().numpy(), states[0, 0]) for own, lengths, states in answers]

    def _told(self, rows: Sequence[Row]) -> list[Answer]:
        logits, states = self._pass(rows, len(rows))
        trees = [tree for _, tree in rows]
        lengths = [np.array([len(path) for path in tree.paths]) for tree in trees]
        starts = [tree.root - len(tree.tokens) for tree in trees]
        read = states[np.arange(len(trees)), starts].float().unbind()
        return [Answer(*answer) for answer in zip(sums(logits, trees), lengths, read, strict=True)]

    def states(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return the hidden state of each prompt's last token, with gradients; shape (n_prompts, dim)."""
        once = {prompt: row for row, prompt in enumerate(dict.fromkeys(map(as_prompt, prompts)))}
        heads = [self._head(prompt, True) for prompt in once]
        with self.counted(len(heads), sum(map(len, heads))):
            return self._states(heads)[[once[as_prompt(prompt)] for prompt in prompts]]

    @torch.no_grad()
    def frozen_states(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return :meth:`states` of the model before training, bit for bit."""
        with self.held():
            return self.states(prompts)

    # ---- texts ----------------------------------------------------------------------------------------

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt with the current weights, as the frozen model does."""
        with self.counted(k * len(prompts)) as spent:
            before = counters(self.model)
            texts = self.model.generate(prompts, k, sampling, first)
            spent.add(counters(self.model) - before)
        return texts

    @torch.no_grad()
    def write(
        self,
        prompts: Sequence[Prompt],
        rngs: Sequence[np.random.Generator],
        max_tokens: int = 32,
        temperature: float = 1.0,
        allowed: Allowed | None = None,
        within: Nucleus | None = None,
    ) -> list[Written]:
        """Write a text after each prompt, with the current weights; a repeated prompt is read once.

        Args:
            prompts: The prompts.
            rngs: The random generator of each text; one draw per token.
            max_tokens: Maximum number of tokens, including the end token.
            temperature: Divisor of the logits; 0 takes the most likely token each time.
            allowed: Returns the mask of the possible next tokens; None allows all.
            within: Draw only tokens of this nucleus, or end tokens.

        Raises:
            UsageError: if a prompt and ``max_tokens`` do not fit into the model's context, the model has no
                end token, or no token is allowed.
        """
        sampling = Sampling(max_tokens, temperature, stop=())
        heads = self.heads(prompts, max_tokens)
        drafts = [Draft(rng) for _, rng in zip(heads, rngs, strict=True)]
        once = {head: row for row, head in enumerate(dict.fromkeys(heads))}
        logprobs: list[list[float]] = []
        with self.counted(len(heads), sum(map(len, once))) as spent:
            if drafts:
                texts = self._limited(list(once), within) if within else self._opened(list(once))
                texts.keep([once[head] for head in heads])
                logprobs = fill(texts, drafts, sampling, self.ends, allowed)
            spent.completion_tokens = sum(map(len, logprobs))
        return [
            self._written(head, draft.tokens, own)
            for head, draft, own in zip(heads, drafts, logprobs, strict=True)
        ]

    def heads(self, prompts: Sequence[Prompt], max_tokens: int) -> list[tuple[int, ...]]:
        """Return the tokens of prompts, after checking that texts of ``max_tokens`` fit after them.

        Raises:
            UsageError: if a prompt and ``max_tokens`` do not fit into the model's context.
        """
        heads = [self._head(as_prompt(prompt), False) for prompt in prompts]
        for head in heads:
            self.model._check_length(len(head) + max_tokens, "The prompt with max_tokens", SHORTEN)
        return heads

    def _limited(self, heads: Sequence[Tokens], within: Nucleus) -> Limited:
        held = partial(self.held, within.weights)
        with held():
            guide = self._opened(heads)
        return Limited(
            self._opened(heads), guide, held, partial(nucleus, top_p=within.top_p, always=self.ends)
        )

    def _written(self, head: Tokens, tokens: Sequence[int], logprobs: Sequence[float]) -> Written:
        finished = tokens[-1] in self.ends
        text = self.model.decode(head, tokens[: len(tokens) - finished])
        return Written(text, tuple(tokens), tuple(logprobs), finished)

    def spelled(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Written]:
        """Return given texts in the form of texts that the model wrote, with an end token."""
        tails = [
            self.model.tails(as_prompt(p), (text,))[0] if text else []
            for p, text in zip(prompts, texts, strict=True)
        ]
        return [
            Written(text, (*tail, self.ends[0]), (), True) for text, tail in zip(texts, tails, strict=True)
        ]

    def require_room(self, prompts: Sequence[Prompt], tokens: Sequence[Tokens]) -> None:
        """Check before training that each prompt with the tokens of its text fits into the context.

        Raises:
            UsageError: if a prompt does not fit.
        """
        for prompt, own in zip(prompts, tokens, strict=True):
            length = len(self._head(as_prompt(prompt), False)) + len(own)
            self.model._check_length(length, "A prompt with its text", SHORTEN)

    def judged(
        self, prompts: Sequence[Prompt], written: Sequence[Written], within: Nucleus | None = None
    ) -> Judged:
        """Evaluate written texts, token by token, with gradients.

        A repeated prompt is computed once, and so are shared beginnings of its texts. With ``within``, the
        distributions are those among the tokens of a nucleus and those that were written.

        Raises:
            UsageError: if there are no texts, or a prompt and its text do not fit into the model's context.
        """
        if not written:
            raise UsageError("There are no texts to judge.")
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, (prompt, _) in enumerate(zip(prompts, written, strict=True)):
            groups.setdefault(self._head(as_prompt(prompt), False), []).append(i)
        rows = [self._laid(head, [written[i].tokens for i in own]) for head, own in groups.items()]
        logits, states = self._pass(rows, len(written))
        row, at, tokens, mask = (
            part.to(logits.device) for part in places([tree for _, tree in rows], list(groups.values()))
        )
        picked, free = logits[row, at].float(), None
        if within:
            with torch.no_grad(), self.held(within.weights):
                limit = nucleus(self._pass(rows, len(written))[0][row, at], within.top_p, self.ends)
            free = chances(picked.detach().log_softmax(-1), tokens, self.ends).masked_fill(~mask, 0.0)
            picked = picked.masked_fill(~limit.scatter(-1, tokens[..., None], True), -torch.inf)
        logprobs = torch.log_softmax(picked, dim=-1)
        known = logprobs.masked_fill(logprobs == -torch.inf, 0.0) if within else logprobs
        return Judged(
            chances(logprobs, tokens, self.ends).masked_fill(~mask, 0.0),
            -(logprobs.exp() * known).sum(dim=-1).masked_fill(~mask, 0.0),
            states[row, at].float().masked_fill(~mask[..., None], 0.0),
            mask,
            free,
        )

    # ---- tokens ---------------------------------------------------------------------------------------

    def _cut(self, prompt: Prompt, scored: bool) -> tuple[int, ...]:
        """Return the tokens of a prompt after which options are scored, or a text is written."""
        return tuple(self.model._tokens(prompt, scored)[-(self.context or 0) :])

    def _asked(self, prompt: Prompt, options: tuple[str, ...], ended: bool) -> Row:
        end = self.ends[:1] if ended else ()
        tails = [[*tail, *end] for tail in self.model.tails(prompt, options)]
        return self._laid(self._head(prompt, True), tails)

    def _laid(self, head: Tokens, tails: Sequence[Tokens]) -> Row:
        self.model._check_length(
            len(head) + max(map(len, tails)), "The prompt with its longest option", SHORTEN
        )
        return self._rooted(head, tails)

    def take(self, texts: Iterable[str]) -> None:
        """Add the new words of texts, if the vocabulary grows; that of a pretrained model does not."""

    # ---- the network, of two kinds --------------------------------------------------------------------

    def _pass(self, rows: Sequence[Row], calls: int) -> tuple[Tensor, Tensor]:
        """Compute trees; return logits and last hidden states, whose ends are aligned.

        Returns:
            Logits and states of at least the tokens that predict others, shapes (rows, tokens, vocabulary)
            and (rows, tokens, dim). The last token of each tree is the last of both.
        """
        with self.counted(calls, sum(len(head) + len(tree.tokens) for head, tree in rows)):
            return self._forward(rows)

    @abstractmethod
    def _rooted(self, head: Tokens, tails: Sequence[Tokens]) -> Row:
        """Return the texts after a prompt as a tree."""

    @abstractmethod
    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """See :meth:`_pass`."""

    @abstractmethod
    def _states(self, heads: Sequence[Tokens]) -> Tensor:
        """Return the state after each prompt, shape (prompts, dim)."""

    @abstractmethod
    def _opened(self, heads: Sequence[Tokens]) -> Texts:
        """Read prompts, to write after them."""
