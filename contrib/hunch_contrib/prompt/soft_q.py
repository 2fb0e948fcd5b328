"""Soft Q-learning over the tokens of a text whose reward comes at its end.

    Q(s, .)  <- a perceptron on what is read of the tokens so far;  V = log sum exp Q;  A = Q - V
    y_t      <- V'(s_t+1), and the reward R after the last token                  V' is the target network's
    descend on  ((Q_t - y_t)^2 + (V_t + A_t + ... + A_T - R)^2) / 2     one step, and all of them; mean over t

At the minimum softmax(Q) draws texts with probability proportional to exp(R).

Source: Guo et al., "Efficient (Soft) Q-Learning for Text Generation with Limited Good Data" (Findings of
EMNLP 2022), as used by RLPrompt. There V_t is also from the target network, so V is not trained; here
V is trained. This module imports torch, so import it only where it is needed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import FloatArray, IntArray, Saved
from hunch.lm.training import Trainable


class Features(Protocol):
    """What Q reads of the tokens so far, and the network that it is.

    Attributes:
        tokens: Size of the vocabulary.
        length: Tokens of a text.
    """

    tokens: int
    length: int

    def network(self, hidden: int) -> nn.Module:
        """Return a new network from what is read, shape (..., width), to Q, shape (..., tokens)."""
        ...

    def before(self, tokens: IntArray) -> Tensor:
        """Return what is read before the next token, shape (width,), after those of a text, shape (t,)."""
        ...

    def __call__(self, texts: IntArray) -> Tensor:
        """Return what is read before each token of texts, shape (n, length); shape (n, length, width)."""
        ...


class Counts:
    """The position, and counts of the tokens before it, without a language model (ours)."""

    def __init__(self, tokens: int, length: int) -> None:
        self.tokens = tokens
        self.length = length

    def network(self, hidden: int) -> nn.Module:
        """Return a perceptron."""
        return nn.Sequential(
            nn.Linear(self.length + self.tokens, hidden), nn.ReLU(), nn.Linear(hidden, self.tokens)
        )

    def before(self, tokens: IntArray) -> Tensor:
        """Return position and counts before the next token, shape (length + tokens,)."""
        position = np.eye(self.length)[len(tokens)]  # (length,)
        counts = np.bincount(tokens, minlength=self.tokens)  # (tokens,)
        return torch.from_numpy(np.concatenate([position, counts])).float()

    def __call__(self, texts: IntArray) -> Tensor:
        """Return position and counts, shape (n, length, length + tokens)."""
        one_hot = np.eye(self.tokens, dtype=np.float32)[texts]  # (n, length, tokens)
        before = np.cumsum(one_hot, axis=1) - one_hot  # without the token itself
        position = np.eye(self.length, dtype=np.float32)
        position = np.broadcast_to(position, (len(texts), self.length, self.length))
        return torch.from_numpy(np.concatenate([position, before], axis=2))


class FrozenLM:
    """The state of a frozen language model after the words so far, as in RLPrompt.

    Q of a word is <its vector, perceptron(state)>, where the vectors are those of the model's last layer. So
    words with alike vectors have alike values.

    Args:
        model: A causal model; its weights do not change.
        words: The vocabulary. A word of several of the model's tokens has the mean of their vectors (ours).
        length: Words of a text.
    """

    START = "Prompt:"
    """Text before the first word (ours; the authors' is a word of the task)."""

    def __init__(self, model: Trainable, words: Sequence[str], length: int) -> None:
        self.model = model
        self.words = words
        self.tokens = len(words)
        self.length = length
        last_layer = model.network.get_output_embeddings().weight.detach().float().cpu()  # (vocabulary, dim)
        tokenise = model.model.tokenizer.encode
        rows = [tokenise(f" {word}", add_special_tokens=False) for word in words]
        self.vectors = torch.stack([last_layer[row].mean(0) for row in rows])  # (tokens, dim)
        self._states: dict[str, Tensor] = {}  # by text so far; each text that is written adds its length

    def network(self, hidden: int) -> nn.Module:
        """Return a perceptron below the vectors of the words; all values are near 0 at first, as released."""
        first, second = nn.Linear(self.model.dim, hidden), nn.Linear(hidden, self.model.dim)
        for layer in (first, second):
            nn.init.xavier_uniform_(layer.weight, gain=1e-4)
            nn.init.constant_(layer.bias, -1e-4)
        return nn.Sequential(first, nn.ReLU(), second, LastLayer(self.vectors))

    def __call__(self, texts: IntArray) -> Tensor:
        """Return the model's states, shape (n, length, dim)."""
        states = [self.before(text[:t]) for text in texts for t in range(self.length)]  # each (dim,)
        return torch.stack(states).view(*texts.shape, -1)

    @torch.no_grad()
    def before(self, tokens: IntArray) -> Tensor:
        """Return the state after the words so far, shape (dim,)."""
        text = " ".join([self.START, *(self.words[i] for i in tokens)])
        if text not in self._states:
            # Alone: in a batch it would differ by 1e-5 with the others in it, and so after a resume.
            self._states[text] = self.model.states([text])[0].float().cpu()
        return self._states[text]


class LastLayer(nn.Module):
    """Products with fixed vectors, shape (tokens, dim); they are no part of a checkpoint."""

    vectors: Tensor

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.register_buffer("vectors", vectors, persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Return Q, shape (..., tokens), of states, shape (..., dim)."""
        return states @ self.vectors.T


class SoftQ(Saved):
    """Soft Q of the next token, and its update.

    Args:
        features: What Q reads of the tokens so far.
        hidden: Width of the perceptron's hidden layer.
        learning_rate: Learning rate of Adam.
        weight_decay: Weight decay, decoupled from Adam.
        target_rate: Share by which the target network moves towards Q after each update.
        seed: Seed of the weights.
    """

    saved = ("network", "target", "optimiser")

    def __init__(
        self,
        features: Features,
        hidden: int,
        learning_rate: float,
        weight_decay: float,
        target_rate: float,
        seed: int,
    ) -> None:
        self.features = features
        self.target_rate = target_rate
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = features.network(hidden)
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=learning_rate, weight_decay=weight_decay
        )

    @torch.no_grad()
    def write(self, rng: np.random.Generator | None) -> IntArray:
        """Draw a text from softmax(Q); without a generator take the best token each time. Shape (length,)."""
        text = np.zeros(self.features.length, dtype=np.int64)
        for t in range(self.features.length):
            features = self.features.before(text[:t])  # (width,)
            q: FloatArray = self.network(features).double().numpy()  # (tokens,)
            if rng is None:
                text[t] = q.argmax()
            else:
                p = np.exp(q - q.max())  # (tokens,), without overflow
                text[t] = rng.choice(len(p), p=p / p.sum())
        return text

    def update(self, texts: IntArray, rewards: FloatArray) -> float:
        """Make a gradient step on texts, shape (n, length), with rewards, shape (n,); return the loss."""
        features = self.features(texts)  # (n, length, width)
        reward = torch.from_numpy(rewards).float()[:, None]  # (n, 1)
        q = self.network(features)  # (n, length, tokens)
        values = q.logsumexp(2)  # (n, length): V = log sum exp Q
        written = torch.from_numpy(texts)[..., None]  # (n, length, 1)
        q_written = q.gather(2, written)[..., 0]  # (n, length): Q_t of the token that was written
        advantages = q_written - values  # (n, length): A = Q - V
        # y_t = V'(s_t+1), and R after the last token.
        with torch.no_grad():
            next_values = self.target(features[:, 1:]).logsumexp(2)  # (n, length - 1)
            targets = torch.cat([next_values, reward], dim=1)  # (n, length)
        # A_t + ... + A_T, a sum from the end
        advantages_to_go = advantages.flip(1).cumsum(1).flip(1)  # (n, length)
        one_step = (q_written - targets) ** 2  # (n, length)
        all_steps = (values + advantages_to_go - reward) ** 2  # (n, length)
        loss = (one_step + all_steps).mean() / 2
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        # The target network follows: theta' <- theta' + target_rate (theta - theta').
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.target.parameters()), list(self.network.parameters()), self.target_rate
            )
        return float(loss.detach())
