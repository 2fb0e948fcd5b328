"""Listed options as the texts that a trained model would write, each with its end."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hunch.lm.prompts import Prompt, as_prompt
from hunch.lm.training.model import Trainable
from hunch.lm.training.outputs import Answer
from hunch.lm.training.writing import Written


def texts(lm: Trainable, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Answer]:
    """Return :meth:`Trainable.answers` for options with their ends, of which any end token counts.

    A prompt is computed once for all its options, and so are their shared beginnings.
    """
    asked, counts = [as_prompt(prompt) for prompt in prompts], [*map(len, options)]
    written = [
        Written(text, (*tail, lm.ends[0]), (), True)
        for prompt, own in zip(asked, options, strict=True)
        for text, tail in zip(own, lm.model.tails(prompt, own), strict=True)
    ]
    found = lm.judged([p for p, n in zip(asked, counts, strict=True) for _ in range(n)], written)
    parts = [torch.split(own, counts) for own in (found.logprobs.sum(1), found.mask.sum(1), found.states)]
    answers = zip(*parts, strict=True)
    return [Answer(own, lengths.cpu().numpy(), states[0, 0]) for own, lengths, states in answers]
