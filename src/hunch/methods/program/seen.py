"""Memory of steps in deterministic environments, by mission (the task), with the first states of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hunch.core import Transition
from hunch.envs.design.transitions import refuse_contradictions
from hunch.rl.world_model import Step, frozen, steps_of

LATELY = 3
"""Number of first states that are remembered per mission (ours)."""


class Seen:
    """Remembered steps by mission (the state's task), each state and action once.

    Attributes:
        steps: Steps by mission, then by state and action.
        new: Missions and steps not yet returned by :meth:`news`.
        starts: Latest first states of each mission, oldest first.
        actions: All actions that were ever admissible.
        running: Streams whose episode has begun and not ended.
    """

    def __init__(self) -> None:
        self.steps: dict[str, dict[Any, Step]] = {}
        self.new: list[tuple[str, Step]] = []
        self.starts: dict[str, list[Any]] = {}
        self.actions: tuple[str, ...] = ()
        self.running: set[int] = set()

    def __len__(self) -> int:
        return sum(map(len, self.steps.values()))

    def take_in(self, t: Transition) -> Step:
        """Remember a step, if it is new.

        Raises:
            UsageError: if the same action had another result before.
        """
        (step,) = steps_of([t])
        known = self.steps.setdefault(t.state.task, {})
        self.actions = tuple(dict.fromkeys([*self.actions, *t.state.options]))
        if (step.state, step.action) in known:
            refuse_contradictions([known[step.state, step.action], step])
        else:
            known[step.state, step.action] = step
            self.new.append((t.state.task, step))
        return step

    def follow(self, t: Transition, step: Step) -> None:
        """Record the first state of an episode, and whether the episode continues."""
        if t.stream not in self.running:
            starts = [state for state in self.starts.get(t.state.task, []) if state != step.state]
            self.starts[t.state.task] = [*starts, step.state][-LATELY:]
            self.running.add(t.stream)
        if t.done:
            self.running.discard(t.stream)

    def news(self) -> dict[str, list[Step]]:
        """Return the steps since the last call, by mission."""
        found: dict[str, list[Step]] = {}
        for mission, step in self.new:
            found.setdefault(mission, []).append(step)
        self.new = []
        return found

    def of(self, *missions: str) -> list[Step]:
        """Return the steps of the named missions."""
        return [step for mission in missions for step in self.steps[mission].values()]

    def state_dict(self) -> dict[str, Any]:
        """Return all steps and first states as plain values."""
        return {
            "actions": list(self.actions),
            "steps": [(mission, [tuple(s) for s in own.values()]) for mission, own in self.steps.items()],
            "new": [(mission, tuple(step)) for mission, step in self.new],
            "starts": list(self.starts.items()),
            "running": sorted(self.running),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        known = [(mission, map(_step, own)) for mission, own in state["steps"]]
        self.steps = {mission: {(s.state, s.action): s for s in own} for mission, own in known}
        self.new = [(mission, _step(step)) for mission, step in state["new"]]
        self.starts = {mission: [frozen(s) for s in starts] for mission, starts in state["starts"]}
        self.actions, self.running = tuple(state["actions"]), set(state["running"])


def _step(saved: Sequence[Any]) -> Step:
    state, action, reward, done, after = saved
    return Step(frozen(state), action, reward, done, frozen(after))
