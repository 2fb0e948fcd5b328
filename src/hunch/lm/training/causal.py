"""Causal models whose weights are trained.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hunch.lm.scoring.engine import laid_out
from hunch.lm.scoring.trie import Tokens, Tree, alike, chain, grow, joined
from hunch.lm.training.model import Trainable
from hunch.lm.training.outputs import Row
from hunch.lm.training.writing import Inputs, Texts


class Causal(Trainable):
    """A causal model for training, loaded like ``hf:``; a prompt and its options are one tree."""

    def _rooted(self, head: Tokens, tails: Sequence[Tokens]) -> Row:
        return [], grow(head, tails)

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        trees = [tree for _, tree in rows]
        hosts, homes = joined(trees)  # the prompts of an episode continue each other
        batches = alike([len(host.tokens) for host in hosts])  # padding may cost more than the prompts
        if len(hosts) == len(trees) and len(batches) == 1:
            return self._ends(trees, max(len(tree.tokens) - tree.root for tree in trees))
        found = dict[int, tuple[Tensor, Tensor]]()
        for batch in batches:
            members = [i for i, (host, _) in enumerate(homes) if host in batch]
            ends = self._ends([hosts[host] for host in batch], -min(homes[i][1][0] for i in members))
            for i in members:
                row, own = batch.index(homes[i][0]), homes[i][1]
                found[i] = ends[0][row, own], ends[1][row, own]
        logits, states = ([found[i][part] for i in range(len(trees))] for part in (0, 1))
        return pad_sequence(logits, True, 0.0, "left"), pad_sequence(states, True, 0.0, "left")

    def _ends(self, trees: Sequence[Tree], keep: int) -> tuple[Tensor, Tensor]:
        """Return logits and last hidden states of the last tokens of each tree."""
        keeping = self.model._engine.keeping(keep)
        out = self._run(trees, self.network, output_hidden_states=True, **keeping)
        return out.logits[:, -keep:], out.hidden_states[-1]

    def _states(self, heads: Sequence[Tokens]) -> Tensor:
        states: Tensor = self._run([chain(head) for head in heads], self.network.base_model).last_hidden_state
        return states[:, -1].float()

    def _run(self, trees: Sequence[Tree], network: Any, **options: Any) -> Any:
        tokens, positions, mask = laid_out(trees, [0] * len(trees), 0, self.network.dtype)
        device = self.network.device
        return network(
            input_ids=tokens.to(device),
            attention_mask=mask.to(device),
            position_ids=positions.to(device),
            use_cache=False,
            **options,
        )

    def _opened(self, heads: Sequence[Tokens]) -> Texts:
        """Prompts are padded at the front, and the padding is masked."""
        width = max(map(len, heads))
        rows = [[-1] * (width - len(head)) + list(head) for head in heads]
        ids = torch.tensor(rows, device=self.network.device)
        mask = (ids >= 0).long()
        places = (mask.cumsum(1) - 1).clamp(min=0)
        inputs = {"input_ids": ids.clamp(min=0), "attention_mask": mask, "position_ids": places}
        return Texts(partial(self.network, **self.model._engine.keeping(1)), inputs, _following)


def _following(inputs: Inputs, tokens: Tensor) -> Inputs:
    mask = torch.nn.functional.pad(inputs["attention_mask"], (0, 1), value=1)
    places = inputs["position_ids"][:, -1:] + 1
    return {"input_ids": tokens, "attention_mask": mask, "position_ids": places}
