"""Steps text environments in parallel, for training, evaluation and replay.

An episode is determined by its seed, its number and its actions, because every environment here gives the
same episode for the same seed. So an unfinished episode is saved as these three and restored by replaying it;
an environment needs no code to save itself.

In an environment of several players ``info["player"]`` is the player to move. A player's transition goes from
its own last state to its own next one, or to the end, with the rewards in between summed up: those of
``info["rewards"]``, one per player, or the common reward. Each player is a separate stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from hunch.core import HunchError, InadmissibleActionError, State, Transition, UsageError
from hunch.rl import faults
from hunch.rl.workers import Call, Fleet, Workers

TextEnvironment: TypeAlias = gym.Env[Any, Any]


class StoppedError(HunchError):
    """Raised by an agent in ``learn`` to end the run; its state is consistent, so the run can resume."""


def episode_seed(seed: int, env: int, number: int) -> int:
    """Return the seed of an environment's episode with this number."""
    return int(np.random.SeedSequence([seed, env, number]).generate_state(1)[0])


def lifetime_seed(seed: int, env: int, lifetime: int) -> int:
    """Return the seed of the task of an environment's lifetime with this number."""
    return int(np.random.SeedSequence([seed, env, lifetime, 1]).generate_state(1)[0])


def require_whole_groups(envs: int, group: int) -> None:
    """Raise a UsageError unless parallel environments can be divided into groups of this size."""
    if envs % group:
        raise UsageError(
            f"A group is {group} answers to one prompt, side by side, so the number of environments must be "
            f"a multiple of it, not {envs}: set envs or group."
        )


@dataclass(frozen=True, slots=True)
class Finished:
    """The record of a finished episode.

    Attributes:
        seed: The seed of the environment's ``reset``; with ``number`` and ``actions`` it replays the episode.
        step: Environment steps of the whole run at the end of the episode.
        success: True if the environment reports that the task was solved.
        number: Number of the episode in its environment, from 0, for ``reset(options={"episode": number})``.
        task_seed: Seed of the task, for ``reset(options={"task_seed": task_seed})``; None if there is none.
    """

    seed: int
    step: int
    episode_return: float
    length: int
    success: bool
    actions: tuple[str, ...]
    number: int = 0
    task_seed: int | None = None


@dataclass
class _Move:
    """An action of a player that awaits the player's next state, and what happened since then."""

    state: State
    action: str
    events: list[str] = field(default_factory=list)


@dataclass
class _Running:
    """The unfinished episode of one environment; ``state`` awaits an action."""

    number: int
    seed: int
    state: State = field(default_factory=lambda: State(""))
    actions: list[str] = field(default_factory=list)
    episode_return: float = 0.0
    moves: dict[int, _Move] = field(default_factory=dict)  # by stream: its last one, until its next state
    rewards: dict[int, float] = field(default_factory=dict)  # by stream: their sum since its last transition


