"""A supervised reward model: a small network fitted to a few outcomes that a user labelled.

The control of Kwon et al., "Reward Design with Language Models", ICLR 2023: the user labels as many outcomes
as a prompt holds examples, and a network on the outcome's numbers predicts the labels of all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from hunch.core import FloatArray, Transition, World
from hunch.roles.reward.rewarded import RewardSource

HIDDEN, UPDATES, RATE = 32, 400, 0.01
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Labelled10(RewardSource):
    """Rewards the first ten different outcomes as the user labels them, all others as the network predicts.

    An outcome is the task, the action of an episode of one step, and where it began with what came of it.
    """

    most: ClassVar[int] = 10
    saved = ("labels", "right", "judged")

    def begin(self, world: World, seed: int) -> None:
        """Forget all labels."""
        self.seed, self.labels = seed, dict[tuple[str, str, str], bool]()
        self.right = self.judged = 0
        self.network: tuple[int, Any] = (0, None)  # fitted to so many labels

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the label of each outcome, or its prediction."""
        return [float(self._said(t)) if t.done else 0.0 for t in transitions]

    def _said(self, t: Transition) -> bool:
        outcome = t.state.task, t.action, f"{t.state.observation}\n{t.event}"
        if len(self.labels) < self.most:
            self.labels.setdefault(outcome, t.success)
        said = self.labels.get(outcome)
        said = self._predicted(outcome) if said is None else said
        self.right, self.judged = self.right + (said == t.success), self.judged + 1
        return said

    def _predicted(self, outcome: tuple[str, str, str]) -> bool:
        if self.network[0] != len(self.labels):
            self.network = len(self.labels), self._fit()
        return bool(self.network[1](self._inputs([outcome])).item() > 0)

    def _fit(self) -> Any:
        import torch

        torch.manual_seed(self.seed)
        x = self._inputs(list(self.labels))
        y = torch.tensor([[float(label)] for label in self.labels.values()])
        net = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
        )
        optimiser = torch.optim.Adam(net.parameters(), lr=RATE)
        for _ in range(UPDATES):
            optimiser.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(net(x), y).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return net

    def _inputs(self, outcomes: Sequence[tuple[str, str, str]]) -> Any:
        """Return the inputs of the network, (n, inputs).

        They are the numbers in units of those labelled and a 1, in columns of their own for each action, and
        a column for each task.
        """
        import torch

        known, own = numbers(list(self.labels)), numbers(outcomes)
        scaled = (own - known.mean(0)) / np.maximum(known.std(0), 1e-6)
        columns = np.concatenate([scaled, np.ones((len(own), 1))], 1)
        parts = [
            *(columns * _is([taken for _, taken, _ in outcomes], one) for one in self._seen(1)),
            *(_is([task for task, _, _ in outcomes], one) for one in self._seen(0)),
        ]
        return torch.as_tensor(np.concatenate(parts, 1), dtype=torch.float32)

    def _seen(self, field: int) -> list[str]:
        return sorted({outcome[field] for outcome in self.labels})

    def learn(self) -> dict[str, float]:
        """Return the share of outcomes that were judged rightly since the last call, those labelled too."""
        share, judged = self.right / max(self.judged, 1), self.judged
        self.right = self.judged = 0
        return {"judge_agrees": share} if judged else {}


class Labelled30(Labelled10):
    """The same with thirty labels."""

    most = 30


def numbers(outcomes: Sequence[tuple[str, str, str]]) -> FloatArray:
    """Return the numbers in the texts of outcomes, equally many in each, shape (n, numbers)."""
    return np.array([[float(number) for number in _NUMBER.findall(text)] for _, _, text in outcomes])


def _is(values: Sequence[str], one: str) -> FloatArray:
    return np.array([[float(value == one)] for value in values])
