"""Q over proposals: what every method with an action prior and a Q-function is made of.

States and actions are embedded by a frozen encoder, Q(s, a) is a perceptron on the embeddings, and only the
candidates C^k(s) of a prior count. What is learnt from, and by which loss, is in the methods' own files.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from hunch.core import (
    ActionPrior,
    EvidenceLevel,
    Explanation,
    FloatArray,
    IntArray,
    Proposal,
    State,
    Transition,
    UsageError,
)
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.rl.qnetwork import QNetwork, in_order, pad, soft_update, target_of
from hunch.rl.replay import Batch, Replay
from hunch.roles.encoder import StateFeatures, TextTable
from hunch.roles.prior_config import PriorConfig


@dataclass(frozen=True, kw_only=True)
class QConfig:
    """A Q-function on embedded texts."""

    alpha: float = 0.02
    """Temperature of the posterior softmax(Q / alpha) (paper: 0.01 to 0.1)."""
    gamma: float = 0.9
    """Discount a step (released code: 0.99; of 0.9, 0.95 and 0.97 the best for DQN, see the log)."""
    learning_rate: float = 5e-4
    """Of Adam (paper)."""
    batch_size: int = 128
    """Transitions an update (paper)."""
    target: Literal["soft", "hard"] = "soft"
    """Target network: moves a little every update, or is copied now and then."""
    target_rate: float = 0.005
    """soft: how far the target moves an update (released code)."""
    target_every: int = 500
    """hard: updates between two copies (ours)."""
    hidden: int = 128
    """Width of the three-layer perceptron (released code: 64)."""
    joint: bool = False
    """Embed state and action as one text, as the paper does; one model call a pair."""
    encoder: str = "minilm"
    """Frozen text encoder for Q (paper: BERT)."""


@dataclass(frozen=True, kw_only=True)
class ProposalConfig:
    """Where the candidates come from."""

    k: int = 5
    """Proposals a state (paper: 5)."""
    proposals: Literal["kept", "fresh"] = "kept"
    """Draw C^k(s) once a state and keep it, or afresh at every use (the paper compares both)."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""


C = TypeVar("C", bound=QConfig)


