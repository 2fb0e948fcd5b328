"""GFlan-Prior: GLAM whose policy is pulled towards the proposals of another, frozen model.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025, section
3.3)::

    for each new state
        C^k(s)   <- k draws from p_LM(. | s), a frozen model's proposals
        prior    <- their shares, the empirical distribution of the draws
    act by pi, as in GLAM
    every horizon steps: PPO, as in GLAM, with  + kl mean KL(pi(.|s) || prior(.|s))  in the loss

It is variational inference with the prior p_LM: the best policy is prior(a|s) exp(Q(s, a) / kl) / Z. With
``space=proposals`` the policy chooses only among C^k(s), the paper's variant with a smaller action space.

Departure: the draws leave most actions at 0, where KL is infinite, so a tenth of a draw is added to each
action (our choice).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hunch.core import EvidenceLevel, Explanation, State, World, weakest
from hunch.lm.base import LanguageModel
from hunch.methods.method import PROPOSES, Method
from hunch.methods.policy.agent import View
from hunch.methods.policy.glam import GLAM, WALKS, GLAMConfig
from hunch.methods.prior.dqn_prior import YAN
from hunch.methods.settings import filled, models_of
from hunch.ranges import NonNegativeFloat, PositiveInt
from hunch.rl.settings import UpdateConfig
from hunch.roles.prior.base import ActionPrior, Proposal
from hunch.roles.prior.kinds import PriorConfig, build_prior

if TYPE_CHECKING:
    from torch import Tensor

SMOOTH = 0.1
"""Pseudo-count added to the count of draws of each admissible action (our choice)."""


@dataclass(frozen=True, kw_only=True)
class GFlanPriorConfig(GLAMConfig):
    """Settings of GLAM with a frozen model's proposals."""

    proposer: str = "uniform"
    """Frozen model that proposes actions (paper: Qwen-1.5-7B)."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How this model becomes a prior over actions."""
    k: PositiveInt = 5
    """Proposals per state (paper)."""
    kl: NonNegativeFloat = 0.1
    """Weight of KL(policy || prior) (paper: alpha, 0.01 to 0.1)."""
    space: Literal["all", "proposals"] = "all"
    """Choose among all admissible actions, or only among the proposals."""


class GFlanPrior(GLAM):
    """The agent of GFlan-Prior.

    Args:
        prior: Proposes actions; frozen.
        config: All settings; ``options`` change single ones.
    """

    config_class: ClassVar[type[Any]] = GFlanPriorConfig
    saved = (*GLAM.saved, "proposals")

    def __init__(self, prior: ActionPrior, config: Any = None, **options: Any) -> None:
        self.prior = filled(prior, "propose")
        super().__init__(config, **options)
        self.models = {**self.models, **models_of(proposer=prior)}

    @classmethod
    def build(cls, config: GFlanPriorConfig, models: Mapping[str, LanguageModel]) -> GFlanPrior:
        """Make the agent; ``proposer`` becomes the prior, and ``lm`` names the model that is trained."""
        return cls(build_prior(config.prior, models["proposer"]), config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weaker evidence level of the two models."""
        return weakest([super().evidence, self.prior.evidence])

    def objective(self) -> UpdateConfig:
        """Return PPO's objective with the KL divergence from the prior."""
        return replace(super().objective(), kl=self.config.kl)

    def begin(self, world: World, seed: int) -> None:
        """Restore the model's initial weights, and forget all proposals."""
        self.proposals = Proposals(self.prior, self.config.k, np.random.default_rng([seed, 1]))
        super().begin(world, seed)
        self.policy.prior = self.log_prior

    def view(self, states: Sequence[State]) -> list[State]:
        """Return states with only the proposals as actions, if the policy chooses among these."""
        return list(states) if self.config.space == "all" else self.proposals.narrowed(states)

    def viewer(self, seed: int) -> View:
        """Return the function :meth:`view` for a player, with separate draws for new states."""
        if self.config.space == "all":
            return list
        rng = np.random.default_rng([seed, 1])
        return Proposals(self.prior, self.config.k, rng, self.proposals.kept).narrowed

    def log_prior(self, states: Sequence[State]) -> Tensor:
        """Return the log shares of the proposals, smoothed and padded with -inf, shape (n, max. actions)."""
        import torch

        rows = []
        for state, proposal in zip(states, self.proposals(states), strict=True):
            counts = np.full(len(state.options), SMOOTH)  # (actions,)
            counts[proposal.indices] += proposal.weights * self.config.k
            rows.append(torch.from_numpy(np.log(counts / counts.sum())))
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)

    def explain(self, state: State) -> Explanation:
        """Add the prior to the policy's explanation, if proposals were drawn."""
        explanation = super().explain(state)
        prior = np.full(len(state.options), np.nan)
        proposal = self.proposals.kept.get(state)
        if proposal is not None:
            prior[:] = 0.0
            prior[proposal.indices] = proposal.weights
        return replace(explanation, columns={"prior": prior, **explanation.columns})


class Proposals:
    """The proposals C^k(s), drawn once per state.

    Args:
        prior: Proposes actions.
        k: Draws per state.
        rng: Random generator of the draws.
        known: Proposals of another object, which are used first and not changed.
    """

    def __init__(
        self,
        prior: ActionPrior,
        k: int,
        rng: np.random.Generator,
        known: MutableMapping[State, Proposal] | None = None,
    ) -> None:
        self.prior, self.k, self.rng = prior, k, rng
        self.kept: ChainMap[State, Proposal] = ChainMap({}, known or {})

    def __call__(self, states: Sequence[State]) -> list[Proposal]:
        """Return the proposals of each state."""
        new = [state for state in dict.fromkeys(states) if state not in self.kept]
        if new:
            self.kept.update(zip(new, self.prior.propose(new, self.k, self.rng), strict=True))
        return [self.kept[state] for state in states]

    def narrowed(self, states: Sequence[State]) -> list[State]:
        """Return states with only their proposals as actions; a state without actions stays unchanged."""
        with_actions = [state for state in states if state.options]
        proposals = dict(zip(with_actions, self(with_actions), strict=True))
        return [self._narrow(state, proposals[state]) if state.options else state for state in states]

    def _narrow(self, state: State, proposal: Proposal) -> State:
        narrow = replace(state, actions=tuple(state.options[i] for i in proposal.indices))
        self.kept.setdefault(narrow, Proposal(np.arange(len(proposal.indices)), proposal.weights))
        return narrow

    def state_dict(self) -> dict[str, Any]:
        """Return the proposals and the state of the random generator."""
        drawn = [
            (s.plain(compared=True), p.indices.tolist(), p.weights.tolist())
            for s, p in self.kept.maps[0].items()
        ]
        return {"kept": drawn, "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        drawn = {State.of(s): Proposal(np.array(i), np.array(w)) for s, i, w in state["kept"]}
        self.kept = ChainMap(drawn, *self.kept.maps[1:])
        self.rng.bit_generator.state = state["rng"]


METHOD = Method(
    "gflan-prior",
    GFlanPrior,
    "glam with its policy pulled towards the proposals of a frozen model",
    YAN,
    leaf="LLM4RL / policy",
    models={"proposer": PROPOSES},
    lm=WALKS,
    roles=("policy",),
    data="none",
)
