"""Writes samples of prompts: together if that changes no bit, otherwise one after the other.

This module imports torch and transformers, so import it only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import torch

from hunch.lm.base import Sampling
from hunch.lm.scoring.engine import Engine
from hunch.lm.scoring.lockstep import Draft, Group, advance, draw
from hunch.lm.scoring.trie import Tokens

Start: TypeAlias = tuple[Group, torch.Tensor]
"""The drafts of a prompt, and the logits of their first token, shape (1, vocabulary)."""
MOST_BYTES: Final = 2**30
"""Maximum bytes of keys and values of drafts written together; the drafts of one prompt may take more."""


class Writer:
    """Writes samples with an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def write(
        self,
        requests: Sequence[tuple[Tokens, Sequence[np.random.Generator]]],
        sampling: Sampling,
        ended: Callable[[list[int]], bool],
    ) -> list[list[list[int]]]:
        """Return the tokens of each sample of each prompt.

        Args:
            requests: The tokens of each prompt, and the random generators of its samples.
            sampling: How tokens are drawn.
            ended: Returns whether a sample with these tokens has ended.
        """
        drafts = [(prompt, [Draft(rng) for rng in rngs]) for prompt, rngs in requests]
        for wave in self._waves(drafts, sampling, ended):
            self._together(wave, sampling, ended)
        return [[draft.tokens for draft in own] for _, own in drafts]

    def _waves(
        self,
        requests: Sequence[tuple[Tokens, list[Draft]]],
        sampling: Sampling,
        ended: Callable[[list[int]], bool],
    ) -> Iterator[list[Start]]:
        """Yield the groups to write together; prompts that must be written alone are written here."""
        width, wave = self.engine.lockstep, list[Start]()
        parts = [(p, own[at : at + width]) for p, own in requests for at in range(0, len(own), width)]
        for prompt, drafts in parts:
            start = self.engine.group(prompt, drafts, sampling.max_tokens)
            if start is None:
                self._singly(prompt, drafts, sampling, ended)
                continue
            groups = [group for group, _ in [*wave, start]]
            rows, size = sum(len(group.drafts) for group in groups), sum(group.size for group in groups)
            if wave and (rows > width or size > MOST_BYTES):
                yield wave
                wave = []
            wave.append(start)
        if wave:
            yield wave

    def _together(
        self, wave: Sequence[Start], sampling: Sampling, ended: Callable[[list[int]], bool]
    ) -> None:
        """Write drafts a token at a time, until all have ended."""
        groups = [group for group, _ in wave]
        logits = torch.cat([own.expand(len(group.drafts), -1) for group, own in wave])
        while groups:
            drafts = [draft for group in groups for draft in group.drafts]
            for draft, token in zip(drafts, draw(logits, sampling, drafts), strict=True):
                draft.tokens.append(token)
            for group in groups:
                group.keep([not ended(draft.tokens) for draft in group.drafts])
            groups = [group for group in groups if group.drafts]
            logits = advance(self.engine.network, groups) if groups else logits

    def _singly(
        self,
        prompt: Tokens,
        drafts: Sequence[Draft],
        sampling: Sampling,
        ended: Callable[[list[int]], bool],
    ) -> None:
        """Write the drafts of one prompt, one after the other."""
        start = self.engine.read(prompt, room=sampling.max_tokens)
        for draft in drafts:
            start.rewind()
            logprobs = start.logprobs
            while True:
                draft.tokens += draw(torch.from_numpy(logprobs)[None], sampling, [draft])
                if ended(draft.tokens):
                    break
                logprobs = start.step(draft.tokens[-1])
