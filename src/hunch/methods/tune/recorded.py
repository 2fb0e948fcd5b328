"""Recorded texts to learn from, and the optimiser of those methods that only learn from such texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from hunch.core import State, World
from hunch.envs.prompts import state_of
from hunch.lm.speech import text_of
from hunch.methods.tune.text import TextAgent, TextConfig
from hunch.ranges import MEMORY, PositiveFloat, PositiveInt
from hunch.rl.policy import Decision, Evaluated, Passes, require_finite
from hunch.roles.policy.settings import Start


class Example(NamedTuple):
    """A recorded text with its reward, and the number of its group, whose texts answer the same prompt.

    It is not finished if it was cut at its limit of tokens: then it says nothing about where texts end.
    """

    state: State
    text: str
    reward: float = float("nan")
    group: int | None = None
    finished: bool = True


def examples(world: World) -> list[Example]:
    """Return the recorded texts, or else the environment's demonstrations, whose rewards are unknown."""
    if world.data:
        return [
            Example(t.state, t.action, t.reward, episode.group, step not in episode.unfinished)
            for episode in world.data
            for step, t in enumerate(episode)
        ]
    return [Example(state_of(prompt, world.task), text) for prompt, texts in world.examples for text in texts]


def without_end(decision: Decision) -> Decision:
    """Return a text that was cut: it is learnt without an end token, unless nothing else would be left."""
    return decision._replace(tokens=decision.tokens[:-1] or decision.tokens, finished=False)


@dataclass(frozen=True, kw_only=True)
class RecordedConfig(TextConfig):
    """Settings of supervised updates on recorded texts."""

    start: Start = "weights"
    """Initial weights: those of the model, the same with shuffled vocabulary, or random. The last two are
    controls."""
    batch_size: PositiveInt = 64
    """Texts, or pairs of texts, per update."""
    micro: PositiveInt = field(default=64, metadata=MEMORY)
    """Texts, or pairs of texts, per forward and backward pass. Gradients are accumulated over a batch, so
    fewer need less memory and change nothing else."""
    learning_rate: PositiveFloat = 3e-3
    """Adam learning rate, which falls linearly to 0 over the run, for a model under a million weights (our
    choice)."""


class RecordedAgent(TextAgent):
    """An agent with tokenised examples to learn from, and Adam with a learning rate that falls to 0.

    A subclass makes its update in ``learn``, once per step of the loop: it draws its examples, lets
    ``passes`` accumulate the gradients of its loss, and calls :meth:`step`.
    """

    config_class: ClassVar[type[Any]] = RecordedConfig
    saved: ClassVar[tuple[str, ...]] = ("words", "policy", "learner", "updates", "rng")

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and keep recorded texts, or the environment's demonstrations.

        Raises:
            UsageError: if there are no texts, or one exceeds the model's context.
        """
        from hunch.lm.training import Learner  # loads torch

        super().begin(world, seed)
        self.updates = 0
        self.all_updates = world.steps / max(1, world.streams)  # one update per step of all streams
        self.learner = Learner.adam(self.lm.parameters())
        self.passes = Passes(self.config.micro)

        # Without streams and data the agent is loaded to act, and its texts may be elsewhere.
        learns = world.streams or world.data
        self.examples: Sequence[Example] = self.select(examples(world)) if learns else []
        prompts = [self.policy.prompt(example.state) for example in self.examples]
        texts = [example.text for example in self.examples]
        self.lm.take([*map(text_of, prompts), *texts])  # a vocabulary that grows adds their words
        written = self.lm.as_written(prompts, texts)
        self.decisions = [
            Decision(*text) if example.finished else without_end(Decision(*text))
            for example, text in zip(self.examples, written, strict=True)
        ]
        self.lm.require_room(prompts, [decision.tokens for decision in self.decisions])

    def select(self, known: list[Example]) -> list[Example]:
        """Return the texts to learn from; here all."""
        return known

    def draw(self) -> list[int]:
        """Draw the indices of the examples of one update, with replacement."""
        return [int(i) for i in self.rng.integers(len(self.examples), size=self.config.batch_size)]

    def tokens(self, rows: Sequence[int]) -> int:
        """Return the number of tokens of the texts of examples, end tokens included."""
        return sum(len(self.decisions[i].tokens) for i in rows)

    def evaluate(self, rows: Sequence[int]) -> Evaluated:
        """Return the log-probability of each token of examples, shape (n, tokens), with gradients."""
        states = [self.examples[i].state for i in rows]
        decisions = [self.decisions[i] for i in rows]
        return self.policy.evaluate(states, decisions, part="policy")

    def step(self, loss: float) -> None:
        """Make the gradient step of an update, whose learning rate falls linearly to 0 over the run.

        Args:
            loss: The loss whose gradients are accumulated.

        Raises:
            HunchError: if the loss is not finite; the weights stay as they were.
        """
        require_finite(loss)
        remaining = 1 - self.updates / max(1.0, self.all_updates, self.updates + 1)
        self.updates += 1
        self.learner.step(self.config.learning_rate * remaining)
