"""Causal language models whose weights are trained: log-probabilities of texts with gradients.

Other models are frozen, and their answers are cached. These change with every update, so they have no cache
and no meter. :class:`Trainable` is a model of the transformers library, used like ``hf:``.
:class:`TrainableModel` is any network over any tokens whose texts end with an end token.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
import transformers
from torch import Tensor

from hunch.core import HunchError, IntArray, UsageError
from hunch.lm.backends import huggingface, weights
from hunch.lm.backends.bag_of_words import words
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.backends.lora import adapt, off
from hunch.lm.base import ONE_LINE, OptionScores, Sampling, choices, count_words
from hunch.lm.prompts import Prompt, as_prompt
from hunch.lm.scoring.engine import Engine, edges, laid_out
from hunch.lm.scoring.trie import Tree, chain, grow

KNOWN: Final = 4096
"""Number of prompts whose tokens are kept."""
Encode: TypeAlias = Callable[[str], list[int]]
VOCABULARY: Final = 2048
SIZES: Final = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 344,
}
ROOM: Final = 64  # maximum tokens of a text with its end token, if positions are limited
UNKNOWN, END, SPECIAL = 0, 1, 2  # special tokens, and their number


Start: TypeAlias = Literal["weights", "shuffled", "random"]
"""Initial weights: the model's own, these with the rows of its vocabulary shuffled (so that each word has the
meaning of another), or random weights."""


class Answer(NamedTuple):
    """A model's output for a prompt and its options, with gradients.

    Attributes:
        logprobs: Log-probability of each option, summed over its tokens; shape (n_options,).
        tokens: Number of tokens of each option, shape (n_options,).
        state: Last hidden state of the prompt's last token, shape (dim,).
    """

    logprobs: Tensor
    tokens: IntArray
    state: Tensor


class Trainable:
    """A causal model of the transformers library of which all weights, or only adapters, are trained.

    No dropout is applied, so that updates are repeatable. The results equal those of the frozen model ``hf:``
    with the same weights.

    Args:
        model: The model; this object takes ownership of it.
        train: ``all`` for all weights, or ``lora`` for low-rank adapters on the linear layers of its body.
        rank: Rank of the adapters.
        alpha: Scale of the adapters, applied as alpha / rank.
        seed: Seed of the adapters' initial weights.

    Raises:
        UsageError: for another way to train, or a rank below 1.
    """

    def __init__(
        self,
        model: CausalModel,
        train: Literal["all", "lora"] = "all",
        rank: int = 8,
        alpha: float = 16.0,
        seed: int = 0,
    ) -> None:
        if train not in ("all", "lora") or rank < 1:
            raise UsageError(f"train must be all or lora, and rank at least 1, not {train!r} and {rank}.")
        self.model, self.network = model, model.network
        self.network.requires_grad_(train == "all")
        self.adapted = train == "lora"
        if self.adapted:
            adapt(self.network, rank, alpha, seed)
        # The same prompts recur in every epoch of an update.
        self._tree = lru_cache(KNOWN)(lambda prompt, options: grow(*model._request(prompt, options)))
        self._chain = lru_cache(KNOWN)(lambda prompt: chain(model._tokens(prompt)))
        self._first = {name: weight.clone() for name, weight in self.state_dict().items()}

    def restart(self, start: Start = "weights", seed: int = 0) -> None:
        """Discard all training and start from the given initial weights; the seed draws or shuffles them.

        Raises:
            UsageError: if weights that are not trained would have to change.
        """
        if start != "weights" and self.adapted:
            raise UsageError(f"start={start!r} needs train=all, because it changes all weights.")
        self.load_state_dict(self._first)
        if start == "random":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.network.load_state_dict(type(self.network)(self.network.config).state_dict())
        elif start == "shuffled":
            _shuffle(self.network, seed)

    @property
    def dim(self) -> int:
        """Length of a hidden state."""
        return self.model.dim

    def scores(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Tensor]:
        """Return log p(option | prompt) for the options of each prompt, with gradients.

        A prompt is computed once for all its options, and shared beginnings of options are computed once.

        Raises:
            UsageError: if a prompt with its longest option does not fit into the model's context.
        """
        return [answer.logprobs for answer in self.answers(prompts, options)]

    def answers(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Answer]:
        """Return :meth:`scores` and :meth:`states` of the same pass, at the cost of the scores alone."""
        trees = [self._tree(prompt, own) for prompt, own in choices(prompts, options)]
        if not trees:
            return []
        keep = max(len(tree.tokens) - tree.root for tree in trees)
        out = self._run(trees, output_hidden_states=True, **self.model._engine.keeping(keep))
        logits, states = out.logits[:, -keep:], out.hidden_states[-1].float()
        return [
            Answer(
                sums(edges(logits[row], tree, keep), tree),
                np.array([len(path) for path in tree.paths]),
                states[row, tree.root - len(tree.tokens)],
            )
            for row, tree in enumerate(trees)
        ]

    def _run(self, trees: Sequence[Tree], network: Any = None, **options: Any) -> Any:
        tokens, positions, mask = laid_out(trees, [0] * len(trees), 0, self.network.dtype)
        device = self.network.device
        return (network or self.network)(
            input_ids=tokens.to(device),
            attention_mask=mask.to(device),
            position_ids=positions.to(device),
            use_cache=False,
            **options,
        )

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt with the current weights, without gradients."""
        return self.model.generate(prompts, k, sampling, first)

    def states(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return the hidden state of each prompt's last token, with gradients; shape (n_prompts, dim)."""
        trees = [self._chain(as_prompt(prompt)) for prompt in prompts]
        states: Tensor = self._run(trees, self.network.base_model).last_hidden_state
        return states[:, -1].float()

    @torch.no_grad()
    def frozen_states(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return :meth:`states` without the adapters: those of the model before training, bit for bit."""
        with off(self.network):
            return self.states(prompts)

    def parameters(self) -> list[torch.nn.Parameter]:
        """Return the trained weights."""
        return list(self._trained().values())

    def state_dict(self) -> dict[str, Tensor]:
        """Return the trained weights by name; with adapters, a small part of the model."""
        return {name: weight.detach() for name, weight in self._trained().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            HunchError: if it is from another model or another setting of ``train``.
        """
        own = self._trained()
        if own.keys() != state.keys() or any(own[name].shape != state[name].shape for name in own):
            raise HunchError(f"These weights do not match those that {self.model.name} trains.")
        with torch.no_grad():
            for name, weight in own.items():
                weight.copy_(state[name])

    def _trained(self) -> dict[str, torch.nn.Parameter]:
        named: Any = self.network.named_parameters()
        return {name: weight for name, weight in named if weight.requires_grad}


@torch.no_grad()
def _shuffle(network: Any, seed: int) -> None:
    """Give each token the input and output weights of another token."""
    rows = network.get_input_embeddings().weight
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)).to(rows.device)
    for layer in {
        id(own.weight): own for own in (network.get_input_embeddings(), network.get_output_embeddings())
    }.values():
        layer.weight.copy_(layer.weight[order])


