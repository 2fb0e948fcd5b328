"""The policy role in sentence compression: a language model reads a text, and keeps or drops each word.

    state of a word  <- the text is read twice; the state after the word in the second reading, where a
                        causal model knows the whole text
    p(keep)          =  sigmoid(w . state),  for all words at once

This module imports torch, so import it only where a policy is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from hunch.core import FloatArray, State, UsageError
from hunch.lm.training import Trainable
from hunch.rl.policy import Decision, Evaluated, Part
from hunch.roles.policy.language import ModelPolicy
from hunch.roles.policy.settings import TextPolicyConfig

KNOWN = 4096
"""Maximum number of texts whose word positions are cached."""


def words_of(state: State) -> list[str]:
    """Return the words to shorten: those after the last colon between spaces, or else the whole observation.

    Raises:
        UsageError: if there are no words.
    """
    words = state.observation.rpartition(" : ")[2].split()
    if not words:
        raise UsageError(f"There are no words to keep in {state.observation!r}.")
    return words


class WordsPolicy(ModelPolicy):
    """A policy that keeps or drops each word of a text; a decision's tokens are 1 (keep) and 0.

    Args:
        lm: The model; it is reset and trained.
        config: Settings of the policy.
        seed: Seed of the weights w, and of shuffled or random initial weights.
    """

    def __init__(self, lm: Trainable, config: TextPolicyConfig, seed: int) -> None:
        super().__init__(lm, config.start, config.width, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = nn.Sequential(nn.Linear(lm.dim, 1, bias=False)).to(lm.network.device)
        self._ends = lru_cache(KNOWN)(self._ends_of)

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """Return the weights of the model, and the weights w."""
        return {"policy": [*self.lm.parameters(), *self.head.parameters()], "value": []}

    def prompt(self, state: State) -> str:
        """Return the prompt for the first reading: the text with the request."""
        return state.observation

    def sample(
        self, states: Sequence[State], rngs: Sequence[np.random.Generator], temperature: float = 1.0
    ) -> list[Decision]:
        """Draw which words are kept; at temperature 0 keep those with probability above 0.5."""
        with torch.no_grad():
            scores, _ = self._scores(states)  # (n, T)
        decisions = []
        for state, row, rng in zip(states, scores.double().cpu(), rngs, strict=True):
            words = words_of(state)
            score = row[: len(words)]  # (words,)
            uniform = torch.from_numpy(rng.random(len(words)))
            # p(keep) = sigmoid(score / temperature)
            keep = uniform < torch.sigmoid(score / temperature) if temperature else score > 0
            # log p(keep) = log sigmoid(score), log p(drop) = log sigmoid(-score)
            logprobs = logsigmoid(torch.where(keep, score, -score))
            text = kept(words, keep.tolist())
            decisions.append(Decision(text, tuple(map(int, keep)), tuple(logprobs.tolist())))
        return decisions

    def evaluate(
        self,
        states: Sequence[State],
        decisions: Sequence[Decision],
        part: Part = "both",
        with_kl: bool = False,
    ) -> Evaluated:
        """Evaluate choices by the current weights; see :meth:`hunch.rl.policy.TrainablePolicy.evaluate`."""
        scores, mask = self._scores(states)  # (n, T) each
        keep = torch.zeros_like(mask)
        for row, (state, decision) in enumerate(zip(states, decisions, strict=True)):
            # A recorded text has no tokens; its words are found again.
            chosen = decision.tokens or places_of(words_of(state), decision.text)
            keep[row, : len(chosen)] = torch.tensor(chosen, dtype=torch.bool)
        logprobs = logsigmoid(torch.where(keep, scores, -scores)) * mask
        # H = - p log p - (1 - p) log (1 - p)
        p = torch.sigmoid(scores)
        entropy = -(p * logsigmoid(scores) + (1 - p) * logsigmoid(-scores)) * mask
        return Evaluated(logprobs, entropy, torch.zeros_like(logprobs), mask)

    def reference_logprobs(self, states: Sequence[State], decisions: Sequence[Decision]) -> Tensor | None:
        """Return None: there is no reference."""
        return None

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return zeros, shape (n,): the baseline is the reward of the likeliest choices."""
        return np.zeros(len(states))

    def _scores(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Return the score of each word, with gradients, and which there are; both of shape (n, T)."""
        prompts = [self.prompt(state) for state in states]
        texts = [" ".join(words_of(state)) for state in states]
        # The text is read after the prompt, which holds it already. hidden: (n, tokens, dim)
        hidden = self.lm.evaluate(prompts, self.lm.as_written(prompts, texts)).states
        ends = [self._ends(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
        position = torch.zeros((len(ends), max(map(len, ends))), dtype=torch.long)  # (n, T)
        mask = torch.zeros(position.shape, dtype=torch.bool, device=hidden.device)
        for i, ends_of_words in enumerate(ends):
            position[i, : len(ends_of_words)] = torch.tensor(ends_of_words)
            mask[i, : len(ends_of_words)] = True
        row = torch.arange(len(ends))[:, None]
        after_words = hidden[row, position.to(hidden.device)]  # (n, T, dim)
        scores: Tensor = self.head(after_words)[..., 0]  # w . state
        return scores * mask, mask

    def _ends_of(self, prompt: str, text: str) -> list[int]:
        """Return the number of tokens of the text up to the end of each word.

        Raises:
            UsageError: if a token reaches from one word into the next: then no state belongs to the word.
        """
        words = text.split()
        heads: Any = tuple(" ".join(words[: i + 1]) for i in range(len(words)))
        tokens_of_heads = self.lm.model.tails(prompt, heads)
        tokens_of_text = tokens_of_heads[-1]
        for head, tokens in zip(heads, tokens_of_heads, strict=True):
            if tokens != tokens_of_text[: len(tokens)]:
                raise UsageError(
                    f"{self.lm.name} has a token that goes on from {head!r} into the next word of {text!r}, "
                    "so it cannot say which words to keep: take a model whose tokens end where words end."
                )
        return [len(tokens) for tokens in tokens_of_heads]


def kept(words: Sequence[str], bits: Sequence[bool]) -> str:
    """Return the kept words as a text."""
    return " ".join(word for word, keep in zip(words, bits, strict=True) if keep)


def places_of(words: Sequence[str], text: str) -> tuple[int, ...]:
    """Return 1 for each word that a text keeps, matched as early as possible, and 0 for the others."""
    left = text.split()
    bits = []
    for word in words:
        keeps = bool(left) and word == left[0]
        if keeps:
            left.pop(0)
        bits.append(int(keeps))
    return tuple(bits)
