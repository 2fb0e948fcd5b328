"""The reporter of a planner: it sends one of two messages about an event, and may learn from the reward.

A trained reporter is a logistic policy on the words of the event, with initial weights 0::

    p(first message | words) = sigmoid(w . words + b)

It is trained by REINFORCE (Williams, 1992) on the return of the episode, with the planner in the loop: a
message is good if the planner uses it well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hunch.lm.backends.bag_of_words import words


class Reporter(Protocol):
    """Sends one of two messages about an event."""

    def probability(self, event: str) -> float:
        """Return the probability of the first message."""
        ...


class Scripted:
    """Sends the first message if a word occurs in the event, with a given error rate.

    Args:
        word: Word for which the first message is true.
        lies: Share of wrong reports.
    """

    def __init__(self, word: str, lies: float = 0.0) -> None:
        self.word, self.lies = word, lies

    def probability(self, event: str) -> float:
        """How probable the first message is."""
        return 1 - self.lies if self.word in words(event) else self.lies


class WordReporter:
    """The trained policy; at first both messages are equally likely.

    A word counts by how much more often it occurs in the event than in all events so far, so words that occur
    in every event have no weight.

    Args:
        learning_rate: Learning rate of the gradient steps.
    """

    def __init__(self, learning_rate: float = 0.5) -> None:
        self.learning_rate = learning_rate
        self.weights: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.bias = self.baseline = 0.0
        self.events = self.episodes = 0

    def features(self, event: str) -> dict[str, float]:
        """Return the feature of each known word in an event."""
        own = set(words(event))
        return {word: (word in own) - n / self.events for word, n in self.counts.items()}

    def probability(self, event: str) -> float:
        """How probable the first message is."""
        total = self.bias + sum(x * self.weights.get(word, 0.0) for word, x in self.features(event).items())
        return float(1 / (1 + np.exp(-np.clip(total, -30, 30))))

    def learn(self, reports: Sequence[tuple[str, bool]], gained: float) -> None:
        """Change the probability of the messages by how much the return exceeded the earlier mean.

        Args:
            reports: The events of one episode, and whether the first message was sent for each.
            gained: The return of the episode.
        """
        for event, _ in reports:
            self.events += 1
            for word in sorted(set(words(event))):
                self.counts[word] = self.counts.get(word, 0) + 1
        slopes = [(self.features(event), float(said) - self.probability(event)) for event, said in reports]
        for features, slope in slopes:
            move = self.learning_rate * (gained - self.baseline) * slope
            self.bias += move
            for word, x in features.items():
                self.weights[word] = self.weights.get(word, 0.0) + move * x
        self.episodes += 1
        self.baseline += (gained - self.baseline) / min(self.episodes, 100)

    def state_dict(self) -> dict[str, Any]:
        """Return weights, counts and baseline."""
        return {
            "weights": list(self.weights.items()),
            "counts": list(self.counts.items()),
            "rest": [self.bias, self.baseline, self.events, self.episodes],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.weights, self.counts = dict(state["weights"]), dict(state["counts"])
        self.bias, self.baseline, self.events, self.episodes = state["rest"]