def sums(each: Tensor, tree: Tree) -> Tensor:
    """Sum the log-probabilities of each path's tokens, shape (n_paths,)."""
    paths = [number for number, path in enumerate(tree.paths) for _ in path]
    return each.new_zeros(len(tree.paths)).index_add(0, torch.tensor(paths, device=each.device), each)


def load(
    name: str,
    *,
    train: Literal["all", "lora"] = "all",
    rank: int = 8,
    alpha: float = 16.0,
    seed: int = 0,
    device: str | None = None,
    dtype: str = "float32",
    chat: bool = False,
) -> Trainable:
    """Load a causal model of the transformers library for training; see :class:`Trainable`.

    Args:
        name: Name on the hub, or a folder.
        train: ``all`` or ``lora``.
        rank: Rank of the adapters.
        alpha: Scale of the adapters.
        seed: Seed of the adapters.
        device: Default: ``"cuda"`` if available, else ``"cpu"``.
        dtype: Number format of the computation.
        chat: Pass text prompts through its chat template.

    Raises:
        UsageError: for a wrong option, or a model that is not causal.
        HunchError: if the model cannot be loaded, or does not support trees of options.
    """
    model = huggingface.load(name, device=device, dtype=dtype, prefix_cache=0, chat=chat)
    if not isinstance(model, CausalModel):
        raise UsageError(f"hf:{name} is an encoder; only causal models can be trained.")
    if model._engine.unfit:
        raise HunchError(f"hf:{name} does not support trees of options, so it cannot be trained.")
    return Trainable(model, train, rank, alpha, seed)


