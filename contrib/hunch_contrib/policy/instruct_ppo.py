"""InstructRL with PPO: an instruction to a language model selects one of several equally good policies.

Algorithm (Hu and Sadigh, "Language Instructed Reinforcement Learning for Human-AI Coordination", ICML 2023,
section 4, instructPPO)::

    p(. | s)  <- the model's probabilities of the actions, given the instruction and the observation
    prior     <- softmax over sharpen * log p(. | s)
    PPO       on the reward, with the term kl * KL(pi(.|s) || prior(.|s)) in the loss; kl falls over the run

It is :mod:`hunch.methods.policy.ppo` with a prior, just as :mod:`hunch_contrib.prior.instruct_q` is
Q-learning with one. With ``kl`` 0 it is PPO. In an environment of several players the streams share the
policy (self-play), and the prior may apply to some players only.

Departures: perceptrons on embedded texts instead of recurrent networks on Hanabi's own features; the weight
falls linearly, not in stages. PPO's entropy term stays beside the KL term; the release has the one or the
other (``--entropy 0``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from hunch.core import EvidenceLevel, State, World, wording_of
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, PROPOSES, Method
from hunch.methods.policy.ppo import PPO, PPOConfig
from hunch.methods.settings import filled, models_of
from hunch.ranges import NonNegativeFloat, NonNegativeInt, Share
from hunch.rl.settings import UpdateConfig
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import ActionPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch_contrib.prior.instructed import Instructed

if TYPE_CHECKING:
    from torch import Tensor

SHARPEN = 2
"""Factor by which the prior's log-probabilities are multiplied (released code)."""
SAMPLES = 20
"""Answers per state, used only with a model that can generate but not score (our choice)."""


@dataclass(frozen=True, kw_only=True)
class InstructPPOConfig(PPOConfig):
    """Settings of PPO regularised by a prior."""

    instruction: str = ""
    """Instruction that the prior reads instead of the task; empty for the task itself."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""
    kl: NonNegativeFloat = 0.05
    """Weight of KL(policy || prior) (released code)."""
    kl_end: NonNegativeFloat | None = 0.01
    """Final weight of the KL term, at most kl; it falls linearly over the run (released code: 0.01, in
    stages)."""
    players: tuple[NonNegativeInt, ...] = ()
    """Players to whom the prior applies, numbered from 0. Default: all."""
    floor: Share = 0.01
    """Share of the prior spread evenly over all actions, so that none has probability 0 (our choice)."""


class InstructPPO(PPO):
    """The agent of InstructRL with PPO.

    Args:
        prior: Reads the instruction; frozen.
        encoder: Embeds texts; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.
    """

    config_class: ClassVar[type[Any]] = InstructPPOConfig

    def __init__(
        self, prior: ActionPrior, encoder: TextTable | None = None, config: Any = None, **options: Any
    ) -> None:
        self.prior = filled(prior, "propose")
        super().__init__(encoder, config, **options)
        self.models = {**self.models, **models_of(lm=prior)}

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> InstructPPO:
        """Make the agent; ``lm`` becomes the prior, and ``encoder`` embeds texts."""
        return cls(build_prior(config.prior, models["lm"]), TextTable(models["encoder"]), config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior; None if the weight of the KL term is 0."""
        return self.prior.evidence if self.config.kl else None

    def objective(self) -> UpdateConfig:
        """Return PPO's objective with the KL divergence from the prior, whose weight falls over the run."""
        c = self.config
        kl_end = c.kl_end
        if kl_end is not None:
            kl_end = min(kl_end, c.kl)  # a weight that starts at 0 stays there: that is PPO
        return replace(super().objective(), kl=c.kl, kl_end=kl_end)

    @property
    def wording(self) -> str:
        """The version of the prior's prompts."""
        return wording_of(self.prior)

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained policy, and forget the prior's answers."""
        c = self.config
        self.instructed_choices = Instructed(self.prior, c.instruction, SAMPLES, c.floor, seed)
        super().begin(world, seed)
        self.policy.prior = self.log_prior

    def log_prior(self, states: Sequence[State]) -> Tensor:
        """Return the log prior, shape (n, max. actions), padded with -inf; all -inf if it does not apply."""
        import torch

        pulled = [state for state in states if self.pulls(state)]
        known = dict(zip(pulled, self.instructed_choices(pulled), strict=True))
        rows = [
            torch.log_softmax(SHARPEN * torch.tensor(known[state]), dim=0)
            if self.pulls(state)
            else torch.full((len(state.options),), -torch.inf)
            for state in states
        ]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)

    def pulls(self, state: State) -> bool:
        """Return whether the prior applies to the player of this state."""
        players = self.config.players
        return not players or state.seat in players


METHOD = Method(
    "instruct-ppo",
    InstructPPO,
    "PPO that an instruction, read by a language model, pulls towards one of many good policies",
    "Hu and Sadigh, Language Instructed Reinforcement Learning for Human-AI Coordination, ICML 2023",
    leaf="LLM4RL / policy",
    models={"lm": PROPOSES, **ENCODER},
    lm="minilm",
    roles=("action prior",),
    control="uninformed prior",
    data="none",
)
