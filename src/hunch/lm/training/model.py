"""A language model whose weights are trained: it scores, reads, writes and evaluates texts, with gradients.

Other models are frozen, and their answers are cached. The answers of this one change with every update, so it
has a meter but no cache. What differs between a causal model and one with an encoder and a decoder is in
:mod:`~hunch.lm.training.causal` and :mod:`~hunch.lm.training.encoder_decoder`.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from typing import Final, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from hunch.core import UsageError
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.backends.transformer import TransformerModel
from hunch.lm.prompts import Prompt, as_prompt
from hunch.lm.scoring.engine import token_log_probs
from hunch.lm.scoring.trie import Tokens, Tree
from hunch.lm.scoring.writer import Draft
from hunch.lm.speech import ONE_LINE, Sampling, choices
from hunch.lm.training.outputs import Nucleus, OptionOutputs, Row, TokenOutputs
from hunch.lm.training.weights import Weights
from hunch.lm.training.writing import (
    Allowed,
    NucleusTexts,
    Texts,
    Written,
    in_nucleus,
    log_probs_of,
    write_tokens,
)
from hunch.lm.usage import Metered, counters

KNOWN: Final = 4096
"""Maximum number of prompts whose tokens are cached."""
LARGE: Final = 50_000_000
"""Number of weights above which a model is large (ours): unless its spec says otherwise, only adapters are
trained, since a few steps on all weights at the rates of small models destroy it."""
FEW: Final = 4
"""Texts at once over whose vocabulary distributions are computed again, with ``recompute`` (ours)."""
RANK: Final = 8
ALPHA: Final = 16.0
"""Rank and scale of adapters, unless the spec says otherwise: their term is multiplied by ALPHA / RANK."""
SHORTEN: Final = " With context=N in its spec the beginnings of longer prompts are left out."

Choice: TypeAlias = tuple[Prompt, tuple[str, ...]]
"""A prompt in its hashable form, with the options after it."""


def is_large(model: TransformerModel) -> bool:
    """Return whether a model has more than :data:`LARGE` weights."""
    return model.parameters > LARGE


class Trainable(Weights, Metered, ABC):
    """A model in training: all weights are trained, or only adapters.

    No dropout is applied, so that updates are repeatable. The scores equal those of the frozen model ``hf:``
    with the same weights. In float32 results do not depend on the batch, up to 1e-5. In 16 bits rounding is
    coarser: a text that is written beside others may be another one than alone, and the log-probability of a
    token that :meth:`write` records may differ from that of :meth:`evaluate`, by 0.01 in a small model.

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
        recompute: Keep only the inputs of each layer for the backward pass, which computes the rest again
            (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): same gradients, less memory,
            more time.

    Attributes:
        words: The words of a growing vocabulary (:meth:`take`); none for a pretrained model.
        dim: Length of a hidden state.
        large: True if the model has more than :data:`LARGE` weights, adapters apart.

    Raises:
        UsageError: for an unknown value of ``train``, a rank or context below 1, or ``recompute`` for a model
            whose layers cannot be computed again.
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
        recompute: bool = False,
    ) -> None:
        super().__init__()
        if train not in ("all", "lora") or rank < 1:
            raise UsageError(f"train must be all or lora, and rank at least 1, not {train!r} and {rank}.")
        if context is not None and context < 1:
            raise UsageError(f"The context of a model to train must be at least 1 token, not {context}.")
        self.model = model
        self.network = model.network
        self.dim = model.dim
        self.large = is_large(model)
        self.context = context
        self._end = end
        self._recomputed: list[GradientCheckpointingLayer] = []
        if recompute:
            self._recomputed = _layers_to_recompute(model)
        self._select(train == "all", rank, alpha, seed)
        # The same prompts recur in every epoch of an update.
        self._row = lru_cache(KNOWN)(self._make_row)
        self._prompt_tokens = lru_cache(KNOWN)(self._tokenise_prompt)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a text; the first one is appended to given texts.

        Raises:
            UsageError: if the model has no end tokens, or none that begins with ``end``.
        """
        tokenizer = self.model.tokenizer
        if self._end:
            texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
            ends = [token for token, text in enumerate(texts) if text.startswith(self._end)]
            ends.sort(key=lambda token: len(texts[token]))
        else:
            of_checkpoint = self.network.generation_config.eos_token_id  # one, several or None
            ends = [tokenizer.eos_token_id]
            ends += of_checkpoint if isinstance(of_checkpoint, list) else [of_checkpoint]
            ends += sorted(self.model.ends)  # with that of a turn, which a chat template writes
        known = tuple(dict.fromkeys(token for token in ends if token is not None))
        if not known and self._end:
            raise UsageError(f"No token of {self.name} begins with end={self._end!r}, so no text would end.")
        if not known:
            raise UsageError(f"{self.name} cannot be trained to write: its tokenizer has no end token.")
        return known

    # ---- options and states ---------------------------------------------------------------------------

    def scores(
        self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], ended: bool = False
    ) -> list[Tensor]:
        """Return log p(option | prompt) for the options of each prompt, with gradients.

        A prompt is computed once for all its options, and shared beginnings of options are computed once.
        With ``ended`` an option has an end token, so that the probabilities of all texts after a prompt sum
        to at most 1, and "shelf 1" differs from the beginning of "shelf 1 2".

        Returns:
            One tensor per prompt, shape (n_options,), natural logarithm.

        Raises:
            UsageError: if a prompt with its longest option does not fit into the model's context.
        """
        return [outputs.logprobs for outputs in self.option_outputs(prompts, options, ended)]

    def option_outputs(
        self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], ended: bool = False
    ) -> list[OptionOutputs]:
        """Return :meth:`scores` and :meth:`states` of the same pass, at the cost of the scores alone.

        Repeated requests are computed once.
        """
        return _once(prompts, options, partial(self._option_outputs, ended=ended))

    def _option_outputs(self, distinct: Sequence[Choice], ended: bool) -> list[OptionOutputs]:
        """Return :meth:`option_outputs` of requests that differ."""
        rows = [self._row(prompt, listed, ended) for prompt, listed in distinct]
        with self.counted(len(rows), _tokens_in(rows)):
            logits, states = self._forward(rows)  # (rows, tokens, vocabulary), (rows, tokens, dim)
        trees = [tree for _, tree in rows]
        # The last token of the prompt predicts the first one of each option; counted from the end.
        roots = [tree.root - len(tree.tokens) for tree in trees]
        states_of_prompts = states[np.arange(len(trees)), roots].float()  # (rows, dim)
        return [
            OptionOutputs(log_probs, np.array([len(path) for path in tree.paths]), state)
            for tree, log_probs, state in zip(
                trees, path_log_probs(logits, trees), states_of_prompts, strict=True
            )
        ]

    def whole_option_outputs(
        self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]
    ) -> list[OptionOutputs]:
        """Return :meth:`option_outputs` for options as whole texts: the end tokens' probabilities are added.

        So an option has the probability with which the model writes it and ends. Repeated requests are
        computed once.
        """
        return _once(prompts, options, self._whole_option_outputs)

    def _whole_option_outputs(self, distinct: Sequence[Choice]) -> list[OptionOutputs]:
        """Return :meth:`whole_option_outputs` of requests that differ."""
        prompt_of_text: list[Prompt] = []  # a distinct request's prompt, once for each of its options
        texts: list[Written] = []
        for prompt, listed in distinct:
            for option, tail in zip(listed, self.model.tails(prompt, listed), strict=True):
                prompt_of_text.append(prompt)
                texts.append(Written(option, (*tail, self.ends[0]), (), True))
        outputs = self.evaluate(prompt_of_text, texts)  # each (all options, T)
        counts = [len(listed) for _, listed in distinct]
        log_probs = torch.split(outputs.logprobs.sum(1), counts)
        lengths = torch.split(outputs.mask.sum(1), counts)
        states = torch.split(outputs.states, counts)
        return [
            OptionOutputs(of_options, n.cpu().numpy(), state[0, 0])
            for of_options, n, state in zip(log_probs, lengths, states, strict=True)
        ]

    def states(self, prompts: Sequence[Prompt], written: bool = False) -> Tensor:
        """Return the hidden state of each prompt's last token, with gradients; shape (n_prompts, dim).

        Args:
            prompts: The prompts.
            written: Read them as before a text that is written, not as before options: a chat template may
                begin what is written, as with a thought.
        """
        asked = [as_prompt(prompt) for prompt in prompts]
        place = {prompt: i for i, prompt in enumerate(dict.fromkeys(asked))}
        distinct = [self._prompt_tokens(prompt, not written) for prompt in place]
        with self.counted(len(distinct), sum(map(len, distinct))):
            return self._states(distinct)[[place[prompt] for prompt in asked]]

    @torch.no_grad()
    def frozen_states(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return :meth:`states` of the model before training, bit for bit."""
        with self.with_weights():
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
                end token, no token is allowed, or there is not one generator per prompt.
        """
        if isinstance(prompts, str) or not all(isinstance(rng, np.random.Generator) for rng in rngs):
            raise UsageError("write takes a list of prompts, and a numpy.random.Generator for each of them.")
        if len(prompts) != len(rngs):
            raise UsageError(f"{len(prompts)} prompts have {len(rngs)} random generators.")
        sampling = Sampling(max_tokens, temperature, stop=())
        read = self.prompt_tokens(prompts, max_tokens)
        drafts = [Draft(rng) for _, rng in zip(read, rngs, strict=True)]
        place = {tokens: row for row, tokens in enumerate(dict.fromkeys(read))}
        log_probs: list[list[float]] = []  # of each text, of its tokens
        with self.counted(len(read), sum(map(len, place))) as spent:
            if drafts:
                texts = self._begin(list(place), within)
                texts.keep([place[tokens] for tokens in read])  # one row for each text
                log_probs = write_tokens(texts, drafts, sampling, self.ends, allowed)
            spent.completion_tokens = sum(map(len, log_probs))
        return [
            self._written(prompt, draft.tokens, of_tokens)
            for prompt, draft, of_tokens in zip(read, drafts, log_probs, strict=True)
        ]

    def prompt_tokens(self, prompts: Sequence[Prompt], max_tokens: int) -> list[tuple[int, ...]]:
        """Return the tokens of prompts, after checking that texts of ``max_tokens`` fit after them.

        Raises:
            UsageError: if a prompt and ``max_tokens`` do not fit into the model's context.
        """
        tokenised = [self._prompt_tokens(as_prompt(prompt), False) for prompt in prompts]
        for tokens in tokenised:
            self.model._check_length(len(tokens) + max_tokens, "The prompt with max_tokens", SHORTEN)
        return tokenised

    def _begin(self, prompts: Sequence[Tokens], within: Nucleus | None) -> Texts | NucleusTexts:
        """Read prompts, to write after each of them, within a nucleus if there is one."""
        if within is None:
            return self._read(prompts)
        other_weights = partial(self.with_weights, within.weights)
        with other_weights():
            guide = self._read(prompts)
        allowed = partial(in_nucleus, top_p=within.top_p, always=self.ends)
        return NucleusTexts(self._read(prompts), guide, other_weights, allowed)

    def _written(self, prompt: Tokens, tokens: Sequence[int], log_probs: Sequence[float]) -> Written:
        finished = tokens[-1] in self.ends
        text = self.model.decode(prompt, tokens[:-1] if finished else tokens)
        return Written(text, tuple(tokens), tuple(log_probs), finished)

    def as_written(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Written]:
        """Return given texts in the form of texts that the model wrote, with an end token.

        A text that the model wrote begins with what stands between a prompt and a reply, mostly a space; a
        text of somebody else's need not. Both become the same tokens.
        """
        written = []
        for prompt, text in zip(map(as_prompt, prompts), texts, strict=True):
            reply = text.removeprefix(self._joint(prompt)) or text  # a space alone is a text, too
            tokens = self.model.tails(prompt, (reply,))[0] if reply else []
            written.append(Written(text, (*tokens, self.ends[0]), (), True))
        return written

    def _joint(self, prompt: Prompt) -> str:
        """Return what stands between a prompt and a reply in the tokens of both; here nothing."""
        return ""

    def require_room(
        self, prompts: Sequence[Prompt], tokens: Sequence[Tokens], what: str = "A prompt with its text"
    ) -> None:
        """Check before training that each prompt with the tokens of its text fits into the context.

        Args:
            prompts: The prompts.
            tokens: The tokens of a text after each of them.
            what: What the error says that a prompt and these tokens are.

        Raises:
            UsageError: if a prompt does not fit.
        """
        for prompt, of_text in zip(prompts, tokens, strict=True):
            length = len(self._prompt_tokens(as_prompt(prompt), False)) + len(of_text)
            self.model._check_length(length, what, SHORTEN)

    def evaluate(
        self, prompts: Sequence[Prompt], texts: Sequence[Written], within: Nucleus | None = None
    ) -> TokenOutputs:
        """Evaluate n written texts of at most T tokens by the current weights, with gradients.

        A repeated prompt is computed once, and so are shared beginnings of its texts. With ``within``, the
        distributions are those among the tokens of a nucleus and those that were written.

        Raises:
            UsageError: if there are no texts, or a prompt and its text do not fit into the model's context.
        """
        if not texts:
            raise UsageError("There are no texts to evaluate.")

        # 1. One tree of tokens for each prompt, with a path for each of its texts.
        rows, texts_of_row = self._rows_of(prompts, texts)

        # 2. One pass of the network over all trees; then the logits before each token of each text.
        with self.counted(len(texts), _tokens_in(rows)):
            logits, states = self._forward(rows)  # (rows, nodes, vocabulary), (rows, nodes, dim)
        row, node, tokens, mask = _predictions(rows, texts_of_row, logits.device)
        token_logits = logits[row, node].float()  # (n, T, vocabulary)

        # 3. With a nucleus, only its tokens, and the written ones, have a probability.
        free_log_probs = None
        if within is not None:
            free_log_probs = log_probs_of(tokens, token_logits.detach().log_softmax(-1), self.ends)  # (n, T)
            free_log_probs = free_log_probs.masked_fill(~mask, 0.0)
            with torch.no_grad(), self.with_weights(within.weights):
                with self.counted(len(texts), _tokens_in(rows)):
                    guiding_logits, _ = self._forward(rows)
                allowed = in_nucleus(guiding_logits[row, node], within.top_p, self.ends)
            allowed = allowed.scatter(-1, tokens[..., None], True)  # (n, T, vocabulary)
            token_logits = token_logits.masked_fill(~allowed, -torch.inf)

        # 4. log pi(token | prompt, tokens before), and H = - sum over the vocabulary of pi log pi.
        limited = within is not None
        if torch.is_grad_enabled() and not self._recomputed:
            log_probs, entropy = _log_probs_and_entropy(token_logits, tokens, self.ends, limited)  # (n, T)
        else:
            # A few texts at a time: several copies of the vocabulary are larger than all layers together.
            compute = _log_probs_and_entropy
            if torch.is_grad_enabled():
                compute = partial(_computed_again, _log_probs_and_entropy)
            outputs_of_few = [
                compute(*few, self.ends, limited)
                for few in zip(torch.split(token_logits, FEW), torch.split(tokens, FEW), strict=True)
            ]
            log_probs = torch.cat([log_probs for log_probs, _ in outputs_of_few])
            entropy = torch.cat([entropy for _, entropy in outputs_of_few])
        return TokenOutputs(
            log_probs.masked_fill(~mask, 0.0),
            entropy.masked_fill(~mask, 0.0),
            states[row, node].float().masked_fill(~mask[..., None], 0.0),
            mask,
            free_log_probs,
        )

    def distributions(self, prompts: Sequence[Prompt], texts: Sequence[Written]) -> tuple[Tensor, Tensor]:
        """Return the whole distribution from which each token of n texts was drawn, with gradients.

        Args:
            prompts: The prompts.
            texts: A text after each of them, with at most T tokens.

        Returns:
            Log-probabilities of all tokens, shape (n, T, vocabulary); True where a text has a token, (n, T).

        Raises:
            UsageError: if a prompt and its text do not fit into the model's context.
        """
        rows, texts_of_row = self._rows_of(prompts, texts)
        with self.counted(len(texts), _tokens_in(rows)):
            logits, _ = self._forward(rows)  # (rows, nodes, vocabulary)
        row, node, _, mask = _predictions(rows, texts_of_row, logits.device)
        return logits[row, node].float().log_softmax(-1), mask

    # ---- tokens ---------------------------------------------------------------------------------------

    def _tokenise_prompt(self, prompt: Prompt, scored: bool) -> tuple[int, ...]:
        """Return the last ``context`` tokens of a prompt; ``scored`` if options are scored after it."""
        tokens = self.model._tokens(prompt, scored)
        return tuple(tokens if self.context is None else tokens[-self.context :])

    def _make_row(self, prompt: Prompt, options: tuple[str, ...], ended: bool) -> Row:
        """Return the tree of a prompt and its options."""
        end = self.ends[:1] if ended else ()
        tails = [[*tail, *end] for tail in self.model.tails(prompt, options)]
        return self._checked_tree(self._prompt_tokens(prompt, True), tails)

    def _rows_of(
        self, prompts: Sequence[Prompt], texts: Sequence[Written]
    ) -> tuple[list[Row], list[list[int]]]:
        """Return one tree for each different prompt, and the numbers of the texts that are its paths."""
        texts_of_prompt: dict[tuple[int, ...], list[int]] = {}
        for i, (prompt, _) in enumerate(zip(prompts, texts, strict=True)):
            texts_of_prompt.setdefault(self._prompt_tokens(as_prompt(prompt), False), []).append(i)
        rows = [
            self._checked_tree(tokens, [texts[i].tokens for i in members])
            for tokens, members in texts_of_prompt.items()
        ]
        return rows, list(texts_of_prompt.values())

    def _checked_tree(self, prompt: Tokens, texts: Sequence[Tokens]) -> Row:
        """Return the tree of a prompt and the texts after it.

        Raises:
            UsageError: if the longest one does not fit into the model's context.
        """
        longest = len(prompt) + max(map(len, texts))
        self.model._check_length(longest, "The prompt with its longest option", SHORTEN)
        return self._tree(prompt, texts)

    def take(self, texts: Iterable[str]) -> None:
        """Add the new words of texts, if the vocabulary grows; that of a pretrained model does not."""

    @contextmanager
    def recomputing(self) -> Iterator[None]:
        """Within the block, layers keep only their inputs, if ``recompute`` is set and gradients are on."""
        layers = self._recomputed if torch.is_grad_enabled() else []
        for layer in layers:
            layer.gradient_checkpointing = True
            layer.training = True  # of the layer alone, not of its parts: it turns recomputing on, no dropout
        try:
            yield
        finally:
            for layer in layers:
                layer.gradient_checkpointing = False  # with it a layer could not write from its cache
                layer.training = False

    # ---- the network, of two kinds --------------------------------------------------------------------

    @abstractmethod
    def _tree(self, prompt: Tokens, texts: Sequence[Tokens]) -> Row:
        """Return a prompt and the texts after it as a tree."""

    @abstractmethod
    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Compute trees; return logits and last hidden states.

        Returns:
            Logits and states of at least the tokens that predict others, shapes (rows, nodes, vocabulary)
            and (rows, nodes, dim). The last token of each tree is the last of both.
        """

    @abstractmethod
    def _states(self, prompts: Sequence[Tokens]) -> Tensor:
        """Return the state after each prompt, shape (prompts, dim)."""

    @abstractmethod
    def _read(self, prompts: Sequence[Tokens]) -> Texts:
        """Read prompts, to write after them."""


