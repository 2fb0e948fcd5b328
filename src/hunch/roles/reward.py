"""The reward role: a language model, a rule or a program says what a step is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from hunch.core import Agent, EvidenceLevel, Explanation, Player, State, Transition, UsageError, World
from hunch.ranges import NonNegativeFloat, Share, check_settings
from hunch.roles.wrapper import Wrapper


class RewardSource(Protocol):
    """Says what transitions are worth. Where only the end of an episode is judged, others are worth 0."""

    @property
    def evidence(self) -> EvidenceLevel | None:
        """What a result with it may claim; None where no model is behind it."""
        ...

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the intrinsic reward of each transition; one call serves all streams."""
        ...


@dataclass(frozen=True, kw_only=True)
class Shaping:
    """What becomes of a source's rewards before an agent sees them, in this order."""

    standardise: bool = False
    """Take off the mean of the source's rewards so far, and divide by their standard deviation."""
    quantile: Share | None = None
    """Rewards below this quantile of those that the source knows from its data (``known``) are 0; none for no
    threshold."""
    beta: NonNegativeFloat = 0.0
    """Divide by N(event)^beta, where N counts how often the event came in this episode."""
    once: bool = False
    """An event pays once in an episode."""
    recall: bool = False
    """The agent is told, below its task, which of the events that have ever paid came before in this episode.
    Without, a reward that depends on it is no function of the state."""


