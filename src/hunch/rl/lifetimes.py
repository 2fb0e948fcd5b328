"""Recorded histories of learners as arrays, which :mod:`hunch.rl.sequence` reads.

A history is all that a learner did in one task, in order: the recorded episodes of one lifetime. A training
example is a part of it, as long as the lifetimes in which the network will act.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from hunch.core import Episode, FloatArray, IntArray, Transition, UsageError

_PIECE = re.compile(r"-?\d+(?:\.\d+)?|[^\W\d_]+")


def pieces(text: str) -> list[str]:
    """Return the words of a text and its numbers, each number with the word before it and its place there.

    >>> pieces("You are in row 3, column 4.")
    ['you', 'are', 'in', 'row', 'row 1 3', 'column', 'column 1 4']
    """
    word, place, found = "", 0, list[str]()
    for piece in _PIECE.findall(text.lower()):
        if piece[0].isalpha():
            word, place = piece, 0
            found.append(word)
        else:
            place += 1
            found.append(f"{word} {place} {piece}")
    return found


Order: TypeAlias = Literal["histories", "ends", "shuffled"]
"""Which episodes of a history make an example: a part from anywhere, its end, or any in random order."""
Labels: TypeAlias = Literal["taken", "final", "best"]
"""The action to predict: the one taken, what the learner did there at its end, or the best one."""


class Life(NamedTuple):
    """An episode as arrays; ``labels`` has the actions to predict, -1 for none."""

    pieces: IntArray  # rows, shape (length, P)
    actions: IntArray  # rows, (length,)
    rewards: FloatArray  # (length,)
    labels: IntArray  # rows of actions minus one, (length,)


class Vocabulary:
    """Numbers the pieces of observations and the actions that recorded episodes show, from 1.

    ``width`` is the most pieces of an observation, and ``places`` the longest episode in steps.
    """

    def __init__(
        self, pieces: Sequence[str] = (), actions: Sequence[str] = (), width: int = 1, places: int = 1
    ) -> None:
        self.plain = {"pieces": list(pieces), "actions": list(actions), "width": width, "places": places}
        self.pieces = {piece: row for row, piece in enumerate(pieces, 1)}
        self.actions = {action: row for row, action in enumerate(actions, 1)}
        self.width, self.places = width, places
        self._rows: dict[str, IntArray] = {}

    @classmethod
    def of(cls, data: Sequence[Episode]) -> Vocabulary:
        """Return what recorded episodes show."""
        states = [t.state for episode in data for t in episode]
        seen = [pieces(text) for text in dict.fromkeys(state.observation for state in states)]
        listed = dict.fromkeys(state.actions for state in states)
        return cls(
            sorted({piece for own in seen for piece in own}),
            sorted({action for own in listed for action in own or ()}),
            max(map(len, seen), default=1),
            max(map(len, data), default=1),
        )

    def observation(self, text: str) -> IntArray:
        """Return the rows of an observation's pieces, shape (width,), with 0 for none.

        Raises:
            UsageError: if it has more pieces than any in the data, or one that the data never show.
        """
        if text not in self._rows:
            own = pieces(text)
            for piece in own[self.width :] + [piece for piece in own if piece not in self.pieces]:
                raise UsageError(f"The recorded data never show {piece!r} as here: {text!r}.")
            self._rows[text] = np.pad([self.pieces[p] for p in own], (0, self.width - len(own))).astype(
                np.int64
            )
        return self._rows[text]

    def action(self, text: str) -> int:
        """Return the row of an action.

        Raises:
            UsageError: if the data never show it.
        """
        if text not in self.actions:
            raise UsageError(f"The recorded data never show the action {text!r}.")
        return self.actions[text]

    def life(self, episode: Sequence[Transition], labels: Sequence[str | None]) -> Life:
        """Return an episode as arrays."""
        return Life(
            np.stack([self.observation(t.state.observation) for t in episode]),
            np.array([self.action(t.action) for t in episode]),
            np.array([t.reward for t in episode]),
            np.array([-1 if label is None else self.action(label) - 1 for label in labels]),
        )


def histories(data: Sequence[Episode]) -> list[list[Episode]]:
    """Return the episodes of each lifetime in the order of their numbers."""
    grouped: dict[int, list[Episode]] = defaultdict(list)
    for episode in data:
        grouped[episode.lifetime].append(episode)
    return [sorted(own, key=lambda episode: episode.number) for _, own in sorted(grouped.items())]


def labelled(
    history: Sequence[Episode], labels: Labels, best: Callable[[Any], str] | None
) -> list[list[str | None]]:
    """Return the action to predict at each step of each episode; None for none.

    Args:
        history: The episodes of a history.
        labels: Which actions.
        best: The best action in a state of ``info["raw"]``, for the labels ``best``.
    """
    if labels == "taken":
        return [[t.action for t in episode] for episode in history]
    if labels == "best" and best is not None:
        return [[best(t.state.raw) for t in episode] for episode in history]
    counts: Mapping[str, Counter[str]] = defaultdict(Counter)
    for t in (t for episode in history[-max(1, len(history) // 10) :] for t in episode):
        counts[t.state.observation][t.action] += 1
    usual = {text: own.most_common(1)[0][0] for text, own in counts.items()}
    return [[usual.get(t.state.observation) for t in episode] for episode in history]


def drawn(n: int, episodes: int, stride: int, order: Order, rng: np.random.Generator) -> list[int]:
    """Return the indices of the episodes of an example.

    Args:
        n: Episodes of the history.
        episodes: Episodes of the example.
        stride: Distance between two of them in the history.
        order: Which of them.
        rng: Draws where they begin, or all of them.
    """
    if order == "shuffled":
        return [int(i) for i in rng.permutation(n)[:episodes]]
    span = stride * (episodes - 1) + 1 if order == "histories" else episodes
    first = int(rng.integers(n - span + 1)) if order == "histories" else n - episodes
    return list(range(first, first + span, stride if order == "histories" else 1))


def batch(lives: Sequence[Sequence[Life]]) -> tuple[Any, ...]:
    """Return the arrays of :class:`hunch.rl.sequence.Steps` for lifetimes, and last their labels, (n, T)."""
    rows = [_joined(own) for own in lives]
    longest = max(len(labels) for *_, labels in rows)
    padded = [[_padded(part, longest, -1 if i == 4 else 0) for i, part in enumerate(row)] for row in rows]
    return tuple(np.stack(part) for part in zip(*padded, strict=True))


def _joined(lives: Sequence[Life]) -> tuple[Any, ...]:
    """Return the steps of a lifetime; each with the action and the reward before it, across episodes."""
    own = Life(*(np.concatenate(part) for part in zip(*lives, strict=True)))
    places = np.concatenate([np.arange(len(life.labels)) for life in lives])
    return own.pieces, np.append(0, own.actions[:-1]), np.append(0.0, own.rewards[:-1]), places, own.labels


def _padded(part: Any, length: int, value: int) -> Any:
    after = [(0, length - len(part)), *[(0, 0)] * (part.ndim - 1)]
    return np.pad(part, after, constant_values=value)
