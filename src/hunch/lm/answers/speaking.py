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
        questions = [
            question._replace(request=(text_of(question.request[0]), *question.request[1:]))
            for question in questions
        ]
    if verb == "generate":
        return _write(model, questions)
    if verb == "decide":
        return _decide(model, questions)
    prompts, options = zip(*(question.request for question in questions), strict=True)
    return model.score(prompts, options) if verb == "score" else model.label(prompts, options)


def _decide(model: LanguageModel, questions: Sequence[Question]) -> list[Any]:
    """Ask for decisions; the questions on one state go together."""
    by_state: dict[Prompt, list[Question]] = {}
    for question in questions:
        by_state.setdefault(question.request[0], []).append(question)
    asked = [[question.request[1] for question in of_state] for of_state in by_state.values()]
    decided = model.decide(list(by_state), asked)
    answer_of: dict[Question, Any] = {}
    for of_state, answers in zip(by_state.values(), decided, strict=True):
        answer_of |= dict(zip(of_state, answers, strict=True))
    return [answer_of[question] for question in questions]


def _write(model: LanguageModel, questions: Sequence[Question]) -> list[str]:
    """Generate the missing samples; prompts that miss the same samples in the same way go together."""
    samples: dict[tuple[Any, ...], list[int]] = {}  # numbers of the samples, by prompt and sampling
    for question in questions:
        samples.setdefault(question.request, []).append(question.sample)
    calls: dict[tuple[Any, int, int], list[Prompt]] = {}  # prompts by sampling, first sample and end
    for (prompt, sampling), numbers in samples.items():
        calls.setdefault((sampling, min(numbers), max(numbers) + 1), []).append(prompt)
    text_of_sample: dict[tuple[Any, int], str] = {}  # by request and number
    for (sampling, first, end), prompts in calls.items():
        written = model.generate(prompts, end - first, Sampling(*sampling), first)
        for prompt, texts in zip(prompts, written, strict=True):
            for number, text in enumerate(texts, first):
                text_of_sample[(prompt, sampling), number] = text
    return [text_of_sample[question.request, question.sample] for question in questions]