class Vocabulary:
    """Maps words to tokens in the order in which they were added; later words are unknown once it is full."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.tokens: dict[str, int] = {}
        self.take(known)

    def take(self, texts: Iterable[str]) -> None:
        """Add the new words of some texts, as long as there is room."""
        for text in texts:
            for word in words(text):
                if len(self.tokens) < VOCABULARY - SPECIAL:
                    self.tokens.setdefault(word, SPECIAL + len(self.tokens))

    def __call__(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return [self.tokens.get(word, UNKNOWN) for word in words(text)]


class TrainableModel:
    """A causal model that is trained to write a text after a prompt, and that scores texts.

    Each text ends with an end token. So the probabilities of all texts after a prompt sum to at most 1, and
    "shelf 1" differs from the beginning of "shelf 1 2". A prompt that is too long loses its beginning.

    Args:
        network: A causal model of the transformers library; no dropout is applied, so that updates are
            repeatable.
        encode: Returns the tokens of a text.
        end: The token that ends a text.
        context: Maximum number of tokens of a prompt that are read.
    """

    def __init__(self, network: Any, encode: Encode, end: int, context: int) -> None:
        self.network = network.eval()
        self.encode, self.end, self.context = encode, end, context
        self._engine = Engine(network, "bc-lm", positions(network))

    def log_likelihood(self, prompts: Sequence[str], texts: Sequence[str]) -> Tensor:
        """Return log p(text, end | prompt), summed over tokens, with its gradient; shape (len(texts),)."""
        heads, tails = [self._head(p) for p in prompts], [self._tail(t) for t in texts]
        rows = [torch.tensor(head + tail) for head, tail in zip(heads, tails, strict=True)]
        # Padding comes after the text, where it does not affect a causal model.
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(self.network.device)
        logits = self.network(input_ids=padded[:, :-1], use_cache=False).logits
        each = torch.log_softmax(logits.float(), dim=-1).gather(-1, padded[:, 1:, None]).squeeze(-1)
        place = torch.arange(1, padded.shape[1])
        starts, ends = (
            torch.tensor([len(row) - len(tail) * side for row, tail in zip(rows, tails, strict=True)])
            for side in (1, 0)
        )
        own = (place >= starts[:, None]) & (place < ends[:, None])
        return each.masked_fill(~own.to(each.device), 0.0).sum(dim=1)

    def score(self, prompt: str, options: Sequence[str]) -> OptionScores:
        """Return how likely each option with its end token is after a prompt."""
        tails = [self._tail(option) for option in options]
        logprobs = self._engine.score([(self._head(prompt), tails)])[0]
        return OptionScores(logprobs, np.array([len(tail) for tail in tails]), count_words(options))

    def _head(self, prompt: str) -> list[int]:
        return (self.encode(prompt) or [self.end])[-self.context :]

    def _tail(self, text: str) -> list[int]:
        # The space belongs to the text, as in the training data.
        return [*self.encode(f" {text}"), self.end]


def small(vocabulary: Vocabulary, seed: int, context: int) -> TrainableModel:
    """Return a new Llama over words with about a million random weights."""
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=4096, tie_word_embeddings=True, **SIZES
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.LlamaForCausalLM(config)
    return TrainableModel(network, vocabulary, END, context)


def pretrained(spec: str, context: int) -> TrainableModel:
    """Return a pretrained causal model of the transformers library, in float32.

    Raises:
        UsageError: if the spec is not ``hf:<name or folder>``, its tokenizer has no end token, or it reads
            fewer tokens than ``context``.
        HunchError: if the model cannot be loaded.
    """
    kind, _, name = spec.partition(":")
    if kind != "hf" or not name:
        raise UsageError(f"The spec of a model to train must be 'hf:<name or folder>', not {spec!r}.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer, network = weights.read(weights.find(name), "AutoModelForCausalLM", device, "float32")
    if tokenizer.eos_token_id is None:
        raise UsageError(f"{spec} cannot be trained to write actions: its tokenizer has no end token.")
    limit = positions(network)
    if limit is not None and context + ROOM > limit:
        raise UsageError(f"{spec} reads at most {limit} tokens: set context to at most {limit - ROOM}.")

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    return TrainableModel(network, encode, tokenizer.eos_token_id, context)


def positions(network: Any) -> int | None:
    """Return the maximum number of tokens that a network reads; None if unknown."""
    stated: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    return stated
