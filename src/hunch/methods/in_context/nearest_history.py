"""Look-up: repeats what the most similar recorded history did. The control of Algorithm Distillation.

If this does as well as a network that has read the same histories, the network only looks actions up::

    h <- the history that contains most steps (o, a, r) of the lifetime so far, ties at random
    a <- what h did at this observation, at the nearest step number; at random if it was never there
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hunch.core import FloatArray, State, World
from hunch.methods.in_context.lifetime import InContext, Lifetimes
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.rl.lifetimes import histories


@dataclass(frozen=True, kw_only=True)
class NearestHistoryConfig:
    """Settings of the look-up in recorded histories; there are none."""


class NearestHistory(InContext):
    """The agent of the look-up in recorded histories.

    Args:
        config: All settings; ``options`` change single ones.
    """

    config_class: ClassVar[type[Any]] = NearestHistoryConfig
    saved = ("acting", "known")

    def __init__(self, config: NearestHistoryConfig | None = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)

    def begin(self, world: World, seed: int) -> None:
        """Read the recorded histories."""
        self.known: list[list[tuple[str, str, float]]] = []  # of each history: its steps (o, a, r)
        for history in histories(world.data):
            steps = [(t.state.observation, t.action, t.reward) for episode in history for t in episode]
            self.known.append(steps)
        self._index()
        super().begin(world, seed)

    def _index(self) -> None:
        """Find histories by a step, and the positions and actions of each by an observation."""
        self.having: dict[tuple[str, str, float], FloatArray] = {}
        self.done: dict[str, dict[int, list[tuple[int, str]]]] = {}
        for h, steps in enumerate(self.known):
            for position, (observation, action, reward) in enumerate(steps):
                self.having.setdefault((observation, action, reward), np.zeros(len(self.known)))[h] = 1
                self.done.setdefault(observation, {}).setdefault(h, []).append((position, action))

    def player(self, seed: int) -> Reader:
        """Return a player with separate lifetimes."""
        return Reader(self, seed)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.known = [[(o, a, r) for o, a, r in steps] for steps in self.known]
        self._index()


class Reader(Lifetimes):
    """A player that looks actions up in an agent's histories."""

    def __init__(self, agent: NearestHistory, seed: int) -> None:
        super().__init__(seed)
        self.agent = agent

    def act(self, states: Sequence[State]) -> list[str]:
        """Look up an action for each state."""
        return [self._look_up(state) for state in states]

    def _look_up(self, state: State) -> str:
        # The histories that did something admissible at this observation.
        done = self.agent.done.get(state.observation, {})
        here = []
        for h, steps in done.items():
            if any(action in state.options for _, action in steps):
                here.append(h)
        if not here:
            return state.options[int(self.rng.integers(len(state.options)))]

        # h <- the one that contains most steps of the lifetime so far, ties at random
        lived = self.lived.get(state.stream, [])
        steps_in_common = np.zeros(len(self.agent.known))  # (histories,)
        for step in lived:
            steps_in_common += self.agent.having.get((step.observation, step.action, step.reward), 0.0)
        most = max(steps_in_common[h] for h in here)
        h = int(self.rng.choice([h for h in here if steps_in_common[h] == most]))

        # a <- what it did here at the nearest step number; the earlier one of two
        admissible = [(position, action) for position, action in done[h] if action in state.options]
        _, action = min(admissible, key=lambda step: abs(step[0] - len(lived)))
        return action


METHOD = Method(
    "nearest-history",
    NearestHistory,
    "do what the most similar recorded history did; the look-up control of algorithm-distillation",
    "ours",
    environments="environments with recorded histories of learners (hunch data histories)",
    data="needed",
)
