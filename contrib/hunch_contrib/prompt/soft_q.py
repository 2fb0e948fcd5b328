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
        self.tokens, self.length, self.rate = tokens, length, target
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = nn.Sequential(
                nn.Linear(length + tokens, hidden), nn.ReLU(), nn.Linear(hidden, tokens)
            )
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=learning_rate, weight_decay=decay)

    def features(self, texts: IntArray) -> Tensor:
        """Return the position, and counts of the tokens before it, shape (n, length, length + tokens)."""
        each = np.eye(self.tokens, dtype=np.float32)[texts]
        before = np.cumsum(each, axis=1) - each
        place = np.broadcast_to(np.eye(self.length, dtype=np.float32), (len(texts), self.length, self.length))
        return torch.from_numpy(np.concatenate([place, before], axis=2))

    @torch.no_grad()
    def write(self, rng: np.random.Generator | None) -> IntArray:
        """Draw a text from softmax(Q); without a generator take the best token each time. Shape (length,)."""
        text = np.zeros(self.length, dtype=np.int64)
        for place in range(self.length):
            q: FloatArray = self.network(self.features(text[None])[:, place])[0].double().numpy()
            shares = np.exp(q - q.max())
            text[place] = q.argmax() if rng is None else rng.choice(self.tokens, p=shares / shares.sum())
        return text

    def update(self, texts: IntArray, rewards: FloatArray) -> float:
        """Make a gradient step on texts, shape (n, length), with rewards, shape (n,); return the loss."""
        seen, paid = self.features(texts), torch.from_numpy(rewards).float()[:, None]
        q = self.network(seen)
        values = q.logsumexp(2)
        gained = q.gather(2, torch.from_numpy(texts)[..., None])[..., 0] - values
        with torch.no_grad():
            follows = torch.cat([self.target(seen[:, 1:]).logsumexp(2), paid], dim=1)
        later = gained.flip(1).cumsum(1).flip(1)
        loss = ((values + gained - follows) ** 2 + (values + later - paid) ** 2).mean() / 2
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.network.parameters()), self.rate)
        return float(loss.detach())
