"""Questions with given answers, as decision models take them, and how long lists of answers are asked.

A decision model does not write. It reads a state and typed questions, and returns the probability of each
answer: which option, yes or no, which level. That is an action prior, a judge, a preference or an affordance
in one request.

A server takes a limited number of options. More are asked in groups, and then the favourites of the groups
in a final::

    p(i)  proportional to  p_group(i) / p_group(favourite) * p_final(favourite)      i in the group

For any softmax of fixed scores this equals one question with all options: within a group the ratio to the
favourite is exp(score_i - score_favourite), and the final puts the favourites on one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from hunch.core import FloatArray, UsageError

Kind = Literal["choice", "yes_no", "levels"]
YES_NO: Final = ("yes", "no")
"""The answers to a question of the kind ``yes_no``, in the order of their probabilities."""


class DecisionQuestion(NamedTuple):
    """A question about a state, with all possible answers.

    Attributes:
        kind: ``choice`` of one option; ``yes_no``; or ``levels``, which are ordered from low to high.
        instructions: The question in words.
        options: The possible answers; for ``yes_no`` always :data:`YES_NO`.
        descriptions: What is known of each option, in the same order; None where nothing is. May be empty.
    """

    kind: Kind
    instructions: str
    options: tuple[str, ...] = YES_NO
    descriptions: tuple[str | None, ...] = ()

    def described(self) -> list[tuple[str, str | None]]:
        """Return each option with its description, or None."""
        descriptions = self.descriptions or (None,) * len(self.options)
        return list(zip(self.options, descriptions, strict=True))

    def only(self, indices: Sequence[int]) -> DecisionQuestion:
        """Return the same question with some of its options."""
        descriptions = tuple(self.descriptions[i] for i in indices) if self.descriptions else ()
        return self._replace(options=tuple(self.options[i] for i in indices), descriptions=descriptions)


def checked(question: DecisionQuestion) -> DecisionQuestion:
    """Return a question that a model can be asked.

    Raises:
        UsageError: if it has too few options, equal or blank ones, or another number of descriptions.
    """
    kind, instructions, options, descriptions = question
    if kind not in ("choice", "yes_no", "levels"):
        raise UsageError(f"A question is of the kind choice, yes_no or levels, not {kind!r}.")
    if kind == "yes_no" and tuple(options) != YES_NO:
        raise UsageError(f"A question of the kind yes_no has the options {YES_NO}, not {options}.")
    if not options or (kind == "levels" and len(options) < 2):
        raise UsageError(f"A question of the kind {kind} needs more options than {len(options)}.")
    if not all(isinstance(option, str) and option.strip() for option in options):
        raise UsageError(f"A blank option cannot be chosen: {options}.")
    if len(set(options)) < len(options):
        twice = next(option for option in options if options.count(option) > 1)
        raise UsageError(f"The option {twice!r} is listed twice, so its probability is not known.")
    if descriptions and len(descriptions) != len(options):
        raise UsageError(f"{len(options)} options have {len(descriptions)} descriptions.")
    return DecisionQuestion(kind, str(instructions), tuple(options), tuple(descriptions))


def checked_lists(
    states: Sequence[object], questions: Sequence[Sequence[DecisionQuestion]]
) -> list[tuple[DecisionQuestion, ...]]:
    """Return the questions on each state, checked.

    Raises:
        UsageError: if there is not one list of questions for each state, or a question cannot be asked.
    """
    if any(isinstance(of_state, DecisionQuestion) for of_state in questions) or len(states) != len(questions):
        raise UsageError(
            f"Each state needs a list of questions: decide([state], [[question]]). The numbers of states and "
            f"lists are {len(states)} and {sum(not isinstance(q, DecisionQuestion) for q in questions)}."
        )
    return [tuple(checked(question) for question in of_state) for of_state in questions]


def grouped(n: int, most: int) -> list[list[int]]:
    """Split the numbers below n into as few groups of neighbours as ``most`` allows, of similar size."""
    parts = np.array_split(np.arange(n), -(-n // most))
    return [[int(i) for i in part] for part in parts]


def joined(groups: Sequence[FloatArray], final: FloatArray) -> FloatArray:
    """Return the probabilities of all options from those within groups and of the groups' favourites.

    Args:
        groups: For each group the probabilities of its options, shape (options of the group,). The favourite
            is the first option with the largest one.
        final: The probability of each group's favourite among the favourites, shape (number of groups,).

    Returns:
        The probabilities in the order of the groups, shape (all options,), summing to one.
    """
    weights = [share * group / group.max() for group, share in zip(groups, final, strict=True)]
    unnormalised = np.concatenate(weights)
    probabilities: FloatArray = unnormalised / unnormalised.sum()
    return probabilities
