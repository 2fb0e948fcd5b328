"""Base classes of agents whose actions are texts of a language model that they train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from hunch.core import Agent, EvidenceLevel, HunchError, Player, State, Transition, World, weakest
from hunch.lm import trainable
from hunch.lm.speech import text_of
from hunch.lm.tuning import require_trainable
from hunch.methods.policy.glam import WALKS
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt
from hunch.rl.policy import Decision, Evaluated, cut, fitting
from hunch.roles.policy.settings import TextPolicyConfig

if TYPE_CHECKING:
    from torch import Tensor

    from hunch.lm.training import Trainable
    from hunch.roles.policy.text import TextPolicy

Judge: TypeAlias = Callable[[Sequence[State], Sequence[Decision]], Mapping[str, float]]
"""Function that returns metrics of written texts, by name."""


@dataclass(frozen=True, kw_only=True)
class TextConfig(TextPolicyConfig):
    """Settings of a language model that writes actions and is trained."""

    lm: str = ""
    """Causal model to train: hf:<name, folder or run>, with ?train=lora for adapters, or scratch for a new
    small one. Default: the small pocket?corpus=walks of this project."""
    micro: PositiveInt = 64
    """Texts per forward and backward pass; gradients are accumulated over a batch."""
    temperature: NonNegativeFloat = 1.0
    """Sampling temperature in evaluations, and in training if the agent does not learn from its own texts."""


class Example(NamedTuple):
    """A recorded text with its reward, and the number of its group, whose texts answer the same prompt."""

    state: State
    text: str
    reward: float = float("nan")
    group: int | None = None


def examples(world: World) -> list[Example]:
    """Return the recorded texts, or else the environment's demonstrations, whose rewards are unknown."""
    if world.data:
        return [Example(t.state, t.action, t.reward, own.group) for own in world.data for t in own]
    return [Example(State(asked, world.task), text) for asked, texts in world.examples for text in texts]


