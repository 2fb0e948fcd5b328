"""Scores skills with a language model: an encoder compares with examples of plans, others read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hunch.core import FloatArray, State, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.hearing import note_way, show_choices
from hunch.numbers import softmax
from hunch.roles.planner.skills import FAILED, WORKED
from hunch.roles.prior.base import ActionPrior
from hunch.roles.prior.kinds import PriorConfig, PriorWay, build_prior, choose_way, require_no_prompt
from hunch.roles.prior.similarity import SimilarityPrior, cosines

SHARPNESS: Final = 0.05
"""Default temperature of the softmax over cosines of instructions (our choice)."""
STRAY: Final = 0.1
"""Factor by which a probability falls per step between a skill and the one that is due, and per skill that
the plan does not contain (our choice)."""
FEW_SHOT: Final = "carry out an instruction by one skill after the other, as in these examples."
"""The words before the examples of plans. Change them under a new name of the setting only."""


class ExamplePrior(SimilarityPrior):
    """p(skill | task, transcript) by sentence embeddings and examples of plans.

    An encoder cannot predict the next skill, but it can find similar instructions. With w(e) the softmax
    over the cosines of the task and each example's instruction::

        p(skill) = sum over e of  w(e) STRAY^(skills done that e lacks)  p(skill | e, skills done)

    The plan of an example is aligned with the skills that ran and were not reported as failed. p(skill | e)
    is largest for the step that is due, and falls by STRAY with each step away from it. Without examples, and
    where none has a skill that can be chosen, this is the similarity prior. What an example's steps report
    below their skill is not compared.

    Args:
        lm: A model that embeds, or a :class:`~hunch.roles.encoder.features.TextTable` of its embeddings.
        temperature: Temperature of the softmax over the cosines of instructions.
    """

    def __init__(self, lm: LanguageModel, *, temperature: float = SHARPNESS) -> None:
        super().__init__(lm, role="planner")
        self.sharpness = temperature

    def _compute(self, states: list[State]) -> list[FloatArray]:
        helped = [state for state in states if _has_use(state)]
        unhelped = [state for state in states if not _has_use(state)]
        by_examples = iter(self._by_examples(helped))
        by_similarity = iter(super()._compute(unhelped) if unhelped else ())
        return [next(by_examples if _has_use(state) else by_similarity) for state in states]

    def _by_examples(self, states: Sequence[State]) -> list[FloatArray]:
        """Return p(skill) of states whose examples have a skill that can be chosen."""
        texts: list[str] = []
        for state in states:
            texts += [state.task, *(instruction for instruction, _ in state.raw)]
        self.table.add(texts)  # one call of the model for all
        probabilities = [self._continued(state) for state in states]
        show_choices(self.table.lm, self.role, [state.options for state in states], probabilities)
        return probabilities

    def _continued(self, state: State) -> FloatArray:
        """Return p(skill) by the examples, shape (skills,); the formula is that of the class."""
        task = self.table.encode([state.task])
        instructions = self.table.encode([instruction for instruction, _ in state.raw])
        likeness = cosines(instructions, task)[:, 0]  # (examples,)
        weights = softmax(likeness / self.sharpness)  # w(e)
        row = {name: i for i, name in enumerate(state.options)}
        done = _done(state)
        p = [1e-6] * len(row)
        for weight, (_, steps) in zip(weights.tolist(), state.raw, strict=True):
            plan = _skills(steps)
            due, lacking = _followed(plan, done)
            for step, name in enumerate(plan):
                if name in row:
                    p[row[name]] += weight * STRAY ** (abs(step - due) + lacking)
        return np.array(p) / sum(p)


def _skills(steps: Sequence[str]) -> list[str]:
    """Return the skills of an example's steps, without what is reported below them."""
    return [step.partition("\n")[0] for step in steps]


def _has_use(state: State) -> bool:
    """Return whether an example of a planner's state has a skill that can be chosen."""
    names = set(state.options)
    return any(not names.isdisjoint(_skills(steps)) for _, steps in state.raw or ())


def _done(state: State) -> list[str]:
    """Return the skills that were done and not reported as failed."""
    skills = [skill for _, skill in state.history]
    feedback = [*(text for text, _ in state.history[1:]), state.observation]  # after each skill
    pairs = zip(skills, feedback, strict=False)
    return [skill for skill, text in pairs if FAILED not in text.splitlines()]


def _followed(plan: Sequence[str], done: Sequence[str]) -> tuple[int, int]:
    """Return which step of a plan is due after the skills done, and how many of these it lacks."""
    due = 0
    lacking = 0
    for skill in done:
        if due < len(plan) - 1 and skill == plan[due]:
            due += 1
        elif skill not in plan:
            lacking += 1
    return due, lacking


