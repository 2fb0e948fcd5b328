"""The policies of the corpus's episodes: found by search, drawn for each state, or by one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final, TypeAlias

from hunch_studies.laboratory.processes import Process, Vector

Policy: TypeAlias = Callable[[Vector], int]

DEPTH: Final = 6
"""Steps that the search looks ahead."""
DISCOUNT: Final = 0.9


def draw(rng: Random, process: Process) -> Policy:
    """Draw a policy that takes one action in each state.

    Numbers that change by chance have no influence on it.
    """
    sort = rng.random()
    if sort < 0.5:
        return best(rng, process)
    return by_state(rng, process) if sort < 0.75 else by_number(rng, process)


def best(rng: Random, process: Process) -> Policy:
    """Return the policy with the largest discounted reward of the next steps, found by search.

    Among equally good actions it always prefers the same ones.
    """
    order = rng.sample(process.actions, len(process.actions))
    known: dict[tuple[Vector, int], float] = {}

    def after(state: Vector, action: int, depth: int) -> float:
        reward, done, following = process.step(state, action, rng)
        return reward + (0 if done else DISCOUNT * value(_still(process, following), depth - 1))

    def value(state: Vector, depth: int) -> float:
        if not depth:
            return 0.0
        if (state, depth) not in known:
            known[state, depth] = max(after(state, action, depth) for action in order)
        return known[state, depth]

    def policy(state: Vector) -> int:
        state = _still(process, state)
        return max(order, key=lambda action: round(after(state, action, DEPTH), 9))

    return policy


def by_state(rng: Random, process: Process) -> Policy:
    """Return a policy whose actions are drawn for each state by itself."""
    drawn: dict[Vector, int] = {}
    return lambda state: drawn.setdefault(_still(process, state), rng.choice(process.actions))


def by_number(rng: Random, process: Process) -> Policy:
    """Return a policy that depends on one number, by a table or a threshold."""
    steady = [i for i, number in enumerate(process.numbers) if number.kind != "noise"]
    i = rng.choice(steady[:2] if process.things else steady)
    number = process.numbers[i]
    if rng.random() < 0.6:
        table: Mapping[int, int] = {value: rng.choice(process.actions) for value in range(number.size)}
        return lambda state: table[int(state[i]) - number.low]
    below, same, above = (rng.choice(process.actions) for _ in range(3))
    bound = number.low + number.size // 2
    return lambda state: below if state[i] < bound else above if state[i] > bound else same


def _still(process: Process, state: Vector) -> Vector:
    """Return the state with the same value for each number that changes by chance."""
    return tuple(n.low if n.kind == "noise" else x for n, x in zip(process.numbers, state, strict=True))
