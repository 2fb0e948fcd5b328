"""A policy that writes texts, small enough to be written out: a letter's probability depends on its place."""

from __future__ import annotations

import numpy as np
import torch

from hunch.core import State, Transition
from hunch.rl.policy import Decision, Evaluated, Step

LETTERS, PLACES = "ab.", 4
START = State("write", actions=None)


class Letters:
    """Writes letters up to a full stop, at most four; its value depends on the place, too."""

    def __init__(self, seed=0):
        self.scores = torch.nn.Parameter(self.draw(seed, len(LETTERS)))
        self.worth = torch.nn.Parameter(self.draw(seed + 100, 1)[:, 0])
        self.start = self.scores.detach() + 0.5 * self.draw(seed + 200, len(LETTERS))  # the reference

    @staticmethod
    def draw(seed, width):
        return torch.randn(PLACES, width, generator=torch.Generator().manual_seed(seed))

    def sample(self, states, rngs):
        return [self.write(rng) for rng in rngs]

    @torch.no_grad()
    def write(self, rng):
        tokens, logprobs = [], []
        for row in self.scores.double().log_softmax(1).numpy():
            tokens.append(int(rng.choice(len(LETTERS), p=np.exp(row) / np.exp(row).sum())))
            logprobs.append(float(row[tokens[-1]]))
            if LETTERS[tokens[-1]] == ".":
                break
        text = "".join(LETTERS[token] for token in tokens)
        return Decision(text, tuple(tokens), tuple(logprobs), text.endswith("."))

    def evaluate(self, states, decisions, part="both", with_kl=False):
        return self.judged(decisions)

    def reference_logprobs(self, states, decisions):
        return self.told(self.start, decisions)[0]

    def judged(self, decisions):
        logprobs, mask = self.told(self.scores, decisions)
        each = self.scores.log_softmax(1)
        entropy = -(each.exp() * each).sum(1)[: mask.shape[1]] * mask
        return Evaluated(logprobs, entropy, self.worth[: mask.shape[1]] * mask, mask)

    def reference(self, steps):
        return self.told(self.start, [step.decision for step in steps])[0]

    @staticmethod
    def told(scores, decisions):
        width = max(len(own.tokens) for own in decisions)
        ids = torch.tensor([[*own.tokens, *[-1] * (width - len(own.tokens))] for own in decisions])
        mask = ids >= 0
        every = scores.log_softmax(1)[:width].expand(len(decisions), -1, -1)
        return every.gather(2, ids.clamp(min=0)[..., None])[..., 0] * mask, mask

    def values(self, states):
        return np.full(len(states), float(self.worth[0]))

    def parameters(self):
        return {"policy": [self.scores], "value": [self.worth]}

    def state_dict(self):
        return {"scores": self.scores.detach(), "worth": self.worth.detach()}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.scores.copy_(state["scores"])
            self.worth.copy_(state["worth"])


def answer(decision, reward=None, state=START, end=True):
    """A step of one text; it pays its share of the letter a."""
    paid = decision.text.count("a") / len(decision.text) if reward is None else reward
    return Step(Transition(state, decision.text, paid, START, end, False), decision)


_RNG = np.random.default_rng(0)
EPISODES = [answer(Letters(seed=1).write(_RNG)._replace(logprobs=())) for _ in range(8)]
GROUPS = [0, 0, 0, 0, 1, 1, 1, 1]
