"""The policy role: what gives each admissible action its probability, and is trained.

A perceptron on embeddings is the baseline of every policy here. A language model acts by how likely it would
go on with each action after a prompt: the log-probabilities of its tokens are summed, and the softmax over
the admissible actions is the policy (GLAM, Carta et al., ICML 2023; TWOSOME, Tan et al., ICLR 2024)::

    log p(a|s)  =  sum over tokens of log p_LM(token | prompt(s), tokens before)  /  length(a)
    pi(a|s)     =  softmax over the admissible a of  log p(a|s) / temperature

The length is 1 (``sum``, GLAM), or the number of tokens or words of the action (TWOSOME). The value is a
perceptron on the hidden state of the prompt's last token.

Imports torch, so it is imported where a policy is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import EvidenceLevel, HunchError, IntArray, State, UsageError
from hunch.lm.backends.trainable import Answer, Start, Trainable
from hunch.lm.base import Normalisation, count_words
from hunch.ranges import PositiveFloat, PositiveInt
from hunch.rl.q_learning import forward
from hunch.roles.encoder import StateFeatures, TextTable, Vectors
from hunch.roles.prior_kinds import prompt

KNOWN: Final = 10_000
"""States of which the features are kept."""


class PerceptronPolicy:
    """A perceptron on frozen embeddings that says what is wanted in a state, and one that values it.

    The score of an action is the inner product of what is wanted with a linear map of the action's embedding
    (He et al., "Deep Reinforcement Learning with a Natural Language Action Space", ACL 2016), so that where
    all states have the same actions it is CleanRL's network: two layers of tanh, orthogonal weights, and an
    output for each action. Embeddings of states differ little, as most of their text is the same; so each of
    their numbers is standardised by the mean and deviation that :meth:`see` has counted.

    Args:
        table: Embeds texts.
        hidden: Width of both.
        seed: Of the weights.
    """

    def __init__(self, table: TextTable, hidden: int, seed: int) -> None:
        self.features = StateFeatures(table)
        self.spread = Spread(self.features.state_dim)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            dim = self.features.state_dim
            self.actor = Scorer(dim, self.features.action_dim, hidden)
            self.critic = nn.Sequential(*perceptron(dim, hidden), orthogonal(hidden, 1, 1))

    def both(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions, padded with -inf, and values."""
        return self.logprobs(states), self.values(states)

    def logprobs(self, states: Sequence[State]) -> Tensor:
        """Log-probabilities of the actions, shape (n, most actions)."""
        every = [np.arange(len(state.options)) for state in states]
        seen, numbers = self._seen(states)
        scores = forward(self.actor, seen, numbers, every)
        return padded(torch.split(scores, [len(own) for own in every]))

    def values(self, states: Sequence[State]) -> Tensor:
        """Values, shape (n,)."""
        seen, numbers = self._seen(states)
        found: Tensor = self.critic(torch.from_numpy(seen.vectors[numbers]))[:, 0]
        return found

    def see(self, states: Sequence[State]) -> None:
        """Count states for the mean and deviation; between updates only, as it changes what the policy is."""
        numbers = self.features.number(states)  # first, as it may put a larger matrix in place
        self.spread.add(self.features.vectors[numbers])

    def _seen(self, states: Sequence[State]) -> tuple[Seen, IntArray]:
        """The features of some states, and the number of each among them."""
        if len(self.features.states) > KNOWN:
            self.features = StateFeatures(self.features.table)
        own = self.features
        numbers, place = np.unique(own.number(states), return_inverse=True)
        rows = [own.rows[number] for number in numbers]
        vectors = self.spread(own.vectors[numbers])
        return Seen(own.state_dim, own.action_dim, rows, vectors, own.matrix), place

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """The weights of both."""
        return {"policy": list(self.actor.parameters()), "value": list(self.critic.parameters())}

    def state_dict(self) -> dict[str, Any]:
        """The weights of both, and what they standardise by."""
        networks = {"actor": self.actor.state_dict(), "critic": self.critic.state_dict()}
        return {**networks, "spread": self.spread.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what :meth:`state_dict` gave."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.spread.load_state_dict(state["spread"])


@dataclass
class Seen:
    """Features of a few states: see :class:`hunch.rl.q_learning.Features`."""

    state_dim: int
    action_dim: int
    rows: list[IntArray]
    vectors: Vectors
    matrix: Vectors


class Scorer(nn.Module):
    """What a state wants, times what an action is."""

    def __init__(self, state_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.wants = nn.Sequential(*perceptron(state_dim, hidden))
        self.offers = orthogonal(action_dim, hidden, 0.01)  # nearly uniform at first

    def forward(self, states: Tensor, actions: Tensor, owner: Tensor, index: Tensor) -> Tensor:
        """Return the scores of pairs, shape (pairs,), as :class:`hunch.rl.q_learning.QNetwork` does."""
        scores: Tensor = (self.wants(states)[owner] * self.offers(actions)[index]).sum(dim=1)
        return scores


def perceptron(dim: int, hidden: int) -> list[nn.Module]:
    """Two layers of tanh (CleanRL)."""
    return [orthogonal(dim, hidden, 2**0.5), nn.Tanh(), orthogonal(hidden, hidden, 2**0.5), nn.Tanh()]


def orthogonal(dim: int, out: int, gain: float) -> nn.Linear:
    """A layer of orthogonal weights (CleanRL)."""
    layer = nn.Linear(dim, out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Spread:
    """Mean and deviation of vectors so far, by which others are standardised (Chan et al., 1979).

    Args:
        dim: Length of a vector.
    """

    def __init__(self, dim: int) -> None:
        self.count, self.mean, self.squares = 0, np.zeros(dim), np.zeros(dim)

    def add(self, rows: Vectors) -> None:
        """Count vectors, shape (n, dim)."""
        total, mean = self.count + len(rows), rows.mean(axis=0, dtype=np.float64)
        apart, within = mean - self.mean, ((rows - mean) ** 2).sum(axis=0)
        self.squares = self.squares + within + apart**2 * self.count * len(rows) / total
        self.mean = self.mean + apart * len(rows) / total
        self.count = total

    def __call__(self, rows: Vectors) -> Vectors:
        """Vectors in deviations from the mean, at most 10; as they are while none was counted."""
        if not self.count:
            return rows
        scale = np.sqrt(self.squares / self.count + 1e-8)
        return np.clip((rows - self.mean) / scale, -10, 10).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """What was counted."""
        return {"count": self.count, **{n: torch.from_numpy(getattr(self, n)) for n in ("mean", "squares")}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what :meth:`state_dict` gave."""
        self.count, self.mean, self.squares = state["count"], state["mean"].numpy(), state["squares"].numpy()


@dataclass(frozen=True, kw_only=True)
class LMPolicyConfig:
    """A language model as a policy."""

    normalise: Normalisation = "sum"
    """What an action's log-probability is divided by: nothing, its tokens or its words."""
    temperature: PositiveFloat = 1.0
    """Of the softmax over the admissible actions."""
    width: PositiveInt = 1024
    """Of the two layers of the value's perceptron (paper)."""
    start: Start = "weights"
    """What the network begins as: its own weights, these with its vocabulary shuffled, or random ones; the
    latter two are controls."""


class LMPolicy:
    """A language model whose probabilities of the action texts are the policy.

    Args:
        lm: The model; it is trained, and begins anew.
        config: How it acts.
        seed: Of the value's weights, and of a model that begins otherwise than with its own.
        apart: Read the value off the model as it was before training, with its adapters off, and let its
            error not reach the model.

    Raises:
        UsageError: if the value is to be read off a model of which all weights are trained.
    """

    def __init__(self, lm: Trainable, config: LMPolicyConfig, seed: int, *, apart: bool = False) -> None:
        if apart and not lm.adapted:
            raise UsageError(
                f"The value is read off {lm.model.name} without its adapters, and it has none: add "
                "train=lora to its spec."
            )
        self.lm, self.config, self.apart = lm, config, apart
        lm.restart(config.start, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = value_head(lm.dim, config.width).to(lm.network.device)

    @property
    def evidence(self) -> EvidenceLevel:
        """That of the model; L0 where it does not begin with its own weights."""
        return self.lm.model.evidence if self.config.start == "weights" else "L0"

    @property
    def name(self) -> str:
        """The model's."""
        return self.lm.model.name

    @property
    def base(self) -> str:
        """What tells the model's files from others."""
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
        """The model's weights that are trained, and those of the value's perceptron."""
        return {"policy": self.lm.parameters(), "value": list(self.head.parameters())}

    def state_dict(self) -> dict[str, Any]:
        """What is trained; of adapters a small part of the model."""
        return {"lm": self.lm.state_dict(), "head": self.head.state_dict(), "base": self.base}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what :meth:`state_dict` gave.

        Raises:
            HunchError: if it is of another model or way to train, or adapters of another base.
        """
        if self.lm.adapted and state["base"] != self.base:
            raise HunchError(f"These adapters were trained beside other weights than those of {self.name}.")
        self.lm.load_state_dict(state["lm"])
        self.head.load_state_dict(state["head"])


def value_head(dim: int, width: int) -> nn.Sequential:
    """A perceptron of three layers with one output, which begins near 0."""
    last = nn.Linear(width, 1)
    with torch.no_grad():
        last.weight.mul_(0.1)
        last.bias.zero_()
    return nn.Sequential(nn.Linear(dim, width), nn.Sigmoid(), nn.Linear(width, width), nn.Sigmoid(), last)


def padded(rows: Sequence[Tensor]) -> Tensor:
    """Log-probabilities of scores of different numbers of actions, shape (n, most actions)."""
    logprobs = [torch.log_softmax(row, dim=0) for row in rows]
    return nn.utils.rnn.pad_sequence(logprobs, batch_first=True, padding_value=-torch.inf)
