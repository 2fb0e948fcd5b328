"""Causal language models whose weights are trained: how likely texts are after a prompt, with a gradient.

Elsewhere models are frozen, and what they answer is cached; these change with every update, so they stand
behind no cache and no meter. :class:`Trainable` is a model of transformers as a spec names it, asked as
``hf:`` is; :class:`TrainableModel` is any network over any tokens, of which texts end with an end token.

Imports torch and transformers, so it is imported where one is made.
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
"""Prompts of which the tokens are kept."""
Encode: TypeAlias = Callable[[str], list[int]]
VOCABULARY: Final = 2048
SIZES: Final = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 344,
}
ROOM: Final = 64  # tokens that a text may have, its end included, where positions are limited
UNKNOWN, END, SPECIAL = 0, 1, 2  # tokens of no word, and how many there are


Start: TypeAlias = Literal["weights", "shuffled", "random"]
"""What training begins with: the model's own weights, these with the rows of its vocabulary shuffled, so that
each word has the meaning of another one, or weights drawn at random."""


class Answer(NamedTuple):
    """What a model says of a prompt and its options, with a gradient.

    Attributes:
        logprobs: The log-probability of each option, summed over its tokens; shape (n_options,).
        tokens: The number of tokens of each option, shape (n_options,).
        state: The last hidden state of the prompt's last token, shape (dim,).
    """

    logprobs: Tensor
    tokens: IntArray
    state: Tensor


class Trainable:
    """A causal model of transformers of which all weights, or adapters beside them, are trained.

    No dropout is applied, so that updates repeat. The numbers are those of the frozen model ``hf:`` with the
    same weights.

    Args:
        model: The model; it belongs to this object from now on.
        train: ``all`` weights, or ``lora``: low-rank adapters beside the products of its body.
        rank: Of the adapters.
        alpha: They are scaled by alpha / rank.
        seed: Of what they begin with.

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
            raise UsageError(f"A model trains all or lora, of a rank of at least 1, not {train!r}, {rank}.")
        self.model, self.network = model, model.network
        self.network.requires_grad_(train == "all")
        self.adapted = train == "lora"
        if self.adapted:
            adapt(self.network, rank, alpha, seed)
        # The same prompts come again in every epoch of an update.
        self._tree = lru_cache(KNOWN)(lambda prompt, options: grow(*model._request(prompt, options)))
        self._chain = lru_cache(KNOWN)(lambda prompt: chain(model._tokens(prompt, scored=True)))
        self._first = {name: weight.clone() for name, weight in self.state_dict().items()}

    def restart(self, start: Start = "weights", seed: int = 0) -> None:
        """Forget all training, and begin with these weights; the seed draws or shuffles.

        Raises:
            UsageError: if weights that are not trained would have to be others.
        """
        if start != "weights" and self.adapted:
            raise UsageError(f"Only where all weights are trained can they begin as {start}: use train=all.")
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
        """Return for each prompt log p(option | prompt) of each of its options, with a gradient.

        A prompt is computed once for all its options, and what these share at their beginnings once.

        Raises:
            UsageError: if a prompt with its longest option does not fit into the model's context.
        """
        return [answer.logprobs for answer in self.answers(prompts, options)]

    def answers(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Answer]:
        """Return :meth:`scores` and :meth:`states` of one and the same pass, for the cost of the former."""
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
        """Return k continuations of each prompt with the weights as they are now, without a gradient."""
        return self.model.generate(prompts, k, sampling, first)

    def states(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return the hidden state of each prompt's last token, with a gradient; shape (n_prompts, dim)."""
        trees = [self._chain(as_prompt(prompt)) for prompt in prompts]
        states: Tensor = self._run(trees, self.network.base_model).last_hidden_state
        return states[:, -1].float()

    @torch.no_grad()
    def frozen_states(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return :meth:`states` without the adapters: those of the model before training, to the last bit."""
        with off(self.network):
            return self.states(prompts)

    def parameters(self) -> list[torch.nn.Parameter]:
        """Return the weights that are trained."""
        return list(self._trained().values())

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights that are trained, by name; of adapters a small part of the model."""
        return {name: weight.detach() for name, weight in self._trained().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up what :meth:`state_dict` gave.

        Raises:
            HunchError: if it is of another model or way to train.
        """
        own = self._trained()
        if own.keys() != state.keys() or any(own[name].shape != state[name].shape for name in own):
            raise HunchError(f"These weights are not those that {self.model.name} trains.")
        with torch.no_grad():
            for name, weight in own.items():
                weight.copy_(state[name])

    def _trained(self) -> dict[str, torch.nn.Parameter]:
        named: Any = self.network.named_parameters()
        return {name: weight for name, weight in named if weight.requires_grad}


@torch.no_grad()
def _shuffle(network: Any, seed: int) -> None:
    """Give each token the weights of another one, where it is read and where it is written."""
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
    """Load a causal model of transformers to train; see :class:`Trainable`.

    Args:
        name: The hub's name or a folder.
        train: See :class:`Trainable`; so are rank, alpha and seed.
        rank: Of the adapters.
        alpha: Of the adapters.
        seed: Of the adapters.
        device: By default ``"cuda"`` where there is one, else ``"cpu"``.
        dtype: What it computes with.
        chat: Whether prompts that are texts go through its chat template.

    Raises:
        UsageError: for a wrong option, or a model that is no causal one.
        HunchError: if the model cannot be had or read, or takes no tree of options.
    """
    model = huggingface.load(name, device=device, dtype=dtype, prefix_cache=0, chat=chat)
    if not isinstance(model, CausalModel):
        raise UsageError(f"hf:{name} is an encoder, and only causal models can be trained.")
    if model._engine.unfit:
        raise HunchError(f"hf:{name} takes no tree of options, and so cannot be trained.")
    return Trainable(model, train, rank, alpha, seed)


class Vocabulary:
    """Words as tokens, in the order in which they were taken in; a word beyond the last token is unknown."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.tokens: dict[str, int] = {}
        self.take(known)

    def take(self, texts: Iterable[str]) -> None:
        """Take in the words of some texts that are not known yet, as long as there is room."""
        for text in texts:
            for word in words(text):
                if len(self.tokens) < VOCABULARY - SPECIAL:
                    self.tokens.setdefault(word, SPECIAL + len(self.tokens))

    def __call__(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return [self.tokens.get(word, UNKNOWN) for word in words(text)]


class TrainableModel:
    """A causal model that can be trained to write a text after a prompt, and asked how likely texts are.

    A text is followed by an end token, so that the probabilities of all texts after a prompt sum to at most 1
    and "shelf 1" is another text than the beginning of "shelf 1 2". A prompt that is too long loses its
    beginning.

    Args:
        network: A causal model of transformers; no dropout is applied to it, so that updates repeat.
        encode: Gives the tokens of a text.
        end: The token that ends a text.
        context: The most tokens of a prompt that are read.
    """

    def __init__(self, network: Any, encode: Encode, end: int, context: int) -> None:
        self.network = network.eval()
        self.encode, self.end, self.context = encode, end, context
        self._engine = Engine(network, "bc-lm", positions(network))

    def log_likelihood(self, prompts: Sequence[str], texts: Sequence[str]) -> Tensor:
        """Return log p(text, end | prompt), summed over tokens, with its gradient; shape (len(texts),)."""
        heads, tails = [self._head(p) for p in prompts], [self._tail(t) for t in texts]
        rows = [torch.tensor(head + tail) for head, tail in zip(heads, tails, strict=True)]
        # Padding follows the text, where a causal model's answers do not see it.
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
        """Return how likely each option is, its end included, after a prompt."""
        tails = [self._tail(option) for option in options]
        logprobs = self._engine.score([(self._head(prompt), tails)])[0]
        return OptionScores(logprobs, np.array([len(tail) for tail in tails]), count_words(options))

    def _head(self, prompt: str) -> list[int]:
        return (self.encode(prompt) or [self.end])[-self.context :]

    def _tail(self, text: str) -> list[int]:
        # The space belongs to the text, as in what was read before.
        return [*self.encode(f" {text}"), self.end]


def small(vocabulary: Vocabulary, seed: int, context: int) -> TrainableModel:
    """A new Llama of about a million weights, drawn at random, over words."""
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=4096, tie_word_embeddings=True, **SIZES
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.LlamaForCausalLM(config)
    return TrainableModel(network, vocabulary, END, context)


def pretrained(spec: str, context: int) -> TrainableModel:
    """A causal model of transformers to go on training, in float32.

    Raises:
        UsageError: if the spec is not ``hf:<name or folder>``, its tokenizer has no end token, or it reads
            fewer tokens than ``context``.
        HunchError: if the model cannot be had or read.
    """
    kind, _, name = spec.partition(":")
    if kind != "hf" or not name:
        raise UsageError(f"A model to train is named as 'hf:<name or folder>', not {spec!r}.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer, network = weights.read(weights.find(name), "AutoModelForCausalLM", device, "float32")
    if tokenizer.eos_token_id is None:
        raise UsageError(f"{spec} cannot be trained to write actions: its tokenizer has no end token.")
    limit = positions(network)
    if limit is not None and context + ROOM > limit:
        raise UsageError(f"{spec} reads {limit} tokens: choose a context of at most {limit - ROOM}.")

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    return TrainableModel(network, encode, tokenizer.eos_token_id, context)


def positions(network: Any) -> int | None:
    """The most tokens that a network reads, or None where it does not say."""
    stated: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    return stated
