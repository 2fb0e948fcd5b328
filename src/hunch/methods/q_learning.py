"""Q-learning in a table over the texts of states, for environments in which the same texts recur.

Algorithm (Watkins, Learning from Delayed Rewards, 1989)::

    for each step
        a       <- any action with probability epsilon, else one with the largest Q(s, .), or one drawn from
                   softmax(Q(s, .) / alpha)
        Q(s, a) <- Q(s, a) + rate * (r + gamma * max Q(s', .) - Q(s, a))
    at the end of an episode: the same for its steps again, the last first, ``sweeps`` times

Updating backwards follows Lin (1992): the reward of the last step reaches the first at once. This is
the learner inside :mod:`hunch.methods.reward.kwon`, :mod:`hunch.methods.reward.motif` and
:mod:`hunch.methods.goal.ellm`, and their baseline without rewards or goals of a model. It also trains the
skills of planners: if the end pays 1 and gamma is below 1, Q falls with the distance to the end, and
:mod:`hunch.roles.planner.skills` calibrates it to a probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hunch.core import Agent, Explanation, FloatArray, Memoryless, State, Transition, World
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.ranges import Decay, NonNegativeFloat, NonNegativeInt, PositiveShare, Share
from hunch.rl.tabular import QTable

Step: TypeAlias = tuple[tuple[Any, ...], str, float, tuple[Any, ...], tuple[str, ...], tuple[float, ...]]
"""s, a, r, s', the actions of s' (none if s' is terminal), and the :meth:`~QLearning.leaning` of s'."""


@dataclass(frozen=True, kw_only=True)
class QLearningConfig:
    """Settings of Q-learning in a table."""

    gamma: Share = 0.97
    """Discount per step (our choice)."""
    learning_rate: PositiveShare = 0.2
    """Learning rate of Q, at most 1: the share by which Q moves towards its target (our choice)."""
    initial: float = 0.0
    """Initial value of Q (our choice)."""
    epsilon: Decay = (1.0, 0.05, 5_000)
    """Share of random actions: its start, its end, and the environment steps between them (our choice)."""
    alpha: NonNegativeFloat = 0.0
    """In training, draw from softmax(Q / alpha); 0 takes the best action instead (our choice)."""
    sweeps: NonNegativeInt = 1
    """Number of backward replays of an episode when it has ended (our choice)."""
    see_task: bool = True
    """Give states with different tasks or goals separate rows of the table."""


class QLearning(Agent):
    """The agent of Q-learning in a table.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = QLearningConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "table", "steps", "episodes", "unlearnt")

    def __init__(self, config: QLearningConfig | None = None, **options: Any) -> None:
        self.config: QLearningConfig = configure(type(self), config, options)

    def begin(self, world: World, seed: int) -> None:
        """Forget everything, and learn from the recorded episodes of the world, if there are any."""
        self.rng = np.random.default_rng(seed)
        self.steps = 0
        self.relearn([t for episode in world.data for t in episode])

    def relearn(self, transitions: Sequence[Transition]) -> None:
        """Forget Q, and learn it again from these steps; the decay of epsilon continues."""
        c = self.config
        self.table = QTable(c.gamma, c.learning_rate, c.initial)
        self.episodes: dict[int, list[Step]] = {}  # by stream: the steps of an episode that goes on
        self.unlearnt: list[tuple[int, Step, bool]] = []  # stream, step, and whether its episode ended
        steps = self.steps
        self.observe(transitions)
        self.learn()
        self.steps = steps

    # ---- acting -------------------------------------------------------------------------------------------

    @property
    def epsilon(self) -> float:
        """The current share of random actions."""
        start, end, over = self.config.epsilon
        return start + (end - start) * min(1.0, self.steps / max(1, over))

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose a random action with probability epsilon, else the best or a draw by softmax(Q / alpha)."""
        actions = []
        for state in states:
            if self.rng.random() < self.epsilon:
                actions.append(state.options[int(self.rng.integers(len(state.options)))])
            elif self.config.alpha:
                shares = np.cumsum(self.policy(state))
                # Below 1 by a hair, because the shares may sum to slightly less than 1.
                index = np.searchsorted(shares, self.rng.random() * (1 - 1e-12))
                actions.append(state.options[int(index)])
            else:
                actions.append(self.best(state, self.rng))
        return actions

    def policy(self, state: State) -> FloatArray:
        """Return the probability of each action in training, apart from the random actions of epsilon."""
        scores = self.scores(self.q(state), self.leaning(state))
        if self.config.alpha:
            weights = np.exp((scores - scores.max()) / self.config.alpha)
        else:
            weights = (scores == scores.max()).astype(np.float64)
        return np.asarray(weights / weights.sum())

    def best(self, state: State, rng: np.random.Generator) -> str:
        """Return one of the actions with the largest score."""
        scores = self.scores(self.q(state), self.leaning(state))
        ties = np.flatnonzero(scores == scores.max())
        return state.options[int(ties[rng.integers(len(ties))])]

    def leaning(self, state: State) -> tuple[float, ...]:
        """Return a number per action that influences the choice; empty unless a subclass has a prior."""
        return ()

    def scores(self, q: FloatArray, leaning: tuple[float, ...]) -> FloatArray:
        """Return the score by which actions are chosen, shape (number of actions,); here Q."""
        return q

    def q(self, state: State) -> FloatArray:
        """Return Q of each admissible action, shape (number of actions,)."""
        return self.table.values(self.key(state), state.options)

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the largest Q of each state, shape (n,)."""
        return np.array([self.q(state).max() for state in states])

    def key(self, state: State) -> tuple[Any, ...]:
        """Return the key of a state's row in the table."""
        return (state.observation, state.aim if self.config.see_task else "", state.history)

    # ---- learning -----------------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember the steps, from which :meth:`learn` learns."""
        self.steps += len(transitions)
        for t in transitions:
            next_actions: tuple[str, ...] = ()
            leaning: tuple[float, ...] = ()
            if not t.terminated:
                next_actions = t.next_state.options
                leaning = self.leaning(t.next_state)
            step = (self.key(t.state), t.action, t.reward, self.key(t.next_state), next_actions, leaning)
            self.unlearnt.append((t.stream, step, t.done))

    def learn(self) -> dict[str, float]:
        """Update Q with each new step, and backwards at the end of an episode; return the table's size."""
        for stream, step, done in self.unlearnt:
            self.update(step)
            episode = self.episodes.setdefault(stream, [])
            episode.append(step)
            if done:
                for _ in range(self.config.sweeps):
                    for earlier in reversed(episode):
                        self.update(earlier)
                del self.episodes[stream]
        self.unlearnt = []
        return {"entries": float(len(self.table.entries))}

    def update(self, step: Step) -> None:
        """Move Q(s, a) towards r + gamma Q(s', a'), a' the action with the largest score in s'."""
        state, action, reward, next_state, next_actions, leaning = step
        prefer = partial(self.scores, leaning=leaning)
        self.table.update(state, action, reward, next_state, next_actions, prefer)

    # ---- evaluating and explaining ------------------------------------------------------------------------

    def player(self, seed: int) -> Memoryless:
        """Return a player that takes the best action, breaking ties at random."""
        return Memoryless(lambda states, rng: [self.best(state, rng) for state in states], seed)

    def explain(self, state: State) -> Explanation:
        """Explain by Q, and by the probability of each action in training."""
        q = self.q(state)
        return Explanation({"Q": q}, self.epsilon / len(q) + (1 - self.epsilon) * self.policy(state))


METHOD = Method(
    "q-learning",
    QLearning,
    "Q-learning in a table; trains the skills of planners; the baseline of kwon, motif and ellm",
    "Watkins, Learning from Delayed Rewards, 1989",
    environments="small text environments",
)
