"""The reward role: a language model, a rule or a program provides the reward of a step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pkgutil import resolve_name
from typing import Any, ClassVar, Final

import numpy as np

from hunch.core import (
    Agent,
    Explanation,
    FloatArray,
    Player,
    Saved,
    Source,
    State,
    Transition,
    UsageError,
    World,
)
from hunch.ranges import NonNegativeFloat, Share, check_settings
from hunch.roles.wrapper import Wrapper

OF_MEMORY: Final = ("begin", "learn", "abandon", "state_dict")
"""Methods that a reward source writes if it learns, or keeps something from step to step."""


class RewardSource(Source, ABC):
    """Returns rewards of transitions. Sources that judge whole episodes return 0 before the end.

    Attributes:
        known: The rewards of everything that the source can tell apart, for ``quantile``; None if unknown.
        ends_only: True if only the last step of an episode is judged. The others are paid 0, and
            ``standardise`` leaves them out.
    """

    known: Sequence[float] | None = None
    ends_only: ClassVar[bool] = False

    @property
    def is_rule(self) -> bool:
        """True if the source learns nothing, keeps nothing and asks no model: then evaluations report it."""
        kind = type(self)
        keeps = any(getattr(kind, name) is not getattr(RewardSource, name) for name in OF_MEMORY)
        return not (keeps or self.models or self.saved)

    @abstractmethod
    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the intrinsic reward of each transition, with one call for all streams."""

    def abandon(self, stream: int) -> None:
        """Forget the episode of a stream, which was reset before its end, as other libraries may do."""
        return


@dataclass(frozen=True, kw_only=True)
class Shaping:
    """Transformations of a source's rewards before an agent sees them."""

    standardise: bool = False
    """Subtract the mean of the source's rewards so far, and divide by their standard deviation. With a source
    that judges only ends of episodes, the rewards of the ends."""
    quantile: Share | None = None
    """Set rewards up to this quantile of the source's ``known`` rewards to 0, before the others are
    standardised; none for no threshold."""
    beta: NonNegativeFloat = 0.0
    """Divide rewards by N(event)^beta, where N counts the event in this episode; 0 for no division."""
    once: bool = False
    """Reward each event at most once per episode."""
    recall: bool = False
    """Show the agent, below the task, which of the events that were ever rewarded have occurred in this
    episode. Otherwise a reward that depends on past events is not a function of the state."""


