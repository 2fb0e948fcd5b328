"""What the agents of the ICPI experiments share: episodes remembered, and when to act by oneself.

An agent acts by itself with probability 1 / (1 + exp(2 (required - n))), n being its successes, and at random
otherwise. It sees states only. The words of their domain, which prompts are made of, are recognised by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any, ClassVar

import numpy as np

from hunch.core import EvidenceLevel, Explanation, FloatArray, State, Transition, UsageError
from hunch.envs.icpi.reading import texts_of
from hunch.envs.icpi.texts import Texts
from hunch.roles.experience import Episode, Example, Experience, discounted_return

STEEPNESS = 2


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """When an agent acts by itself."""

    required_successes: float = 3.0
    """Successes at which half of the actions are the agent's own, the others random (released code)."""


class Scheduled:
    """An agent that acts by itself the more often, the more successes it has.

    Args:
        config: All settings; ``options`` change single ones.
        texts: The words of the domain. Default: those of the domain of ICPI that the states are of.

    Raises:
        UsageError: on an unknown option.
    """

    defaults: ClassVar[type[Any]] = ScheduleConfig
    evidence: EvidenceLevel = "L0"

    def __init__(self, config: Any = None, *, texts: Texts | None = None, **options: Any) -> None:
        try:
            self.config = replace(config or self.defaults(), **options)
        except TypeError as error:
            raise UsageError(f"{type(self).__name__} has no such option: {error}.") from error
        self.texts = texts
        self.reset(0)

    def passes(self, episode: Episode, texts: Texts) -> bool:
        """Whether an episode counts as a success: here every one does."""
        return True

    def ready(self, state: State) -> bool:
        """Whether there is enough to act by."""
        return True

    def values(self, states: Sequence[State], rng: np.random.Generator) -> list[FloatArray]:
        """Q(s, a) of every action of every state."""
        raise NotImplementedError

    def choose(self, states: Sequence[State], rng: np.random.Generator) -> list[str]:
        """The agent's own actions: those of the largest value, equals drawn at random."""
        rows = self.values(states, rng)
        return [s.actions[int(rng.choice(best(row)))] for s, row in zip(states, rows, strict=True)]

    def reset(self, seed: int) -> None:
        """Forget all episodes."""
        self.rng, self.evaluation_rng = np.random.default_rng(seed).spawn(2)
        self.experience = Experience(getattr(self.config, "success_buffer", None))
        self.running: list[list[Example]] = []

    def act(self, states: Sequence[State], *, explore: bool = True) -> list[str]:
        """Toss a coin for each state: the agent's own action, or a random one."""
        rng = self.rng if explore else self.evaluation_rng
        share = self.share() if explore else 1.0
        actions = [str(rng.choice(state.actions)) for state in states]
        tossed = [bool(rng.random() < share) for _ in states]
        own = [i for i, state in enumerate(states) if tossed[i] and self.ready(state)]
        for i, action in zip(own, self.choose([states[i] for i in own], rng) if own else (), strict=True):
            actions[i] = action
        return actions

    def share(self) -> float:
        """The probability of an action of the agent's own."""
        missing = self.config.required_successes - len(self.experience.successes)
        return 1 / (1 + exp(STEEPNESS * missing))

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember one step of each environment; an episode counts once it has ended."""
        self.running += [[] for _ in transitions[len(self.running) :]]
        for i, t in enumerate(transitions):
            self.running[i].append(
                Example(t.state.observation, t.action, t.reward, t.terminated, t.next_state.observation)
            )
            if t.done:
                episode, self.running[i] = tuple(self.running[i]), []
                self.experience.add(episode, self.passes(episode, self.words(t.state)))

    def learn(self) -> dict[str, float]:
        """Nothing: what there is to learn is in the episodes."""
        return {}

    def explain(self, state: State) -> Explanation:
        """The values, and the probability of each action; there is no prior."""
        n = len(state.actions)
        q, posterior = np.full(n, np.nan), np.full(n, 1 / n)
        if self.ready(state):
            q = self.values([state], np.random.default_rng(0))[0]
            own = np.isin(np.arange(n), best(q)) / len(best(q))
            posterior = self.share() * own + (1 - self.share()) / n
        return Explanation(np.full(n, np.nan), q, posterior)

    def words(self, state: State) -> Texts:
        """The words of the state's domain.

        Raises:
            UsageError: if it is none of those of ICPI, and the agent was not given any.
        """
        return self.texts or texts_of(state.observation)

    def state_dict(self) -> dict[str, Any]:
        """All episodes, and the state of the random numbers."""
        return {
            "rng": [rng.bit_generator.state for rng in (self.rng, self.evaluation_rng)],
            "experience": self.experience.state_dict(),
            "running": [list(map(tuple, episode)) for episode in self.running],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        for rng, numbers in zip((self.rng, self.evaluation_rng), state["rng"], strict=True):
            rng.bit_generator.state = numbers
        self.experience.load_state_dict(state["experience"])
        self.running = [[Example(*step) for step in episode] for episode in state["running"]]


def best(values: FloatArray) -> list[int]:
    """The positions of the largest value."""
    return np.flatnonzero(values == values.max()).tolist()


def gained(episode: Episode, texts: Texts) -> float:
    """The return of an episode, discounted as in planning."""
    return discounted_return([step.reward for step in episode], texts.gamma)