class ProposalQ(Generic[C]):
    """Q(s, a) over the candidates of a prior, and the posterior that they give.

    Args:
        prior: Proposes candidates; frozen.
        encoder: Embeds texts for Q; frozen. Default: ``minilm``.
        config: All settings; ``options`` change single ones. Where it has no ``k``, every action that the
            prior gives weight to is a candidate.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    defaults: ClassVar[type[QConfig]]

    def __init__(
        self,
        prior: ActionPrior,
        encoder: TextTable | None = None,
        config: C | None = None,
        **options: Any,
    ) -> None:
        self.config: C = configure(config or self.defaults(), options)  # type: ignore[assignment]
        self.prior = prior
        self.evidence: EvidenceLevel = prior.evidence
        self.k: int | None = getattr(self.config, "k", None)
        self.keep = getattr(self.config, "proposals", "fresh") == "kept"
        if self.k is not None and self.k < 1:
            raise UsageError(f"k is the number of proposals and must be at least 1, not {self.k}.")
        for name in ("alpha", "learning_rate", "batch_size", "update_every", "replay", "hidden"):
            if not getattr(self.config, name, 1) > 0:
                raise UsageError(f"{name} must be positive, not {getattr(self.config, name)}.")
        table = TextTable(load(self.config.encoder)) if encoder is None else encoder
        self.features = StateFeatures(table, joint=self.config.joint)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Forget everything: fresh weights, empty replay."""
        c = self.config
        self.rng, self.evaluation_rng = np.random.default_rng(seed).spawn(2)
        self.features.clear()
        self.kept: dict[State, Proposal] = {}
        self.replay = self.memory()
        self.steps = self.updates = 0
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = QNetwork(self.features.state_dim, self.features.action_dim, c.hidden)
        self.target = target_of(self.network)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=c.learning_rate, foreach=True)

    def memory(self) -> Replay:
        """An empty replay buffer; it keeps every transition."""
        return Replay(None)

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State], *, explore: bool = True) -> list[str]:
        """Draw an action from the posterior over each state's candidates.

        Raises:
            UsageError: if k exceeds the number of admissible actions at the very first decision.
        """
        if self.steps == 0 and states:
            self.check_k(states)
        proposals = self.propose(states, explore=explore)
        if not explore:
            self.prior.metrics()  # what an evaluation asked is no part of the next line of metrics
        values = self.values(self.network, states, proposals)
        chosen = [self.choose(p, q, explore=explore) for p, q in zip(proposals, values, strict=True)]
        return [state.actions[i] for state, i in zip(states, chosen, strict=True)]

    def choose(self, proposal: Proposal, values: FloatArray, *, explore: bool) -> int:
        """Draw one candidate from the posterior; returns its index among the admissible actions."""
        rng = self.rng if explore else self.evaluation_rng
        shares = posterior(proposal.weights, values, self.config.alpha)
        return int(rng.choice(proposal.indices, p=shares))

    def check_k(self, states: Sequence[State]) -> None:
        """Refuse more proposals than a state, of those that an episode begins with, has actions.

        Raises:
            UsageError: if k exceeds the number of admissible actions.
        """
        fewest = min(len(state.actions) for state in states)
        if self.k is not None and self.k > fewest:
            raise UsageError(
                f"k={self.k} proposals were asked for, but this environment offers {fewest} actions: "
                f"choose k of at most {fewest}, or the method dqn for all actions."
            )

    def propose(self, states: Sequence[State], *, explore: bool = True) -> list[Proposal]:
        """C^k(s) for each state, kept or drawn afresh; what is drawn to evaluate leaves no trace."""
        rng = self.rng if explore else self.evaluation_rng
        if not self.keep:
            return self.prior.propose(states, self.k, rng)
        new = [state for state in dict.fromkeys(states) if state not in self.kept]
        drawn = dict(zip(new, self.prior.propose(new, self.k, rng), strict=True)) if new else {}
        if explore:
            self.kept |= drawn
        return [drawn[state] if state in drawn else self.kept[state] for state in states]

    # ---- learning -----------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Add the transitions to the replay buffer."""
        ids = self.features.ids([t.state for t in transitions])
        next_ids = self.features.ids([t.next_state for t in transitions])
        for t, i, j in zip(transitions, ids, next_ids, strict=True):
            action = self.features.actions[i][t.state.actions.index(t.action)]
            self.replay.add(i, int(action), t.reward, j, t.terminated)
        self.steps += len(transitions)

    def taken(self, batch: Batch) -> Tensor:
        """Q(s, a) of the transitions of a batch, shape (n,)."""
        return self.forward(self.network, batch.state, batch.action[:, None]).squeeze(1)

    def targets(self, batch: Batch) -> Tensor:
        """R + gamma * max over a' in C^k(s') of Q_target(s', a'); r alone at a terminal s'. Shape (n,)."""
        targets = batch.reward.copy()
        alive = np.flatnonzero(batch.terminated == 0)
        states = [self.features.states[i] for i in batch.next_state[alive]]
        values = self.values(self.target, states, self.propose(states))
        targets[alive] += self.config.gamma * np.array([q.max() for q in values])
        return torch.from_numpy(targets).float()

    def descend(self, loss: Tensor) -> float:
        """Take one step down the loss, and let the target network follow."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self._update_target()
        self.updates += 1
        return float(loss.detach())

    def _update_target(self) -> None:
        if self.config.target == "soft":
            soft_update(self.target, self.network, self.config.target_rate)
        elif self.updates % self.config.target_every == 0:
            soft_update(self.target, self.network, 1.0)

    # ---- Q ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def values(
        self, network: QNetwork, states: Sequence[State], proposals: Sequence[Proposal]
    ) -> list[FloatArray]:
        """Q(s, a) of each state's candidates, in the order of ``proposal.indices``."""
        if not states:
            return []
        ids = self.features.ids(states)
        rows = [self.features.actions[i][p.indices] for i, p in zip(ids, proposals, strict=True)]
        q = self.forward(network, np.array(ids), pad(rows)).numpy().astype(np.float64)
        return [values[: len(row)] for values, row in zip(q, rows, strict=True)]

    def candidates(self, batch: Batch) -> Tensor:
        """Q(s, b) of the candidates b of each state of a batch, padded with -inf; shape (n, candidates)."""
        proposals = self.propose([self.features.states[i] for i in batch.state])
        rows = [self.features.actions[i][p.indices] for i, p in zip(batch.state, proposals, strict=True)]
        q = self.forward(self.network, batch.state, pad(rows))
        lengths = torch.tensor([len(row) for row in rows])
        return q.masked_fill(torch.arange(q.shape[1]) >= lengths[:, None], -torch.inf)

    def forward(self, network: QNetwork, states: IntArray, actions: IntArray) -> Tensor:
        """Q for numbered states, shape (n,), and rows of actions in the text table, shape (n, candidates)."""
        distinct, index = in_order(actions)
        q: Tensor = network(
            torch.from_numpy(self.features.vectors[states]),
            torch.from_numpy(self.features.table.matrix[distinct]),
            torch.from_numpy(index),
        )
        return q

    def explain(self, state: State) -> Explanation:
        """Prior, Q and posterior of every admissible action; only proposals have prior and posterior."""
        n = len(state.actions)
        everything = Proposal(np.arange(n), np.full(n, 1 / n))
        q = self.values(self.network, [state], [everything])[0]
        proposal = self.propose([state], explore=False)[0]
        prior, chosen = np.zeros(n), np.zeros(n)
        prior[proposal.indices] = proposal.weights
        chosen[proposal.indices] = posterior(proposal.weights, q[proposal.indices], self.config.alpha)
        return Explanation(prior, q, chosen)

    # ---- state --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """See :class:`hunch.core.Agent`; embeddings are left out, as the frozen encoder gives them again."""
        replay = self.replay.state_dict()
        rows = np.unique(replay["ids"][:, 1])
        return {
            "encoder": self.features.table.lm.name,
            "network": self.network.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "replay": {k: torch.as_tensor(v) for k, v in replay.items()},
            "actions": (rows.tolist(), self.features.table.texts(rows)),
            "states": [(s.observation, s.task, s.actions) for s in self.features.states],
            "kept": [
                (i, p.indices.tolist(), p.weights.tolist())
                for i, p in zip(self.features.ids(list(self.kept)), self.kept.values(), strict=True)
            ],
            "rng": [rng.bit_generator.state for rng in (self.rng, self.evaluation_rng)],
            "counters": (self.steps, self.updates),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave.

        Raises:
            UsageError: if its Q is of another encoder or size; the agent is left as it was.
        """
        self._check_q(state)
        self.reset(0)
        self.network.load_state_dict(state["network"])
        self.target.load_state_dict(state["target"])
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))  # it would share the tensors
        self.features.ids([State(o, t, tuple(a)) for o, t, a in state["states"]])
        replay = {k: v.numpy() for k, v in state["replay"].items()}
        rows, texts = state.get("actions", ((), ()))  # earlier checkpoints do not say
        if rows:
            own = self.features.table.ids(texts)[np.searchsorted(rows, replay["ids"][:, 1])]
            replay["ids"] = np.column_stack([replay["ids"][:, 0], own, replay["ids"][:, 2]])
        self.replay.load_state_dict(replay)
        self.kept = {
            self.features.states[i]: Proposal(np.array(indices, dtype=np.int64), np.array(weights))
            for i, indices, weights in state["kept"]
        }
        for rng, numbers in zip((self.rng, self.evaluation_rng), state["rng"], strict=True):
            rng.bit_generator.state = numbers
        self.steps, self.updates = state["counters"]

    def _check_q(self, state: dict[str, Any]) -> None:
        own = self.features.table.lm.name
        theirs = state.get("encoder", own)  # earlier checkpoints do not say
        if theirs != own:
            raise UsageError(
                f"The checkpoint's Q was trained on embeddings of {theirs}; with those of {own} "
                "it means nothing."
            )
        known, trained = (
            {name: tuple(w.shape) for name, w in q.items()}
            for q in (self.network.state_dict(), state["network"])
        )
        if known != trained:
            raise UsageError(
                f"The checkpoint's Q is of another size: its embeddings by {own}, joint or hidden differ."
            )


def posterior(weights: FloatArray, values: FloatArray, alpha: float) -> FloatArray:
    """The share of each candidate under softmax(Q / alpha), a candidate drawn twice counting twice.

    With weights from k draws of p_LM it converges to p_LM exp(Q / alpha) / Z as k grows (Proposition 1).
    """
    scores = weights * np.exp((values - values.max()) / alpha)
    return np.asarray(scores / scores.sum())


def configure(config: C, options: dict[str, Any]) -> C:
    """Change single options of a config.

    Raises:
        UsageError: on an unknown option.
    """
    try:
        return replace(config, **options)
    except TypeError as error:
        raise UsageError(f"{type(config).__doc__} has no such option: {error}.") from error


def encoder_table(config: QConfig, lm: LanguageModel) -> TextTable:
    """The frozen encoder for Q, shared with the prior where both are the same model."""
    return TextTable(lm if config.encoder == lm.name else load(config.encoder))