class Rewarded(Wrapper):
    """An agent that learns from a source's rewards in addition to, or instead of, the environment's.

    The two rewards are combined only in this class. Recorded return and success remain the environment's; the
    mean of the source's rewards, as shaped, is the metric ``intrinsic``. Evaluations have it too where the
    source is a rule, there before shaping. Recorded data get the new rewards.

    Args:
        agent: Any agent; it sees the weighted sum of both rewards.
        source: The reward source.
        weight: Weight of the source's rewards.
        extrinsic: Weight of the environment's rewards; 0 ignores them.
        shaping: How the source's rewards are transformed first.

    Raises:
        UsageError: if a setting is out of range, or a quantile is set and the source has no ``known``.
    """

    source: RewardSource
    source_class = RewardSource
    saved: ClassVar[tuple[str, ...]] = ("recent_rewards", "running", "counts", "recalled")

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
        self.weight = weight
        self.extrinsic = extrinsic
        self.shaping = shaping or Shaping()
        check_settings(self.shaping)
        if self.shaping.quantile is not None and source.known is None:
            raise UsageError(
                f"A threshold at a quantile needs a source with known rewards; "
                f"{type(source).__name__} leaves 'known' at None."
            )
        self._forget()

    @property
    def settings(self) -> dict[str, Any]:
        """The agent's settings, and how the two rewards are combined."""
        return {**super().settings, "weights": [self.weight, self.extrinsic], **asdict(self.shaping)}

    def _forget(self) -> None:
        self.recent_rewards: list[float] = []
        self.running = Running()
        self.threshold = -np.inf  # eps: source rewards up to it become 0
        self.threshold_known: Any = None  # the source's known rewards from which it was computed
        self.counts: dict[int, dict[str, int]] = {}  # by stream: counts of each event in its episode
        self.recalled = Recalled()

    def begin(self, world: World, seed: int) -> None:
        """Begin source and agent; recorded data get the combined rewards."""
        self._forget()
        self.source.begin(world, seed)
        data = [episode.with_steps(self._relabelled(episode)) for episode in world.data]
        self.agent.begin(replace(world, data=data), seed)
        self.recent_rewards = []
        self.counts = {}

    def abandon(self, stream: int) -> None:
        """Forget the episode of a stream, which was reset before its end."""
        self.counts.pop(stream, None)
        self.recalled.past_events.pop(stream, None)
        self.source.abandon(stream)

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the agent act; with ``recall``, its states list past rewarded events."""
        return self.agent.act([self._shown(state) for state in states])

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the agent's values of states as it sees them, shape (n,)."""
        return super().values([self._shown(state) for state in states])

    def _shown(self, state: State) -> State:
        """Return a state as the agent sees it."""
        return self.recalled.with_events(state) if self.shaping.recall else state

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the agent observe the transitions with the combined rewards."""
        self.agent.observe(self._relabelled(transitions))

    def _relabelled(self, transitions: Sequence[Transition]) -> list[Transition]:
        """Return the transitions with the combined rewards; with ``recall``, also note which events paid."""
        if not transitions:
            return []
        rewards = self._shaped(transitions, rewards_of(self.source, transitions))
        self.recent_rewards += rewards
        relabelled = [self.paid(t, reward) for t, reward in zip(transitions, rewards, strict=True)]
        if not self.shaping.recall:
            return relabelled
        paying = [t.event for t, reward in zip(transitions, rewards, strict=True) if reward > 0]
        self.recalled.paying |= dict.fromkeys(paying)
        return self.recalled.seen(relabelled)

    def paid(self, t: Transition, reward: float) -> Transition:
        """Return a step whose reward is the weighted sum of both rewards."""
        return replace(t, reward=self.extrinsic * t.reward + self.weight * reward)

    def _shaped(self, transitions: Sequence[Transition], rewards: Sequence[float]) -> list[float]:
        """Return the rewards after threshold, standardisation and discount for repeated events::

            r_int  <-  r if r > eps, else 0;    divided by N(event)^beta

        eps is the quantile of the source's known rewards, and N counts the event within the episode.
        """
        threshold = self._current_threshold()
        judged = [t.done or not self.source.ends_only for t in transitions]
        self.running.add([reward for reward, is_judged in zip(rewards, judged, strict=True) if is_judged])
        shaped = []
        for t, reward, is_judged in zip(transitions, rewards, judged, strict=True):
            if reward <= threshold:
                reward = 0.0
            elif self.shaping.standardise and is_judged:
                reward = (reward - self.running.mean) / (self.running.deviation or 1.0)
            counts = self.counts.setdefault(t.stream, {})
            n = 1  # N(event): how often it has occurred in this episode, this time included
            if t.event:  # no event is no repetition
                n = counts[t.event] = counts.get(t.event, 0) + 1
            if t.done:
                self.counts.pop(t.stream)
            try:
                divisor = float(n) ** self.shaping.beta
            except OverflowError:  # beyond 1e308
                divisor = np.inf
            repeated = self.shaping.once and n > 1
            shaped.append(0.0 if repeated else float(reward / divisor))
        return shaped

    def _current_threshold(self) -> float:
        """Return eps, the quantile of the source's known rewards; computed again when they are others."""
        known = self.source.known
        if known is self.threshold_known:
            return self.threshold
        self.threshold_known = known
        self.threshold = -np.inf
        if known and self.shaping.quantile is not None:
            self.threshold = float(np.quantile(known, self.shaping.quantile))
        return self.threshold

    def player(self, seed: int) -> Player:
        """Return the agent's player, which sees the same states as the agent."""
        player = self.agent.player(seed)
        if self.shaping.recall:
            player = RecallingPlayer(player, self.recalled)
        if not self.source.is_rule:
            return player
        try:
            # A rule may keep what it does not declare, such as a count: training must not notice.
            source = deepcopy(self.source)
        except Exception:  # a source may hold anything, such as a connection
            return player
        return PaidPlayer(player, source)

    def explain(self, state: State) -> Explanation:
        """Return the agent's explanation."""
        return self.agent.explain(self._shown(state))

    def learn(self) -> dict[str, float]:
        """Let the agent and the source learn; add the mean intrinsic reward since the last call."""
        recent = self.recent_rewards
        self.recent_rewards = []
        metrics = super().learn()
        if recent:
            metrics = {**metrics, "intrinsic": sum(recent) / len(recent)}
        return metrics


def rewards_of(source: RewardSource, transitions: Sequence[Transition]) -> Sequence[float]:
    """Return a source's rewards of transitions.

    Raises:
        UsageError: if they are not one finite number for each transition.
    """
    rewards = source.rewards(transitions)
    n = len(transitions)
    problem = ""
    try:
        bad = [i for i, reward in enumerate(rewards) if not _is_finite(reward)]
        if bad and bad[0] < n:
            problem = f"{rewards[bad[0]]!r} for {transitions[bad[0]].action!r}"
        elif len(rewards) != n:
            problem = repr(rewards)
    except TypeError:  # no sequence, such as the None of a method without a return
        problem = repr(rewards)
    if problem:
        name = type(source).__name__
        raise UsageError(f"{name} has to give {n} finite rewards for {n} transitions, not {problem}.")
    return rewards


def _is_finite(reward: Any) -> bool:
    """Return whether a source's reward is a finite number; a tensor or array of one number is one."""
    try:
        return not isinstance(reward, str) and math.isfinite(reward)
    except (TypeError, ValueError, OverflowError):
        return False


