"""SYNDICOM: a model learns to criticise an answer, and to repair the answer by this feedback.

Algorithm (Richardson et al., "SYNDICOM: Improving Conversational Commonsense with Error-Injection and Natural
Language Feedback", SIGDIAL 2023)::

    demonstrations  <- a request with an invalid answer, the feedback on it, and the repaired answer
    1. learn  request, answer -> feedback          in the first half of the updates
    2. predicted  <- argmax p(feedback | request, answer)  for each demonstration
    3. learn  request, answer, predicted -> repair, and 1. as before         in the second half
    to answer:  feedback ~ p(. | request, answer);   repair ~ p(. | request, answer, feedback)

An update is that of supervised fine-tuning (:mod:`hunch.methods.tune.sft`). So repair learns with the errors
that the feedback has when it answers. Feedback and repair are one model with two prompts; in the paper
they are two.

Controls learn the same feedback in the same updates, and repair from as many texts; only what repair reads
differs: nothing (``feedback=none``), or the feedback predicted for another demonstration
(``feedback=shuffled``). The upper bound is ``feedback=none`` in an environment that states the right
feedback. Demonstrations consist of two texts each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import State, UsageError, World
from hunch.lm.speech import text_of
from hunch.methods.tune.recorded import Example, RecordedConfig
from hunch.methods.tune.sft import METHOD as SFT_METHOD
from hunch.methods.tune.sft import SFT
from hunch.rl.policy import Decision


@dataclass(frozen=True, kw_only=True)
class SYNDICOMConfig(RecordedConfig):
    """Settings of SYNDICOM."""

    feedback: Literal["predicted", "none", "shuffled"] = "predicted"
    """Feedback that repair reads: predicted, or a control: none, or what was predicted for another
    demonstration (shuffled)."""


class SYNDICOM(SFT):
    """The agent of SYNDICOM; arguments as for :class:`~hunch.methods.tune.sft.SFT`, whose update it makes."""

    config_class: ClassVar[type[Any]] = SYNDICOMConfig
    saved: ClassVar[tuple[str, ...]] = (*SFT.saved, "predicted")

    @classmethod
    def check(cls, config: Any, specs: Any) -> None:
        """Check before loading that the model can be trained; there are no settings of SFT to check."""
        super(SFT, cls).check(config, specs)

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and keep the demonstrations as two examples each.

        Raises:
            UsageError: if a demonstration has no feedback, or its prompt is a conversation.
        """
        if any(len(texts) != 2 for _, texts in world.examples):
            raise UsageError("syndicom learns from demonstrations with two texts, feedback and repair.")
        requests = [request for request, _ in world.examples if isinstance(request, str)]
        if len(requests) < len(world.examples):
            raise UsageError(
                "syndicom asks for feedback at the end of a text, and a prompt is a conversation."
            )
        self.requests = [State(request, world.task) for request in requests]
        self.repairs = [repair for _, (_, repair) in world.examples]
        self.right = [feedback for _, (feedback, _) in world.examples]
        # For shuffled feedback, the demonstration after each one in a random circle: never itself.
        circle = np.random.default_rng([seed, 5]).permutation(len(self.right))
        self.others = np.zeros_like(circle)
        self.others[circle] = np.roll(circle, 1)
        self.both = self.examples_of(self.right)
        super().begin(replace(world, data=(), examples=()), seed)
        self.predicted: list[str] = []  # feedback by which repair learns; none before the second half
        # 1. Only feedback is learnt in the first half; its examples come first.
        self.alone = len(self.requests)

    def examples_of(self, notes: Sequence[str]) -> list[Example]:
        """Return the examples of feedback, and then those of repair by the notes."""
        feedback = [
            Example(with_feedback(state, None), right)
            for state, right in zip(self.requests, self.right, strict=True)
        ]
        repair = [
            Example(with_feedback(state, note), text)
            for state, note, text in zip(self.requests, notes, self.repairs, strict=True)
        ]
        return feedback + repair

    def select(self, known: list[Example]) -> list[Example]:
        """Return the examples of both prompts."""
        return self.both

    def draw(self) -> list[int]:
        """Draw the examples of one update: of feedback alone in the first half."""
        most = self.alone or len(self.examples)
        return [int(i) for i in self.rng.integers(most, size=self.config.batch_size)]

    def learn(self) -> dict[str, float]:
        """Make one update; half-way through the run, first predict the feedback by which repair learns."""
        if self.alone and self.updates >= self.all_updates / 2:
            self.learn_from(self.read_by_repair())
        return super().learn()

    def read_by_repair(self) -> list[str]:
        """Return the feedback by which repair learns, for each demonstration."""
        if self.config.feedback == "none":
            return [""] * len(self.requests)
        predicted = self.foretold()
        return [predicted[i] for i in self.others] if self.config.feedback == "shuffled" else predicted

    def foretold(self) -> list[str]:
        """Return the likeliest feedback on each demonstration."""
        asked = [with_feedback(state, None) for state in self.requests]
        not_drawn_from = np.random.default_rng(0)  # at temperature 0
        written = self.write_at(asked, not_drawn_from, [0.0] * len(asked))
        return [decision.text.strip() for decision in written]

    def learn_from(self, predicted: Sequence[str]) -> None:
        """Let repair learn by this feedback from now on."""
        self.predicted = list(predicted)
        self.alone = 0
        self.examples = self.both = self.examples_of(self.predicted)
        prompts = [self.policy.prompt(example.state) for example in self.examples]
        texts = [example.text for example in self.examples]
        self.lm.take([*map(text_of, prompts), *texts])
        self.decisions = [Decision(*written) for written in self.lm.as_written(prompts, texts)]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the weights, and the predictions by which repair learns."""
        super().load_state_dict(state)
        if self.predicted and self.requests:
            self.learn_from(self.predicted)

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write feedback on each answer, and then the repair."""
        if self.config.feedback == "none":
            notes = [""] * len(states)
        elif self.config.feedback == "shuffled" and self.predicted:
            notes = [self.predicted[i] for i in rng.integers(len(self.predicted), size=len(states))]
        else:
            asked = [with_feedback(state, None) for state in states]
            notes = [decision.text.strip() for decision in super().write(asked, rng)]
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
    control="no feedback, and that on other answers",
)
