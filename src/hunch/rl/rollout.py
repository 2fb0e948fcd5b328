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
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from hunch.core import HunchError, InadmissibleActionError, State, Transition, UsageError
from hunch.rl import faults
from hunch.rl.fleet import Call, Fleet

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
class _Running:
    """The unfinished episode of one environment; ``state`` awaits an action."""

    number: int
    seed: int
    state: State = field(default_factory=lambda: State(""))
    actions: list[str] = field(default_factory=list)
    total: float = 0.0
    # by stream: the last move, and events since then
    open: dict[int, tuple[State, str, list[str]]] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)  # by stream: rewards since its last transition


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
        self.fleet = Fleet(envs)
        if processes:
            from hunch.rl.workers import Workers

            self.fleet = Workers(envs, processes)
        self.raw, self.group = raw, group
        self.seed, self.task_seed, self.lifetime = seed, task_seed, lifetime
        self.limited = None if seeds is None else deque(zip(numbers or count(), seeds, strict=False))
        self.begun = [0] * len(envs)
        self.planned: list[deque[tuple[int, int]]] = [deque() for _ in envs]  # what is left of a lifetime
        self.forgotten: list[int] = []
        self.steps = self.players = 0
        self.finished: list[Finished] = []
        self.running: dict[int, _Running] = {}
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

    def _begin(self, indices: Sequence[int]) -> None:
        """Begin the next episode of some environments, if there is one."""
        self._reset({i: plan for i in indices if (plan := self._next(i)) is not None})

    def _next(self, i: int) -> tuple[int, int] | None:
        """Return number and seed of the environment's next episode."""
        if self.limited is None:
            number = self.begun[i]
            self.begun[i] += 1
            return number, episode_seed(self.seed, i // self.group, number)
        own = self.planned[i]
        if not own:
            own.extend(self.limited.popleft() for _ in range(min(self.lifetime, len(self.limited))))
        return own.popleft() if own else None

    def _task_seed(self, i: int, number: int) -> int | None:
        """Return the seed of an episode's task; None if its own seed decides the task."""
        if self.task_seed is not None or self.lifetime == 1:
            return self.task_seed
        # Limited episodes go to any free environment, so their task depends on their number alone.
        env = i // self.group if self.limited is None else 0
        return lifetime_seed(self.seed, env, number // self.lifetime)

    def _options(self, i: int, number: int) -> dict[str, int]:
        task_seed = self._task_seed(i, number)
        return {"episode": number} if task_seed is None else {"episode": number, "task_seed": task_seed}

    def _reset(self, due: dict[int, tuple[int, int]]) -> None:
        calls = {i: ("reset", (), {"seed": s, "options": self._options(i, n)}) for i, (n, s) in due.items()}
        answers = self._ask(calls)
        players = [self._players(i, info) for i, (_, info) in answers.items()]
        self.players = self.players or max(players, default=1)
        for i, (observation, info) in answers.items():
            running = self.running[i] = _Running(*due[i])
            running.state = self._read(i, observation, info, faults.seat(info, self.players))
        self.running = dict(sorted(self.running.items()))
        if len({state.actions is None for state in self.states}) > 1:
            raise UsageError("Some of these environments list admissible actions and others accept any text.")

    def _ask(self, calls: dict[int, Call]) -> dict[int, Any]:
        """Call environments; one that fails is named as the cause."""
        try:
            answers = self.fleet.ask(calls)
        except (Exception, SystemExit) as error:
            asked = [(verb, *arguments) for verb, arguments, _ in calls.values()]
            from hunch.rl.blame import raised

            raise raised(error, asked) from error
        for i, (verb, *_) in calls.items():
            faults.require_shape(verb, answers[i])
        return answers

    def _players(self, i: int, info: dict[str, Any]) -> int:
        return int(self.fleet.envs[i].metadata.get("players", 2 if "player" in info else 1))

    def _read(self, i: int, observation: Any, info: dict[str, Any], player: int, over: bool = False) -> State:
        shown = info if self.raw else {**info, "raw": None}
        state = State.read(observation, shown, i * self.players + int(player), int(player))
        if state.actions == () and not over:
            raise UsageError(f"The environment offers no admissible action after: {state.observation!r}.")
        faults.require_texts(observation, info, state.actions)
        return state

    def step(self, actions: Sequence[str]) -> list[Transition]:
        """Take one action in each state, and start a new episode where one ended.

        Raises:
            UsageError: if the number of actions is wrong.
            InadmissibleActionError: if an action is not admissible. In both cases no environment is stepped.
        """
        live = list(self.running)
        self._check(actions)
        outcomes = self._ask({i: ("step", (a,), {}) for i, a in zip(live, actions, strict=True)})
        transitions: list[Transition] = []
        over, self.forgotten = list[int](), []
        for i, action in zip(live, actions, strict=True):
            self.steps += 1
            own = self._advance(i, action, outcomes[i])
            transitions += own
            if own and own[-1].done:
                over.append(i)
                if (self.running[i].number + 1) % self.lifetime == 0:
                    self.forgotten += range(i * self.players, (i + 1) * self.players)
                self.finished.append(self._end(i, own[-1].success))
        self._begin(over)
        return transitions

    def _check(self, actions: Sequence[str]) -> None:
        states = self.states
        if len(actions) != len(states):
            raise UsageError(f"There are {len(actions)} actions for {len(states)} states.")
        for state, action in zip(states, actions, strict=True):
            if not isinstance(action, str):
                raise InadmissibleActionError(f"An action must be text, not {action!r}.")
            if state.actions is not None and action not in state.actions:
                said = f"The action {action!r} is not admissible here"
                raise InadmissibleActionError(f"{said}; admissible are: {', '.join(state.actions)}.")

    def _advance(self, i: int, action: str, outcome: Any) -> list[Transition]:
        """Record the outcome of an action; return the transitions that it completes."""
        observation, reward, terminated, truncated, info = outcome
        running, first = self.running[i], i * self.players
        running.open[running.state.stream] = (running.state, action, [])
        running.actions.append(action)
        running.total += faults.finite(reward, action, info)
        for player, gained in enumerate(faults.shares(info, reward, self.players)):
            due = running.due.get(first + player, 0.0)
            running.due[first + player] = due + faults.finite(gained, action, info)
        for _, _, events in running.open.values():
            events += [event] if (event := info.get("event", "")) else []
        turn = 0
        done = bool(terminated or truncated)
        if done:
            info = faults.at_the_end(info, running.state.actions)
            if info["actions"] == ():  # nothing can follow, even if a limit ended the episode
                terminated, truncated = True, False
        else:
            turn = faults.seat(info, self.players)
            running.state = self._read(i, observation, info, turn)
        complete = sorted(running.open) if done else [s for s in (first + turn,) if s in running.open]
        ends = bool(terminated), bool(truncated), bool(info.get("success", False))
        transitions = []
        for stream in complete:
            before, taken, events = running.open.pop(stream)
            after = self._read(i, observation, info, stream - first, done) if done else running.state
            gained, told = running.due.pop(stream), "\n".join(events)
            transitions.append(Transition(before, taken, gained, after, *ends, told))
        return transitions

    def _end(self, i: int, success: bool) -> Finished:
        ended = self.running.pop(i)
        actions, task_seed = tuple(ended.actions), self._task_seed(i, ended.number)
        return Finished(
            ended.seed, self.steps, ended.total, len(actions), success, actions, ended.number, task_seed
        )

    def take_finished(self) -> list[Finished]:
        """Return the episodes that ended since the last call, in the order in which they ended."""
        finished, self.finished = self.finished, []
        return finished

    def state_dict(self) -> dict[str, Any]:
        """Return counters, and the seeds and actions of the unfinished episodes."""
        running = {i: (r.number, r.seed, [*r.actions], r.state.observation) for i, r in self.running.items()}
        return {"steps": self.steps, "begun": list(self.begun), "running": running}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the unfinished episodes by replaying them.

        Raises:
            HunchError: if the replay of an episode differs from the original.
        """
        self.steps, self.begun = state["steps"], list(state["begun"])
        self.finished, self.running = [], {}
        self._reset({i: (number, seed) for i, (number, seed, _, _) in state["running"].items()})
        for t in range(max((len(actions) for _, _, actions, _ in state["running"].values()), default=0)):
            due = {i: actions[t] for i, (_, _, actions, _) in state["running"].items() if t < len(actions)}
            for i, outcome in self._ask({i: ("step", (a,), {}) for i, a in due.items()}).items():
                self._advance(i, due[i], outcome)
        for i, (_, _, _, observation) in state["running"].items():
            if self.running[i].state.observation != observation:
                raise HunchError(
                    "The environment did not repeat its episode; the same seed must give the same episode."
                )
