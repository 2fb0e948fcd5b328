"""Gymnasium wrappers for learners of other libraries: any reward source, and text as vectors.

For example, with stable-baselines3::

    env = Vectors(RewardWrapper(hunch.make("hunch/Ultimatum-v0"), Judge(lm.load("scripted:judge"))), encoder)
    model = PPO("MlpPolicy", env)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from hunch.core import Agent, Player, State, Transition, UsageError, World
from hunch.envs.base import action_name
from hunch.lm.base import LanguageModel
from hunch.roles.encoder.features import TextTable
from hunch.roles.reward.rewarded import Rewarded, RewardSource, Shaping


class _Kept(Agent):
    """Stands in for an agent, and keeps the last transitions."""

    def begin(self, world: World, seed: int) -> None:
        """Forget it."""
        self.seen: Sequence[Transition] = ()

    def act(self, states: Sequence[State]) -> list[str]:
        """Raise an error: the learner of another library acts."""
        raise NotImplementedError

    def player(self, seed: int) -> Player:
        """Raise an error: the learner of another library plays."""
        raise NotImplementedError

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep it."""
        self.seen = transitions


class RewardWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A text environment whose reward includes a source's rewards, like :class:`hunch.roles.Rewarded`.

    ``info["extrinsic"]`` is the environment's reward, ``info["intrinsic"]`` the transformed reward of the
    source. One environment is one stream; to ask a source in batches, use the loop of this library.

    Args:
        env: A text environment.
        source: The reward source.
        weight: Weight of the source's rewards.
        extrinsic: Weight of the environment's rewards.
        shaping: How the source's rewards are transformed first; without ``recall``, which changes the
            states of an agent and is not possible here.
        seed: Seed of the source.

    Raises:
        UsageError: if a setting is out of range, or ``recall`` is set.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        source: RewardSource,
        *,
        weight: float = 1.0,
        extrinsic: float = 1.0,
        shaping: Shaping | None = None,
        seed: int = 0,
    ) -> None:
        joined: dict[str, Any] = {"weight": weight, "extrinsic": extrinsic, "shaping": shaping, "seed": seed}
        RecordConstructorArgs.__init__(self, source=source, **joined)
        gymnasium.Wrapper.__init__(self, env)
        if shaping is not None and shaping.recall:
            raise UsageError("recall changes the states of an agent; an environment wrapper cannot use it.")
        kept = _Kept()
        self.kept = kept
        self.rewarded = Rewarded(kept, source, weight=weight, extrinsic=extrinsic, shaping=shaping)
        self.rewarded.begin(World(streams=1), seed)
        self.state = State("")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.state = State.read(observation, info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the reward is the weighted sum of the environment's and the source's reward."""
        before = self.state
        name = action if before.actions is None else action_name(action, before.actions)
        observation, reward, terminated, truncated, info = self.env.step(name)
        self.state = State.read(observation, info)
        ended = (bool(terminated), bool(truncated), bool(info.get("success")), info.get("event", ""))
        self.rewarded.observe([Transition(before, name, float(reward), self.state, *ended)])
        told = {"extrinsic": float(reward), "intrinsic": self.rewarded.learn().get("intrinsic", 0.0)}
        return observation, self.kept.seen[0].reward, terminated, truncated, {**info, **told}


class Vectors(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A text environment whose observations are vectors and whose actions are numbers, for other libraries.

    The observation is the embedding of task and text; the action is an index of a fixed list.

    Args:
        env: A text environment.
        encoder: A model that embeds.
        actions: The list of actions. Default: the actions admissible at the start, if they never change.

    Raises:
        UsageError: if the model cannot embed.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], encoder: LanguageModel, actions: Sequence[str] = ()
    ) -> None:
        RecordConstructorArgs.__init__(self, encoder=encoder, actions=actions)
        gymnasium.Wrapper.__init__(self, env)
        self.table = TextTable(encoder)
        self.actions = tuple(actions) or State.read(*env.reset(seed=0)).options
        self.observation_space = Box(-np.inf, np.inf, (2 * self.table.dim,), np.float32)
        self.action_space = Discrete(len(self.actions))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._vector(observation, info), info

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take the action with this index.

        Raises:
            InadmissibleActionError: if the action is not admissible now.
        """
        observation, reward, *ended, info = self.env.step(action_name(action, self.actions))
        return self._vector(observation, info), float(reward), ended[0], ended[1], info

    def _vector(self, observation: str, info: dict[str, Any]) -> NDArray[np.float32]:
        return self.table.encode([info.get("task", ""), observation]).ravel()
