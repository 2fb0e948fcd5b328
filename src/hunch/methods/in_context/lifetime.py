"""Base classes of agents that improve within a lifetime, a sequence of episodes with the same task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hunch.core import Agent, FloatArray, Player, State, Transition, World


class Lived(NamedTuple):
    """A step of a lifetime; ``last`` is true if its episode ended there."""

    observation: str
    action: str
    reward: float
    last: bool


class Lifetimes(Player):
    """A player that remembers the steps of each stream's lifetime.

    Args:
        seed: Seed of the choices.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lived: dict[int, list[Lived]] = {}  # by stream, oldest first

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Add steps to the lifetimes of their streams."""
        for t in transitions:
            step = Lived(t.state.observation, t.action, t.reward, t.done)
            self.lived.setdefault(t.stream, []).append(step)

    def forget(self, streams: Sequence[int]) -> None:
        """Start new lifetimes in these streams."""
        for stream in streams:
            self.lived.pop(stream, None)

    def state_dict(self) -> dict[str, Any]:
        """Return lifetimes and random state."""
        lived = [(stream, [tuple(step) for step in steps]) for stream, steps in self.lived.items()]
        return {"rng": self.rng.bit_generator.state, "lived": lived}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.rng.bit_generator.state = state["rng"]
        self.lived = {stream: [Lived(*step) for step in steps] for stream, steps in state["lived"]}


class Drawing(Lifetimes):
    """A player that draws each action from a policy that depends on the lifetime so far."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action for each state."""
        drawn = zip(states, self.policy(states), strict=True)
        return [state.options[int(self.rng.choice(len(p), p=p))] for state, p in drawn]

    def policy(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probability of each action of each state."""
        raise NotImplementedError


def since(lived: Sequence[Lived]) -> int:
    """Return the number of steps of the episode so far, which are those after the last end of an episode."""
    for n, step in enumerate(reversed(lived)):
        if step.last:
            return n
    return len(lived)


class InContext(Agent):
    """An agent that acts as its players do: by fixed weights, or none, and the lifetime so far."""

    saved: ClassVar[tuple[str, ...]] = ("acting",)
    acting: Lifetimes

    def begin(self, world: World, seed: int) -> None:
        """Forget all lifetimes."""
        self.acting = self.player(seed)

    def player(self, seed: int) -> Lifetimes:
        """Return a player with separate lifetimes."""
        raise NotImplementedError

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose an action for each state by its lifetime so far."""
        return self.acting.act(states)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Add the steps to their lifetimes."""
        self.acting.observe(transitions)

    def forget(self, streams: Sequence[int]) -> None:
        """Start new lifetimes in these streams."""
        self.acting.forget(streams)
