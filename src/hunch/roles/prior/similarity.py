"""Action priors by similarity to the task and the observations, and by dissimilarity to recent actions."""

from __future__ import annotations

from typing import Final

import numpy as np

from hunch.core import FloatArray, State
from hunch.lm.base import LanguageModel
from hunch.lm.hearing import show_choices
from hunch.numbers import softmax
from hunch.ranges import PositiveFloat, check_value
from hunch.roles.encoder.features import TextTable, Vectors, recency_weights
from hunch.roles.prior.base import DistributionPrior

SEEN_DECAY: Final = 0.3
"""Weight of an observed line relative to the next more recent one (ours)."""
DONE_DECAY: Final = 0.8
"""Weight of a past action relative to the next more recent one (ours)."""


class SimilarityPrior(DistributionPrior):
    """p(a|s) from sentence embeddings: similar to the task and observations, unlike recent actions.

    With q the embedding of the task plus ``history`` times the recency-weighted mean of the embeddings of
    observed lines, and a_0, a_1, ... the actions already taken, most recent first::

        p(a|s) = softmax( [cos(q, a) - repeat * max_i 0.8^i max(0, cos(a, a_i))^4] / temperature )

    So the latest action, a_0, counts in full. The second term is needed because similarity ignores past
    actions: without the term, the prior goes to the named receptacle and examines it for ever.

    Args:
        lm: A model that embeds, or a :class:`~hunch.roles.encoder.features.TextTable` of its embeddings.
        temperature: Temperature of the softmax over cosines, which are in [-1, 1].
        history: Weight of observed lines relative to the task.
        repeat: Weight of the penalty for actions similar to recent ones.
        role: The role that the prior fills, a key of :data:`hunch.lm.hearing.ANSWERS`.

    Raises:
        UsageError: if the model cannot embed or the temperature is not positive.
    """

    def __init__(
        self,
        lm: LanguageModel | TextTable,
        *,
        temperature: float = 0.1,
        history: float = 0.2,
        repeat: float = 1.0,
        role: str = "prior",
    ) -> None:
        self.role = role
        self.table = lm if isinstance(lm, TextTable) else TextTable(lm)
        super().__init__(self.table.lm.evidence)
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        self.history = history
        self.repeat = repeat

    @property
    def lm(self) -> LanguageModel:
        """The model that embeds."""
        return self.table.lm

    def _compute(self, states: list[State]) -> list[FloatArray]:
        # All texts of all states are embedded in one call.
        texts: list[str] = []
        for state in states:
            texts += [state.aim, *observed_lines(state), *past_actions(state), *state.options]
        self.table.add(texts)
        probabilities = [softmax(self.affinities(state) / self.temperature) for state in states]
        show_choices(self.table.lm, self.role, [state.options for state in states], probabilities)
        return probabilities

    def affinities(self, state: State) -> FloatArray:
        """Return the logits of the softmax, shape (number of actions,)."""
        # q = task + history * sum of the observed lines, weighted by how recent they are.
        lines = observed_lines(state)
        query = self.table.encode([state.aim])[0].copy()  # (dim,)
        query += self.history * (recency_weights(len(lines), SEEN_DECAY) @ self.table.encode(lines))

        actions = self.table.encode(state.options)  # (actions, dim)
        affinities = cosines(actions, query[None])[:, 0]  # (actions,)
        past = past_actions(state)
        if past:
            affinities -= self.repeat * staleness(cosines(actions, self.table.encode(past)))
        return affinities


class NoveltyPrior(DistributionPrior):
    """A prior that only avoids recent actions: the control of the similarity prior's second term.

    It is the same rule without a model: two actions are similar only if their texts are equal. An
    advantage of the similarity prior over it is due to the embeddings.

    Args:
        temperature: Temperature of the softmax.
        repeat: Weight of the penalty for recent actions.

    Raises:
        UsageError: if the temperature is not positive.
    """

    def __init__(self, *, temperature: float = 0.1, repeat: float = 1.0) -> None:
        super().__init__("L0")
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        self.repeat = repeat

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return [softmax(-self.repeat * self._staleness(state) / self.temperature) for state in states]

    def _staleness(self, state: State) -> FloatArray:
        """Return the staleness of each action, shape (number of actions,)."""
        past = past_actions(state)
        if not past:
            return np.zeros(len(state.options))
        same = [[float(action == earlier) for earlier in past] for action in state.options]
        return staleness(np.array(same))


def observed_lines(state: State) -> list[str]:
    """Return the lines observed in the episode, oldest first."""
    texts = [*(observation for observation, _ in state.history), state.observation]
    return [line for text in texts for line in text.splitlines() if line.strip()]


def past_actions(state: State) -> list[str]:
    """Return the actions taken in the episode, oldest first."""
    return [action for _, action in state.history]


def staleness(likeness: FloatArray) -> FloatArray:
    """Return the similarity of each action to recent ones: max_i 0.8^i max(0, likeness_i)^4.

    i counts from the most recent action, i = 0, whose weight is 1. The fourth power suppresses values that
    are not near 1.

    Args:
        likeness: Cosine of each action with each earlier one, oldest first, shape (actions, earlier actions).

    Returns:
        Shape (actions,).
    """
    age = np.arange(likeness.shape[1] - 1, -1, -1)  # (earlier actions,): 0 for the latest, which stands last
    weighted = DONE_DECAY**age * np.maximum(likeness, 0) ** 4  # (actions, earlier actions)
    return np.asarray(weighted.max(axis=1))


def cosines(rows: Vectors, columns: Vectors) -> FloatArray:
    """Return the cosine of each row of one matrix with each row of the other, shape (rows, columns)."""
    lengths = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(columns, axis=1)
    return np.asarray(rows @ columns.T / np.maximum(lengths, 1e-12), dtype=np.float64)
