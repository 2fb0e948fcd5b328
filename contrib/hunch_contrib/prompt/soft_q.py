"""Soft Q-learning over the tokens of a text whose reward comes at its end.

    Q(s, .)  <- a perceptron on the position and the tokens so far;  V = log sum exp Q;  A = Q - V
    y_t      <- V'(s_t+1), and the reward R after the last token                  V' is the target network's
    descend on  (V_t + A_t - y_t)^2 + (V_t + A_t + ... + A_T - R)^2                one step, and all of them

At the minimum softmax(Q) draws texts with probability proportional to exp(R).

Source: Guo et al., "Efficient (Soft) Q-Learning for Text Generation with Limited Good Data" (Findings of
EMNLP 2022), as used by RLPrompt. There V_t is also from the target network, so V is not trained; here
V is trained. This module imports torch, so import it only where it is needed.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import FloatArray, IntArray, Saved


class SoftQ(Saved):
    """Soft Q of the next token, and its update.

    Args:
        tokens: Size of the vocabulary.
        length: Tokens of a text.
        hidden: Width of the perceptron's hidden layers.
        learning_rate: Learning rate of Adam.
        decay: Weight decay, decoupled from Adam.
        target: Share by which the target network moves towards Q after each update.
        seed: Seed of the weights.
    """

    saved = ("network", "target", "optimiser")

    def __init__(
        self,
        tokens: int,
        length: int,
        hidden: int,
        learning_rate: float,
        decay: float,
        target: float,
        seed: int,
    ) -> None:
        self.tokens = tokens
        self.length = length
        self.rate = target
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = nn.Sequential(
                nn.Linear(length + tokens, hidden), nn.ReLU(), nn.Linear(hidden, tokens)
            )
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=learning_rate, weight_decay=decay)

    def features(self, texts: IntArray) -> Tensor:
        """Return the position, and counts of the tokens before it, shape (n, length, length + tokens)."""
        one_hot = np.eye(self.tokens, dtype=np.float32)[texts]  # (n, length, tokens)
        before = np.cumsum(one_hot, axis=1) - one_hot  # without the token itself
        position = np.eye(self.length, dtype=np.float32)
        position = np.broadcast_to(position, (len(texts), self.length, self.length))
        return torch.from_numpy(np.concatenate([position, before], axis=2))

    @torch.no_grad()
    def write(self, rng: np.random.Generator | None) -> IntArray:
        """Draw a text from softmax(Q); without a generator take the best token each time. Shape (length,)."""
        text = np.zeros(self.length, dtype=np.int64)
        for t in range(self.length):
            q: FloatArray = self.network(self.features(text[None])[:, t])[0].double().numpy()  # (tokens,)
            if rng is None:
                text[t] = q.argmax()
            else:
                p = np.exp(q - q.max())  # without overflow
                text[t] = rng.choice(self.tokens, p=p / p.sum())
        return text

    def update(self, texts: IntArray, rewards: FloatArray) -> float:
        """Make a gradient step on texts, shape (n, length), with rewards, shape (n,); return the loss."""
        features = self.features(texts)
        reward = torch.from_numpy(rewards).float()[:, None]  # (n, 1)
        q = self.network(features)  # (n, length, tokens)
        values = q.logsumexp(2)  # (n, length): V = log sum exp Q
        written = torch.from_numpy(texts)[..., None]
        advantages = q.gather(2, written)[..., 0] - values  # (n, length): A = Q - V
        # y_t = V'(s_t+1), and R after the last token.
        with torch.no_grad():
            next_values = self.target(features[:, 1:]).logsumexp(2)  # (n, length - 1)
            targets = torch.cat([next_values, reward], dim=1)  # (n, length)
        # A_t + ... + A_T, a sum from the end
        advantages_to_go = advantages.flip(1).cumsum(1).flip(1)
        # L = mean of (V_t + A_t - y_t)^2 / 2  +  (V_t + A_t + ... + A_T - R)^2 / 2
        one_step = (values + advantages - targets) ** 2
        all_steps = (values + advantages_to_go - reward) ** 2
        loss = (one_step + all_steps).mean() / 2
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        # The target network follows: theta' <- theta' + rate (theta - theta').
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.network.parameters()), self.rate)
        return float(loss.detach())