def _once(
    prompts: Sequence[Prompt],
    options: Sequence[Sequence[str]],
    compute: Callable[[Sequence[Choice]], list[OptionOutputs]],
) -> list[OptionOutputs]:
    """Return what is computed for each prompt with its options; repeated requests are computed once."""
    asked = choices([as_prompt(prompt) for prompt in prompts], options)
    distinct = list(dict.fromkeys(asked))
    if not distinct:
        return []
    known = dict(zip(distinct, compute(distinct), strict=True))
    return [known[request] for request in asked]


def _log_probs_and_entropy(
    token_logits: Tensor, tokens: Tensor, ends: Sequence[int], limited: bool
) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each token, and the entropy of the distribution before it.

    Args:
        token_logits: Logits before each token, shape (n, T, vocabulary).
        tokens: The tokens, shape (n, T).
        ends: The end tokens, one event.
        limited: True if some logits are -inf, of tokens that cannot follow.

    Returns:
        Both of shape (n, T), in nats.
    """
    every_log_prob = token_logits.log_softmax(-1)  # (n, T, vocabulary)
    log_probs = log_probs_of(tokens, every_log_prob, ends)
    finite = every_log_prob
    if limited:  # 0 log 0 is 0, and would be nan
        finite = every_log_prob.masked_fill(every_log_prob == -torch.inf, 0.0)
    entropy = -(every_log_prob.exp() * finite).sum(dim=-1)
    return log_probs, entropy


def _layers_to_recompute(model: TransformerModel) -> list[GradientCheckpointingLayer]:
    """Return the layers of a model, prepared to be computed again in the backward pass.

    Raises:
        UsageError: if it has none that can be.
    """
    layers = [part for part in model.network.modules() if isinstance(part, GradientCheckpointingLayer)]
    if not layers:
        raise UsageError(f"recompute: the layers of {model.name} cannot be computed again.")
    for layer in layers:
        layer._gradient_checkpointing_func = _computed_again
    return layers


# No dropout is applied, so no random state has to be restored.
_computed_again = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)


def _tokens_in(rows: Sequence[Row]) -> int:
    """Return the number of tokens that a pass over trees computes."""
    return sum(len(encoded) + len(tree.tokens) for encoded, tree in rows)


def path_log_probs(logits: Tensor, trees: Sequence[Tree]) -> Sequence[Tensor]:
    """Return the log-probability of each path of each tree, the sum over its tokens.

    Args:
        logits: Logits at the last tokens of each tree, shape (trees, nodes, vocabulary).
        trees: The trees, which end at the last node.

    Returns:
        One tensor per tree, shape (paths of the tree,).
    """
    lengths = [len(path) for tree in trees for path in tree.paths]
    path_of_token = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)).to(logits.device)
    of_tokens = token_log_probs(logits, trees, logits.shape[1])  # (tokens of all paths,)
    of_paths = of_tokens.new_zeros(len(lengths)).index_add(0, path_of_token, of_tokens)
    return torch.split(of_paths, [len(tree.paths) for tree in trees])


def _predictions(
    rows: Sequence[Row], texts_of_row: Sequence[Sequence[int]], device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return where the tokens of n texts of at most T tokens are predicted.

    Args:
        rows: The trees, each with a path for each of its texts.
        texts_of_row: The numbers of each tree's texts, in the order of its paths.
        device: Where the tensors are made.

    Returns:
        The row of each text, shape (n, 1); the node that predicts each of its tokens, counted from the end of
        the row, shape (n, T); the tokens, shape (n, T); True where a text has a token, shape (n, T).
    """
    n = sum(map(len, texts_of_row))
    row_of_text = [0] * n
    path_of_text = [torch.empty(0)] * n  # (tokens of the text, 2): node and token
    for row, ((_, tree), texts) in enumerate(zip(rows, texts_of_row, strict=True)):
        for text, path in zip(texts, tree.paths, strict=True):
            row_of_text[text] = row
            path_of_text[text] = torch.tensor([(node - len(tree.tokens), token) for node, token in path])
    paths = torch.nn.utils.rnn.pad_sequence(path_of_text, batch_first=True, padding_value=-1)  # (n, T, 2)
    tokens = paths[..., 1]
    mask = tokens >= 0
    rows_of_texts = torch.tensor(row_of_text)[:, None]
    nodes = paths[..., 0]
    return rows_of_texts.to(device), nodes.to(device), tokens.clamp(min=0).to(device), mask.to(device)
