"""Learning histories as arrays, for :mod:`hunch.rl.sequence`.

A history contains a learner's steps in one task, in order: the recorded episodes of one lifetime. A training
example is a part of it, as long as the lifetimes in which the network acts.
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
    """Return the words and numbers of a text; each number comes with the word before it and its position.

    >>> pieces("You are in row 3, column 4.")
    ['you', 'are', 'in', 'row', 'row 1 3', 'column', 'column 1 4']
    """
    word = ""
    place = 0  # of a number after the word
    listed = list[str]()
    for piece in _PIECE.findall(text.lower()):
        if piece[0].isalpha():
            word = piece
            place = 0
            listed.append(word)
        else:
            place += 1
            listed.append(f"{word} {place} {piece}")
    return listed


Order: TypeAlias = Literal["histories", "ends", "shuffled"]
"""Episodes of an example: successive ones from anywhere in the history, the last ones, or random ones."""
Labels: TypeAlias = Literal["taken", "final", "best"]
"""Action to predict: the recorded one, the learner's later one in this state (final), or the best one."""


class Life(NamedTuple):
    """An episode as arrays; ``labels`` are the actions to predict, -1 for none."""

    pieces: IntArray  # rows, shape (length, P)
    actions: IntArray  # rows, (length,)
    rewards: FloatArray  # (length,)
    labels: IntArray  # rows of actions minus one, (length,)


class Vocabulary:
    """Numbers of the words in observations and of the actions, as they occur in recorded episodes, from 1.

    ``width`` is the maximum number of words per observation, and ``places`` the maximum steps per episode.
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
    def of(cls, data: Sequence[Episode], *, ends: bool = False) -> Vocabulary:
        """Return the vocabulary of recorded episodes; with ``ends`` also of what ends them."""
        states = [t.state for episode in data for t in episode]
        read = [*states, *(episode[-1].next_state for episode in data)] if ends else states
        seen = [pieces(text) for text in dict.fromkeys(state.observation for state in read)]
        listed = dict.fromkeys(state.actions for state in states)
        return cls(
            sorted({piece for observation in seen for piece in observation}),
            sorted({action for actions in listed for action in actions or ()}),
            max(map(len, seen), default=1),
            max(map(len, data), default=1),
        )

    def observation(self, text: str) -> IntArray:
        """Return the numbers of an observation's words, shape (width,), padded with 0.

        Raises:
            UsageError: if it has more words than any in the data, or one that does not occur there.
        """
        if text not in self._rows:
            words = pieces(text)
            new = words[self.width :] + [word for word in words if word not in self.pieces]
            if new:
                raise UsageError(f"The recorded data never have {new[0]!r} where {text!r} has it.")
            numbers = [self.pieces[word] for word in words]
            self._rows[text] = np.pad(numbers, (0, self.width - len(words))).astype(np.int64)
        return self._rows[text]

    def action(self, text: str) -> int:
        """Return the number of an action.

        Raises:
            UsageError: if the action does not occur in the data.
        """
        if text not in self.actions:
            raise UsageError(f"The action {text!r} is not in the recorded data.")
        return self.actions[text]

    def life(self, episode: Sequence[Transition], labels: Sequence[str | None]) -> Life:
        """Return an episode as arrays, with the labels as numbers."""
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
    lifetimes = [episodes for _, episodes in sorted(grouped.items())]
    return [sorted(episodes, key=lambda episode: episode.number) for episodes in lifetimes]


def labelled(
    history: Sequence[Episode], labels: Labels, best: Callable[[Any], str] | None
) -> list[list[str | None]]:
    """Return the action to predict at each step of each episode; None for none.

    Args:
        history: The episodes of a history.
        labels: Which actions to predict.
        best: Returns the best action for ``info["raw"]``; needed for the labels ``best``.

    Raises:
        UsageError: if the labels are ``best``, and a step was recorded without ``info["raw"]``.
    """
    if labels == "taken":
        return [[t.action for t in episode] for episode in history]
    if labels == "best" and best is not None:
        return [[best_action(t, best) for t in episode] for episode in history]
    # final: what the learner took most often in the last tenth of its history
    counts: Mapping[str, Counter[str]] = defaultdict(Counter)
    last_tenth = history[-max(1, len(history) // 10) :]
    for episode in last_tenth:
        for t in episode:
            counts[t.state.observation][t.action] += 1
    usual = {text: actions.most_common(1)[0][0] for text, actions in counts.items()}
    return [[usual.get(t.state.observation) for t in episode] for episode in history]


def best_action(t: Transition, best: Callable[[Any], str]) -> str:
    """Return the best action in the state of a recorded step.

    Args:
        t: The step.
        best: Returns the best action for ``info["raw"]``.

    Raises:
        UsageError: if the step was recorded without ``info["raw"]``.
    """
    if t.state.raw is None:
        raise UsageError(
            "The best actions are those of the environment's own states (info['raw']), and the data were "
            "recorded without these: record them by hunch data histories."
        )
    return best(t.state.raw)


def drawn(n: int, episodes: int, stride: int, order: Order, rng: np.random.Generator) -> list[int]:
    """Return the indices of the episodes of an example.

    Args:
        n: Episodes of the history.
        episodes: Episodes of the example.
        stride: Distance in the history between successive episodes.
        order: Which episodes to take.
        rng: Draws the first episode, or all of them.
    """
    if order == "shuffled":
        return [int(i) for i in rng.permutation(n)[:episodes]]
    if order == "ends":
        return list(range(n - episodes, n))
    span = stride * (episodes - 1) + 1
    first = int(rng.integers(n - span + 1))
    return list(range(first, first + span, stride))


def batch(lives: Sequence[Sequence[Life]]) -> tuple[Any, ...]:
    """Return the arrays of :class:`hunch.rl.sequence.Steps` for lifetimes, and the labels, shape (n, T)."""
    rows = [_joined(lifetime) for lifetime in lives]
    longest = max(len(labels) for *_, labels in rows)  # T
    padded = []
    for *steps, labels in rows:
        padded.append([*(_padded(part, longest, 0) for part in steps), _padded(labels, longest, -1)])
    return tuple(np.stack(part) for part in zip(*padded, strict=True))


def _joined(lives: Sequence[Life]) -> tuple[Any, ...]:
    """Return the steps of a lifetime; each with the action and the reward before it, across episodes."""
    whole = Life(*(np.concatenate(part) for part in zip(*lives, strict=True)))
    actions_before = np.append(0, whole.actions[:-1])
    rewards_before = np.append(0.0, whole.rewards[:-1])
    places = np.concatenate([np.arange(len(life.labels)) for life in lives])
    return whole.pieces, actions_before, rewards_before, places, whole.labels


def _padded(part: Any, length: int, value: int) -> Any:
    """Return an array of steps with a value appended up to a length."""
    widths = [(0, length - len(part)), *[(0, 0)] * (part.ndim - 1)]
    return np.pad(part, widths, constant_values=value)
