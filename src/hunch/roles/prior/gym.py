"""The action prior for learners of other libraries.

With stable-baselines3, for example::

    env = Proposals(hunch.make("hunch/Household-Pick-v0"), "qwen-coder-1.5b", k=5)
    DQN("MlpPolicy", env).learn(5_000)

The controls are other models in the same place: ``"uniform"``, ``"words"``, ``PriorConfig(way="novelty")``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils import RecordConstructorArgs

from hunch.core import FloatArray, HunchWarning, State, UsageError
from hunch.lm.base import LanguageModel
from hunch.ranges import PositiveInt, check_value
from hunch.roles.encoder.features import TextTable
from hunch.roles.gym import (
    Seen,
    Shown,
    ShownEnv,
    ShownVector,
    embed_all,
    loaded,
    require_env,
    require_text,
)
from hunch.roles.prior.base import DistributionPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior

WORDS: Final = "bag-of-words"
"""The encoder, unless another is named: it needs no model."""
LEAST: Final = 1e-9
"""Least probability whose logarithm is shown."""


class ProposalsShown(Shown):
    """Shows a state as the embeddings of task, text and k proposed actions, and their probabilities.

    Arguments as for :class:`Proposals`.
    """

    def __init__(
        self,
        lm: LanguageModel | str,
        k: int = 5,
        *,
        encoder: LanguageModel | str = WORDS,
        prior: PriorConfig | None = None,
        probabilities: bool = True,
    ) -> None:
        check_value("k", k, PositiveInt)
        model = loaded(lm)
        reads = loaded(encoder)
        self.models = {"lm": model, "encoder": reads}
        self.k = k
        self.probabilities = probabilities
        self.prior = build_prior(prior or PriorConfig(), model)
        self.table = TextTable(reads)
        self.rng = np.random.default_rng(0)
        width = (2 + k) * self.table.dim + (k if probabilities else 0)
        self.observation_space = Box(-np.inf, np.inf, (width,), np.float32)
        self.action_space = Discrete(k)

    def begin(self, seed: int | None) -> None:
        """Draw the same proposals for the same seed and states."""
        self.rng = np.random.default_rng(seed)

    def show(self, states: Sequence[State]) -> list[Seen]:
        """Ask the prior once for all states.

        Raises:
            UsageError: if a state lists no actions.
        """
        proposals = self.prior.propose(states, self.k, self.rng)
        proposed = [
            [state.options[int(index)] for index in proposal.indices]
            for state, proposal in zip(states, proposals, strict=True)
        ]
        embed_all(self.table, states, proposed)
        seen = []
        for state, proposal in zip(states, proposals, strict=True):
            # The likeliest stands first. If fewer than k are distinct, they are repeated: every number is an
            # action, also for learners without masks.
            order = np.argsort(-proposal.weights, kind="stable")
            distinct = [state.options[int(proposal.indices[place])] for place in order]
            weights = proposal.weights[order]
            places = np.arange(self.k) % len(distinct)
            actions = tuple(distinct[place] for place in places)
            parts = [
                self.table.encode([state.aim])[0],  # (dim,)
                self.table.recent(state),  # (dim,)
                self.table.encode(actions).ravel(),  # (k * dim,)
            ]
            if self.probabilities:
                parts.append(weights[places].astype(np.float32))  # (k,)
            mask = np.arange(self.k) < len(distinct)
            seen.append(Seen(np.concatenate(parts), actions, mask, {"proposals": tuple(distinct)}))
        return seen


class Proposals(ShownEnv, RecordConstructorArgs):
    """A text environment in which the action is the number of one of k actions that a prior proposes.

    The observation is a vector: the embeddings of task, text and k proposed actions, then their shares of the
    k draws. The text's is the mean over its lines, weighted by recency, as the Q of DQN-Prior sees it. The
    likeliest proposal is number 0. As the same number is another action in each state, the
    embeddings belong to the observation. If fewer than k proposals are distinct, they are repeated; the mask
    of :meth:`~hunch.roles.gym.ShownEnv.action_masks` is true for the distinct ones.

    Args:
        env: A text environment that lists its actions.
        lm: The model of the prior, or its spec.
        k: Number of draws from the prior.
        encoder: A model that embeds, or its spec.
        prior: How the model is asked.
        probabilities: Whether the shares stand in the observation.

    Raises:
        UsageError: if the model cannot be asked in this way, or the environment lists no actions.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        lm: LanguageModel | str,
        k: int = 5,
        *,
        encoder: LanguageModel | str = WORDS,
        prior: PriorConfig | None = None,
        probabilities: bool = True,
    ) -> None:
        require_env("Proposals", env)
        named: dict[str, Any] = {"encoder": encoder, "prior": prior, "probabilities": probabilities}
        RecordConstructorArgs.__init__(self, lm=lm, k=k, **named)
        super().__init__(env, ProposalsShown(lm, k, **named))

    @staticmethod
    def vector(
        envs: Sequence[gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]],
        lm: LanguageModel | str,
        k: int = 5,
        **options: Any,
    ) -> ShownVector:
        """Wrap several environments as one vectorised environment, which asks for all states at once."""
        return ShownVector(envs, ProposalsShown(lm, k, **options))