class TextAgent(Agent):
    """An agent whose actions are texts of a language model that it trains.

    Args:
        config: All settings; ``options`` change single ones.
        lm: The model to train. Default: that of the config, loaded.

    Raises:
        UsageError: on an unknown option, a setting out of range, or an unsuitable model.
        HunchError: if the model cannot be loaded.
    """

    config_class: ClassVar[type[Any]] = TextConfig
    default: ClassVar[str] = WALKS
    reference: Any = "start"

    def __init__(self, config: Any = None, *, lm: Trainable | None = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)
        self.check(self.config, {})
        self.lm: Trainable = lm or trainable(self.config.lm or self.default)
        self.models: Mapping[str, Any] = {"lm": self.lm}

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that the model has weights to train."""
        require_trainable(specs.get("lm", "") or config.lm or cls.default)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of the models."""
        return weakest(model.evidence for model in self.models.values())

    @property
    def words(self) -> list[str]:
        """The vocabulary of the model, if it grows."""
        return list(self.lm.words)

    @words.setter
    def words(self, known: Sequence[str]) -> None:
        self.lm.take(known)

    def make_policy(self, seed: int) -> TextPolicy:
        """Return the policy with the model's initial weights."""
        from hunch.roles.policy.text import TextPolicy  # loads torch

        listed = getattr(self.config, "listed", True)
        return TextPolicy(self.lm, self.config, seed, reference=self.reference, listed=listed)

    def begin(self, world: World, seed: int) -> None:
        """Restore the weights that the model had before training."""
        self.rng = np.random.default_rng(seed)
        self.policy: TextPolicy = self.make_policy(seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Write a text in each state."""
        return [own.text for own in self.write(states, self.rng)]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing; subclasses that learn from their texts override this method."""

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write a text in each state."""
        return self.drawn(states, rng, [self.config.temperature] * len(states))

    def drawn(
        self, states: Sequence[State], rng: np.random.Generator, heats: Sequence[float]
    ) -> list[Decision]:
        """Draw each text at its temperature with a separate generator, so that the batch does not matter."""
        rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(states))]
        found, micro = dict[int, Decision](), self.config.micro
        for heat in dict.fromkeys(heats):
            for few in cut([i for i, own in enumerate(heats) if own == heat], micro):
                with fitting(micro):
                    made = self.policy.sample([states[i] for i in few], [rngs[i] for i in few], heat)
                found |= dict(zip(few, made, strict=True))
        return [found[i] for i in range(len(states))]

    def player(self, seed: int) -> Player:
        """Return a player that writes with the same weights, and reports metrics of its texts."""
        return Writer(self.write, self.judge, seed)

    def judge(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the KL divergence of texts from the reference, as a metric."""
        return divergence(self.policy, states, decisions, self.config.micro)

    def export(self, folder: Path) -> None:
        """Write the model to a folder that transformers and ``hf:`` can load."""
        self.lm.save(folder)


@dataclass(frozen=True, kw_only=True)
class RecordedConfig(TextConfig):
    """Settings of supervised updates on recorded texts."""

    batch_size: PositiveInt = 64
    """Texts, or pairs of texts, per update."""
    learning_rate: PositiveFloat = 3e-3
    """Adam learning rate, which falls linearly to 0 over the run, for a model under a million weights (our
    choice)."""


class RecordedAgent(TextAgent):
    """An agent that learns from recorded texts, with one update per step of the loop."""

    config_class: ClassVar[type[Any]] = RecordedConfig
    saved = ("words", "policy", "learner", "updates", "rng")

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and keep recorded texts, or the environment's demonstrations.

        Raises:
            UsageError: if there are no texts, or one exceeds the model's context.
        """
        from hunch.lm.training import Learner  # loads torch

        super().begin(world, seed)
        self.updates, self.of = 0, world.steps / max(1, world.streams)
        self.learner = Learner.adam(self.lm.parameters())
        learns = world.streams or world.data  # else it is loaded to act, and the texts may be elsewhere
        self.know(self.chosen(examples(world)) if learns else [])

    def chosen(self, known: list[Example]) -> list[Example]:
        """Return the texts to learn from; here all."""
        return known

    def know(self, known: Sequence[Example]) -> None:
        """Tokenise the examples; a model with a growing vocabulary adds their words."""
        self.examples = known
        prompts = [self.policy.prompt(own.state) for own in known]
        self.lm.take([*map(text_of, prompts), *(own.text for own in known)])
        self.decisions = [Decision(*own) for own in self.lm.spelled(prompts, [own.text for own in known])]
        self.lm.require_room(prompts, [own.tokens for own in self.decisions])

    def draw(self) -> list[int]:
        """Draw the indices of the examples of one update."""
        return [int(i) for i in self.rng.integers(len(self.examples), size=self.config.batch_size)]

    def judged(self, rows: Sequence[int]) -> Evaluated:
        """Evaluate examples by the model: log-probabilities and what else the loss needs."""
        states, decisions = [self.examples[i].state for i in rows], [self.decisions[i] for i in rows]
        return self.policy.evaluate(states, decisions, part="policy")

    def loss(self) -> Tensor:
        """Return the loss of a random batch, with gradients."""
        raise NotImplementedError

    def learn(self) -> dict[str, float]:
        """Make one update, and return its metrics.

        Raises:
            HunchError: if the loss is not finite.
        """
        if not self.examples:
            return {}
        left = 1 - self.updates / max(1.0, self.of, self.updates + 1)
        self.updates += 1
        with fitting(self.config.batch_size):
            loss = self.learner.update(self.loss(), self.config.learning_rate * left)
        if not np.isfinite(loss):
            raise HunchError(f"The loss is {loss}, so this run was stopped; a lower learning_rate may help.")
        return {"loss": loss}


def divergence(
    policy: TextPolicy, states: Sequence[State], decisions: Sequence[Decision], micro: int
) -> dict[str, float]:
    """Return the mean KL divergence of texts from a policy's reference in nats, if it has one, as ``kl``."""
    import torch

    from hunch.rl.preference_losses import log_ratios  # loads torch

    apart = list[float]()
    with torch.no_grad():
        for few in zip(cut(states, micro), cut(decisions, micro), strict=True):
            if (known := policy.reference_logprobs(*few)) is None:
                return {}
            now = policy.evaluate(*few, part="policy")
            apart += log_ratios(now, now._replace(logprobs=known)).tolist()
    return {"kl": float(np.mean(apart))}


class Writer(Player):
    """A player that writes, and reports metrics of its texts.

    Args:
        write: Writes texts in states, with a generator.
        judge: Returns metrics of texts.
        seed: Seed of the random generator.
    """

    def __init__(
        self, write: Callable[[Sequence[State], np.random.Generator], list[Decision]], judge: Judge, seed: int
    ) -> None:
        self.write, self.judge, self.rng = write, judge, np.random.default_rng(seed)
        self.states, self.decisions = list[State](), list[Decision]()

    def act(self, states: Sequence[State]) -> list[str]:
        """Write a text in each state."""
        drawn = self.write(states, self.rng)
        self.states += states
        self.decisions += drawn
        return [own.text for own in drawn]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing."""

    def figures(self) -> dict[str, float]:
        """Return the mean length in tokens, the share of distinct texts, and the judge's metrics."""
        texts = [own.text for own in self.decisions]
        if not texts:
            return {}
        length = float(np.mean([len(own.tokens) for own in self.decisions]))
        return {"length": length, "distinct": len(set(texts)) / len(texts)} | dict(
            self.judge(self.states, self.decisions)
        )
