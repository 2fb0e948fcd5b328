"""Tabular Q-learning as a baseline of ICPI: the same schedule, with a table instead of prompts.

The baseline "Tabular Q" of Brooks et al. (2023): learning rate 1, optimistic values, one update per step,
greedy with random ties. Successes are all past episodes whose return reaches the domain's threshold. Unlike
the textbook, the released code also bootstraps at the end of an episode (``released``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hunch.core import FloatArray, State, Transition, World
from hunch.envs.icpi.texts import Texts
from hunch.methods.in_context.episodic import EpisodicAgent, ScheduleConfig
from hunch.methods.method import Method
from hunch.ranges import PositiveShare
from hunch.rl.tabular import QTable
from hunch.roles.world_model.experience import Episode, return_of


@dataclass(frozen=True, kw_only=True)
class TabularQConfig(ScheduleConfig):
    """Settings of tabular Q-learning."""

    learning_rate: PositiveShare = 1.0
    """Learning rate of Q (released code). With 1, each update replaces the old value."""
    initial: float = 1.0
    """Initial value of Q (released code)."""
    released: bool = False
    """Also bootstrap from the last state of an episode, as in the released code."""


class TabularQ(EpisodicAgent):
    """The agent of tabular Q; arguments as for :class:`~hunch.methods.in_context.episodic.EpisodicAgent`."""

    config_class = TabularQConfig
    saved = (*EpisodicAgent.saved, "table")

    def begin(self, world: World, seed: int) -> None:
        """Forget Q, and learn it from the recorded episodes."""
        gamma = 0.0  # that of the domain, which is known once the world has begun: see observe
        self.table = QTable(gamma, self.config.learning_rate, self.config.initial)
        super().begin(world, seed)

    def passes(self, episode: Episode, texts: Texts) -> bool:
        """Return whether the return reaches the domain's threshold."""
        return return_of(episode, texts.gamma) >= texts.success_threshold

    def q(self, states: Sequence[State], rng: np.random.Generator) -> list[FloatArray]:
        """Return the rows of the table, one array of shape (actions,) per state."""
        return [self.table.values(state.observation, state.options) for state in states]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember one step of each stream, and update the table with it."""
        super().observe(transitions)
        for t in transitions:
            self.table.gamma = self.words.gamma
            # Q(s, a) <- r + gamma max over a' of Q(s', a') at a learning rate of 1; r alone at a terminal s'
            follows = self.config.released or not t.terminated
            next_actions = t.next_state.options if follows else ()
            self.table.update(t.state.observation, t.action, t.reward, t.next_state.observation, next_actions)


METHOD = Method(
    "tabular-q",
    TabularQ,
    "Q-learning in a table; a baseline of icpi",
    "Watkins, Learning from Delayed Rewards, 1989; schedule of Brooks et al., NeurIPS 2023",
    environments="the domains of ICPI",
    reads={"wording"},
)
