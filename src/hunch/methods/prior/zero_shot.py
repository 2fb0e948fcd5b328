"""Zero-shot prior: act by the language model alone, a ~ p_LM(a|s), and learn nothing.

The line that a method with a prior has to stay above for its learning to count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hunch.core import ActionPrior, EvidenceLevel, Explanation, State, Transition
from hunch.lm.base import LanguageModel
from hunch.roles.prior_config import PriorConfig, build_prior


@dataclass(frozen=True, kw_only=True)
class ZeroShotConfig:
    """Zero-shot prior."""

    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""


class ZeroShot:
    """The agent that draws each action from the prior."""

    def __init__(self, prior: ActionPrior) -> None:
        self.prior = prior
        self.evidence: EvidenceLevel = prior.evidence
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start the random numbers afresh."""
        self.rng, self.evaluation_rng = np.random.default_rng(seed).spawn(2)

    def act(self, states: Sequence[State], *, explore: bool = True) -> list[str]:
        """Draw one action from p(a|s) for each state."""
        proposals = self.prior.propose(states, 1, self.rng if explore else self.evaluation_rng)
        if not explore:
            self.prior.metrics()  # what an evaluation asked is no part of the next line of metrics
        return [state.actions[int(p.indices[0])] for state, p in zip(states, proposals, strict=True)]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember nothing."""

    def learn(self) -> dict[str, float]:
        """Learn nothing."""
        return self.prior.metrics()

    def explain(self, state: State) -> Explanation:
        """The prior, estimated by 32 draws; there is no Q."""
        proposal = self.prior.propose([state], 32, np.random.default_rng(0))[0]
        prior = np.zeros(len(state.actions))
        prior[proposal.indices] = proposal.weights
        return Explanation(prior, np.full_like(prior, np.nan), prior)

    def state_dict(self) -> dict[str, Any]:
        """The state of the random numbers."""
        return {"rng": [rng.bit_generator.state for rng in (self.rng, self.evaluation_rng)]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        for rng, numbers in zip((self.rng, self.evaluation_rng), state["rng"], strict=True):
            rng.bit_generator.state = numbers


def build(config: ZeroShotConfig, lm: LanguageModel) -> ZeroShot:
    """Fill the prior's role with a language model."""
    return ZeroShot(build_prior(config.prior, lm))
