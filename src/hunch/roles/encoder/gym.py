"""Texts as embeddings, for learners of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs

from hunch.core import State, UsageError
from hunch.lm.base import LanguageModel
from hunch.roles.encoder.features import TextTable
from hunch.roles.gym import Seen, Shown, ShownEnv, ShownVector, embed_all, loaded, require_env, require_text


class EncodedShown(Shown):
    """Shows a state as the embeddings of task and text; arguments as for :class:`Encoded`."""

    def __init__(self, encoder: LanguageModel | str, actions: Sequence[str]) -> None:
        reads = loaded(encoder)
        self.models = {"encoder": reads}
        self.table = TextTable(reads)
        self.actions = tuple(actions)
        self.observation_space = Box(-np.inf, np.inf, (2 * self.table.dim,), np.float32)
        self.action_space = Discrete(len(self.actions))

    def show(self, states: Sequence[State]) -> list[Seen]:
        """Embed the texts of all states in one request."""
        embed_all(self.table, states)
        seen = []
        for state in states:
            admissible = set(state.options)
            mask = np.array([action in admissible for action in self.actions])
            vector = np.concatenate([self.table.encode([state.aim])[0], self.table.recent(state)])
            offered = tuple(action if action in admissible else None for action in self.actions)
            seen.append(Seen(vector, offered, mask))
        return seen


class Encoded(ShownEnv, RecordConstructorArgs):
    """A text environment whose observation is the embedding of task and text.

    The text's is the mean over its lines, weighted by recency: lines recur, and each is embedded once. The
    action is the number of an action of a fixed list. Where the admissible ones change,
    :meth:`~hunch.roles.gym.ShownEnv.action_masks` tells them, and another one costs a step.

    Args:
        env: A text environment.
        encoder: A model that embeds, or its spec.
        actions: The list of actions. Default: the actions admissible at the start.

    Raises:
        UsageError: if the model cannot embed, or the environment lists no actions.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        encoder: LanguageModel | str,
        actions: Sequence[str] = (),
    ) -> None:
        require_env("Encoded", env)
        require_text("Encoded", env)
        if isinstance(actions, str) or not all(isinstance(name, str) for name in actions):
            raise UsageError(f"actions are the names of the actions, a tuple of texts, not {actions!r}.")
        RecordConstructorArgs.__init__(self, encoder=encoder, actions=actions)
        listed = tuple(actions) or State.read(*env.reset(seed=0)).options
        super().__init__(env, EncodedShown(encoder, listed))

    @staticmethod
    def vector(
        envs: Sequence[gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]],
        encoder: LanguageModel | str,
        actions: Sequence[str],
    ) -> ShownVector:
        """Wrap several environments as one vectorised environment, which embeds all texts at once."""
        return ShownVector(envs, EncodedShown(encoder, actions))