class Rollout:
    """Parallel environments; each starts a new episode as soon as one ends.

    Attributes:
        steps: Environment steps so far, over all environments.
        finished: Finished episodes that :meth:`take_finished` has not returned yet.
        players: Number of players per environment.
        forgotten: Streams whose lifetime ended with the last step.

    Args:
        envs: Text environments.
        seed: Seed of all episodes, combined with the environment's index and the episode's number.
        seeds: Seeds of a limited number of episodes; each goes to the next free environment, and then the
            rollout ends with no state left. Default: no limit, with seeds derived from ``seed``.
        numbers: The number of each of these episodes. Default: their index.
        task_seed: Fixes the task over all episodes, in environments that draw a task.
        lifetime: Consecutive episodes of an environment that share a task, drawn anew for each lifetime. With
            1, an episode's own seed decides its task.
        processes: Worker processes, which get pickled copies and only affect the speed; 0 for none.
        raw: Whether states have ``State.raw``.
        group: Neighbouring environments whose episodes of the same number have the same seed, and so the
            same beginning: several answers to one prompt. Environments do not wait for others.

    Raises:
        UsageError: if there is no environment, or fewer than ``processes`` or than make whole groups; groups
            have several players; one cannot be pickled or breaks its contract, or some accept any text.
        HunchError: if a worker process dies, here or later.
    """

    def __init__(
        self,
        envs: Sequence[TextEnvironment],
        seed: int = 0,
        *,
        seeds: Sequence[int] | None = None,
        numbers: Sequence[int] | None = None,
        task_seed: int | None = None,
        lifetime: int = 1,
        processes: int = 0,
        raw: bool = True,
        group: int = 1,
    ) -> None:
        require_whole_groups(len(envs), group)
        if lifetime < 1:
            raise UsageError(f"A lifetime has at least one episode, not {lifetime}.")
        if not envs:
            raise UsageError("A rollout needs at least one environment.")
        self.fleet = Workers(envs, processes) if processes else Fleet(envs)
        self.raw = raw
        self.group = group
        self.seed = seed
        self.task_seed = task_seed
        self.lifetime = lifetime

        # Which episodes come. Without `seeds` each environment counts its own, without end.
        self.begun = [0] * len(envs)
        # With `seeds`: the (number, seed) of those that no environment has taken yet; each environment
        # takes as many as make a lifetime, because these share its task.
        self.limited: deque[tuple[int, int]] | None = None
        if seeds is not None:
            self.limited = deque(zip(numbers or count(), seeds, strict=False))
        self.planned: list[deque[tuple[int, int]]] = [deque() for _ in envs]

        self.steps = 0
        self.players = 0  # known after the first reset
        self.finished: list[Finished] = []
        self.forgotten: list[int] = []
        self.running: dict[int, _Running] = {}  # by environment, in order
        self._begin(range(len(envs)))
        if group > 1 and self.players > 1:
            raise UsageError("Groups need environments of a single player: set group to 1.")

    @property
    def states(self) -> list[State]:
        """The states that await an action, one per unfinished episode."""
        return [running.state for running in self.running.values()]

    @property
    def streams(self) -> int:
        """Number of streams: environments times players."""
        return len(self.begun) * self.players

    def close(self) -> None:
        """Stop the worker processes, if there are any."""
        self.fleet.close()

    # ---- a step -------------------------------------------------------------------------------------------

    def step(self, actions: Sequence[str]) -> list[Transition]:
        """Take one action in each state, and start a new episode where one ended.

        Raises:
            UsageError: if the number of actions is wrong.
            InadmissibleActionError: if an action is not admissible. In both cases no environment is stepped.
        """
        self._require_admissible(actions)
        action_of = dict(zip(self.running, actions, strict=True))  # by environment
        outcomes = self._ask({i: ("step", (action,), {}) for i, action in action_of.items()})
        transitions: list[Transition] = []
        over: list[int] = []
        self.forgotten = []
        for i, action in action_of.items():
            self.steps += 1
            completed = self._advance(i, action, outcomes[i])
            transitions += completed
            if completed and completed[-1].done:
                over.append(i)
                if (self.running[i].number + 1) % self.lifetime == 0:
                    self.forgotten += range(i * self.players, (i + 1) * self.players)
                self._finish(i, completed[-1].success)
        self._begin(over)
        return transitions

    def _require_admissible(self, actions: Sequence[str]) -> None:
        states = self.states
        if len(actions) != len(states):
            raise UsageError(f"There are {len(actions)} actions for {len(states)} states.")
        for state, action in zip(states, actions, strict=True):
            if not isinstance(action, str):
                raise InadmissibleActionError(f"An action must be text, not {action!r}.")
            if state.actions is not None and action not in state.actions:
                raise InadmissibleActionError(
                    f"The action {action!r} is not admissible here; admissible are: "
                    f"{', '.join(state.actions)}."
                )

    def _advance(self, i: int, action: str, outcome: Any) -> list[Transition]:
        """Record the outcome of an action; return the transitions that it completes.

        A player's transition is complete when it is the player's turn again, or the episode ends.
        """
        observation, reward, terminated, truncated, info = outcome
        running = self.running[i]
        first_stream = i * self.players
        running.moves[running.state.stream] = _Move(running.state, action)
        running.actions.append(action)

        # Rewards and events count for every player since its last move.
        running.episode_return += faults.finite(reward, action, info)
        for player, share in enumerate(faults.shares(info, reward, self.players)):
            stream = first_stream + player
            earlier = running.rewards.get(stream, 0.0)
            running.rewards[stream] = earlier + faults.finite(share, action, info)
        event = info.get("event", "")
        if event:
            for move in running.moves.values():
                move.events.append(event)

        done = bool(terminated or truncated)
        if done:
            info = faults.at_the_end(info, running.state.actions)
            if info["actions"] == ():  # nothing can follow, even if a limit ended the episode
                terminated, truncated = True, False
            complete = sorted(running.moves)
        else:
            player = faults.seat(info, self.players)
            running.state = self._read(i, observation, info, player)
            complete = [stream for stream in (first_stream + player,) if stream in running.moves]

        transitions = []
        for stream in complete:
            move = running.moves.pop(stream)
            next_state = running.state
            if done:  # the end as this player sees it
                next_state = self._read(i, observation, info, stream - first_stream, over=True)
            transition = Transition(
                move.state,
                move.action,
                running.rewards.pop(stream),
                next_state,
                bool(terminated),
                bool(truncated),
                bool(info.get("success", False)),
                "\n".join(move.events),
            )
            transitions.append(transition)
        return transitions

    def _read(self, i: int, observation: Any, info: dict[str, Any], player: int, over: bool = False) -> State:
        """Return what an environment showed as the state of a player.

        Raises:
            UsageError: if it breaks the contract, or lists no action although the episode is not over.
        """
        shown = info if self.raw else {**info, "raw": None}
        state = State.read(observation, shown, i * self.players + player, player)
        if state.actions == () and not over:
            raise UsageError(f"The environment offers no admissible action after: {state.observation!r}.")
        faults.require_texts(observation, info, state.actions)
        return state

    def _ask(self, calls: dict[int, Call]) -> dict[int, Any]:
        """Call environments; one that fails is named as the cause."""
        try:
            answers = self.fleet.ask(calls)
        except (Exception, SystemExit) as error:
            asked = [(method, *arguments) for method, arguments, _ in calls.values()]
            raise faults.raised(error, asked) from error
        for i, (method, _, _) in calls.items():
            faults.require_shape(method, answers[i])
        return answers

    # ---- beginnings and ends of episodes ------------------------------------------------------------------

    def _begin(self, environments: Iterable[int]) -> None:
        """Begin the next episode of some environments, if there is one."""
        episodes = {}
        for i in environments:
            episode = self._next_episode(i)
            if episode is not None:
                episodes[i] = episode
        self._reset(episodes)

    def _next_episode(self, i: int) -> tuple[int, int] | None:
        """Return number and seed of the environment's next episode; None if there is none."""
        if self.limited is None:
            number = self.begun[i]
            self.begun[i] += 1
            return number, episode_seed(self.seed, i // self.group, number)
        planned = self.planned[i]
        if not planned:
            for _ in range(min(self.lifetime, len(self.limited))):
                planned.append(self.limited.popleft())
        return planned.popleft() if planned else None

    def _task_seed(self, i: int, number: int) -> int | None:
        """Return the seed of an episode's task; None if its own seed decides the task."""
        if self.task_seed is not None or self.lifetime == 1:
            return self.task_seed
        # Limited episodes go to any free environment, so their task depends on their number alone.
        env = i // self.group if self.limited is None else 0
        return lifetime_seed(self.seed, env, number // self.lifetime)

    def _reset(self, episodes: dict[int, tuple[int, int]]) -> None:
        """Begin episodes, given the number and the seed of each by environment."""
        calls: dict[int, Call] = {}
        for i, (number, seed) in episodes.items():
            options = {"episode": number}
            task_seed = self._task_seed(i, number)
            if task_seed is not None:
                options["task_seed"] = task_seed
            calls[i] = ("reset", (), {"seed": seed, "options": options})
        answers = self._ask(calls)

        if not self.players:
            self.players = max((self._players_of(i, info) for i, (_, info) in answers.items()), default=1)
        for i, (observation, info) in answers.items():
            number, seed = episodes[i]
            state = self._read(i, observation, info, faults.seat(info, self.players))
            self.running[i] = _Running(number, seed, state)
        self.running = dict(sorted(self.running.items()))
        if len({state.actions is None for state in self.states}) > 1:
            raise UsageError("Some of these environments list admissible actions and others accept any text.")

    def _players_of(self, i: int, info: dict[str, Any]) -> int:
        """Return the number of an environment's players: what it says, or two if it names who moves."""
        default = 2 if "player" in info else 1
        return int(self.fleet.envs[i].metadata.get("players", default))

    def _finish(self, i: int, success: bool) -> None:
        """Move the episode of an environment from the unfinished to the finished ones."""
        ended = self.running.pop(i)
        finished = Finished(
            seed=ended.seed,
            step=self.steps,
            episode_return=ended.episode_return,
            length=len(ended.actions),
            success=success,
            actions=tuple(ended.actions),
            number=ended.number,
            task_seed=self._task_seed(i, ended.number),
        )
        self.finished.append(finished)

    def take_finished(self) -> list[Finished]:
        """Return the episodes that ended since the last call, in the order in which they ended."""
        finished = self.finished
        self.finished = []
        return finished

    # ---- checkpoints --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return counters, and the seeds and actions of the unfinished episodes."""
        running = {i: (r.number, r.seed, [*r.actions], r.state.observation) for i, r in self.running.items()}
        return {"steps": self.steps, "begun": list(self.begun), "running": running}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the unfinished episodes by replaying them.

        Raises:
            HunchError: if the replay of an episode differs from the original.
        """
        self.steps = state["steps"]
        self.begun = list(state["begun"])
        self.finished = []
        self.running = {}
        episodes = {i: (number, seed) for i, (number, seed, _, _) in state["running"].items()}
        actions = {i: taken for i, (_, _, taken, _) in state["running"].items()}
        self._reset(episodes)
        for t in range(max(map(len, actions.values()), default=0)):
            due = {i: taken[t] for i, taken in actions.items() if t < len(taken)}
            outcomes = self._ask({i: ("step", (action,), {}) for i, action in due.items()})
            for i, outcome in outcomes.items():
                self._advance(i, due[i], outcome)
        for i, (_, _, _, observation) in state["running"].items():
            if self.running[i].state.observation != observation:
                raise HunchError(
                    "The environment did not repeat its episode; the same seed must give the same episode."
                )
