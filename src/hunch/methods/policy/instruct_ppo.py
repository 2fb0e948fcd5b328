"""InstructRL with PPO: an instruction, read by a language model, decides between equal policies.

Algorithm (Hu and Sadigh, "Language Instructed Reinforcement Learning for Human-AI Coordination", ICML 2023,
section 4, instructPPO)::

    p(. | s)  <- the model's probabilities of the actions, given the instruction and the observation
    prior     <- softmax over sharpen * log p(. | s)
    PPO       on reward, and the loss has  kl * KL(pi(.|s) || prior(.|s))  besides; kl falls over the run

It is :mod:`hunch.methods.policy.ppo` with a prior, as :mod:`hunch.methods.prior.instruct_q` is Q-learning
with one; with ``kl`` 0 it is PPO. In an environment of several players the streams share the policy
(self-play), and the prior may pull some players only.

Departures: perceptrons on embedded texts, where the paper has recurrent networks on Hanabi's own features;
the weight falls in a line, not in stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from hunch.core import EvidenceLevel, State, World
from hunch.lm.base import LanguageModel
from hunch.methods.policy.ppo import PPO, PerceptronPPOConfig
from hunch.methods.settings import filled, models_of
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.roles.encoder import TextTable
from hunch.roles.prior import ActionPrior, Instructed
from hunch.roles.prior_kinds import PriorConfig, build_prior


@dataclass(frozen=True, kw_only=True)
class InstructPPOConfig(PerceptronPPOConfig):
    """PPO regularised by a prior."""

    instruction: str = ""
    """What the prior is told in the place of the task; empty for the task itself."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""
    sharpen: PositiveFloat = 2.0
    """What the prior's log-probabilities are multiplied by (released code: 2)."""
    kl: NonNegativeFloat = 0.05
    """Weight of KL(policy || prior) (released code)."""
    kl_end: NonNegativeFloat | None = 0.01
    """What it falls to over the run, in a line (released code: 0.01, in stages)."""
    players: tuple[NonNegativeInt, ...] = ()
    """Whom the prior pulls, by number from 0; none named: all."""
    of: PositiveInt = 2
    """players: how many there are."""
    samples: PositiveInt = 20
    """Answers a state of a model that can only generate (ours)."""
    floor: Share = 0.01
    """Share of the prior that is spread over all actions, so that none has a probability of 0 (ours)."""


class InstructPPO(PPO):
    """The agent of InstructRL with PPO.

    Args:
        prior: Reads the instruction; frozen.
        encoder: Embeds texts; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.
    """

    config_class: ClassVar[type[Any]] = InstructPPOConfig
    fixed: ClassVar[Mapping[str, Any]] = {"separate": False, "warmup": 0}

    def __init__(
        self, prior: ActionPrior, encoder: TextTable | None = None, config: Any = None, **options: Any
    ) -> None:
        self.prior = filled(prior, "propose")
        super().__init__(encoder, config, **options)
        self.models |= models_of(lm=prior)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """That of the prior; None where it has no weight."""
        return self.prior.evidence if self.config.kl else None

    def begin(self, world: World, seed: int) -> None:
        """An untrained policy, and a prior that was asked nothing."""
        c = self.config
        self.told = Instructed(self.prior, c.instruction, c.samples, c.floor, seed)
        super().begin(world, seed)
        self.learner.prior = self.expected

    def expected(self, states: Sequence[State]) -> Tensor:
        """Log of the prior, padded with -inf, shape (n, most actions); of who is not pulled, padding."""
        pulled = [state for state in states if self.pulls(state)]
        known = dict(zip(pulled, self.told(pulled), strict=True))
        rows = [
            torch.log_softmax(self.config.sharpen * torch.tensor(known[state]), dim=0)
            if self.pulls(state)
            else torch.full((len(state.options),), -torch.inf)
            for state in states
        ]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)

    def pulls(self, state: State) -> bool:
        """Whether the prior pulls the player whose state it is."""
        players = self.config.players
        return not players or state.stream % self.config.of in players


def build(
    agent: type[InstructPPO], config: InstructPPOConfig, models: Mapping[str, LanguageModel]
) -> InstructPPO:
    """Fill the prior's role with the model ``lm``, and embed with the model ``encoder``."""
    return agent(build_prior(config.prior, models["lm"]), TextTable(models["encoder"]), config)
