"""A language model in context: it reads its whole lifetime as text, rewards included, and learns nothing.

Laskin et al. (ICLR 2023) train a network so that it improves in context; this tests whether a language model
does so without training::

    a ~ p_LM(. | "observation > action, reward, observation > action, reward, ...", this observation)

The prompt is the action prior's, whose history is the lifetime instead of the episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from hunch.core import EvidenceLevel, Explanation, State, wording_of
from hunch.lm.base import LanguageModel
from hunch.methods.in_context.lifetime import InContext, Lifetimes, Lived
from hunch.methods.method import PROPOSES, Method
from hunch.methods.settings import configure, filled, models_of
from hunch.ranges import NonNegativeInt
from hunch.roles.prior.base import ActionPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior


@dataclass(frozen=True, kw_only=True)
class InContextLMConfig:
    """Settings of a language model in context."""

    remember: NonNegativeInt = 100
    """Number of latest steps of the lifetime in the prompt; 0 for all (ours)."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""


class InContextLM(InContext):
    """The agent that shows a language model its lifetime.

    Args:
        prior: Proposes actions; frozen.
        config: All settings; ``options`` change single ones.
    """

    config_class: ClassVar[type[Any]] = InContextLMConfig

    def __init__(self, prior: ActionPrior, config: InContextLMConfig | None = None, **options: Any) -> None:
        self.config: InContextLMConfig = configure(type(self), config, options)
        self.prior, self.models = filled(prior, "propose"), models_of(lm=prior)

    @classmethod
    def build(cls, config: InContextLMConfig, models: Mapping[str, LanguageModel]) -> InContextLM:
        """Make the prior from the model ``lm``."""
        return cls(build_prior(config.prior, models["lm"]), config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior."""
        return self.prior.evidence

    @property
    def wording(self) -> str:
        """The version of the prior's prompts."""
        return wording_of(self.prior)

    def player(self, seed: int) -> Teller:
        """Return a player with separate lifetimes."""
        return Teller(self, seed)

    def explain(self, state: State) -> Explanation:
        """Return the prior at the beginning of a lifetime, estimated from 32 draws."""
        [proposal] = self.prior.propose([state], 32, np.random.default_rng(0))
        prior = np.zeros(len(state.options))
        prior[proposal.indices] = proposal.weights
        return Explanation({"prior": prior}, prior, "at the beginning of a lifetime")


class Teller(Lifetimes):
    """A player whose prior sees the lifetime so far."""

    def __init__(self, agent: InContextLM, seed: int) -> None:
        super().__init__(seed)
        self.agent = agent

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action for each state."""
        seen = [self.with_lifetime(state) for state in states]
        proposals = self.agent.prior.propose(seen, 1, self.rng)
        return [state.options[int(p.indices[0])] for state, p in zip(states, proposals, strict=True)]

    def with_lifetime(self, state: State) -> State:
        """Return a state whose history is the lifetime; each reward precedes its observation."""
        lived = self.lived.get(state.stream, [])
        observations = [*(step.observation for step in lived), state.observation]
        texts = [after(*pair) for pair in zip([None, *lived], observations, strict=True)]
        pairs = list(zip(texts, (step.action for step in lived), strict=False))
        return replace(state, history=tuple(pairs[-self.agent.config.remember :]), observation=texts[-1])


def after(before: Lived | None, observation: str) -> str:
    """Return an observation preceded by the reward of the previous step, if there was one."""
    if before is None:
        return observation
    return f"Reward {before.reward:g}.\n" + ("A new episode begins.\n" if before.last else "") + observation


METHOD = Method(
    "in-context-lm",
    InContextLM,
    "a language model that reads its whole lifetime with rewards, and learns nothing",
    "Laskin et al., In-context Reinforcement Learning with Algorithm Distillation, ICLR 2023; the frozen "
    "language model in the network's place is ours",
    leaf="LLM4RL / policy",
    environments="text environments with lifetimes of several episodes",
    models={"lm": PROPOSES},
    lm="minilm",
    roles=("action prior",),
    data="none",
    changeable=("prior",),
)
