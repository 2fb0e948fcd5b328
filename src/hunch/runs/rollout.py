"""Environments stepped side by side, so that one model call serves them all.

An episode is fully given by its seed and its actions: same seed, same episode is the contract of every
environment here. So an episode in flight is saved as that pair and taken up again by replaying it; no
environment has to know how to write itself to disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from hunch.core import Episode, HunchError, State, Transition, UsageError
from hunch.rl.dataset import Dataset

TextEnvironment = gym.Env[Any, Any]


class Rollout:
    """A batch of environments, each begun anew as soon as its episode ends.

    Attributes:
        steps: Environment steps so far, over all environments.
        states: The current state of each environment.
        finished: Episodes that ended and have not been taken by :meth:`take_finished`.
    """

    def __init__(self, envs: Sequence[TextEnvironment], seed: int) -> None:
        self.envs = list(envs)
        self.seed = seed
        self.steps = 0
        self.begun = [0] * len(self.envs)
        self.actions: list[list[str]] = [[] for _ in self.envs]
        self.returns = [0.0] * len(self.envs)
        self.finished: list[Episode] = []
        self.states = [self._begin(i) for i in range(len(self.envs))]

    @property
    def identity(self) -> list[str]:
        """What a checkpoint must share with the run that takes it up."""
        return [env.spec.id if env.spec else type(env).__name__ for env in self.envs]

    def _episode_seed(self, i: int) -> int:
        sequence = np.random.SeedSequence([self.seed, i, self.begun[i]])
        return int(sequence.generate_state(1)[0])

    def _begin(self, i: int) -> State:
        self.actions[i], self.returns[i] = [], 0.0
        observation, info = self.envs[i].reset(seed=self._episode_seed(i))
        return _with_actions(State.read(observation, info))

    def step(self, actions: Sequence[str]) -> list[Transition]:
        """Take one action in each environment, and begin a new episode where one ended."""
        return [self._step(i, action) for i, action in enumerate(actions)]

    def _step(self, i: int, action: str) -> Transition:
        transition, success = self._advance(i, action)
        self.steps += 1
        if transition.done:
            self.finished.append(
                Episode(
                    seed=self._episode_seed(i),
                    step=self.steps,
                    episode_return=self.returns[i],
                    length=len(self.actions[i]),
                    success=success,
                    actions=tuple(self.actions[i]),
                )
            )
            self.begun[i] += 1
            self.states[i] = self._begin(i)
        return transition

    def _advance(self, i: int, action: str) -> tuple[Transition, bool]:
        state = self.states[i]
        observation, reward, terminated, truncated, info = self.envs[i].step(action)
        self.actions[i].append(action)
        self.returns[i] += float(reward)
        next_state = State.read(observation, info)
        if not terminated:
            _with_actions(next_state)
        self.states[i] = next_state
        transition = Transition(state, action, float(reward), next_state, bool(terminated), bool(truncated))
        return transition, bool(info.get("success", False))

    def take_finished(self) -> list[Episode]:
        """Return the episodes that ended since the last call, in the order they ended."""
        finished, self.finished = self.finished, []
        return finished

    def state_dict(self) -> dict[str, Any]:
        """Counters, and the actions of the episodes in flight."""
        return {
            "steps": self.steps,
            "begun": list(self.begun),
            "actions": [list(actions) for actions in self.actions],
            "observations": [state.observation for state in self.states],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the episodes in flight by replaying them.

        Raises:
            HunchError: if an environment does not give the same episode again.
        """
        self.steps = state["steps"]
        self.begun = list(state["begun"])
        self.finished = []
        for i, (actions, observation) in enumerate(zip(state["actions"], state["observations"], strict=True)):
            self.states[i] = self._begin(i)
            for action in actions:
                self._advance(i, action)
            if self.states[i].observation != observation:
                raise HunchError(
                    "The environment did not replay its episode: same seed, same episode is broken."
                )


class Recorded:
    """A data set in the place of a rollout: all its steps are observed at once, then there is only learning.

    Attributes:
        steps: Passes of the loop so far, which are updates.
        states: None, as nothing is to be decided.
    """

    def __init__(self, dataset: Dataset, seed: int) -> None:
        self.dataset = dataset
        self.seed = seed
        self.steps = 0
        self.states: list[State] = []

    @property
    def identity(self) -> list[str]:
        """What a checkpoint must share with the run that takes it up."""
        return [self.dataset.identity]

    def step(self, actions: Sequence[str]) -> list[Transition]:
        """Return all recorded steps the first time, and nothing later."""
        self.steps += 1
        return self.dataset.transitions() if self.steps == 1 else []

    def take_finished(self) -> list[Episode]:
        """No episode ends here; only evaluation plays some."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """The counter; what was observed is in the agent's own state."""
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the counter."""
        self.steps = state["steps"]


def play_episodes(env: TextEnvironment, act: Any, episodes: int, seed: int) -> list[Episode]:
    """Play whole episodes with ``act(states) -> actions`` and return them."""
    rollout = Rollout([env], seed)
    while len(rollout.finished) < episodes:
        rollout.step(act(rollout.states))
    return rollout.take_finished()


def _with_actions(state: State) -> State:
    if not state.actions:
        raise UsageError(f"The environment offers no admissible action after: {state.observation!r}.")
    return state
