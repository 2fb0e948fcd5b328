"""Random decision processes over short vectors of numbers: the worlds of the pocket model's corpus.

A process is composed of a few random rules: how a number is kept in its range, what an action does to it,
which places are walled off, and what earns a reward or ends the episode.

The six domains of ICPI, on which the model is evaluated, are left out by construction: see :func:`held_out`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from random import Random
from typing import Final, Literal, TypeAlias

Vector: TypeAlias = tuple[float, ...]
Edge: TypeAlias = Literal["clip", "wrap"]
Kind: TypeAlias = Literal["shift", "table", "pull", "drift", "noise", "countdown"]

MOST_STEPS: Final = 12
GONE: Final = inf
"""The place of a thing that has been removed."""


@dataclass(frozen=True)
class Number:
    """One number of the state.

    Attributes:
        low: Smallest value.
        size: Number of values.
        edge: Behaviour beyond the range.
        kind: What changes it: the action's shift, the action's table, the previous number (which pulls it),
            the next number (its speed), chance, or the clock.
        real: True if its first value is not a whole number.
    """

    low: int
    size: int
    edge: Edge
    kind: Kind
    real: bool = False

    def start(self, rng: Random) -> float:
        """Draw a first value."""
        if self.kind == "countdown":
            return self.low + self.size - 1
        if self.real:
            return round(self.low + rng.random() * (self.size - 1), 2)
        return self.low + rng.randrange(self.size)

    def keep(self, value: float) -> float:
        """Return the value, brought back into the range."""
        if self.edge == "wrap" and not self.real:
            return self.low + (value - self.low) % self.size
        return min(max(value, self.low), self.low + self.size - 1)


@dataclass(frozen=True)
class Goal:
    """The condition of the reward: a test of the state before the action, and optionally a certain action.

    Attributes:
        kind: One number equals a value, or reaches it; the first ones equal ``values``; a pair is equal; or
            the action hits: things in the first one's column are removed, each for a reward.
        values: Required values of the tested numbers.
        action: The only action that counts; ``None`` for any.
        pair: The two numbers that must be equal; the first of them is the one that must have a value.
        final: True if it counts only when the clock runs out.
    """

    kind: Literal["equal", "reach", "place", "meet", "hit"]
    values: Vector
    action: int | None
    pair: tuple[int, int] = (0, 1)
    final: bool = False

    def met(self, state: Vector, action: int) -> bool:
        """Return whether the condition is met."""
        if self.action is not None and action != self.action:
            return False
        if self.kind == "equal":
            return state[self.pair[0]] == self.values[0]
        if self.kind == "reach":
            return state[self.pair[0]] >= self.values[0]
        if self.kind == "place":
            return state[: len(self.values)] == self.values
        i, j = self.pair
        return state[i] == state[j]


@dataclass(frozen=True)
class Process:
    """A decision process.

    Attributes:
        numbers: The numbers of the state.
        moves: What each action adds to each number; for a table, the index of the table.
        tables: The next value for each value of a number, by number and table.
        walls: Pairs of a place and an action that changes nothing there.
        goal: The condition of the reward.
        reward: The reward.
        ends: True if the goal ends the episode; a countdown at its smallest value always does.
        always_ends: True if the goal's action ends the episode even if the goal is not met.
        things: True if the numbers are the places of things, two per thing.
    """

    numbers: tuple[Number, ...]
    moves: tuple[tuple[int, ...], ...]
    tables: Mapping[tuple[int, int], tuple[int, ...]]
    walls: frozenset[tuple[Vector, int]]
    goal: Goal
    reward: int
    ends: bool
    always_ends: bool
    things: bool = False

    @property
    def actions(self) -> range:
        """The indices of the actions."""
        return range(len(self.moves))

    @property
    def can_end(self) -> bool:
        """Whether an episode can end at all."""
        return self.ends or self.always_ends or any(number.kind == "countdown" for number in self.numbers)

    def start(self, rng: Random) -> Vector:
        """Draw a first state."""
        return tuple(number.start(rng) for number in self.numbers)

    def step(self, state: Vector, action: int, rng: Random) -> tuple[float, bool, Vector]:
        """Return reward, end and next state."""
        state, hits = self._hit(state, action)
        out = any(
            number.kind == "countdown" and value == number.low
            for number, value in zip(self.numbers, state, strict=True)
        )
        met = hits > 0 if self._hitting else self.goal.met(state, action) and (out or not self.goal.final)
        done = out or (met and self.ends) or (self.always_ends and action == self.goal.action)
        done |= self._hitting and set(state[2:]) == {GONE}
        blocked = (state, action) in self.walls
        values = enumerate(zip(self.numbers, state, strict=True))
        following = tuple(
            value if blocked and n.kind == "shift" else self._next(i, n, state, action, rng)
            for i, (n, value) in values
        )
        return self.reward * max(hits, int(met)), done, following

    @property
    def _hitting(self) -> bool:
        return self.goal.kind == "hit"

    def _hit(self, state: Vector, action: int) -> tuple[Vector, int]:
        """Remove what the action hits, and return the number of things hit."""
        if not self._hitting or action != self.goal.action:
            return state, 0
        hit = [i for i in range(2, len(state), 2) if state[i] == state[0]]
        gone = {i + j for i in hit for j in (0, 1)}
        return tuple(GONE if i in gone else value for i, value in enumerate(state)), len(hit)

    def _next(self, i: int, number: Number, state: Vector, action: int, rng: Random) -> float:
        value, move = state[i], self.moves[action][i]
        if value == GONE:
            return value
        if number.kind == "noise":
            return number.low + rng.randrange(number.size)
        if number.kind == "countdown":
            return max(value - 1, number.low)
        if number.kind == "table":
            return number.low + self.tables[i, move][int(value) - number.low]
        if number.kind == "pull":
            return round(number.keep(value + state[i - 1] % 3 - 1 + move), 2)
        if number.kind == "drift":
            return number.keep(value + state[i + 1])
        return round(number.keep(value + move), 2)


def draw(rng: Random, ease: float = 1.0) -> Process:
    """Draw a process.

    Args:
        rng: Random generator.
        ease: Probability of the simplest kind, shifts within a range, from 0 to 1.
    """
    while True:
        process = _draw(rng, simple=rng.random() < ease)
        if not held_out(process):
            return process


def _draw(rng: Random, simple: bool) -> Process:
    sort = rng.random()
    if sort < 0.52:
        return _things(rng) if sort < 0.38 else _maze(rng)
    count = rng.choice((1, 1, 2, 2, 2) if simple else (1, 2, 2, 3, 3, 4))
    numbers = tuple(_number(rng, simple, i) for i in range(count))
    if rng.random() < (0.08 if simple else 0.2):
        numbers = _moving(rng)
    actions = rng.choice((2, 3, 3, 4))
    moves = tuple(tuple(_move(rng, number, a) for number in numbers) for a in range(actions))
    tables = {
        (i, t): _table(rng, number.size)
        for i, number in enumerate(numbers)
        if number.kind == "table"
        for t in range(4)
    }
    goal = _goal(rng, numbers, actions)
    return Process(
        numbers,
        moves,
        tables,
        frozenset() if simple else _walls(rng, numbers, actions),
        goal,
        rng.choice((1, 1, 1, 1, 2, 3, 5, -1)),
        ends=rng.random() < 0.8,
        always_ends=rng.random() < 0.3,
    )


def _things(rng: Random) -> Process:
    """Draw two or three things on a board; actions move the first or hit; most others fall or stand still."""
    width = rng.randint(3, 9)
    edge: Edge = rng.choice(("clip", "clip", "wrap"))
    across = Number(0, width, edge, "shift")
    still, clock = Number(0, 1, "clip", "shift"), Number(0, rng.randint(3, 8), "clip", "countdown")
    up = rng.choice((clock, clock, Number(0, rng.randint(3, 8), "wrap", "shift")))
    others = rng.choice((1, 1, 2))
    numbers = (across, rng.choice((still, still, across)), *(across, up) * others)
    drift = rng.choice((0, 0, 0, 1, -1))
    moves = tuple(
        (rng.choice((-1, 0, 1)), rng.choice((-1, 0, 1)), *(drift, 1) * others)
        for _ in range(rng.choice((2, 3, 3, 4)))
    )
    action = rng.randrange(len(moves)) if rng.random() < 0.4 else None
    goal = Goal("meet", (0.0,), action, (0, 2), final=up is clock and rng.random() < 0.7)
    if action is not None and rng.random() < 0.6:
        goal = Goal("hit", (0.0,), action)
    reward = rng.choice((1, 1, 1, 2, 5, -1))
    return Process(numbers, moves, {}, frozenset(), goal, reward, rng.random() < 0.4, False, things=True)


def _maze(rng: Random) -> Process:
    """Draw a board with a wall between some neighbours, four directions, and a place to find."""
    rows, columns = (Number(rng.choice((0, 0, 0, 1)), rng.randint(2, 6), "clip", "shift") for _ in "ij")
    moves = tuple(rng.sample([(0, -1), (1, 0), (-1, 0), (0, 1)], 4))
    share = rng.choice((0.0, 0.1, 0.2, 0.3))
    walls = set()
    for place in product(*(range(n.low, n.low + n.size) for n in (rows, columns))):
        for down, right in ((1, 0), (0, 1)):
            if rng.random() < share:
                beyond = (float(place[0] + down), float(place[1] + right))
                walls |= {
                    ((float(place[0]), float(place[1])), moves.index((down, right))),
                    (beyond, moves.index((-down, -right))),
                }
    values = tuple(float(n.low + rng.randrange(n.size)) for n in (rows, columns))
    goal = Goal("place", values, rng.randrange(4) if rng.random() < 0.2 else None)
    reward = rng.choice((1, 1, 1, 2, 5, -1))
    return Process((rows, columns), moves, {}, frozenset(walls), goal, reward, rng.random() < 0.9, False)


def _moving(rng: Random) -> tuple[Number, Number]:
    """Draw a place and its speed, both whole."""
    low = -rng.randint(2, 20)
    place = Number(low, rng.randint(-low + 3, 40), rng.choice(("clip", "wrap")), "drift")
    return place, Number(-rng.randint(1, 4), rng.randint(5, 9), "clip", "shift")


def _number(rng: Random, simple: bool, i: int) -> Number:
    kinds: Sequence[Kind] = ("shift",) * 6 + ("noise", "countdown", "table", "pull")
    kind: Kind = "shift" if simple or not i else rng.choice(kinds)
    if not simple and not i and rng.random() < 0.15:
        kind = "table"
    if kind == "countdown":
        return Number(0, rng.randint(3, 8), "clip", kind)
    edge: Edge = rng.choice(("clip", "clip", "wrap"))
    real = kind == "shift" and rng.random() < (0.05 if simple else 0.15)
    low = rng.choice((0, 0, 0, 0, 1, 1, rng.randint(-9, 9)))
    return Number(low, rng.randint(10, 20) if real else rng.randint(3, 12), edge, kind, real)


def _move(rng: Random, number: Number, action: int) -> int:
    if number.kind == "table":
        return rng.randrange(4)
    return rng.choice((-1, 1, 1, -1, 0, 0, 2, -2, rng.randint(-3, 3)))


def _table(rng: Random, size: int) -> tuple[int, ...]:
    """Draw a permutation, or a graph with one arrow out of each place."""
    if rng.random() < 0.5:
        return tuple(rng.sample(range(size), size))
    return tuple(rng.randrange(size) for _ in range(size))


def _goal(rng: Random, numbers: Sequence[Number], actions: int) -> Goal:
    kinds = ["equal", "equal", "reach"] + (["place", "place", "meet", "meet"] if len(numbers) > 1 else [])
    kind = rng.choice(kinds)
    i = rng.randrange(len(numbers)) if kind in ("equal", "reach") and rng.random() < 0.5 else 0
    tested = numbers[:2] if kind == "place" else numbers[i : i + 1]
    values = tuple(float(n.low + rng.randrange(n.size)) for n in tested)
    action = rng.randrange(actions) if rng.random() < 0.4 else None
    return Goal(kind, values, action, (i, 1 - i if i < 2 else 0))  # type: ignore[arg-type]


def _walls(rng: Random, numbers: Sequence[Number], actions: int) -> frozenset[tuple[Vector, int]]:
    """Draw walls around some places, if there are few states."""
    if len(numbers) > 2 or any(n.kind != "shift" or n.real for n in numbers) or rng.random() < 0.4:
        return frozenset()
    share = rng.choice((0.1, 0.2, 0.3))
    places = product(*(range(n.low, n.low + n.size) for n in numbers))
    return frozenset(
        (tuple(map(float, place)), a) for place in places for a in range(actions) if rng.random() < share
    )


def held_out(process: Process) -> bool:
    """Return whether a process is too similar to a domain on which the model is evaluated.

    These are: a line of eight places from 0 that is not left (Chain, DistractorChain); a board of three by
    three (Maze); four columns with a clock, or with anything that falls (MiniCatch, MiniInvaders); a real
    number that another one moves (PointMass).
    """
    sizes = [number.size for number in process.numbers if number.kind != "noise"]
    line = any(n.low == 0 and n.size == 8 and n.edge == "clip" and n.kind == "shift" for n in process.numbers)
    board = len(sizes) >= 2 and sizes[:2] == [3, 3]
    columns = 4 in sizes and any(n.kind == "countdown" for n in process.numbers)
    pulled = any(
        (n.kind == "pull" or m.kind == "drift") and (m.real or n.real)
        for m, n in zip(process.numbers, process.numbers[1:], strict=False)
    )
    return line or board or columns or pulled
