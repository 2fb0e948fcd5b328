"""The encoder role: a frozen language model's view of texts as vectors.

A state's text grows with its history, but the lines in it recur: the same few hundred sentences and actions
make up all the states of a pool of games. So each line is embedded once and a state's vector is composed
from its lines. That is what makes a frozen encoder fast enough to sit inside a learning loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hunch.core import ACTION_MARK, IntArray, State
from hunch.lm import require
from hunch.lm.base import LanguageModel

Vectors = NDArray[np.float32]


class TextTable:
    """The embeddings of all texts seen so far, each computed once and found by its row number.

    Attributes:
        dim: Length of one embedding.

    Raises:
        UsageError: if the model cannot embed.
    """

    def __init__(self, lm: LanguageModel) -> None:
        require(lm, "embed", needed_by="A text encoder")
        self.lm = lm
        self.dim = int(lm.dim)
        self._rows: dict[str, int] = {}
        self._matrix: Vectors = np.zeros((256, self.dim), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def matrix(self) -> Vectors:
        """All embeddings, shape (number of texts, dim)."""
        return self._matrix[: len(self._rows)]

    def ids(self, texts: Sequence[str]) -> IntArray:
        """Return the row of each text, embedding in one batch those not seen before."""
        self.add(texts)
        return np.array([self._rows[text] for text in texts], dtype=np.int64)

    def texts(self, rows: IntArray) -> list[str]:
        """Return the texts of rows."""
        known = list(self._rows)
        return [known[row] for row in rows]

    def add(self, texts: Iterable[str]) -> None:
        """Embed the texts that are not in the table yet."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if not new:
            return
        vectors = self.lm.embed(new)
        start = len(self._rows)
        while start + len(new) > len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[start : start + len(new)] = vectors
        self._rows.update((text, start + i) for i, text in enumerate(new))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, shape (len(texts), dim)."""
        return self._matrix[self.ids(texts)]


def lines(state: State) -> list[str]:
    """Return the lines of a state's observation, oldest first, without blank ones."""
    return [line for line in state.observation.splitlines() if line.strip()]


def seen(state: State) -> list[str]:
    """Return the lines that were seen, oldest first."""
    return [line for line in lines(state) if not line.startswith(ACTION_MARK)]


def done(state: State) -> list[str]:
    """Return the actions that were taken earlier, oldest first, as far as the observation tells."""
    return [line.removeprefix(ACTION_MARK) for line in lines(state) if line.startswith(ACTION_MARK)]


def recency_weights(n: int, decay: float) -> Vectors:
    """Weights of n lines, oldest first, falling by ``decay`` a line into the past and summing to one."""
    weights = decay ** np.arange(n - 1, -1, -1, dtype=np.float32)
    return np.asarray(weights / weights.sum(), dtype=np.float32)


class StateFeatures:
    """States as vectors and candidate actions as rows of a text table; each state is encoded once.

    *Factored* (default): the state's vector is the task's embedding, the recency-weighted mean of its
    lines, and the mean over its admissible actions, which tells what is possible here; an action is its own
    text. *Joint* (the paper's): state and action are one text, so that the state's own vector is empty.

    Args:
        table: Embeddings of texts.
        joint: Encode each state-action pair as one text; costs one model call a pair.
        decay: How much a line counts against the next younger one.
    """

    def __init__(self, table: TextTable, *, joint: bool = False, decay: float = 0.6) -> None:
        self.table = table
        self.joint = joint
        self.decay = decay
        self.state_dim = 0 if joint else 3 * table.dim
        self.action_dim = table.dim
        self.clear()

    def clear(self) -> None:
        """Forget all states; the embeddings of texts stay."""
        self.states: list[State] = []
        self.actions: list[IntArray] = []
        self._ids: dict[State, int] = {}
        self._vectors: Vectors = np.zeros((256, self.state_dim), dtype=np.float32)

    @property
    def vectors(self) -> Vectors:
        """The vectors of all states seen so far, shape (number of states, state_dim)."""
        return self._vectors[: len(self.states)]

    def ids(self, states: Sequence[State]) -> list[int]:
        """Return the number of each state, encoding those not seen before."""
        new = [state for state in dict.fromkeys(states) if state not in self._ids]
        if new:
            self.table.add(text for state in new for text in self._texts(state))
            for state in new:
                self._append(state)
        return [self._ids[state] for state in states]

    def _texts(self, state: State) -> list[str]:
        if self.joint:
            return [pair_text(state, action) for action in state.actions]
        return [state.task, *lines(state), *state.actions]

    def _append(self, state: State) -> None:
        index = self._ids[state] = len(self.states)
        if index == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self.states.append(state)
        if self.joint:
            self.actions.append(self.table.ids(self._texts(state)))
            return
        self.actions.append(self.table.ids(state.actions))
        self._vectors[index] = self._compose(state, self.actions[-1])

    def _compose(self, state: State, actions: IntArray) -> Vectors:
        texts = lines(state)
        seen = recency_weights(len(texts), self.decay) @ self.table.encode(texts)
        possible = self.table.matrix[actions].sum(axis=0) / max(1, len(actions))  # none in a terminal state
        return np.concatenate([self.table.encode([state.task])[0], seen, possible])


def pair_text(state: State, action: str) -> str:
    """The paper's joint text of a state and an action (Yan et al., released code)."""
    return f"{state.task}, Action: {action}, for Observation: {state.observation},"
