"""The stored form of one recorded episode, and checks of its consistency."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hunch.core import Episode, Picture, State, Transition, is_plain


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded episode of n steps of one player.

    Attributes:
        observations: n + 1 texts, the last one after the last action.
        admissible: The admissible actions at each observation, None where any text is an action. At the last
            one there may be none, or the entry may be left out; both is stored as an empty tuple.
        actions: The n actions taken.
        rewards: The n rewards.
        terminated: True if the last step ended the task.
        truncated: True if the last step was cut off by a limit. Where no action is admissible any more, the
            episode counts as terminated instead, because nothing can follow.
        task: The task in one sentence.
        success: True if the task was solved.
        behaviour: Name of the policy that chose the actions.
        seed: Seed of the environment's reset; -1 if unknown.
        history: Number of earlier observation-action pairs that the agent sees.
        events: What happened in each of the n steps, in words; empty if no step has an event.
        tasks: The task at each observation; empty if it never changes.
        raw: The raw state (plain numbers) at each observation; empty if there is none.
        pictures: The pictures at each observation, as PNG bytes; empty if there are none.
        seat: The player who acted, in environments of several players.
        lifetime: Number of the lifetime; episodes of one lifetime share a task.
        number: Number of the episode in its environment.
        group: Number of the prompt that the episode answers, if several episodes answer the same prompt.
        unfinished: Numbers of the steps whose text was cut at its limit of tokens, so that it has no end.
    """

    observations: tuple[str, ...]
    admissible: tuple[tuple[str, ...] | None, ...]
    actions: tuple[str, ...]
    rewards: tuple[float, ...]
    terminated: bool
    truncated: bool
    task: str = ""
    success: bool = False
    behaviour: str = "unknown"
    seed: int = -1
    history: int = 0
    events: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    raw: tuple[Any, ...] = ()
    pictures: tuple[tuple[bytes, ...], ...] = ()
    seat: int = 0
    lifetime: int = 0
    number: int = 0
    group: int | None = None
    unfinished: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        admissible, listed = self.admissible, any(options is not None for options in self.admissible)
        if admissible and len(admissible) == len(self.actions):
            admissible = (*admissible, None)
        if listed and admissible[-1] is None:
            admissible = (*admissible[:-1], ())
        object.__setattr__(self, "admissible", admissible)
        if self.truncated and admissible and admissible[-1] == ():
            object.__setattr__(self, "terminated", True)
            object.__setattr__(self, "truncated", False)

    @classmethod
    def of(cls, episode: Episode, behaviour: str = "unknown", seed: int = -1, history: int = 0) -> Recording:
        """Make a recording of an episode of one player."""
        states = [episode[0].state, *(t.next_state for t in episode)]
        tasks, pictures = tuple(s.task for s in states), tuple(s.pictures for s in states)
        raw = tuple(s.raw if is_plain(s.raw) else None for s in states)
        events = tuple(t.event for t in episode)
        return cls(
            observations=tuple(s.observation for s in states),
            admissible=tuple(s.actions for s in states),
            actions=tuple(t.action for t in episode),
            rewards=tuple(t.reward for t in episode),
            terminated=episode[-1].terminated,
            truncated=episode[-1].truncated,
            task=tasks[0],
            success=episode[-1].success,
            behaviour=behaviour,
            seed=seed,
            history=history,
            events=events if any(events) else (),
            tasks=tasks if len(set(tasks)) > 1 else (),
            raw=raw if any(item is not None for item in raw) else (),
            pictures=tuple(tuple(p.data for p in of_step) for of_step in pictures) if any(pictures) else (),
            seat=states[0].seat,
            lifetime=episode.lifetime,
            number=episode.number,
            group=episode.group,
            unfinished=episode.unfinished,
        )

    def __len__(self) -> int:
        return len(self.actions)

    def episode(self) -> Episode:
        """Return the episode as transitions, in the form that agents receive."""
        return Episode(tuple(self.transitions()), self.lifetime, self.number, self.group, self.unfinished)

    def transitions(self) -> Iterator[Transition]:
        """Yield the episode step by step."""
        states = [self._state(i) for i in range(len(self) + 1)]
        for i, (action, reward) in enumerate(zip(self.actions, self.rewards, strict=True)):
            last = i == len(self) - 1
            ends = last and self.terminated, last and self.truncated
            event = self.events[i] if self.events else ""
            yield Transition(states[i], action, reward, states[i + 1], *ends, last and self.success, event)

    def _state(self, i: int) -> State:
        first = max(0, i - self.history)
        return State(
            self.observations[i],
            self.tasks[i] if self.tasks else self.task,
            self.admissible[i],
            tuple(zip(self.observations[first:i], self.actions[first:i], strict=True)),
            pictures=tuple(map(Picture.read, self.pictures[i])) if self.pictures else (),
            raw=self.raw[i] if self.raw else None,
            seat=self.seat,
        )

    def cut(self, steps: int) -> Recording:
        """Return the first ``steps`` steps, as an episode that was truncated there."""
        if steps >= len(self):
            return self
        return replace(
            self,
            observations=self.observations[: steps + 1],
            admissible=self.admissible[: steps + 1],
            actions=self.actions[:steps],
            rewards=self.rewards[:steps],
            events=self.events[:steps],
            tasks=self.tasks[: steps + 1],
            raw=self.raw[: steps + 1],
            pictures=self.pictures[: steps + 1],
            unfinished=tuple(step for step in self.unfinished if step < steps),
            terminated=False,
            truncated=True,
            success=False,
        )


def problems(episode: Recording) -> Iterator[tuple[int, str]]:
    """Yield the index and the problem of each inconsistent step of an episode."""
    n = len(episode)
    sizes = {"observations": n + 1, "admissible": n + 1, "rewards": n}
    more = {"events": n, "tasks": n + 1, "raw": n + 1, "pictures": n + 1}
    sizes |= {name: size for name, size in more.items() if getattr(episode, name)}
    for name, wanted in sizes.items():
        count = len(getattr(episode, name))
        if count != wanted:
            yield min(count, wanted), f"{n} actions need {wanted} {name}, but there are {count}"
            return
    if n == 0:
        yield 0, "the episode has no step"
    if not (episode.terminated or episode.truncated):
        yield n - 1, "the episode has no end: neither terminated nor truncated"
    if beyond := [step for step in episode.unfinished if not 0 <= step < n]:
        yield n - 1, f"step {beyond[0]} is unfinished, but there are {n} steps"
    for step, text in enumerate(episode.observations):
        if not _is_unicode(text):
            yield min(step, n - 1), f"the observation {text!r} holds half a character"
    for step, (action, offered, reward) in enumerate(
        zip(episode.actions, episode.admissible, episode.rewards, strict=False)
    ):
        if offered is not None and action not in offered:
            yield step, f"the action {action!r} was not admissible"
        if offered is not None and len(set(offered)) < len(offered):
            yield step, "an action is listed as admissible twice"
        if not _is_unicode(action):
            yield step, f"the action {action!r} holds half a character"
        if not math.isfinite(reward):
            yield step, f"the reward is {reward}"


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)
