"""ICPI: policy iteration with a language model as world model and as policy, both given examples only.

Algorithm (Brooks et al., "Large Language Models can Implement Policy Iteration", NeurIPS 2023)::

    D <- all finished episodes;  C <- the last 8 of them
    for each step, once D has an example of everything, with probability 1 / (1 + exp(2 (3 - |C|)))
        for each action a                                       one rollout each
            Q(s, a) <- 0;  s', a' <- s, a
            for t = 0, 1, ..., at most the domain's limit
                done   ~ p_LM( . | s', a', examples of D)
                reward ~ p_LM( . | s', a', done, examples of D);     Q(s, a) <- Q(s, a) + gamma^t reward
                if done: stop
                s'     ~ p_LM( . | s', a', examples of D)
                a'     ~ p_LM( . | s', examples of C)           the policy of the last episodes
        act by argmax over a of Q(s, a), ties at random;  else act at random

The policy improves because the actions of the arg-max become the examples of the policy. Nothing is trained:
all learning is in the prompts. All rollouts of a step, over all environments, advance together, so that each
stage is one call of the model.

Departures: prompts that are too long lose whole examples, not parts of one; token counts are estimated; a
repeated request is a new sample even if its prompt is the same; after the last transition of a rollout no
action is requested, because it would not be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State, UsageError, World, weakest
from hunch.envs.icpi.texts import Texts
from hunch.lm.base import LanguageModel
from hunch.methods.in_context.episodic import EpisodicAgent, ScheduleConfig
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.ranges import PositiveInt
from hunch.rl.search import RolloutPolicy, roll_out
from hunch.roles.policy.in_context import InContextPolicy
from hunch.roles.world_model.experience import Experience
from hunch.roles.world_model.prompting import Completer, PromptConfig
from hunch.roles.world_model.text import WORDING, InContextWorldModel, TextWorldModel

BROOKS = "Brooks et al., Large Language Models can Implement Policy Iteration, NeurIPS 2023"


@dataclass(frozen=True, kw_only=True)
class PlanConfig(ScheduleConfig):
    """Settings that ICPI shares with its baseline of exact look-ups."""

    success_buffer: PositiveInt = 8
    """Number of latest episodes that the policy's prompts show (released code), and the successes
    that count; at least required-successes."""


@dataclass(frozen=True, kw_only=True)
class ICPIConfig(PlanConfig, PromptConfig):
    """Settings of ICPI."""

    policy_lm: str = ""
    """Model for the policy of the rollouts. Default: the model of --lm, which is the world model."""


class PolicyIteration(EpisodicAgent):
    """Policy iteration by rollouts of a world model with a policy, both based on the same episodes.

    Args:
        world: Makes the world model from the episodes so far and the wording of the domain.
        policy: Makes the policy of the rollouts in the same way.
        config: All settings; ``options`` change single ones.
        texts: The wording of the domain. Default: that of the environment.
    """

    config_class: ClassVar[type[Any]] = PlanConfig

    def __init__(
        self,
        world: Callable[[Experience, Texts], TextWorldModel],
        policy: Callable[[Experience, Texts], RolloutPolicy],
        config: PlanConfig | None = None,
        *,
        texts: Texts | None = None,
        **options: Any,
    ) -> None:
        self.world_model = world
        self.policy = policy
        super().__init__(config, texts=texts, **options)

    def begin(self, world: World, seed: int) -> None:
        """Forget all episodes, and read the recorded ones.

        Raises:
            UsageError: if the buffer can never hold enough successes for the policy to be followed.
        """
        c = self.config
        if c.success_buffer < c.required_successes:
            raise UsageError(
                f"The agent acts at random until it has {c.required_successes:g} successes, and keeps "
                f"{c.success_buffer}: success_buffer must be at least as large."
            )
        self.remembered = self.config.success_buffer
        super().begin(world, seed)

    def ready(self, state: State) -> bool:
        """Return whether the memory has examples of every action and of a next state, and a success."""
        if not self.experience.successes:
            return False
        return self.world_model(self.experience, self.words).ready(state.options)

    def q(self, states: Sequence[State], rng: np.random.Generator) -> list[FloatArray]:
        """Return Q(s, a) from one rollout per action and state; all rollouts run in parallel."""
        pairs = [(state.observation, action) for state in states for action in state.options]
        rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(pairs))]
        # Q(s, a) = sum_t gamma^t r_t, with a_0 = a and later actions from the policy
        q = roll_out(
            self.world_model(self.experience, self.words),
            self.policy(self.experience, self.words),
            [state for state, _ in pairs],
            [action for _, action in pairs],
            rngs,
            depth=self.words.max_rollout_steps,
            gamma=self.words.gamma,
        )  # (pairs,)
        ends = np.cumsum([len(state.options) for state in states])
        return np.split(q, ends[:-1])


class ICPI(PolicyIteration):
    """The agent of ICPI.

    Args:
        lm: A model that generates.
        config: All settings; ``options`` change single ones.
        policy_lm: A model for the policy of the rollouts. Default: ``lm`` for both roles.
        texts: The wording of the domain. Default: that of the environment.

    Raises:
        UsageError: if a model cannot generate, or on an unknown option.
    """

    config_class: ClassVar[type[Any]] = ICPIConfig

    def __init__(
        self,
        lm: LanguageModel,
        config: PlanConfig | None = None,
        *,
        policy_lm: LanguageModel | None = None,
        texts: Texts | None = None,
        **options: Any,
    ) -> None:
        settings = configure(type(self), config, options)
        self.models = {"lm": lm}
        self.completer = Completer(lm, settings)  # as the world model
        self.actor = self.completer  # as the policy
        if policy_lm is not None:
            self.models = {"lm": lm, "policy_lm": policy_lm}
            self.actor = Completer(policy_lm, settings)
        world = partial(InContextWorldModel, self.completer)
        policy = partial(InContextPolicy, self.actor)
        super().__init__(world, policy, settings, texts=texts)

    @property
    def wording(self) -> str:
        """The version of the prompts."""
        return WORDING

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weaker evidence level of the two models."""
        return weakest(model.evidence for model in self.models.values())

    def twin(self) -> ICPI:
        """Return an agent with the same episodes, but separate statistics of prompts."""
        twin = type(self)(config=self.config, texts=self.texts, **self.models)
        twin.begin(World(wording=self.texts), 0)
        twin.experience = self.experience
        return twin

    def learn(self) -> dict[str, float]:
        """Return statistics of the prompts as metrics; no weights are trained."""
        metrics = self.completer.metrics()
        if self.actor is not self.completer:
            metrics |= {f"policy_{name}": share for name, share in self.actor.metrics().items()}
        return metrics


METHOD = Method(
    "icpi",
    ICPI,
    "policy iteration by rollouts that a language model imagines from examples",
    BROOKS,
    leaf="LLM4RL / world model and policy",
    environments="the domains of ICPI",
    reads={"wording"},
    models={"lm": ("generate",), "policy_lm": ("generate",)},
    lm="pocket",
    roles=("world model", "in-context policy"),
    control="no model",
)
