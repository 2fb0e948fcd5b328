"""An action prior by similarity to the task and the observations, and dissimilarity to recent actions."""

from __future__ import annotations

import numpy as np

from hunch.core import FloatArray, State
from hunch.lm.base import LanguageModel
from hunch.numbers import softmax
from hunch.ranges import PositiveFloat, check_value
from hunch.roles.encoder.features import TextTable, Vectors, recency_weights
from hunch.roles.prior.distribution import DistributionPrior

SEEN_DECAY = 0.3
"""Weight of an observed line relative to the next more recent one (ours)."""
DONE_DECAY = 0.8
"""Weight of a past action relative to the next more recent one (ours)."""


class SimilarityPrior(DistributionPrior):
    """p(a|s) from sentence embeddings: similar to the task and observations, unlike recent actions.

    With q the embedding of the task plus ``history`` times the recency-weighted mean of the embeddings of
    observed lines, and a_1, a_2, ... the actions already taken, most recent first::

        p(a|s) = softmax( [cos(q, a) - repeat * max_i 0.8^i max(0, cos(a, a_i))^4] / temperature )

    The second term is needed because similarity ignores past actions: without the term, the prior goes to the
    named receptacle and examines it for ever.

    Args:
        lm: A model that embeds, or a :class:`~hunch.roles.encoder.features.TextTable` of its embeddings.
        temperature: Temperature of the softmax over cosines, which are in [-1, 1].
        history: Weight of observed lines relative to the task.
        repeat: Weight of the penalty for actions similar to recent ones.

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
    ) -> None:
        self.table = lm if isinstance(lm, TextTable) else TextTable(lm)
        super().__init__(self.table.lm.evidence)
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        self.history = history
        self.repeat = repeat

    def _compute(self, states: list[State]) -> list[FloatArray]:
        self.table.add(
            t
            for state in states
            for t in (state.aim, *seen(state), *(a for _, a in state.history), *state.options)
        )
        return [softmax(self.affinities(state) / self.temperature) for state in states]

    def affinities(self, state: State) -> FloatArray:
        """Return the logits of the softmax, shape (number of actions,)."""
        texts, past = seen(state), [action for _, action in state.history]
        query = self.table.encode([state.aim])[0].copy()
        query += self.history * (recency_weights(len(texts), SEEN_DECAY) @ self.table.encode(texts))
        actions = self.table.encode(state.options)
        affinities = cosines(actions, query[None])[:, 0]
        if past:
            affinities -= self.repeat * staleness(cosines(actions, self.table.encode(past)))
        return affinities


def seen(state: State) -> list[str]:
    """Return the lines observed in the episode, oldest first."""
    texts = (*(observation for observation, _ in state.history), state.observation)
    return [line for text in texts for line in text.splitlines() if line.strip()]


def staleness(likeness: FloatArray) -> FloatArray:
    """Return the similarity of each action to recent ones: max_i 0.8^i likeness_i^4, most recent i = 0.

    Args:
        likeness: Cosine of each action with each earlier one, oldest first, shape (actions, earlier actions).
            The fourth power suppresses values that are not near 1; values below 0 count as 0.
    """
    fading = DONE_DECAY ** np.arange(likeness.shape[1] - 1, -1, -1)
    return np.asarray((fading * np.maximum(likeness, 0) ** 4).max(axis=1))


def cosines(rows: Vectors, columns: Vectors) -> FloatArray:
    """Return the cosine of each row of one matrix with each row of the other, shape (rows, columns)."""
    lengths = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(columns, axis=1)
    return np.asarray(rows @ columns.T / np.maximum(lengths, 1e-12), dtype=np.float64)
