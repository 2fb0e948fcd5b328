"""Draws one of some given texts token by token: what a grammar of these texts does to a model's answers.

The texts form a tree of tokens. At each node the next token is drawn from the model's distribution,
restricted to the tokens that go on in the tree and normalised over them::

    p(t | prompt, x)  =  p_LM(t | prompt, x) / sum over allowed t' of p_LM(t' | prompt, x)

Where a text ends and a longer one goes on, to stop is one of the choices; its probability is that of all
tokens with which no longer text goes on. So this is not the softmax over the texts' likelihoods: a beginning
is chosen before the model sees what has to follow it.

All these probabilities come from the log-likelihoods of the tree's paths, from one pass of the model for all
samples of a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from hunch.core import FloatArray
from hunch.lm.scoring.trie import Tokens
from hunch.lm.speech import Sampling

Path: TypeAlias = tuple[int, ...]
STOP: Final = -1
"""Stands in a list of next tokens for the end of a text."""


class Restricted:
    """The tree of some texts.

    Attributes:
        paths: All beginnings of the texts, without the empty one: what the model has to score.

    Args:
        texts: The tokens of each text, at least one each.
    """

    def __init__(self, texts: Sequence[Tokens]) -> None:
        self.ends: dict[Path, int] = {}  # the first text with these tokens
        following: dict[Path, dict[int, None]] = {}
        for number, text in enumerate(texts):
            path = tuple(text)
            self.ends.setdefault(path, number)
            for end in range(len(path)):
                following.setdefault(path[:end], {})[path[end]] = None
        self.following = {path: tuple(tokens) for path, tokens in following.items()}
        self.paths: list[Path] = [
            (*path, token) for path, tokens in self.following.items() for token in tokens
        ]

    def choices(self, logprobs: FloatArray) -> dict[Path, tuple[Sequence[int], FloatArray]]:
        """Return the allowed next tokens after each beginning, and their log-probabilities in the model.

        Args:
            logprobs: log p_LM(path | prompt) of each of :attr:`paths`, shape (paths,).

        Returns:
            By beginning, tokens (:data:`STOP` among them where a text ends) and an array of as many numbers.
        """
        of_path: Mapping[Path, float] = dict(zip(self.paths, logprobs.tolist(), strict=True)) | {(): 0.0}
        choices: dict[Path, tuple[Sequence[int], FloatArray]] = {}
        for path, tokens in self.following.items():
            # log p(token | prompt, path) = log p(path + token | prompt) - log p(path | prompt)
            log_probs = np.array([of_path[*path, token] - of_path[path] for token in tokens])
            if path not in self.ends:
                choices[path] = tokens, log_probs
                continue
            # A text ends here and another goes on: to stop has the probability of all other tokens.
            p_going_on = min(float(np.exp(log_probs).sum()), 1.0)
            log_p_stop = np.log1p(-p_going_on) if p_going_on < 1.0 else -np.inf
            choices[path] = (*tokens, STOP), np.append(log_probs, log_p_stop)
        return choices

    def draw(
        self,
        choices: Mapping[Path, tuple[Sequence[int], FloatArray]],
        sampling: Sampling,
        rng: np.random.Generator,
    ) -> int:
        """Draw a text, and return its number.

        Args:
            choices: What :meth:`choices` returned.
            sampling: Temperature and top-p, as for any text.
            rng: The random generator of this sample; it is used once per node with several choices.
        """
        path: Path = ()
        while path in choices:
            tokens, logprobs = choices[path]
            token = tokens[_drawn(logprobs, sampling, rng)]
            if token == STOP:
                break
            path = (*path, token)
        return self.ends[path]

    def probabilities(self, choices: Mapping[Path, tuple[Sequence[int], FloatArray]]) -> FloatArray:
        """Return the probability of each distinct text at temperature 1, in the order of :attr:`ends`."""
        reached: dict[Path, float] = {(): 1.0}
        final: dict[Path, float] = {}
        for path in sorted(choices, key=len):
            tokens, logprobs = choices[path]
            for token, share in zip(tokens, _shares(logprobs, 1.0), strict=True):
                if token == STOP:
                    final[path] = reached[path] * float(share)
                else:
                    reached[*path, token] = reached[path] * float(share)
        return np.array([final.get(path, reached[path]) for path in self.ends])


def _shares(logprobs: FloatArray, temperature: float) -> FloatArray:
    """Return the softmax of log-probabilities over a temperature; equal shares if all are -inf."""
    best = logprobs.max()
    if not np.isfinite(best):
        return np.full(len(logprobs), 1 / len(logprobs))
    shares: FloatArray = np.exp((logprobs - best) / temperature)
    return np.asarray(shares / shares.sum())


def _drawn(logprobs: FloatArray, sampling: Sampling, rng: np.random.Generator) -> int:
    """Draw one of some choices with temperature and top-p; a single choice draws no random number."""
    if len(logprobs) == 1:
        return 0
    if sampling.temperature == 0:
        return int(logprobs.argmax())
    shares = _shares(logprobs, sampling.temperature)
    if sampling.top_p < 1:
        order = np.argsort(-shares, kind="stable")
        before = np.cumsum(shares[order]) - shares[order]  # (choices,): the mass of more probable ones
        shares[order[before >= sampling.top_p]] = 0.0
    cumulative = np.cumsum(shares)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
