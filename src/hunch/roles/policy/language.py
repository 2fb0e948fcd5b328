"""The policy role: a trained distribution over admissible actions.

A language model scores each action as the continuation of a prompt: the log-probabilities of its tokens are
summed, and the softmax over the admissible actions is the policy (GLAM, Carta et al., ICML 2023; TWOSOME, Tan
et al., ICLR 2024)::

    log p(a|s)  =  sum over tokens of log p_LM(token | prompt(s), tokens before)  /  length(a)
    pi(a|s)     =  softmax over the admissible a of  log p(a|s) / temperature

The length is 1 (``sum``, GLAM), or the number of tokens or words of the action (TWOSOME). The value is a
perceptron on the hidden state of the prompt's last token.

This module imports torch, so import it only where a policy is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import EvidenceLevel, HunchError, State, UsageError
from hunch.lm.backends.sampling import count_words
from hunch.lm.training import OptionOutputs, Start, Trainable
from hunch.rl.listed import ListedPolicy
from hunch.roles.policy.settings import LMPolicyConfig
from hunch.roles.prior.language import prompt


class ModelPolicy:
    """Base class of policies that train a language model: its weights, and a perceptron for the value.

    Args:
        lm: The model; it is reset and trained.
        start: Its initial weights.
        width: Width of the perceptron's two layers; 0 for no perceptron, and no value.
        seed: Seed of the perceptron's weights, and of shuffled or random initial weights.
    """

    def __init__(self, lm: Trainable, start: Start, width: int, seed: int) -> None:
        self.lm = lm
        lm.restart(start, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = value_head(lm.dim, width).to(lm.network.device)

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the model; L0 if it starts from shuffled or random weights."""
        return self.lm.evidence

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.lm.name

    @property
    def base(self) -> str:
        """Identifier of the model's files, which changes with them."""
        revision: str = self.lm.model.revision
        return revision.partition(":")[0]

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """Return the trained weights of the model, and those of the value's perceptron."""
        return {"policy": self.lm.parameters(), "value": list(self.head.parameters())}

    def state_dict(self) -> dict[str, Any]:
        """Return the trained weights; with adapters, a small part of the model."""
        return {"lm": self.lm.state_dict(), "head": self.head.state_dict(), "base": self.base}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`.

        Raises:
            HunchError: if the state is of another model or setting of ``train``, or adapters do not fit.
        """
        if self.lm.adapted and state["base"] != self.base:
            raise HunchError(f"These adapters were trained for other weights than those of {self.name}.")
        self.lm.load_state_dict(state["lm"])
        self.head.load_state_dict(state["head"])


class LMPolicy(ModelPolicy, ListedPolicy):
    """A policy from a language model's probabilities of the action texts.

    Args:
        lm: The model; it is reset and trained.
        config: Settings of the policy.
        seed: Seed of the value's weights, and of shuffled or random initial weights.
        frozen_value: Compute the value from the untrained model, with adapters off, so that the value's
            error does not train the model.

    Raises:
        UsageError: if ``frozen_value`` is set and the model has no adapters.
    """

    def __init__(
        self, lm: Trainable, config: LMPolicyConfig, seed: int, *, frozen_value: bool = False
    ) -> None:
        if frozen_value and not lm.adapted:
            raise UsageError(
                f"The value is computed from {lm.model.name} without its adapters, but it has none: add "
                "train=lora to its spec."
            )
        super().__init__(lm, config.start, config.width, seed)
        self.config = config
        self.frozen_value = frozen_value

    def logprobs_and_values(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of the actions, shape (n, max. actions), padded with -inf, and values."""
        if self.frozen_value:
            return super().logprobs_and_values(states)
        outputs = self._outputs(states)  # one forward pass for both
        hidden = torch.stack([output.state for output in outputs])  # (n, dim), at the prompt's last token
        return self._softmax(outputs, states), self.head(hidden)[:, 0]

    def logprobs(self, states: Sequence[State]) -> Tensor:
        """Return the log-probabilities of the actions, shape (n, max. actions), padded with -inf."""
        return self._softmax(self._outputs(states), states)

    def state_values(self, states: Sequence[State]) -> Tensor:
        """Return the values with gradients, shape (n,)."""
        prompts = self._prompts(states)
        hidden = self.lm.frozen_states(prompts) if self.frozen_value else self.lm.states(prompts)  # (n, dim)
        values: Tensor = self.head(hidden)[:, 0]
        return values

    def _outputs(self, states: Sequence[State]) -> list[OptionOutputs]:
        prompts = self._prompts(states)
        options = [state.options for state in states]
        if self.config.listed:
            return self.lm.option_outputs(prompts, options)
        return self.lm.whole_option_outputs(prompts, options)  # not listed, so the end of an action counts

    def _prompts(self, states: Sequence[State]) -> list[str]:
        return [prompt(state, self.config.listed) for state in states]

    def _softmax(self, outputs: Sequence[OptionOutputs], states: Sequence[State]) -> Tensor:
        """Return log softmax over a of  log p(a|s) / length(a) / temperature,  shape (n, max. actions)."""
        # log p(a|s), the sum over the tokens of each action.
        rows = [output.logprobs for output in outputs]
        scores = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)
        # length(a): 1, or its number of words or tokens.
        lengths = np.ones(scores.shape)
        for row, output, state in zip(lengths, outputs, states, strict=True):
            if self.config.normalise == "word":
                row[: len(output.tokens)] = count_words(state.options)
            elif self.config.normalise == "token":
                row[: len(output.tokens)] = output.tokens
        divisors = self.config.temperature * torch.from_numpy(lengths).to(scores)
        return (scores / divisors).log_softmax(1)


def value_head(dim: int, width: int) -> nn.Sequential:
    """Return a three-layer perceptron with one output, whose initial outputs are near 0.

    With a width of 0 it has no layers, for policies whose update learns no value.
    """
    if width == 0:
        return nn.Sequential()
    last = nn.Linear(width, 1)
    with torch.no_grad():
        last.weight.mul_(0.1)
        last.bias.zero_()
    return nn.Sequential(nn.Linear(dim, width), nn.Sigmoid(), nn.Linear(width, width), nn.Sigmoid(), last)
