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

from hunch.lm.prompts import Prompt
from hunch.lm.scoring.engine import laid_out
from hunch.lm.scoring.trie import Tokens, Tree, alike, chain, grow, joined
from hunch.lm.training.model import Trainable
from hunch.lm.training.outputs import Row
from hunch.lm.training.writing import Inputs, Texts


class Causal(Trainable):
    """A causal model for training, loaded like ``hf:``; a prompt and its options are one tree."""

    def _joint(self, prompt: Prompt) -> str:
        return self.model._joint(prompt)

    def _tree(self, prompt: Tokens, texts: Sequence[Tokens]) -> Row:
        return [], grow(prompt, texts)

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        # The prompts of an episode continue each other: those are computed once, with all of their texts.
        trees = [tree for _, tree in rows]
        merged, nodes_of_tree = joined(trees)
        # Padding may cost more than the prompts, so that only trees of about equal length go together.
        batches = alike([len(tree.tokens) for tree in merged])
        if len(merged) == len(trees) and len(batches) == 1:
            return self._last_nodes(trees, keep=max(len(tree.tokens) - tree.root for tree in trees))

        logits: list[Tensor] = [torch.empty(0)] * len(trees)  # of each tree, (nodes, vocabulary)
        states: list[Tensor] = [torch.empty(0)] * len(trees)  # (nodes, dim)
        for batch in batches:
            members = [i for i, (number, _) in enumerate(nodes_of_tree) if number in batch]
            first_node = min(nodes_of_tree[i][1][0] for i in members)  # counted from the end, so below 0
            batch_logits, batch_states = self._last_nodes([merged[n] for n in batch], keep=-first_node)
            for i in members:
                number, nodes = nodes_of_tree[i]
                row = batch.index(number)
                logits[i] = batch_logits[row, nodes]
                states[i] = batch_states[row, nodes]
        # All trees end at the last place, so they are padded at the front.
        padded_logits = pad_sequence(logits, batch_first=True, padding_side="left")
        padded_states = pad_sequence(states, batch_first=True, padding_side="left")
        return padded_logits, padded_states

    def _last_nodes(self, trees: Sequence[Tree], keep: int) -> tuple[Tensor, Tensor]:
        """Return the logits of the last ``keep`` nodes of each tree, and the last hidden states of all."""
        limited = self.model._engine.keeping(keep)
        outputs = self._run(trees, self.network, output_hidden_states=True, **limited)
        return outputs.logits[:, -keep:], outputs.hidden_states[-1]

    def _states(self, prompts: Sequence[Tokens]) -> Tensor:
        outputs = self._run([chain(prompt) for prompt in prompts], self.network.base_model)
        states: Tensor = outputs.last_hidden_state  # (prompts, tokens, dim)
        return states[:, -1].float()

    def _run(self, trees: Sequence[Tree], network: Any, **options: Any) -> Any:
        tokens, positions, mask = laid_out(trees, [0] * len(trees), 0, self.network.dtype)
        device = self.network.device
        with self.recomputing():
            return network(
                input_ids=tokens.to(device),
                attention_mask=mask.to(device),
                position_ids=positions.to(device),
                use_cache=False,
                **options,
            )

    def _read(self, prompts: Sequence[Tokens]) -> Texts:
        width = max(map(len, prompts))
        rows = [[-1] * (width - len(prompt)) + list(prompt) for prompt in prompts]  # padded at the front
        tokens = torch.tensor(rows, device=self.network.device)  # (prompts, width)
        mask = (tokens >= 0).long()
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        inputs = {"input_ids": tokens.clamp(min=0), "attention_mask": mask, "position_ids": positions}
        only_last = self.model._engine.keeping(1)
        return Texts(partial(self.network, **only_last), inputs, _following)


def _following(inputs: Inputs, tokens: Tensor) -> Inputs:
    """Return the inputs of the pass over one more token for each text, shape (texts, 1)."""
    mask = torch.nn.functional.pad(inputs["attention_mask"], (0, 1), value=1)
    positions = inputs["position_ids"][:, -1:] + 1
    return {"input_ids": tokens, "attention_mask": mask, "position_ids": positions}
