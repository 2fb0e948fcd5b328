"""Agents whose actions are texts of a language model, and the players that write with its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from hunch.core import Agent, EvidenceLevel, Player, State, Transition, World, weakest
from hunch.lm import trainable
from hunch.lm.tuning import require_trainable, require_weights
from hunch.methods.policy.glam import WALKS
from hunch.methods.settings import configure
from hunch.ranges import MEMORY, NonNegativeFloat, PositiveInt
from hunch.rl.policy import Decision, cut, fitting
from hunch.roles.policy.settings import TextPolicyConfig

if TYPE_CHECKING:
    from hunch.lm.training import Trainable
    from hunch.roles.policy.text import TextPolicy

Metrics: TypeAlias = Callable[[Sequence[State], Sequence[Decision]], Mapping[str, float]]
"""Function that returns metrics of written texts, by name."""


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Settings of a language model that writes actions."""

    lm: str = ""
    """Causal model to train: hf:<name, folder or run>, with ?train=lora for adapters, or scratch for a new
    small one. Default: the small pocket?corpus=walks of this project."""
    max_tokens: PositiveInt = 32
    """Maximum number of tokens per text, including the end token."""
    micro: PositiveInt = field(default=64, metadata=MEMORY)
    """Texts per forward and backward pass. Gradients are accumulated over a batch, so fewer need less memory
    and change nothing else."""
    temperature: NonNegativeFloat = 1.0
    """Sampling temperature in evaluations, and in training if the agent does not learn from its own texts."""


class TextAgent(Agent):
    """An agent whose actions are texts of a language model.

    A subclass says in :meth:`policy_settings` how the model becomes a policy, and learns in ``learn``.

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
    """Model from which the KL divergence is measured: ``start`` for the model before training, or None."""
    listed: bool = True
    """List the admissible actions in the prompt, if the environment has some."""

    def __init__(self, config: Any = None, *, lm: Trainable | None = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)
        self.check(self.config, {})
        if lm is not None:
            require_weights(lm)
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

    def policy_settings(self) -> TextPolicyConfig:
        """Return the settings of the policy; here of one without a value."""
        c = self.config
        return TextPolicyConfig(max_tokens=c.max_tokens, start=c.start, width=0)

    def make_policy(self, seed: int) -> TextPolicy:
        """Return the policy with the model's initial weights."""
        from hunch.roles.policy.text import TextPolicy  # loads torch

        settings = self.policy_settings()
        return TextPolicy(self.lm, settings, seed, reference=self.reference, listed=self.listed)

    def begin(self, world: World, seed: int) -> None:
        """Restore the weights that the model had before training."""
        self.rng = np.random.default_rng(seed)
        self.policy: TextPolicy = self.make_policy(seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Write a text in each state."""
        return [decision.text for decision in self.write(states, self.rng)]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing; subclasses that learn from their texts override this method."""

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write a text in each state, at the temperature of evaluations."""
        return self.write_at(self.prompted(states), rng, [self.config.temperature] * len(states))

    def prompted(self, states: Sequence[State]) -> Sequence[State]:
        """Return the states whose prompts the model reads when it writes in these; here the same."""
        return states

    def write_at(
        self, states: Sequence[State], rng: np.random.Generator, temperatures: Sequence[float]
    ) -> list[Decision]:
        """Draw each text at its temperature with a separate generator, so that the batch does not matter."""
        rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(states))]
        micro = self.config.micro
        decisions: dict[int, Decision] = {}  # by position
        for temperature in dict.fromkeys(temperatures):
            rows = [i for i, other in enumerate(temperatures) if other == temperature]
            for few in cut(rows, micro):
                with fitting(micro):
                    texts = self.policy.sample([states[i] for i in few], [rngs[i] for i in few], temperature)
                decisions.update(zip(few, texts, strict=True))
        return [decisions[i] for i in range(len(states))]

    def player(self, seed: int) -> Player:
        """Return a player that writes with the same weights, and reports metrics of its texts."""
        return Writer(self.write, self.text_metrics, seed)

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the KL divergence of texts from the reference, as a metric.

        At another temperature than 1 the texts are not drawn from the policy whose log-probabilities are
        compared, so that their mean log-ratio is no divergence, and is named as what it is.
        """
        metrics = divergence(self.policy, states, decisions, self.config.micro, self.prompted(states))
        if metrics and self.config.temperature != 1:
            return {"log_ratio": metrics["kl"]}
        return metrics

    def export(self, folder: Path) -> None:
        """Write the model to a folder that transformers and ``hf:`` can load."""
        self.lm.save(folder)


def divergence(
    policy: TextPolicy,
    states: Sequence[State],
    decisions: Sequence[Decision],
    micro: int,
    prompted: Sequence[State],
) -> dict[str, float]:
    """Return the mean KL divergence of texts from a policy's reference in nats, if it has one, as ``kl``.

    It is estimated from the drawn texts: the mean of log p(text) - log p_ref(text).

    Args:
        policy: The policy.
        states: The states in which the reference would write.
        decisions: The texts.
        micro: Texts that are computed at once.
        prompted: The states after which the policy has written.
    """
    import torch

    from hunch.rl.preference_losses import log_ratios  # loads torch

    ratios: list[float] = []
    with torch.no_grad():
        passes = zip(cut(states, micro), cut(decisions, micro), cut(prompted, micro), strict=True)
        for few, texts, few_prompted in passes:
            reference = policy.reference_logprobs(few, texts)  # (texts, tokens)
            if reference is None:
                return {}
            current = policy.evaluate(few_prompted, texts, part="policy")
            ratios += log_ratios(current, reference).tolist()
    return {"kl": float(np.mean(ratios))}


class Writer(Player):
    """A player that writes, and reports metrics of its texts.

    Args:
        write: Writes texts in states, with a generator.
        metrics: Returns metrics of texts.
        seed: Seed of the random generator.

    Attributes:
        cut: Observation and text of what was cut at the maximum number of tokens.
    """

    def __init__(
        self,
        write: Callable[[Sequence[State], np.random.Generator], list[Decision]],
        metrics: Metrics,
        seed: int,
    ) -> None:
        self.write = write
        self.metrics = metrics
        self.rng = np.random.default_rng(seed)
        self.states: list[State] = []
        self.decisions: list[Decision] = []
        self.cut: set[tuple[str, str]] = set()

    def act(self, states: Sequence[State]) -> list[str]:
        """Write a text in each state."""
        decisions = self.write(states, self.rng)
        self.states += states
        self.decisions += decisions
        for state, decision in zip(states, decisions, strict=True):
            if not decision.finished:
                self.cut.add((state.observation, decision.text))
        return [decision.text for decision in decisions]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing."""

    def figures(self) -> dict[str, float]:
        """Return the mean length in tokens, the share of distinct texts, and the metrics of the texts."""
        texts = [decision.text for decision in self.decisions]
        if not texts:
            return {}
        return {
            "length": float(np.mean([len(decision.tokens) for decision in self.decisions])),
            "distinct": len(set(texts)) / len(texts),
            **self.metrics(self.states, self.decisions),
        }
