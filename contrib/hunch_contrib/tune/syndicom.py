"""SYNDICOM: a model learns to criticise an answer, and to repair the answer by this feedback.

Algorithm (Richardson et al., "SYNDICOM: Improving Conversational Commonsense with Error-Injection and Natural
Language Feedback", SIGDIAL 2023)::

    demonstrations  <- a request with an invalid answer, the feedback on it, and the repaired answer
    ascend on  log p(feedback | request, answer) + log p(repair | request, answer, feedback)
    to answer:  feedback ~ p(. | request, answer);   repair ~ p(. | request, answer, feedback)

Feedback and repair are one model with two prompts; in the paper they are two. Controls: ``feedback=none``
repairs without feedback, ``feedback=shuffled`` uses the feedback on other answers. Demonstrations
consist of two texts each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import State, UsageError, World
from hunch.methods.tune.sft import METHOD as SFT
from hunch.methods.tune.text import Example, RecordedAgent, RecordedConfig
from hunch.rl.policy import Decision


@dataclass(frozen=True, kw_only=True)
class SYNDICOMConfig(RecordedConfig):
    """Settings of SYNDICOM."""

    feedback: Literal["predicted", "none", "shuffled"] = "predicted"
    """Feedback that the repair reads: predicted, or a control: none, or that on another answer (shuffled)."""


class SYNDICOM(RecordedAgent):
    """The agent of SYNDICOM; arguments as for :class:`~hunch.methods.tune.sft.SFT`."""

    config_class: ClassVar[type[Any]] = SYNDICOMConfig

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and keep the demonstrations as two examples each.

        Raises:
            UsageError: if a demonstration has no feedback.
        """
        how, shown = self.config.feedback, world.examples
        if any(len(texts) != 2 for _, texts in shown):
            raise UsageError("syndicom learns from demonstrations with two texts, feedback and repair.")
        told = [texts[0] for _, texts in shown]
        if how == "shuffled":
            told = [told[i] for i in np.random.default_rng([seed, 5]).permutation(len(told))]
        both = list[Example]()
        for (request, (_, repair)), note in zip(shown, told, strict=True):
            own = State(request, world.task)
            both += [Example(with_feedback(own, None), note)] * (how != "none")
            both.append(Example(with_feedback(own, "" if how == "none" else note), repair))
        self.pairs = both
        super().begin(replace(world, data=(), examples=()), seed)

    def chosen(self, known: list[Example]) -> list[Example]:
        """Return the examples of both prompts."""
        return self.pairs

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write feedback on each answer, and then the repair."""
        notes = [""] * len(states)
        if self.config.feedback != "none":
            notes = [own.text.strip() for own in super().write([with_feedback(s, None) for s in states], rng)]
        if self.config.feedback == "shuffled":
            notes = [notes[i] for i in rng.permutation(len(notes))]
        return super().write([with_feedback(s, own) for s, own in zip(states, notes, strict=True)], rng)

    def judge(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return no metrics: a divergence from the initial model says little here."""
        return {}

    def loss(self) -> Any:
        """Return the negative log-likelihood of a batch."""
        from hunch.rl.preference_losses import likelihood  # loads torch

        return likelihood(self.judged(self.draw()))


def with_feedback(state: State, note: str | None) -> State:
    """Return a state that asks for feedback (note None), or for a repair by this feedback."""
    more = "feedback :" if note is None else f"feedback : {note} repair :" if note else "repair :"
    return replace(state, observation=f"{state.observation} {more}")


METHOD = replace(
    SFT,
    name="syndicom",
    agent_class=SYNDICOM,
    summary="a model learns to criticise an answer, and to repair the answer by this feedback",
    paper="Richardson et al., SYNDICOM: Improving Conversational Commonsense with Error-Injection and "
    "Natural Language Feedback, SIGDIAL 2023",
    environments="free text that shows an answer to repair, with demonstrations of two texts",
    control="no feedback, and that of other answers",
)
