"""SYNDICOM: a model learns to criticise an answer, and to repair the answer by this feedback.

Algorithm (Richardson et al., "SYNDICOM: Improving Conversational Commonsense with Error-Injection and Natural
Language Feedback", SIGDIAL 2023)::

    demonstrations  <- a request with an invalid answer, the feedback on it, and the repaired answer
    examples        <- (request, answer -> feedback), (request, answer, feedback -> repair)
    repeat: the update of supervised fine-tuning on these examples (:mod:`hunch.methods.tune.sft`)
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
from hunch.methods.tune.recorded import Example, RecordedConfig
from hunch.methods.tune.sft import METHOD as SFT_METHOD
from hunch.methods.tune.sft import SFT
from hunch.rl.policy import Decision


@dataclass(frozen=True, kw_only=True)
class SYNDICOMConfig(RecordedConfig):
    """Settings of SYNDICOM."""

    feedback: Literal["predicted", "none", "shuffled"] = "predicted"
    """Feedback that the repair reads: predicted, or a control: none, or that on another answer (shuffled)."""


class SYNDICOM(SFT):
    """The agent of SYNDICOM; arguments as for :class:`~hunch.methods.tune.sft.SFT`, whose update it makes."""

    config_class: ClassVar[type[Any]] = SYNDICOMConfig

    @classmethod
    def check(cls, config: Any, specs: Any) -> None:
        """Check before loading that a model is named."""
        super(SFT, cls).check(config, specs)

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and keep the demonstrations as two examples each.

        Raises:
            UsageError: if a demonstration has no feedback.
        """
        if any(len(texts) != 2 for _, texts in world.examples):
            raise UsageError("syndicom learns from demonstrations with two texts, feedback and repair.")
        notes = [feedback for _, (feedback, _) in world.examples]
        if self.config.feedback == "shuffled":
            order = np.random.default_rng([seed, 5]).permutation(len(notes))
            notes = [notes[i] for i in order]
        self.both: list[Example] = []
        for (request, (_, repair)), note in zip(world.examples, notes, strict=True):
            state = State(request, world.task)
            if self.config.feedback == "none":
                self.both.append(Example(with_feedback(state, ""), repair))
            else:
                # (request, answer -> feedback), (request, answer, feedback -> repair)
                self.both.append(Example(with_feedback(state, None), note))
                self.both.append(Example(with_feedback(state, note), repair))
        super().begin(replace(world, data=(), examples=()), seed)

    def chosen(self, known: list[Example]) -> list[Example]:
        """Return the examples of both prompts."""
        return self.both

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write feedback on each answer, and then the repair."""
        notes = [""] * len(states)
        if self.config.feedback != "none":
            asked = [with_feedback(state, None) for state in states]
            notes = [decision.text.strip() for decision in super().write(asked, rng)]
        if self.config.feedback == "shuffled":
            notes = [notes[i] for i in rng.permutation(len(notes))]
        repairs = [with_feedback(state, note) for state, note in zip(states, notes, strict=True)]
        return super().write(repairs, rng)


def with_feedback(state: State, note: str | None) -> State:
    """Return a state that asks for feedback (note None), or for a repair by this feedback."""
    if note is None:
        request = "feedback :"
    elif note:
        request = f"feedback : {note} repair :"
    else:
        request = "repair :"
    return replace(state, observation=f"{state.observation} {request}")


METHOD = replace(
    SFT_METHOD,
    name="syndicom",
    agent_class=SYNDICOM,
    summary="a model learns to criticise an answer, and to repair the answer by this feedback",
    paper="Richardson et al., SYNDICOM: Improving Conversational Commonsense with Error-Injection and "
    "Natural Language Feedback, SIGDIAL 2023",
    environments="free text that shows an answer to repair, with demonstrations of two texts",
    control="no feedback, and that of other answers",
)
