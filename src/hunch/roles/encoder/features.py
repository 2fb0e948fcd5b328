"""The encoder role: a frozen model that turns texts, or pictures, into vectors.

A state's text grows with its history, but its lines recur: a few hundred sentences and actions make up all
states of a pool of games. So each line is embedded once, and a state's vector is composed from its lines.
This makes a frozen encoder fast enough for a learning loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
RECENT = 2**15
"""Number of texts without a row of their own whose embeddings are kept: 50 MB with 384 numbers each."""


class TextTable:
    """Embeddings of texts and pictures, each computed once.

    Texts that :meth:`ids` was asked for, such as actions, get a row in :attr:`matrix` and stay. Of all
    others, such as lines of observations, the latest :data:`RECENT` are kept: some never come again.

    Raises:
        UsageError: if the model cannot embed.
    """

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = require(lm, "embed", needed_by="A text encoder")
        self.dim, self.sees = int(lm.dim), "see" in lm.verbs
        self._rows: dict[str | Picture, int] = {}
        self._matrix: Vectors = np.zeros((256, self.dim), dtype=np.float32)
        self._recent: dict[str | Picture, Vectors] = {}  # each of shape (dim,), oldest first

    @property
    def matrix(self) -> Vectors:
        """The embeddings of the texts with a row, shape (number of these texts, dim)."""
        return self._matrix[: len(self._rows)]

    def ids(self, texts: Sequence[str | Picture]) -> IntArray:
        """Return the row of each text or picture; new ones are embedded in one batch."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        for text, vector in self._vectors(new).items():
            row = self._rows[text] = len(self._rows)
            if row == len(self._matrix):
                self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
            self._matrix[row] = vector
            self._recent.pop(text, None)
        return np.array([self._rows[text] for text in texts], dtype=np.int64)

    def add(self, texts: Iterable[str | Picture]) -> None:
        """Embed the texts and pictures that are not known, in one batch, because they will be asked for."""
        self._vectors(texts)

    def encode(self, texts: Sequence[str | Picture]) -> Vectors:
        """Return one vector for each text or picture, shape (len(texts), dim)."""
        vectors = self._vectors(texts)
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for i, text in enumerate(texts):
            rows[i] = vectors[text]
        return rows

    def shown(self, state: State) -> Sequence[str | Picture]:
        """Return what is embedded of what a state shows: its pictures if the model sees, else its lines."""
        return state.pictures if self.sees and state.pictures else state.lines()

    def recent(self, state: State) -> Vectors:
        """Return the mean of what a state shows, weighted by recency, shape (dim,)."""
        shown = self.shown(state)
        mean: Vectors = recency_weights(len(shown), DECAY) @ self.encode(shown)
        return mean

    def _vectors(self, texts: Iterable[str | Picture]) -> dict[str | Picture, Vectors]:
        """Return the vector of each distinct text, in order; unknown ones are embedded in one batch."""
        distinct = dict.fromkeys(texts)
        new = [text for text in distinct if text not in self._rows and text not in self._recent]
        if new:
            embedded = self.lm.embed([self._prompt(text) for text in new])
            # A copy of each row, since a view would keep the whole batch in memory.
            self._recent.update((text, embedded[i].copy()) for i, text in enumerate(new))
        vectors = {}
        for text in distinct:
            row = self._rows.get(text)
            vectors[text] = self._recent[text] if row is None else self._matrix[row]
        while len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
        return vectors

    def _prompt(self, text: str | Picture) -> Any:
        if isinstance(text, str):
            return text
        return message(text.data)


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

    Where few states recur, nearly every step brings a new one. So whoever numbers states has to :meth:`keep`
    those that are still needed from time to time, or memory grows with the run.

    Args:
        table: Embeddings of texts.
        joint: Encode each state-action pair as one text; this needs one model call per pair.
        known: Features of the same kind whose entries are reused; they are only read.

    Attributes:
        states: The states by number. The numbers of forgotten states are given to new ones.
        actions: Rows of each state's actions in the table, by the number of the state; -1 for a pair that is
            not embedded yet.
    """

    def __init__(self, table: TextTable, *, joint: bool = False, known: StateFeatures | None = None) -> None:
        if not isinstance(table, TextTable):
            raise UsageError(f"An encoder is a hunch.roles.TextTable of a language model, not {table!r}.")
        self.table, self.joint, self.known = table, joint, known
        self.state_dim = 0 if joint else 3 * table.dim
        self.action_dim = table.dim
        self.states: dict[int, State] = {}
        self.actions: dict[int, IntArray] = {}
        self._numbers: dict[State, int] = {}
        self._free: list[int] = []  # numbers of forgotten states, the largest first
        self._vectors: Vectors = np.zeros((256, self.state_dim), dtype=np.float32)

    @property
    def vectors(self) -> Vectors:
        """The vectors by the number of the state, shape (numbers given so far, state_dim)."""
        return self._vectors[: len(self.states) + len(self._free)]

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
            self._embed_texts(new)
            for state in new:
                # Without forgotten states, as many numbers are given as there are states.
                self._add(state, self._free.pop() if self._free else len(self.states))
            known = [self._numbers[state] for state in states]
        return [number for number in known if number is not None]

    def keep(self, numbers: Iterable[int]) -> None:
        """Forget all states but those with these numbers."""
        kept = set(numbers)
        forgotten = self.states.keys() - kept
        for number in forgotten:
            del self._numbers[self.states.pop(number)]
            del self.actions[number]
        self._free = sorted({*self._free, *forgotten}, reverse=True)

    def rows(self, states: Iterable[int], candidates: Iterable[IntArray]) -> IntArray:
        """Return the rows of each state's candidates in the matrix, state by state, shape (candidates,)."""
        pairs = list(zip(states, candidates, strict=True))
        if self.joint:
            self._embed([(i, a) for i, actions in pairs for a in actions if self.actions[i][a] < 0])
        return np.concatenate([self.actions[i][actions] for i, actions in pairs])

    def _embed_texts(self, states: Iterable[State]) -> None:
        """Embed the texts of states that are not known, in one batch."""
        if not self.joint:
            unknown = [s for s in states if self.known is None or self.known.find(s) < 0]
            self.table.add(text for s in unknown for text in (s.aim, *self.table.shown(s), *s.options))

    def _embed(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Embed pairs of a state's number and the index of an action, in one batch."""
        states = [self.states[i] for i, _ in pairs]
        texts = [pair_text(s, s.options[a]) for s, (_, a) in zip(states, pairs, strict=True)]
        for (i, a), row in zip(pairs, self.table.ids(texts), strict=True):
            self.actions[i][a] = row

    def _add(self, state: State, number: int) -> None:
        """Give a number to a state whose texts are embedded."""
        while number >= len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._numbers[state] = number
        self.states[number] = state
        if self.joint:
            self.actions[number] = np.full(len(state.options), -1)
        elif self.known is not None and (there := self.known.find(state)) >= 0:
            self.actions[number] = self.known.actions[there]
            self._vectors[number] = self.known.vectors[there]
        else:
            self.actions[number] = self.table.ids(state.options)
            self._vectors[number] = self._compose(state, self.actions[number])

    def _compose(self, state: State, actions: IntArray) -> Vectors:
        possible = self.table.matrix[actions].mean(axis=0)
        return np.concatenate([self.table.encode([state.aim])[0], self.table.recent(state), possible])

    def state_dict(self) -> dict[str, Any]:
        """Return the states and their numbers; their vectors can be recomputed."""
        states = [state.plain(compared=True) for state in self.states.values()]
        return {"states": states, "numbers": list(self.states)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Number the states as in :meth:`state_dict`."""
        self.__init__(self.table, joint=self.joint)  # type: ignore[misc]
        states = list(map(State.of, state["states"]))
        numbers = state.get("numbers", range(len(states)))  # before states were forgotten, they were in order
        self._embed_texts(states)
        for one, number in zip(states, numbers, strict=True):
            self._add(one, number)
        given = range(max(self.states, default=-1) + 1)
        self._free = sorted(set(given) - self.states.keys(), reverse=True)


def pair_text(state: State, action: str) -> str:
    """Return the paper's joint text of a state and an action (Yan et al., released code)."""
    return f"{state.aim}, Action: {action}, for Observation: {state.text()},"
