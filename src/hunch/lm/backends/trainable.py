"""Causal language models whose weights are trained: log-probabilities of texts with gradients.

Other models are frozen, and their answers are cached. These change with every update, so they have no cache
and no meter. A :class:`Trainable` is used like ``hf:``; a network over tokens of one's own is a
:class:`hunch.lm.backends.imitating.TrainableModel`.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from hunch.core import HunchError, IntArray, UsageError
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.backends.lora import adapt, off
from hunch.lm.base import ONE_LINE, Sampling, choices
from hunch.lm.prompts import Prompt, as_prompt
from hunch.lm.scoring.engine import edges, laid_out
from hunch.lm.scoring.trie import Tree, chain, grow

KNOWN: Final = 4096
"""Number of prompts whose tokens are kept."""


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
        self._chain = lru_cache(KNOWN)(lambda prompt: chain(model._tokens(prompt, scored=True)))
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
        """Return :meth:`scores` and :meth:`states` of the same pass, at the cost of the scores alone.

        Repeated requests are computed once.
        """
        asked = choices(prompts, options)
        once = list(dict.fromkeys(asked))
        found = dict(zip(once, self._answers(once), strict=True)) if once else {}
        return [found[pair] for pair in asked]

    def _answers(self, asked: Sequence[tuple[Prompt, tuple[str, ...]]]) -> list[Answer]:
        trees = [self._tree(prompt, own) for prompt, own in asked]
        keep = max(len(tree.tokens) - tree.root for tree in trees)
        out = self._run(trees, output_hidden_states=True, **self.model._engine.keeping(keep))
        starts = [tree.root - len(tree.tokens) for tree in trees]
        return told(out.logits[:, -keep:], out.hidden_states[-1], trees, starts)

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
        once = {prompt: row for row, prompt in enumerate(dict.fromkeys(map(as_prompt, prompts)))}
        return self._states(list(once))[[once[as_prompt(prompt)] for prompt in prompts]]

    def _states(self, prompts: Sequence[Prompt]) -> Tensor:
        chains = [self._chain(prompt) for prompt in prompts]
        states: Tensor = self._run(chains, self.network.base_model).last_hidden_state
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


def told(logits: Tensor, states: Tensor, trees: Sequence[Tree], starts: Sequence[int]) -> list[Answer]:
    """Return the answers of a pass.

    Args:
        logits: Logits at the last tokens of each tree, shape (trees, tokens, vocabulary).
        states: Last hidden states, shape (trees, tokens, dim).
        trees: The trees, which end at the last token.
        starts: Index of the hidden state of each prompt.
    """
    lengths = [np.array([len(path) for path in tree.paths]) for tree in trees]
    read = states[np.arange(len(trees)), starts].float().unbind()
    return [Answer(*answer) for answer in zip(sums(logits, trees), lengths, read, strict=True)]


def sums(logits: Tensor, trees: Sequence[Tree]) -> Sequence[Tensor]:
    """Return the log-probability of each path of each tree, the sum over its tokens; see :func:`told`."""
    lengths = [len(path) for tree in trees for path in tree.paths]
    owner = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)).to(logits.device)
    each = edges(logits, trees, logits.shape[1])
    summed = each.new_zeros(len(lengths)).index_add(0, owner, each)
    return torch.split(summed, [len(tree.paths) for tree in trees])
