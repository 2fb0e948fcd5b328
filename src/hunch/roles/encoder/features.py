"""The encoder role: a frozen model that turns texts, or pictures, into vectors.

A state's text grows with its history, but its lines recur: a few hundred sentences and actions make up all
states of a pool of games. So each line is embedded once, and a state's vector is composed from its lines.
This makes a frozen encoder fast enough for a learning loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hunch.core import IntArray, Picture, State, UsageError
from hunch.lm import require
from hunch.lm.base import LanguageModel
from hunch.lm.pictures import message

Vectors = NDArray[np.float32]
DECAY = 0.6
"""Weight of a line relative to the next more recent one (our choice)."""


class TextTable:
    """A table of the embeddings of texts and pictures, each computed once; every entry has a row number.

    Raises:
        UsageError: if the model cannot embed.
    """

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = require(lm, "embed", needed_by="A text encoder")
        self.dim, self.sees = int(lm.dim), "see" in lm.verbs
        self._rows: dict[str | Picture, int] = {}
        self._matrix: Vectors = np.zeros((256, self.dim), dtype=np.float32)

    @property
    def matrix(self) -> Vectors:
        """All embeddings, shape (number of texts, dim)."""
        return self._matrix[: len(self._rows)]

    def ids(self, texts: Sequence[str | Picture]) -> IntArray:
        """Return the row of each text or picture; new ones are embedded in one batch."""
        self.add(texts)
        return np.array([self._rows[text] for text in texts], dtype=np.int64)

    def add(self, texts: Iterable[str | Picture]) -> None:
        """Embed the texts and pictures that are not in the table yet."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if not new:
            return
        vectors = self.lm.embed([self._prompt(text) for text in new])
        start = len(self._rows)
        while start + len(new) > len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[start : start + len(new)] = vectors
        self._rows.update((text, start + i) for i, text in enumerate(new))

    def _prompt(self, text: str | Picture) -> Any:
        if isinstance(text, str):
            return text
        return message(text.data)

    def encode(self, texts: Sequence[str | Picture]) -> Vectors:
        """Return one vector for each text or picture, shape (len(texts), dim)."""
        rows = self.ids(texts)  # first, because it may replace the matrix by a larger one
        return self._matrix[rows]


def recency_weights(n: int, decay: float) -> Vectors:
    """Return the weights of n lines, oldest first; they fall by ``decay`` per line and sum to one."""
    weights = decay ** np.arange(n - 1, -1, -1, dtype=np.float32)
    return np.asarray(weights / weights.sum(), dtype=np.float32)


class StateFeatures:
    """States as vectors, and actions as rows of a text table; each state gets a number and is encoded once.

    *Factored* (default): the state's vector joins the task's embedding, the recency-weighted mean of its
    lines (of its pictures, if it has any and the model sees), and the mean over its admissible actions, which
    shows what is possible; an action is its own text. *Joint* (the paper's setting): state and action are one
    text, so the state's own vector is empty. A pair is embedded when its value is first asked for, so actions
    that are never candidates cost nothing.

    Args:
        table: Embeddings of texts.
        joint: Encode each state-action pair as one text; this needs one model call per pair.
        known: Features of the same kind whose entries are reused; they are only read.

    Attributes:
        states: The states by number.
        actions: Rows of each state's actions in the table; -1 for a pair that is not embedded yet.
    """

    def __init__(self, table: TextTable, *, joint: bool = False, known: StateFeatures | None = None) -> None:
        if not isinstance(table, TextTable):
            raise UsageError(f"An encoder is a hunch.roles.TextTable of a language model, not {table!r}.")
        self.table, self.joint, self.known = table, joint, known
        self.state_dim = 0 if joint else 3 * table.dim
        self.action_dim = table.dim
        self.states: list[State] = []
        self.actions: list[IntArray] = []
        self._numbers: dict[State, int] = {}
        self._vectors: Vectors = np.zeros((256, self.state_dim), dtype=np.float32)

    @property
    def vectors(self) -> Vectors:
        """The vectors of all states seen so far, shape (number of states, state_dim)."""
        return self._vectors[: len(self.states)]

    @property
    def matrix(self) -> Vectors:
        """The vectors of all actions, shape (number of texts, dim)."""
        return self.table.matrix

    def copy(self) -> StateFeatures:
        """Return empty features that reuse the entries of this object without changing it."""
        return StateFeatures(self.table, joint=self.joint, known=self)

    def find(self, state: State) -> int:
        """Return the number of a state; -1 if it has none."""
        return self._numbers.get(state, -1)

    def number(self, states: Sequence[State]) -> list[int]:
        """Return the number of each state; new states are encoded in one batch."""
        known = [self._numbers.get(state) for state in states]
        if None in known:
            new = dict.fromkeys(s for s, number in zip(states, known, strict=True) if number is None)
            if not self.joint:
                unknown = [s for s in new if self.known is None or self.known.find(s) < 0]
                self.table.add(text for s in unknown for text in (s.aim, *self._shown(s), *s.options))
            for state in new:
                self._append(state)
            known = [self._numbers[state] for state in states]
        return [number for number in known if number is not None]

    def rows(self, states: Iterable[int], candidates: Iterable[IntArray]) -> IntArray:
        """Return the rows of each state's candidates in the matrix, state by state, shape (candidates,)."""
        pairs = list(zip(states, candidates, strict=True))
        if self.joint:
            self._embed([(i, a) for i, own in pairs for a in own if self.actions[i][a] < 0])
        return np.concatenate([self.actions[i][own] for i, own in pairs])

    def _embed(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Embed pairs of a state's number and the index of an action, in one batch."""
        states = [self.states[i] for i, _ in pairs]
        texts = [pair_text(s, s.options[a]) for s, (_, a) in zip(states, pairs, strict=True)]
        for (i, a), row in zip(pairs, self.table.ids(texts), strict=True):
            self.actions[i][a] = row

    def _shown(self, state: State) -> Sequence[str | Picture]:
        return state.pictures if self.table.sees and state.pictures else state.lines()

    def _append(self, state: State) -> None:
        index = self._numbers[state] = len(self.states)
        if index == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self.states.append(state)
        if self.joint:
            self.actions.append(np.full(len(state.options), -1))
        elif self.known is not None and (number := self.known.find(state)) >= 0:
            self.actions.append(self.known.actions[number])
            self._vectors[index] = self.known.vectors[number]
        else:
            self.actions.append(self.table.ids(state.options))
            self._vectors[index] = self._compose(state, self.actions[-1])

    def _compose(self, state: State, actions: IntArray) -> Vectors:
        shown = self._shown(state)
        seen = recency_weights(len(shown), DECAY) @ self.table.encode(shown)
        possible = self.table.matrix[actions].mean(axis=0)
        return np.concatenate([self.table.encode([state.aim])[0], seen, possible])

    def state_dict(self) -> dict[str, Any]:
        """Return the states in the order of their numbers; their vectors can be recomputed."""
        return {"states": [state.plain(compared=True) for state in self.states]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Number the states as in :meth:`state_dict`."""
        self.__init__(self.table, joint=self.joint)  # type: ignore[misc]
        self.number(list(map(State.of, state["states"])))


def pair_text(state: State, action: str) -> str:
    """Return the paper's joint text of a state and an action (Yan et al., released code)."""
    return f"{state.aim}, Action: {action}, for Observation: {state.text()},"
