"""Q-learning in a table whose choices are influenced by an action prior, while Q itself is not.

    a       <- argmax score(Q(s, .), log p(. | s))          or any action with probability epsilon
    Q(s, a) <- Q(s, a) + rate (r + gamma Q(s', a') - Q(s, a)),  a' = argmax score(Q(s', .), log p(. | s'))

The prior affects the choice of actions and the action from which Q is bootstrapped, but not the values. Each
method defines its score: :mod:`hunch_contrib.prior.instruct_q`, :mod:`hunch_contrib.prior.likelihood_value`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hunch.core import EvidenceLevel, Explanation, State, World, wording_of
from hunch.lm.base import LanguageModel
from hunch.methods.method import PROPOSES
from hunch.methods.q_learning import QLearning, QLearningConfig
from hunch.methods.settings import filled, models_of
from hunch.ranges import PositiveInt, Share
from hunch.roles.prior.base import ActionPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch_contrib.prior.instructed import Instructed

LEANING: Mapping[str, Any] = {
    "leaf": "LLM4RL / policy",
    "environments": "small text environments",
    "control": "uninformed prior",
    "models": {"lm": PROPOSES},
    "lm": "minilm",
    "roles": ("action prior",),
    "changeable": ("prior", "instruction", "weight", "floor", "samples"),
}
"""Entries that the :class:`~hunch.methods.method.Method` of each of these methods shares."""


@dataclass(frozen=True, kw_only=True)
class LeaningConfig(QLearningConfig):
    """Settings of Q-learning influenced by a prior."""

    instruction: str = ""
    """Instruction that the prior reads instead of the task; empty for the task itself."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""
    samples: PositiveInt = 20
    """Answers per state, used only with a model that can generate but not score (our choice)."""
    floor: Share = 0.01
    """Share of the prior spread evenly over all actions, so that none has probability 0 (our choice)."""


class Leaning(QLearning):
    """Base class of the agents of both methods.

    Args:
        prior: Proposes actions; frozen.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = LeaningConfig
    config: LeaningConfig

    def __init__(self, prior: ActionPrior, config: Any = None, **options: Any) -> None:
        self.prior = filled(prior, "propose")
        self.models = models_of(lm=prior)
        super().__init__(config, **options)

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> Leaning:
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

    def begin(self, world: World, seed: int) -> None:
        """Forget everything learnt. The prior of a state depends only on the state and the seed."""
        c = self.config
        self.instructed_choices = Instructed(self.prior, c.instruction, c.samples, c.floor, seed)
        super().begin(world, seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose a random action with probability epsilon, else the best by Q and prior."""
        self.instructed_choices([state for state in states if self.leans(state)])
        return super().act(states)

    def leans(self, state: State) -> bool:
        """Return whether the prior is used in this state."""
        return True

    def logprobs(self, state: State) -> tuple[float, ...]:
        """Return log p(a|s) of each admissible action under the prior."""
        (logprobs,) = self.instructed_choices([state])
        return logprobs

    def explain(self, state: State) -> Explanation:
        """Return prior, Q and score, and the probability of each action in training."""
        without_prior = super().explain(state)
        columns = {}
        if self.leans(state):
            columns["prior"] = np.exp(self.logprobs(state))
        columns.update(without_prior.columns)
        columns["score"] = self.scores(self.q(state), self.leaning(state))
        return Explanation(columns, without_prior.chosen)
