"""Asks a model to write or judge several texts together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hunch.lm.answers.question import Question
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt
from hunch.lm.speech import Sampling, text_of


def ask(model: LanguageModel, questions: Sequence[Question]) -> Sequence[Any]:
    """Ask a model several questions of one verb as one batch, and return its answers in order."""
    verb = questions[0].verb
    if not getattr(model, "messages", False):
        questions = [q._replace(request=(text_of(q.request[0]), *q.request[1:])) for q in questions]
    if verb == "generate":
        return _write(model, questions)
    if verb == "decide":
        by_state: dict[Prompt, list[Question]] = {}
        for question in questions:
            by_state.setdefault(question.request[0], []).append(question)
        decided = model.decide(list(by_state), [[q.request[1] for q in own] for own in by_state.values()])
        known = {
            question: answer
            for own, answers in zip(by_state.values(), decided, strict=True)
            for question, answer in zip(own, answers, strict=True)
        }
        return [known[question] for question in questions]
    prompts, options = zip(*(question.request for question in questions), strict=True)
    return model.score(prompts, options) if verb == "score" else model.label(prompts, options)


def _write(model: LanguageModel, questions: Sequence[Question]) -> list[str]:
    """Generate the missing samples; prompts that miss the same samples in the same way go together."""
    samples: dict[tuple[Any, ...], list[int]] = {}  # by prompt and sampling
    for question in questions:
        samples.setdefault(question.request, []).append(question.sample)
    spans: dict[tuple[Any, int, int], list[Prompt]] = {}  # by sampling, first sample and end
    for (prompt, sampling), own in samples.items():
        spans.setdefault((sampling, min(own), max(own) + 1), []).append(prompt)
    texts: dict[tuple[Any, int], str] = {}
    for (sampling, first, end), prompts in spans.items():
        written = model.generate(prompts, end - first, Sampling(*sampling), first)
        for prompt, own_texts in zip(prompts, written, strict=True):
            texts |= {((prompt, sampling), first + i): text for i, text in enumerate(own_texts)}
    return [texts[question.request, question.sample] for question in questions]