class Recalled(Saved):
    """Records which of the events that were ever rewarded have occurred in the episode of each stream.

    Args:
        paying: The events that were ever rewarded.
    """

    saved = ("paying", "past_events")

    def __init__(self, paying: dict[str, None] | None = None) -> None:
        self.paying = {} if paying is None else paying
        self.past_events: dict[int, dict[str, None]] = {}  # by stream

    def with_events(self, state: State) -> State:
        """Return a state that lists these events below the task."""
        past = self.past_events.get(state.stream, {})
        before = sorted(event for event in past if event and event in self.paying)
        if not before:
            return state
        return replace(state, task=f"{state.task}\nBefore: {' '.join(before)}")

    def seen(self, transitions: Sequence[Transition]) -> list[Transition]:
        """Return the transitions with these events in both states."""
        shown = []
        for t in transitions:
            state = self.with_events(t.state)
            self.past_events.setdefault(t.stream, {})[t.event] = None
            next_state = self.with_events(t.next_state)
            shown.append(replace(t, state=state, next_state=next_state))
            if t.done:
                del self.past_events[t.stream]
        return shown


class RecallingPlayer(Player):
    """A player whose states list the rewarded events of the episode."""

    def __init__(self, player: Player, recalled: Recalled) -> None:
        self.player, self.recalled = player, Recalled(recalled.paying)

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the player act in such states."""
        return self.player.act([self.recalled.with_events(state) for state in states])

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the player observe the transitions, with such states."""
        self.player.observe(self.recalled.seen(transitions))

    def forget(self, streams: Sequence[int]) -> None:
        """Let the player forget these streams, whose lifetime is over."""
        self.player.forget(streams)

    def figures(self) -> dict[str, float]:
        """Return the player's metrics."""
        return self.player.figures()

    def state_dict(self) -> dict[str, Any]:
        """Return the player's state and the events of its episodes; those that pay belong to the agent."""
        return {"player": self.player.state_dict(), "past_events": deepcopy(self.recalled.past_events)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.player.load_state_dict(state["player"])
        self.recalled.past_events = deepcopy(state["past_events"])


class PaidPlayer(Player):
    """A player that reports the mean reward that a rule gives for what was played.

    Args:
        player: Acts.
        source: A source that is a rule (:attr:`RewardSource.is_rule`), and this player's alone.
    """

    def __init__(self, player: Player, source: RewardSource) -> None:
        self.player = player
        self.source = source
        self.total = 0.0
        self.steps = 0

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the player act."""
        return self.player.act(states)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the player observe the transitions, and pay them."""
        self.player.observe(transitions)
        self.total += sum(map(float, rewards_of(self.source, transitions)))
        self.steps += len(transitions)

    def forget(self, streams: Sequence[int]) -> None:
        """Let the player forget these streams, whose lifetime is over."""
        self.player.forget(streams)

    def figures(self) -> dict[str, float]:
        """Return the player's metrics, and ``intrinsic``, the mean reward per step."""
        paid = {"intrinsic": self.total / self.steps} if self.steps else {}
        return {**self.player.figures(), **paid}

    def state_dict(self) -> dict[str, Any]:
        """Return the player's state, and what was paid so far."""
        return {"player": self.player.state_dict(), "total": self.total, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.player.load_state_dict(state["player"])
        self.total = state["total"]
        self.steps = state["steps"]


class Running(Saved):
    """Running mean and standard deviation of numbers.

    Args:
        values: The first numbers.
    """

    saved = ("n", "total", "squares")

    def __init__(self, values: Sequence[float] = ()) -> None:
        self.n, self.total, self.squares = 0, 0.0, 0.0
        self.add(values)

    def add(self, values: Sequence[float]) -> None:
        """Add numbers."""
        self.n += len(values)
        self.total += float(sum(values))
        self.squares += float(sum(value * value for value in values))

    @property
    def mean(self) -> float:
        """The mean; 0 without numbers."""
        return self.total / max(1, self.n)

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 without numbers."""
        return float(np.sqrt(max(0.0, self.squares / max(1, self.n) - self.mean**2)))


def named_source(place: str) -> Callable[..., RewardSource]:
    """Import the reward source at ``module:Class``.

    Raises:
        UsageError: if there is no such class.
    """
    module, _, name = place.partition(":")
    if not (module and name):
        raise UsageError(f"--reward must name a class, as module:Class, not {place!r}.")
    try:
        source: Callable[..., RewardSource] = resolve_name(place)
    except Exception as error:  # the import of a package may raise anything
        problem = f"{type(error).__name__}: {error}"
        raise UsageError(f"The reward source {place} cannot be imported: {problem}.") from error
    if not (isinstance(source, type) and issubclass(source, RewardSource)):
        raise UsageError(f"{place} is not a reward source: it is no subclass of hunch.roles.RewardSource.")
    return source
