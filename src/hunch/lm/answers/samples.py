"""Writes the samples of prompts that are missing among the answers."""

from __future__ import annotations

from collections.abc import Sequence

from hunch.lm.answers.question import Question
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt
from hunch.lm.speech import Sampling


def as_sampling(question: Question) -> Sampling:
    """Return the sampling settings of a ``generate`` question."""
    return Sampling(*question.request[1])


def written(model: LanguageModel, questions: Sequence[Question]) -> list[str]:
    """Generate the missing samples; prompts that miss the same samples go together."""
    sampling = as_sampling(questions[0])
    samples: dict[Prompt, list[int]] = {}
    for question in questions:
        samples.setdefault(question.request[0], []).append(question.sample)
    spans: dict[tuple[int, int], list[Prompt]] = {}
    for prompt, own in samples.items():
        spans.setdefault((min(own), max(own) + 1), []).append(prompt)
    texts: dict[tuple[Prompt, int], str] = {}
    for (first, end), prompts in spans.items():
        new = model.generate(prompts, end - first, sampling, first)
        for prompt, own_texts in zip(prompts, new, strict=True):
            texts |= {(prompt, first + i): text for i, text in enumerate(own_texts)}
    return [texts[question.request[0], question.sample] for question in questions]