class LogitsShown(Shown):
    """Shows a state as embeddings, with the prior's log-probability of each action.

    Arguments as for :class:`PriorLogits`, and ``first_only``: ``most`` is the number of actions of the first
    state alone, so that others may list more.
    """

    def __init__(
        self,
        lm: LanguageModel | str,
        most: int,
        *,
        encoder: LanguageModel | str = WORDS,
        prior: PriorConfig | None = None,
        first_only: bool = False,
    ) -> None:
        check_value("most", most, PositiveInt)
        model = loaded(lm)
        reads = loaded(encoder)
        self.models = {"lm": model, "encoder": reads}
        self.most = most
        self.first_only = first_only
        self.warned = False
        built = build_prior(prior or PriorConfig(), model)
        if not isinstance(built, DistributionPrior):
            raise UsageError(
                f"{model.name} is asked for actions, not for probabilities, so there are no logits: use "
                "Proposals, or a way of asking with probabilities (label, likelihood, similarity, decision)."
            )
        self.prior = built
        self.table = TextTable(reads)
        self.observation_space = Dict(
            {
                "text": Box(-np.inf, np.inf, (2 * self.table.dim,), np.float32),
                "actions": Box(-np.inf, np.inf, (most, self.table.dim), np.float32),
                "logits": Box(np.log(np.float32(LEAST)), 0.0, (most,), np.float32),
            }
        )
        self.action_space = Discrete(most)

    def show(self, states: Sequence[State]) -> list[Seen]:
        """Ask the prior once for all states.

        Raises:
            UsageError: if a state lists no actions, or more than a ``most`` that was set.
        """
        longest = max(len(state.options) for state in states)
        if longest > self.most and not self.first_only:
            raise UsageError(f"A state lists {longest} actions, and most is {self.most}: set most={longest}.")
        if longest > self.most and not self.warned:
            self.warned = True
            warnings.warn(
                f"A state lists {longest} actions, and the first one {self.most}: only the {self.most} "
                f"likeliest are offered. To offer all, set most={longest}.",
                HunchWarning,
                stacklevel=2,
            )
        distributions = self.prior.probabilities(states)
        embed_all(self.table, states, [state.options for state in states])
        seen = []
        for state, probabilities in zip(states, distributions, strict=True):
            seen.append(self._seen(state, probabilities))
        return seen

    def _seen(self, state: State, probabilities: FloatArray) -> Seen:
        options = state.options
        if len(options) > self.most:
            likeliest = np.argsort(-probabilities, kind="stable")[: self.most]
            kept = np.sort(likeliest)  # in the order of the list
            options = tuple(options[int(place)] for place in kept)
            probabilities = probabilities[kept]
        n = len(options)
        text = np.concatenate([self.table.encode([state.aim])[0], self.table.recent(state)])  # (2 * dim,)
        actions = np.zeros((self.most, self.table.dim), dtype=np.float32)
        actions[:n] = self.table.encode(options)
        logits = np.full(self.most, np.log(np.float32(LEAST)), dtype=np.float32)
        logits[:n] = np.log(np.maximum(probabilities, LEAST))
        observation = {"text": text, "actions": actions, "logits": logits}
        return Seen(observation, options, np.arange(self.most) < n, {"logits": logits})


class PriorLogits(ShownEnv, RecordConstructorArgs):
    """A text environment whose observation holds the prior's log-probability of each action.

    A policy adds them to its logits, which is a policy that begins at the prior; the KL divergence from it is
    that from a policy whose logits are these alone. The observation is a dictionary: ``text`` (embeddings of
    task and text), ``actions`` (embedding of each action, shape (most, dim)) and ``logits`` (shape (most,)).
    The numbers of actions are those of ``info["actions"]``; those beyond are masked, and cost a step.

    Args:
        env: A text environment that lists its actions.
        lm: The model of the prior, or its spec.
        most: Largest number of actions of a state, which may vary; the spaces have this size. Default: the
            number in the first state; where a later one lists more, the likeliest are offered.
        encoder: A model that embeds, or its spec.
        prior: How the model is asked.

    Raises:
        UsageError: if the model gives no probabilities, or the environment lists no actions.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        lm: LanguageModel | str,
        most: int | None = None,
        *,
        encoder: LanguageModel | str = WORDS,
        prior: PriorConfig | None = None,
    ) -> None:
        require_env("PriorLogits", env)
        require_text("PriorLogits", env)
        RecordConstructorArgs.__init__(self, lm=lm, most=most, encoder=encoder, prior=prior)
        size = most if most is not None else len(State.read(*env.reset(seed=0)).options)
        shown = LogitsShown(lm, size, encoder=encoder, prior=prior, first_only=most is None)
        super().__init__(env, shown)

    @staticmethod
    def vector(
        envs: Sequence[gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]],
        lm: LanguageModel | str,
        most: int,
        **options: Any,
    ) -> ShownVector:
        """Wrap several environments as one vectorised environment, which asks for all states at once."""
        return ShownVector(envs, LogitsShown(lm, most, **options))