class Rewarded(Wrapper):
    """An agent that learns from a source's rewards beside, or instead of, the environment's.

    It is the only place where the two meet. What is recorded of episodes, their return and success, stays the
    environment's; the mean of the source's rewards is a metric, ``intrinsic``. Recorded data are relabelled.

    Args:
        agent: Any agent; it sees the weighted sum of both rewards.
        source: Says what transitions are worth.
        weight: Weight of the source's rewards.
        extrinsic: Weight of the environment's rewards; 0 leaves them out.
        shaping: What becomes of the source's rewards first.

    Raises:
        UsageError: if a setting is out of range, or a threshold is asked of a source whose rewards are not
            known beforehand.
    """

    source: RewardSource
    needs = ("rewards", "evidence")

    def __init__(
        self,
        agent: Agent,
        source: RewardSource,
        *,
        weight: float = 1.0,
        extrinsic: float = 1.0,
        shaping: Shaping | None = None,
    ) -> None:
        super().__init__(agent, source)
        self.weight, self.extrinsic, self.shaping = weight, extrinsic, shaping or Shaping()
        check_settings(self.shaping)
        if self.shaping.quantile is not None and not hasattr(source, "known"):
            raise UsageError(
                f"A threshold at a quantile needs a source whose rewards are known from data; "
                f"{type(source).__name__} has no attribute 'known'."
            )
        self._forget()

    @property
    def settings(self) -> dict[str, Any]:
        """The agent's settings, and how the rewards are joined."""
        return {**super().settings, "weights": [self.weight, self.extrinsic], **asdict(self.shaping)}

    def _forget(self) -> None:
        self.told: list[float] = []
        self.running = Running()
        self.measured: Any = None  # what the threshold was taken of
        self.floor = -np.inf
        self.counts: dict[int, dict[str, int]] = {}  # by stream: how often each event came in its episode
        self.recalled = Recalled()

    def begin(self, world: World, seed: int) -> None:
        """Begin source and agent, with the rewards of recorded data relabelled."""
        self._forget()
        if hasattr(self.source, "begin"):
            self.source.begin(world, seed)
        data = [self._relabelled(episode) for episode in world.data]
        self.agent.begin(replace(world, data=data), seed)
        self.told, self.counts = [], {}

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the agent act."""
        return self.agent.act([self._told(state) for state in states])

    def _told(self, state: State) -> State:
        return self.recalled.told(state) if self.shaping.recall else state

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the agent see the transitions with the joined rewards."""
        self.agent.observe(self._relabelled(transitions))

    def _relabelled(self, transitions: Sequence[Transition]) -> list[Transition]:
        rewards = self._shaped(transitions, self.source.rewards(transitions)) if transitions else []
        self.told += rewards
        joined = [
            replace(t, reward=self.extrinsic * t.reward + self.weight * reward)
            for t, reward in zip(transitions, rewards, strict=True)
        ]
        if not self.shaping.recall:
            return joined
        paying = [t.event for t, reward in zip(transitions, rewards, strict=True) if reward > 0]
        self.recalled.paying |= dict.fromkeys(paying)
        return self.recalled.seen(joined)

    def _shaped(self, transitions: Sequence[Transition], rewards: Sequence[float]) -> list[float]:
        """The rewards, standardised, above the threshold, and less for what came before in the episode."""
        known, share = getattr(self.source, "known", ()), self.shaping.quantile
        if known is not self.measured:
            self.measured = known
            self.floor = float(np.quantile(known, share)) if known and share is not None else -np.inf
        self.running.add(rewards)
        shaped = [self._scaled(reward) if reward >= self.floor else 0.0 for reward in rewards]
        return [self._faded(t, value) for t, value in zip(transitions, shaped, strict=True)]

    def _scaled(self, reward: float) -> float:
        seen = self.running
        return (reward - seen.mean) / (seen.deviation or 1.0) if self.shaping.standardise else reward

    def _faded(self, t: Transition, reward: float) -> float:
        """A reward over N(event)^beta, or only for the first time; episodes count apart."""
        seen = self.counts.setdefault(t.stream, {})
        n = seen[t.event] = seen.get(t.event, 0) + 1
        if t.done:
            self.counts.pop(t.stream)
        return 0.0 if self.shaping.once and n > 1 else float(reward / n**self.shaping.beta)

    def player(self, seed: int) -> Player:
        """The agent's own player, told what the agent is told."""
        player = self.agent.player(seed)
        return RecallingPlayer(player, self.recalled) if self.shaping.recall else player

    def explain(self, state: State) -> Explanation:
        """The agent's own word."""
        return self.agent.explain(self._told(state))

    def learn(self) -> dict[str, float]:
        """Let the agent learn; tell the mean intrinsic reward since the last call."""
        told, self.told = self.told, []
        mean = {"intrinsic": sum(told) / len(told)} if told else {}
        return {**super().learn(), **mean}

    def state_dict(self) -> dict[str, Any]:
        """The state of agent and source, and what this episode and the rewards so far were."""
        return {
            **super().state_dict(),
            "told": list(self.told),
            "running": self.running.figures(),
            "counts": {stream: dict(seen) for stream, seen in self.counts.items()},
            "recalled": self.recalled.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        super().load_state_dict(state)
        self.told, self.running = list(state["told"]), Running.of(state["running"])
        self.counts = {stream: dict(seen) for stream, seen in state["counts"].items()}
        self.recalled = Recalled()
        self.recalled.load_state_dict(state["recalled"])


class Recalled:
    """What of the events that have ever paid came before in the episode of each stream.

    Args:
        paying: The events that have ever paid.
    """

    def __init__(self, paying: dict[str, None] | None = None) -> None:
        self.paying = {} if paying is None else paying
        self.came: dict[int, dict[str, None]] = {}  # by stream

    def told(self, state: State) -> State:
        """A state that tells it below its task."""
        before = sorted(event for event in self.came.get(state.stream, ()) if event and event in self.paying)
        return (
            replace(state, task="\n".join([state.task, f"Before: {' '.join(before)}"])) if before else state
        )

    def seen(self, transitions: Sequence[Transition]) -> list[Transition]:
        """The transitions with both states as told."""
        found = []
        for t in transitions:
            before = self.told(t.state)
            self.came.setdefault(t.stream, {})[t.event] = None
            found.append(replace(t, state=before, next_state=self.told(t.next_state)))
            if t.done:
                del self.came[t.stream]
        return found

    def state_dict(self) -> dict[str, Any]:
        """All of it as lists."""
        return {"paying": list(self.paying), "came": {s: list(events) for s, events in self.came.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        self.paying = dict.fromkeys(state["paying"])
        self.came = {stream: dict.fromkeys(events) for stream, events in state["came"].items()}


class RecallingPlayer:
    """A player that is told which paying events came before in its episode."""

    def __init__(self, player: Player, recalled: Recalled) -> None:
        self.player, self.recalled = player, Recalled(recalled.paying)

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the player act."""
        return self.player.act([self.recalled.told(state) for state in states])

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the player see the transitions."""
        self.player.observe(self.recalled.seen(transitions))


class Running:
    """Mean and standard deviation of all numbers so far.

    Args:
        values: The first of them.
    """

    def __init__(self, values: Sequence[float] = ()) -> None:
        self.n, self.total, self.squares = 0, 0.0, 0.0
        self.add(values)

    @classmethod
    def of(cls, figures: Sequence[float]) -> Running:
        """Take up what :meth:`figures` told."""
        running = cls()
        running.n, running.total, running.squares = int(figures[0]), figures[1], figures[2]
        return running

    def figures(self) -> tuple[float, ...]:
        """Number, sum and sum of squares."""
        return self.n, self.total, self.squares

    def add(self, values: Sequence[float]) -> None:
        """Take in more numbers."""
        self.n += len(values)
        self.total += float(sum(values))
        self.squares += float(sum(value * value for value in values))

    @property
    def mean(self) -> float:
        """Their mean; 0 of none."""
        return self.total / max(1, self.n)

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return float(np.sqrt(max(0.0, self.squares / max(1, self.n) - self.mean**2)))
