"""The goal role: a language model, a table or a rule suggests goals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from hunch.core import Agent, Explanation, Player, Saved, Source, State, Transition, World
from hunch.roles.wrapper import Wrapper


class GoalSource(Source, ABC):
    """Suggests goals for states."""

    @abstractmethod
    def suggest(self, states: Sequence[State]) -> list[tuple[str, ...]]:
        """Return the goals of each state, with one call for all streams; an empty tuple for no goals."""


class Achievement(Protocol):
    """Checks which goals a step reached."""

    def reached(self, transitions: Sequence[Transition]) -> list[list[str]]:
        """Return the goals of each transition's state that were reached."""


class Goals(Saved):
    """The current goals of each stream.

    Args:
        source: Suggests goals at the beginning of an episode, or with ``renew`` in every state.
        achievement: Checks which goals are reached; these are not suggested again in the episode. None keeps
            a goal until the end of the episode.
        renew: Suggest new goals in every state.
    """

    saved = ("by_stream", "done", "counts")

    def __init__(self, source: GoalSource, achievement: Achievement | None, renew: bool) -> None:
        self.source = source
        self.achievement = achievement
        self.renew = renew
        self.by_stream: dict[int, tuple[str, ...]] = {}
        self.done: dict[int, list[str]] = {}  # by stream: goals reached in this episode
        self.counts = {"goals": 0.0, "reached": 0.0}

    def given(self, states: Sequence[State]) -> list[State]:
        """Return the states with the current goals of their streams; new goals are suggested where due."""
        new = [state for state in states if state.stream not in self.by_stream]
        if new:
            for state, goals in zip(new, self.source.suggest(new), strict=True):
                unreached = self._open(state.stream, goals)
                self.by_stream[state.stream] = unreached
                self.counts["goals"] += len(unreached)
        return [self.of(state) for state in states]

    def _open(self, stream: int, goals: Sequence[str]) -> tuple[str, ...]:
        """Return the goals that this episode has not reached yet."""
        done = self.done.get(stream, ())
        return tuple(goal for goal in goals if goal not in done)

    def of(self, state: State) -> State:
        """Return a state with the current goals of its stream."""
        return replace(state, goals=self.by_stream.get(state.stream, ()))

    def seen(self, transitions: Sequence[Transition]) -> list[Transition]:
        """Return the transitions with the goals of their streams; goals end with the episode."""
        transitions = [replace(t, state=self.of(t.state)) for t in transitions]
        if self.achievement is not None:
            self._take_note(transitions, self.achievement.reached(transitions))
        if self.renew:
            for t in transitions:
                if not t.done:
                    self.by_stream.pop(t.stream, None)
        # One request for the goals of all next states, but for those that end an episode: these keep the old.
        next_states = iter(self.given([t.next_state for t in transitions if not t.done]))
        with_goals = []
        for t in transitions:
            next_state = self.of(t.next_state) if t.done else next(next_states)
            with_goals.append(replace(t, next_state=next_state))
        for t in transitions:
            if t.done:
                self.by_stream.pop(t.stream, None)
                self.done.pop(t.stream, None)
        return with_goals

    def _take_note(self, transitions: Sequence[Transition], reached: Sequence[list[str]]) -> None:
        """Remove the goals that were reached."""
        for t, goals in zip(transitions, reached, strict=True):
            self.counts["reached"] += len(goals)
            if goals:
                self.done.setdefault(t.stream, []).extend(goals)
                self.by_stream[t.stream] = self._open(t.stream, self.by_stream.get(t.stream, ()))

    def take_counts(self) -> dict[str, float]:
        """Return how many goals were suggested and reached since the last call, over all streams."""
        counts = self.counts
        self.counts = dict.fromkeys(counts, 0.0)
        return counts


class Goaled(Wrapper):
    """An agent that pursues suggested goals, which it sees in ``State.goals``.

    Reaching a goal is rewarded by a reward source inside, as in
    ``Goaled(Rewarded(agent, achievement), source)``, whose transitions have the goals in their states.

    Args:
        agent: Any agent.
        source: Suggests goals.
        achievement: Checks which goals a step reached; these are not suggested again in the episode. Default:
            a goal lasts until the end of the episode.
        renew: Ask for goals in every state, not only in the first state of an episode.
    """

    source: GoalSource
    source_class = GoalSource
    saved = ("goals",)

    def __init__(
        self,
        agent: Agent,
        source: GoalSource,
        achievement: Achievement | None = None,
        *,
        renew: bool = False,
    ) -> None:
        super().__init__(agent, source)
        self.achievement, self.renew = achievement, renew
        self.goals = Goals(source, achievement, renew)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of agent and source, and when goals change."""
        return {**super().settings, "renew": self.renew, "achievement": type(self.achievement).__name__}

    def begin(self, world: World, seed: int) -> None:
        """Begin source and agent; no stream has goals yet."""
        self.goals = Goals(self.source, self.achievement, self.renew)
        super().begin(world, seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the agent act in states that have the goals."""
        return self.agent.act(self.goals.given(states))

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the agent observe the transitions with the goals of their streams."""
        self.agent.observe(self.goals.seen(transitions))

    def learn(self) -> dict[str, float]:
        """Let the agent learn; return its metrics, and how many goals were suggested and reached."""
        return {**super().learn(), **self.goals.take_counts()}

    def player(self, seed: int) -> Player:
        """Return a player with separate goals."""
        return GoaledPlayer(self.agent.player(seed), Goals(self.source, self.achievement, self.renew))

    def explain(self, state: State) -> Explanation:
        """Return the agent's explanation, with the goals in the note."""
        given = self.goals.of(state)
        return replace(self.agent.explain(given), note=f"goal: {given.aim}")


class GoaledPlayer(Player):
    """A player that pursues suggested goals."""

    saved = ("player", "goals")

    def __init__(self, player: Player, goals: Goals) -> None:
        self.player, self.goals = player, goals

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the player act in states that have the goals."""
        return self.player.act(self.goals.given(states))

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let the player observe the transitions with the goals of their streams."""
        self.player.observe(self.goals.seen(transitions))

    def forget(self, streams: Sequence[int]) -> None:
        """Let the player forget these streams, whose lifetime is over."""
        self.player.forget(streams)

    def figures(self) -> dict[str, float]:
        """Return the player's metrics."""
        return self.player.figures()
