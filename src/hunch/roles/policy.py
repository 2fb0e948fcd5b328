"""The policy role: a trained distribution over admissible actions.

A perceptron on embeddings is the baseline of every policy here. A language model scores each action as the
continuation of a prompt: the log-probabilities of its tokens are summed, and the softmax over the admissible
actions is the policy (GLAM, Carta et al., ICML 2023; TWOSOME, Tan et al., ICLR 2024)::

    log p(a|s)  =  sum over tokens of log p_LM(token | prompt(s), tokens before)  /  length(a)
    pi(a|s)     =  softmax over the admissible a of  log p(a|s) / temperature

The length is 1 (``sum``, GLAM), or the number of tokens or words of the action (TWOSOME). The value is a
perceptron on the hidden state of the prompt's last token.

This module imports torch, so import it only where a policy is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import EvidenceLevel, HunchError, State, UsageError
from hunch.lm.backends.trainable import Answer, Start, Trainable
from hunch.lm.base import Normalisation, count_words
from hunch.ranges import PositiveFloat, PositiveInt
from hunch.rl.q_learning import QNetwork, forward
from hunch.roles.encoder import StateFeatures, TextTable
from hunch.roles.prior_language import prompt


class PerceptronPolicy:
    """Two perceptrons on frozen embeddings: one scores state-action pairs, one evaluates states.

    Args:
        table: Embeds texts.
        hidden: Width of both perceptrons.
        seed: Seed of the weights.
    """

    def __init__(self, table: TextTable, hidden: int, seed: int) -> None:
        self.table = table
        dims = StateFeatures(table)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = QNetwork(dims.state_dim, dims.action_dim, hidden)
            self.critic = value_head(dims.state_dim, hidden, nn.ReLU)
        with torch.no_grad():
            self.actor.head.weight.mul_(0.01)  # so that the initial policy is nearly uniform

    def both(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions, padded with -inf, and values."""
        features = StateFeatures(self.table)
        return self._logprobs(features, states), self._values(features, states)

    def logprobs(self, states: Sequence[State]) -> Tensor:
        """Log-probabilities of the actions, shape (n, most actions)."""
        return self._logprobs(StateFeatures(self.table), states)

    def values(self, states: Sequence[State]) -> Tensor:
        """Values, shape (n,)."""
        return self._values(StateFeatures(self.table), states)

    def _logprobs(self, features: StateFeatures, states: Sequence[State]) -> Tensor:
        numbers = np.array(features.number(states))
        every = [np.arange(len(state.options)) for state in states]
        scores = forward(self.actor, features, numbers, every)
        return padded(torch.split(scores, [len(own) for own in every]))

    def _values(self, features: StateFeatures, states: Sequence[State]) -> Tensor:
        numbers = features.number(states)
        found: Tensor = self.critic(torch.from_numpy(features.vectors[numbers]))[:, 0]
        return found

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """The weights of both."""
        return {"policy": list(self.actor.parameters()), "value": list(self.critic.parameters())}

    def state_dict(self) -> dict[str, Any]:
        """The weights of both."""
        return {"actor": self.actor.state_dict(), "critic": self.critic.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])


@dataclass(frozen=True, kw_only=True)
class LMPolicyConfig:
    """A language model as a policy."""

    normalise: Normalisation = "sum"
    """Divisor of an action's log-probability: none, its tokens or its words."""
    temperature: PositiveFloat = 1.0
    """Temperature of the softmax over the admissible actions."""
    width: PositiveInt = 1024
    """Width of the two layers of the value's perceptron (paper)."""
    start: Start = "weights"
    """Initial weights: the model's own, these with its vocabulary shuffled, or random ones; the latter two
    are controls."""


class LMPolicy:
    """A language model whose probabilities of the action texts are the policy.

    Args:
        lm: The model; it is reset and trained.
        config: Settings of the policy.
        seed: Seed of the value's weights, and of shuffled or random initial weights.
        apart: Compute the value from the model before training, with its adapters off, so that the value's
            error does not train the model.

    Raises:
        UsageError: if ``apart`` is set and the model has no adapters.
    """

    def __init__(self, lm: Trainable, config: LMPolicyConfig, seed: int, *, apart: bool = False) -> None:
        if apart and not lm.adapted:
            raise UsageError(
                f"The value is computed from {lm.model.name} without its adapters, but it has none: add "
                "train=lora to its spec."
            )
        self.lm, self.config, self.apart = lm, config, apart
        lm.restart(config.start, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = value_head(lm.dim, config.width, nn.Sigmoid).to(lm.network.device)

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the model; L0 if it does not start with its own weights."""
        return self.lm.model.evidence if self.config.start == "weights" else "L0"

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.lm.model.name

    @property
    def base(self) -> str:
        """Identifier of the model's files."""
        return self.lm.model.revision.partition(":")[0]

    def both(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions, padded with -inf, and values."""
        if self.apart:
            return self.logprobs(states), self.values(states)
        answers = self._answers(states)
        return self._softmax(answers, states), self.head(torch.stack([a.state for a in answers]))[:, 0]

    def logprobs(self, states: Sequence[State]) -> Tensor:
        """Log-probabilities of the actions, shape (n, most actions)."""
        return self._softmax(self._answers(states), states)

    def values(self, states: Sequence[State]) -> Tensor:
        """Values, shape (n,)."""
        prompts = [prompt(state) for state in states]
        found = self.lm.frozen_states(prompts) if self.apart else self.lm.states(prompts)
        values: Tensor = self.head(found)[:, 0]
        return values

    def _answers(self, states: Sequence[State]) -> list[Answer]:
        return self.lm.answers([prompt(state) for state in states], [state.options for state in states])

    def _softmax(self, answers: Sequence[Answer], states: Sequence[State]) -> Tensor:
        return padded([self._scores(a, state.options) for a, state in zip(answers, states, strict=True)])

    def _scores(self, answer: Answer, options: Sequence[str]) -> Tensor:
        known = {"sum": np.ones(len(options)), "token": answer.tokens, "word": count_words(options)}
        lengths = torch.from_numpy(known[self.config.normalise]).to(answer.logprobs)
        return answer.logprobs / (self.config.temperature * lengths)

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """Return the trained weights of the model, and those of the value's perceptron."""
        return {"policy": self.lm.parameters(), "value": list(self.head.parameters())}

    def state_dict(self) -> dict[str, Any]:
        """Return the trained weights; with adapters, a small part of the model."""
        return {"lm": self.lm.state_dict(), "head": self.head.state_dict(), "base": self.base}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`.

        Raises:
            HunchError: if it is from another model or setting of ``train``, or has adapters of other weights.
        """
        if self.lm.adapted and state["base"] != self.base:
            raise HunchError(f"These adapters were trained for other weights than those of {self.name}.")
        self.lm.load_state_dict(state["lm"])
        self.head.load_state_dict(state["head"])


def value_head(dim: int, width: int, between: type[nn.Module]) -> nn.Sequential:
    """Return a three-layer perceptron with one output, which starts near 0."""
    last = nn.Linear(width, 1)
    with torch.no_grad():
        last.weight.mul_(0.1)
        last.bias.zero_()
    return nn.Sequential(nn.Linear(dim, width), between(), nn.Linear(width, width), between(), last)


def padded(rows: Sequence[Tensor]) -> Tensor:
    """Return log-probabilities from scores of varying numbers of actions, shape (n, max. actions)."""
    logprobs = [torch.log_softmax(row, dim=0) for row in rows]
    return nn.utils.rnn.pad_sequence(logprobs, batch_first=True, padding_value=-torch.inf)
