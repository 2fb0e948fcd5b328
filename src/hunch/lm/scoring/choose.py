"""Chooses among options with any model, in one of the ways of :mod:`hunch.lm.ways`.

========== ======== ==================================================================================
way        verb     probabilities
========== ======== ==================================================================================
decision   decide   those that a decision model returns
likelihood score    softmax over the options' exact log-probabilities as continuations of the prompt
label      label    softmax over the log-probabilities of the letters that number the options
structured generate share of k sampled answers, each restricted to one of the options
text       generate share of k sampled answers that decide on the option
========== ======== ==================================================================================

These are different quantities, so each :class:`Choice` names its quantity and its normalisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.backends.sampling import listed_options
from hunch.lm.base import LanguageModel, Normalisation
from hunch.lm.decision import DecisionQuestion, checked_lists, grouped, joined
from hunch.lm.hearing import PATIENCE, count_fallbacks, show, show_choices
from hunch.lm.prompts import Prompt
from hunch.lm.speech import Sampling, choices, text_of
from hunch.lm.ways import Way, way_for
from hunch.numbers import softmax

CHOOSING: Final[tuple[Way, ...]] = ("decision", "likelihood", "label", "structured", "text")
"""The ways of choosing; :func:`hunch.lm.ways.best_way` says which ``auto`` takes."""
DECIDE: Final = "Which option comes next?"
"""Instructions of a choice whose prompt says by itself what is asked."""
LABELS: Final = tuple("ABCDEFGHIJKLMNOPQRST")
"""Letters for options: 20, as servers return the log-probabilities of about 20 likely tokens."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The probability of each option of one prompt, and the kind of probability.

    Attributes:
        probabilities: Shape (n_options,), summing to one.
        way: The way in which the model was asked.
        normalised_over: The set over which they are normalised, in words.
        answered: Share of the model's answers that went to the options: the total probability of the labels,
            or the share of answers that named an option; 1 if options are scored.
        fallbacks: Number of answers that named no option. If all named none, probabilities are uniform.
    """

    probabilities: FloatArray
    way: Way
    normalised_over: str
    answered: float
    fallbacks: int


def choose(
    lm: LanguageModel,
    prompts: Sequence[Prompt],
    options: Sequence[Sequence[str]],
    *,
    way: Way | Literal["auto"] = "auto",
    normalise: Normalisation = "sum",
    rotations: int = 1,
    by_letter: bool = True,
    samples: int = 5,
    sampling: Sampling | None = None,
    patience: int | None = PATIENCE,
    role: str = "prior",
) -> list[Choice]:
    """Choose among the options of each prompt.

    With likelihood, the options are continuations of the unchanged prompt. With label, they are listed below
    the prompt with letters; without ``by_letter`` they are labels themselves, after the unchanged prompt.
    With text and structured, they are listed below the prompt, unless it already ends with the list.

    Args:
        lm: Any model that decides, scores, labels or generates.
        prompts: The prompts.
        options: The options of each prompt.
        way: The way of asking; auto takes the best one of the model (:func:`hunch.lm.ways.best_way`).
        normalise: With likelihood: divisor of log-probabilities: nothing, tokens or words.
        rotations: With label: number of orders of the list to average over, since models favour letters.
        by_letter: With label: False for options of one token, such as Yes and No, whose own probabilities are
            read.
        samples: With text and structured: answers per prompt.
        sampling: With text and structured: how answers are sampled. Default: one line; a whole answer of a
            chat model.
        patience: Number of successive answers without an option that raises an error; None for no limit.
        role: The role that chooses, a key of :data:`hunch.lm.hearing.ANSWERS`.

    Raises:
        UsageError: if the model does not support it, a prompt has no options, or a number is not positive.
    """
    if rotations < 1 or samples < 1:
        raise UsageError(
            f"Choosing needs at least one rotation and one sample, not {rotations} and {samples}."
        )
    choices(prompts, options)
    way = way_of_choosing(lm, way, role)
    if way == "decision":
        questions = [[DecisionQuestion("choice", DECIDE, tuple(listed))] for listed in options]
        return [choice for [choice] in decide(lm, prompts, questions, patience=patience, role=role)]
    if way == "likelihood":
        chosen = _scored(lm, prompts, options, normalise)
    elif way == "label" and not by_letter:
        chosen = [_labels([np.exp(row)]) for row in _label(lm, prompts, options)]
    elif way == "label":
        chosen = _labelled(lm, prompts, options, rotations)
    else:
        restricted = way == "structured"
        return _voted(lm, prompts, options, samples, sampling, patience, role, restricted=restricted)
    show_choices(lm, role, options, [choice.probabilities for choice in chosen])
    usable: list[tuple[str, bool]] = []  # nothing was written, so the texts are empty
    for choice in chosen:
        usable += [("", False)] * choice.fallbacks
        if choice.answered > 0:
            usable.append(("", True))
    count_fallbacks(lm, usable, patience, role=role)
    return chosen


def decide(
    lm: LanguageModel,
    states: Sequence[Prompt],
    questions: Sequence[Sequence[DecisionQuestion]],
    *,
    way: Way | Literal["auto"] = "auto",
    normalise: Normalisation = "sum",
    patience: int | None = PATIENCE,
    role: str = "prior",
) -> list[list[Choice]]:
    """Answer the questions on each state: by a decision model itself, or by what another model can.

    A model without the verb ``decide`` reads each question below the state and chooses among its options as
    :func:`choose` does; the field ``way`` says how.

    Args:
        lm: Any model that decides, scores, labels or generates.
        states: The states.
        questions: The questions on each state.
        way: The way of asking; auto as for :func:`choose`.
        normalise: With likelihood: divisor of log-probabilities: nothing, tokens or words.
        patience: Number of successive questions without an answer that raises an error; None for no limit.
        role: As for :func:`choose`.

    Returns:
        A choice per state and question. A question that the model refuses to answer has uniform
        probabilities, and counts as a fallback.

    Raises:
        UsageError: if there is not one list of questions for each state, or a question cannot be asked.
    """
    questions = checked_lists(states, questions)
    way = way_of_choosing(lm, way, role)
    if way == "decision":
        return _decided(lm, states, questions, patience, role)
    prompts: list[Prompt] = []
    options: list[tuple[str, ...]] = []
    for state, of_state in zip(states, questions, strict=True):
        for question in of_state:
            prompts.append(extended(state, f"\n\n{written(question)}"))
            options.append(question.options)
    chosen = choose(lm, prompts, options, way=way, normalise=normalise, patience=patience, role=role)
    in_order = iter(chosen)
    return [[next(in_order) for _ in of_state] for of_state in questions]


def written(question: DecisionQuestion) -> str:
    """Return a question as text, for models that read prompts; its options if some are described."""
    if not any(question.descriptions):
        return question.instructions
    described = [f"{option}: {what}" if what else option for option, what in question.described()]
    return "\n".join((question.instructions, *described))


def _decided(
    lm: LanguageModel,
    states: Sequence[Prompt],
    questions: Sequence[Sequence[DecisionQuestion]],
    patience: int | None,
    role: str,
) -> list[list[Choice]]:
    """Ask a decision model, and count the questions that it refuses."""
    answers = lm.decide(states, questions)
    heard: list[tuple[str, bool]] = []
    shown_options: list[Sequence[str]] = []
    shown_probabilities: list[FloatArray] = []
    chosen: list[list[Choice]] = []
    for of_state, answers_of_state in zip(questions, answers, strict=True):
        choices_of_state: list[Choice] = []
        for question, probabilities in zip(of_state, answers_of_state, strict=True):
            refused = probabilities is None
            heard.append(("" if refused else "decided", not refused))
            if probabilities is None:
                n = len(question.options)
                probabilities = np.full(n, 1 / n)
            else:
                shown_options.append(question.options)
                shown_probabilities.append(probabilities)
            choice = Choice(
                probabilities,
                way="decision",
                normalised_over="the options, by the decision model",
                answered=float(not refused),
                fallbacks=int(refused),
            )
            choices_of_state.append(choice)
        chosen.append(choices_of_state)
    show_choices(lm, role, shown_options, shown_probabilities)
    count_fallbacks(lm, heard, patience, role=role)
    return chosen


def way_of_choosing(lm: LanguageModel, way: Way | Literal["auto"] = "auto", role: str = "prior") -> Way:
    """Return the way of choosing to use with this model, and note it for whoever watches.

    Raises:
        UsageError: if there is no such way, or the model does not have it; the message names those it has.
    """
    return way_for(lm, way, CHOOSING, role=role, needed_by="Choosing", for_probabilities=True)


def _scored(
    lm: LanguageModel, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], by: Normalisation
) -> list[Choice]:
    per = "summed over tokens" if by == "sum" else f"a {by}"
    over = f"the options' log-probabilities, {per}"
    scores = lm.score(prompts, options)
    return [
        Choice(
            softmax(score.normalised(by)), way="likelihood", normalised_over=over, answered=1.0, fallbacks=0
        )
        for score in scores
    ]


def _labelled(
    lm: LanguageModel, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], rotations: int
) -> list[Choice]:
    """Label each prompt's options; if there are more than letters, choose in groups and then in a final.

    :func:`hunch.lm.decision.joined` gives the probabilities of all options.
    """
    groups = [grouped(len(listed), len(LABELS)) for listed in options]  # of each prompt

    # The groups of all prompts, asked together.
    flat = [(i, group) for i, of_prompt in enumerate(groups) for group in of_prompt]
    group_prompts = [prompts[i] for i, _ in flat]
    group_options = [[options[i][j] for j in group] for i, group in flat]
    heats: list[list[Choice]] = [[] for _ in prompts]
    for (i, _), heat in zip(flat, _rotated(lm, group_prompts, group_options, rotations), strict=True):
        heats[i].append(heat)

    # The favourites of each prompt's groups, where there are several.
    several = [i for i, of_prompt in enumerate(groups) if len(of_prompt) > 1]
    if not several:
        return [heat for [heat] in heats]
    favourites: list[list[str]] = []
    for i in several:
        best = [
            group[int(heat.probabilities.argmax())] for group, heat in zip(groups[i], heats[i], strict=True)
        ]
        favourites.append([options[i][j] for j in best])
    finals = dict(
        zip(several, _labelled(lm, [prompts[i] for i in several], favourites, rotations), strict=True)
    )
    return [_join(heats[i], finals[i]) if i in finals else heats[i][0] for i in range(len(prompts))]


def _join(heats: Sequence[Choice], final: Choice) -> Choice:
    rounds = [*heats, final]
    return Choice(
        joined([heat.probabilities for heat in heats], final.probabilities),
        way="label",
        normalised_over=f"the letters within {len(heats)} groups, and those of a final among the groups' "
        "favourites",
        answered=float(np.mean([choice.answered for choice in rounds])),
        fallbacks=sum(choice.fallbacks for choice in rounds),
    )


def _rotated(
    lm: LanguageModel, prompts: Sequence[Prompt], options: Sequence[Sequence[str]], rotations: int
) -> list[Choice]:
    """Return the mean over ``rotations`` orders of each list, at most as many as it has options."""
    orders: list[tuple[int, int]] = []  # a prompt, and by how many places its list is turned
    for i, listed in enumerate(options):
        shifts = {len(listed) * rotation // rotations for rotation in range(rotations)}
        orders += [(i, shift) for shift in sorted(shifts)]
    letters = [LABELS[: len(options[i])] for i, _ in orders]
    texts = [lettered(prompts[i], [*options[i][shift:], *options[i][:shift]]) for i, shift in orders]
    log_probs = _label(lm, texts, letters)  # of each order, (options,)
    by_prompt: list[list[FloatArray]] = [[] for _ in prompts]
    for (i, shift), of_letters in zip(orders, log_probs, strict=True):
        of_options = np.roll(np.exp(of_letters), shift)
        by_prompt[i].append(of_options)
    return [_labels(rows) for rows in by_prompt]


def _labels(rows: Sequence[FloatArray]) -> Choice:
    """Combine the probabilities of the letters in each order into a choice.

    Args:
        rows: For each order the probabilities, arranged by option, shape (options,).
    """
    # An order in which no letter had any probability says nothing, and counts as a fallback.
    masses = [float(row.sum()) for row in rows]  # of all letters
    distributions = [row / mass for row, mass in zip(rows, masses, strict=True) if mass > 0]
    n = len(rows[0])
    probabilities = np.mean(distributions, axis=0) if distributions else np.full(n, 1 / n)
    orders = f", mean over {len(rows)} orders of the list" if len(rows) > 1 else ""
    return Choice(
        probabilities,
        way="label",
        normalised_over=f"the letters that the model listed among its likeliest outputs{orders}",
        answered=float(np.mean(masses)),
        fallbacks=len(rows) - len(distributions),
    )


def _label(
    lm: LanguageModel, prompts: Sequence[Prompt], labels: Sequence[Sequence[str]]
) -> Sequence[FloatArray]:
    if "label" in lm.verbs:
        return lm.label(prompts, labels)
    return [score.logprobs for score in lm.score(prompts, labels)]


def lettered(prompt: Prompt, options: Sequence[str]) -> Prompt:
    """Return the prompt with its options numbered by letters, to be answered with a letter."""
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip(LABELS, options, strict=False))
    return extended(prompt, f"\n{listed}\nAnswer with one letter only.\nAnswer:")


def _voted(
    lm: LanguageModel,
    prompts: Sequence[Prompt],
    options: Sequence[Sequence[str]],
    samples: int,
    sampling: Sampling | None,
    patience: int | None,
    role: str,
    *,
    restricted: bool,
) -> list[Choice]:
    """Sample answers and count the votes; if ``restricted``, each answer is one of the options."""
    texts = [_listed(prompt, listed) for prompt, listed in zip(prompts, options, strict=True)]
    asking = Asking(lm, AskConfig(), role=role)
    if sampling is not None:
        asking.sampling = sampling
        asking.brief = None
    answers = asking.restricted(texts, options, samples) if restricted else asking.generate(texts, samples)
    way: Way = "structured" if restricted else "text"
    chosen: list[Choice] = []
    written_answers: list[str] = []
    named: list[str | None] = []  # the option that each answer names
    for of_prompt, listed in zip(answers, options, strict=True):
        votes = [read_option(answer, listed) for answer in of_prompt]
        chosen.append(_votes(votes, len(listed), way))
        written_answers += of_prompt
        named += [None if vote is None else listed[vote] for vote in votes]
    show(lm, role, written_answers, named)
    usable = [(answer, option is not None) for answer, option in zip(written_answers, named, strict=True)]
    count_fallbacks(lm, usable, patience, role=role)
    return chosen


def _listed(prompt: Prompt, options: Sequence[str]) -> Prompt:
    if listed_options(text_of(prompt)) == tuple(options):
        return prompt
    offered = "\n".join(f"- {option}" for option in options)
    return extended(prompt, f"\n{offered}\nAnswer with one of them, copied exactly.\nAnswer:")


def _votes(answers: Sequence[int | None], n: int, way: Way) -> Choice:
    """Count the votes of answers for n options; an answer that names none is None."""
    votes = [index for index in answers if index is not None]
    counts = np.bincount(votes, minlength=n)
    shares = counts / len(votes) if votes else np.full(n, 1 / n)
    return Choice(
        shares,
        way=way,
        normalised_over=f"the {len(votes)} of {len(answers)} sampled answers that named an option",
        answered=len(votes) / len(answers),
        fallbacks=len(answers) - len(votes),
    )


def project(answer: str, actions: Sequence[str]) -> tuple[int, bool]:
    """Map a free-form answer to the admissible action that occurs in it most often.

    Occurrences are counted as substrings, case-insensitively. This is the rule of the released code of Yan et
    al. (ICLR 2025): among equally frequent actions the last one wins. An answer that names no action is a tie
    among all actions, so it gives the last one, too.

    Returns:
        The index of the action, and whether the answer named any action.
    """
    counts = [answer.lower().count(action.lower()) for action in actions]
    return max(range(len(counts)), key=lambda i: (counts[i], i)), max(counts) > 0


def extended(prompt: Prompt, more: str) -> Prompt:
    """Return a prompt with text added at the end, or at the end of its last message."""
    if isinstance(prompt, str):
        return prompt + more
    *before, last = prompt
    return (*before, last._replace(content=last.content + more))