def shown_to(
    prior: ActionPrior,
    states: Sequence[State],
    *,
    examples: int,
    blank: bool,
    uninstructed: bool = False,
    reported: bool = False,
) -> list[State]:
    """Return planner's states as a prior is to read them.

    Args:
        prior: Scores the skills.
        states: The planner's states.
        examples: Examples of plans before the task. For a prior that compares with examples: how many it has,
            the same ones; 0 for all.
        blank: Leave out the task and the examples: the blank prompt.
        uninstructed: Leave out the task, and keep the examples.
        reported: Examples tell after each skill whether it worked, see :func:`with_examples`. A prior that
            compares with examples ignores it.
    """
    if uninstructed:
        states = [replace(state, task="") for state in states]
    if blank:
        return [replace(state, task="", raw=()) for state in states]
    if isinstance(prior, ExamplePrior):
        if not examples:
            return list(states)
        return [replace(state, raw=tuple(spread(state.raw or (), examples))) for state in states]
    return [with_examples(state, examples, reported=reported) for state in states]


def with_examples(state: State, n: int, *, reported: bool = False) -> State:
    """Return a planner's state whose task begins with examples of plans, in the form of the transcript.

    The examples are those of the environment (``state.raw``), and the same for all instructions, so that a
    server reads them once. A step of theirs may have lines below its skill: what was reported then.

    Args:
        state: The planner's state.
        n: Number of examples; 0, or a state without any, changes nothing.
        reported: Tell after each skill of an example whether it worked. In every second example the skill in
            the middle fails at first, and is done again.
    """
    if not n or not state.raw:
        return state
    plans = []
    for number, (instruction, plan) in enumerate(spread(state.raw, n)):
        skills, last = plan[:-1], plan[-1:]
        lines = [f"Instruction: {instruction}"]
        for step, skill in enumerate(skills):
            if reported and number % 2 == 1 and step == len(skills) // 2:
                lines += [f"> {skill}", FAILED]
            lines.append(f"> {skill}")
            if reported:
                lines.append(WORKED)
        lines += [f"> {skill}" for skill in last]  # to stop, usually: the episode has no report after it
        plans.append("\n".join(lines))
    task = "\n\n".join([FEW_SHOT, *plans, f"Instruction: {state.task}"])
    return replace(state, task=task)


def spread(examples: Sequence[tuple[str, Sequence[str]]], n: int) -> list[tuple[str, Sequence[str]]]:
    """Return n examples with plans of as many lengths as there are, the short ones first.

    Of each length in turn, one that was not taken is taken, from the middle of those of that length outwards.
    """
    by_length: dict[int, list[tuple[str, Sequence[str]]]] = {}
    for example in examples:
        by_length.setdefault(len(example[1]), []).append(example)
    taken: list[tuple[str, Sequence[str]]] = []
    while len(taken) < n and any(by_length.values()):
        for length in sorted(by_length):
            alike = by_length[length]
            if alike and len(taken) < n:
                taken.append(alike.pop(len(alike) // 2))
    return sorted(taken, key=lambda example: len(example[1]))


def build_scorer(config: PriorConfig, lm: LanguageModel) -> ActionPrior:
    """Make a planner that scores the names of skills with a language model.

    With ``auto``, a decision model decides. A model that continues text scores each skill by its likelihood,
    as in SayCan. A chat model gives probabilities by letters if it can: one request for up to twenty skills,
    where likelihoods of a served model are one for each. A model that only embeds compares with examples, and
    others are asked in their best way.

    Args:
        config: How the model scores skills.
        lm: The model.

    Raises:
        UsageError: as for :func:`hunch.roles.prior.kinds.build_prior`.
    """
    if config.way == "auto" and lm.name != "uniform":
        if "decide" in lm.verbs:
            way: PriorWay = "decision"
        elif "score" in lm.verbs and not getattr(lm, "answer_tokens", 0):
            way = "likelihood"
        elif "label" in lm.verbs:
            way = "label"
        else:
            way = choose_way(config, lm, "planner")
        note_way(lm, "planner", way, automatic=True)
        if way == "similarity":
            require_no_prompt(config)
            if config.recent is not None:
                raise UsageError("A planner by similarity compares all past steps: leave prior.recent out.")
            prior = ExamplePrior(lm, temperature=config.temperature or SHARPNESS)
            prior.blank = config.blank
            return prior
        config = replace(config, way=way)
    return build_prior(config, lm, role="planner")
