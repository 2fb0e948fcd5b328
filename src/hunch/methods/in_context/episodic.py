"""Base class of the agents of the ICPI experiments: a memory of episodes, and a schedule of random actions.

An agent follows its policy with probability 1 / (1 + exp(2 (required - n))), where n is the number of its
successes, and acts at random otherwise. The texts of the domain, from which prompts are made, come from the
world in which it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, ClassVar

import numpy as np

from hunch.core import Agent, Explanation, FloatArray, Memoryless, State, Transition, UsageError, World
from hunch.envs.icpi.texts import Texts
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat
from hunch.roles.world_model.experience import Episode, Example, Experience

STEEPNESS = 2
"""Factor of the number of missing successes in the schedule."""


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Settings of the schedule of random actions."""

    required_successes: NonNegativeFloat = 3.0
    """Number of successful episodes at which half of the actions are random (released code)."""


class EpisodicAgent(Agent):
    """An agent that takes fewer random actions the more successful episodes it remembers.

    Args:
        config: All settings; ``options`` change single ones.
        texts: The wording of the domain in prompts. Default: that of the environment.

    Raises:
        UsageError: on an unknown option.
    """

    config_class: ClassVar[type[Any]] = ScheduleConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "experience")
    remembered: int | None = None
    """Number of latest successful episodes that are kept for prompts; None for all."""

    def __init__(self, config: Any = None, *, texts: Texts | None = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)
        self.given = texts
        self.from_settings = texts is None

    def begin(self, world: World, seed: int) -> None:
        """Forget all episodes, and remember the recorded ones."""
        self.rng = np.random.default_rng(seed)
        self.texts = self.given or (world.wording if isinstance(world.wording, Texts) else None)
        self.experience = Experience(self.remembered)
        self.running: dict[int, list[Example]] = {}
        if world.env:
            _ = self.words  # raises an error before the first step if the environment has no texts
        for episode in world.data:
            self.observe(episode)
            self.running.clear()

    def passes(self, episode: Episode, texts: Texts) -> bool:
        """Return whether an episode counts as a success; here each does, and subclasses add conditions."""
        return True

    def ready(self, state: State) -> bool:
        """Return whether enough episodes are remembered for the policy to act."""
        return True

    def q(self, states: Sequence[State], rng: np.random.Generator) -> list[FloatArray]:
        """Return Q(s, a) of every action of every state, one array of shape (actions,) per state."""
        raise NotImplementedError

    def choose(self, states: Sequence[State], rng: np.random.Generator) -> list[str]:
        """Return the action with the largest Q in each state; ties are broken at random."""
        rows = self.q(states, rng)
        return [s.options[int(rng.choice(best(row)))] for s, row in zip(states, rows, strict=True)]

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose the policy's action or a random one in each state."""
        return self.draw(states, self.share(), self.rng)

    def draw(self, states: Sequence[State], share: float, rng: np.random.Generator) -> list[str]:
        """Choose the policy's actions with probability ``share`` if it is ready, else random ones."""
        actions = [str(rng.choice(state.options)) for state in states]
        tossed = [bool(rng.random() < share) for _ in states]
        by_policy = [i for i, state in enumerate(states) if tossed[i] and self.ready(state)]
        chosen = self.choose([states[i] for i in by_policy], rng) if by_policy else []
        for i, action in zip(by_policy, chosen, strict=True):
            actions[i] = action
        return actions

    def player(self, seed: int) -> Memoryless:
        """Return a player that follows the policy wherever it is ready, and remembers nothing new."""
        twin = self.twin()
        return Memoryless(lambda states, rng: twin.draw(states, 1.0, rng), seed)

    def twin(self) -> EpisodicAgent:
        """Return what a player draws from: an agent with the same episodes that leaves no trace in this one.

        Here that is this agent, which only reads its episodes; one that counts what it asks returns another.
        """
        return self

    def share(self) -> float:
        """The probability that the agent follows its policy instead of acting at random."""
        missing = self.config.required_successes - len(self.experience.successes)
        return 1 / (1 + exp(min(STEEPNESS * missing, 700.0)))  # exp(710) is too large for a float

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Add a step to the episode of each stream; an episode is remembered when it ends."""
        for t in transitions:
            running = self.running.setdefault(t.stream, [])
            running.append(
                Example(t.state.observation, t.action, t.reward, t.terminated, t.next_state.observation)
            )
            if t.done:
                episode = tuple(self.running.pop(t.stream))
                self.experience.add(episode, self.passes(episode, self.words))

    def explain(self, state: State) -> Explanation:
        """Return Q and the probability of each action."""
        n = len(state.options)
        q, chosen = np.full(n, np.nan), np.full(n, 1 / n)
        if self.ready(state):
            q = self.twin().q([state], np.random.default_rng(0))[0]
            greedy = np.isin(np.arange(n), best(q)) / len(best(q))
            chosen = self.share() * greedy + (1 - self.share()) / n
        return Explanation({"Q": q}, chosen)

    @property
    def words(self) -> Texts:
        """The wording of the domain in prompts.

        Raises:
            UsageError: if neither the agent nor the environment has texts.
        """
        if self.texts is None:
            raise UsageError(
                f"{type(self).__name__} needs texts for prompts, as the environments of ICPI define them, "
                "but this environment has none: set its attribute wording to an instance of a subclass of "
                "hunch.envs.icpi.texts.Texts, or pass one as texts to the agent."
            )
        return self.texts

    def state_dict(self) -> dict[str, Any]:
        """Return all episodes and the random state."""
        running = [(s, list(map(tuple, episode))) for s, episode in self.running.items()]
        return {**super().state_dict(), "running": running}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.running = {s: [Example(*step) for step in episode] for s, episode in state["running"]}


def best(values: FloatArray) -> list[int]:
    """Return the indices of the largest values."""
    return np.flatnonzero(values == values.max()).tolist()
