"""DQN-Prior: Q-learning confined to the actions that a language model proposes; and DQN, the same code.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025,
section 4.2)::

    for each step
        C^k(s)  <- k draws from p_LM(. | s)                                   the prior's proposals
        a       ~  softmax(Q(s, a_i) / alpha) over a_i in C^k(s)              posterior exploration
        store (s, a, r, s')
        y       <- r + gamma * max over a' in C^k(s') of Q_target(s', a')     Bellman maximum over proposals
        descend on (Q(s, a) - y)^2;  Q_target <- Q_target + rate * (Q - Q_target)

As k grows the exploration rule converges to p_LM(a|s) exp(Q(s, a) / alpha) / Z, the policy that maximises
E[Q] - alpha KL(pi || p_LM) (Proposition 1).

The language model fills one role, the action prior. With :class:`hunch.roles.prior.UniformPrior` and
``k=None`` (all admissible actions) what remains is DQN.

Departures: states and actions are embedded apart by default, not as one text (``joint`` is the paper's); the
squared error is averaged over the batch, not summed; alpha divides Q, as in the paper's text, where the
released code multiplies.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

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
from hunch.roles.prior_config import PriorConfig, build_prior


@dataclass(frozen=True, kw_only=True)
class QLearningConfig:
    """What DQN and DQN-Prior share; neither side has an option that the other lacks but k and the prior."""

    alpha: float = 0.02
    """Temperature of the posterior softmax(Q / alpha) (paper: 0.01 to 0.1)."""
    gamma: float = 0.9
    """Discount a step (released code: 0.99; of 0.9, 0.95 and 0.97 the best for DQN, see the log)."""
    learning_rate: float = 5e-4
    """Of Adam (paper)."""
    batch_size: int = 128
    """Transitions an update (paper)."""
    update_every: int = 2
    """Environment steps an update (released code: 40 updates a round)."""
    warmup: int = 500
    """Environment steps before the first update (ours)."""
    replay: int = 50_000
    """Transitions kept (ours)."""
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
    explore: Literal["posterior", "epsilon"] = "posterior"
    """Draw from softmax(Q / alpha) over the candidates, or act epsilon-greedily on them."""
    epsilon: tuple[float, float, int] = (1.0, 0.05, 5_000)
    """epsilon: from, to, and environment steps in between."""
    encoder: str = "minilm"
    """Frozen text encoder for Q (paper: BERT)."""


@dataclass(frozen=True, kw_only=True)
class DQNPriorConfig(QLearningConfig):
    """DQN-Prior."""

    k: int = 5
    """Proposals a state (paper: 5)."""
    proposals: Literal["kept", "fresh"] = "kept"
    """Draw C^k(s) once a state and keep it, or afresh at every use (the paper compares both)."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""


class DQNPrior:
    """The agent of DQN-Prior.

    Args:
        prior: Proposes candidates; frozen.
        encoder: Embeds texts for Q; frozen. Default: ``minilm``.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or k < 1.
    """

    def __init__(
        self,
        prior: ActionPrior,
        encoder: TextTable | None = None,
        config: QLearningConfig | None = None,
        **options: Any,
    ) -> None:
        self.config = configure(config or DQNPriorConfig(), options)
        self.prior = prior
        self.evidence: EvidenceLevel = prior.evidence
        self.k: int | None = getattr(self.config, "k", None)
        self.keep = getattr(self.config, "proposals", "fresh") == "kept"
        if self.k is not None and self.k < 1:
            raise UsageError(f"k is the number of proposals and must be at least 1, not {self.k}.")
        for name in ("alpha", "learning_rate", "batch_size", "update_every", "replay", "hidden"):
            if not getattr(self.config, name) > 0:
                raise UsageError(f"{name} must be positive, not {getattr(self.config, name)}.")
        table = encoder or TextTable(load(self.config.encoder))
        self.features = StateFeatures(table, joint=self.config.joint)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Forget everything: fresh weights, empty replay."""
        c = self.config
        self.rng, self.evaluation_rng = np.random.default_rng(seed).spawn(2)
        self.features.clear()
        self.kept: dict[State, Proposal] = {}
        self.replay = Replay(c.replay)
        self.steps = self.updates = 0
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = QNetwork(self.features.state_dim, self.features.action_dim, c.hidden)
        self.target = target_of(self.network)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=c.learning_rate, foreach=True)

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State], *, explore: bool = True) -> list[str]:
        """Draw an action from the posterior over each state's candidates.

        Raises:
            UsageError: if k exceeds the number of admissible actions at the very first decision.
        """
        if self.steps == 0:
            self._check(states)
        proposals = self.propose(states, explore=explore)
        values = self.values(self.network, states, proposals)
        chosen = [self._choose(p, q, explore) for p, q in zip(proposals, values, strict=True)]
        return [state.actions[i] for state, i in zip(states, chosen, strict=True)]

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

    def _choose(self, proposal: Proposal, values: FloatArray, explore: bool) -> int:
        rng = self.rng if explore else self.evaluation_rng
        if self.config.explore == "posterior":
            shares = posterior(proposal.weights, values, self.config.alpha)
            return int(rng.choice(proposal.indices, p=shares))
        if explore and rng.random() < self.epsilon():
            return int(rng.choice(proposal.indices))
        return int(proposal.indices[int(np.argmax(values))])

    def epsilon(self) -> float:
        """The share of random actions now, falling linearly."""
        start, end, over = self.config.epsilon
        return start + (end - start) * min(1.0, self.steps / max(1, over))

    def _check(self, states: Sequence[State]) -> None:
        fewest = min(len(state.actions) for state in states)
        if self.k is not None and self.k > fewest:
            raise UsageError(
                f"k={self.k} proposals were asked for, but this environment offers {fewest} actions: "
                f"choose k of at most {fewest}, or the method dqn for all actions."
            )

    # ---- learning -----------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Add the transitions to the replay buffer."""
        ids = self.features.ids([t.state for t in transitions])
        next_ids = self.features.ids([t.next_state for t in transitions])
        for t, i, j in zip(transitions, ids, next_ids, strict=True):
            action = self.features.actions[i][t.state.actions.index(t.action)]
            self.replay.add(i, int(action), t.reward, j, t.terminated)
        self.steps += len(transitions)

    def learn(self) -> dict[str, float]:
        """Make the updates that are due: one in ``update_every`` environment steps."""
        due = max(0, self.steps - self.config.warmup) // self.config.update_every
        losses = []
        while self.updates < due:
            losses.append(self._update(self.replay.sample(self.config.batch_size, self.rng)))
            self.updates += 1
        return self.prior.metrics() | ({"loss": float(np.mean(losses))} if losses else {})

    def _update(self, batch: Batch) -> float:
        targets = torch.from_numpy(self._targets(batch))
        values = self.forward(self.network, batch.state, batch.action[:, None]).squeeze(1)
        loss = torch.nn.functional.mse_loss(values, targets.float())
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self._update_target()
        return float(loss.detach())

    def _targets(self, batch: Batch) -> FloatArray:
        """R + gamma * max over a' in C^k(s') of Q_target(s', a'); r alone where s' is terminal."""
        targets = batch.reward.copy()
        alive = np.flatnonzero(batch.terminated == 0)
        states = [self.features.states[i] for i in batch.next_state[alive]]
        values = self.values(self.target, states, self.propose(states))
        targets[alive] += self.config.gamma * np.array([q.max() for q in values])
        return targets

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
        return {
            "network": self.network.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "replay": {k: torch.as_tensor(v) for k, v in self.replay.state_dict().items()},
            "states": [(s.observation, s.task, s.actions) for s in self.features.states],
            "kept": [
                (i, p.indices.tolist(), p.weights.tolist())
                for i, p in zip(self.features.ids(list(self.kept)), self.kept.values(), strict=True)
            ],
            "rng": [rng.bit_generator.state for rng in (self.rng, self.evaluation_rng)],
            "counters": (self.steps, self.updates),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        self.reset(0)
        self.network.load_state_dict(state["network"])
        self.target.load_state_dict(state["target"])
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))  # it would share the tensors
        self.replay.load_state_dict({k: v.numpy() for k, v in state["replay"].items()})
        self.features.ids([State(o, t, tuple(a)) for o, t, a in state["states"]])
        self.kept = {
            self.features.states[i]: Proposal(np.array(indices, dtype=np.int64), np.array(weights))
            for i, indices, weights in state["kept"]
        }
        for rng, numbers in zip((self.rng, self.evaluation_rng), state["rng"], strict=True):
            rng.bit_generator.state = numbers
        self.steps, self.updates = state["counters"]


def posterior(weights: FloatArray, values: FloatArray, alpha: float) -> FloatArray:
    """The share of each candidate under softmax(Q / alpha), a candidate drawn twice counting twice.

    With weights from k draws of p_LM it converges to p_LM exp(Q / alpha) / Z as k grows (Proposition 1).
    """
    scores = weights * np.exp((values - values.max()) / alpha)
    return np.asarray(scores / scores.sum())


def configure(config: QLearningConfig, options: dict[str, Any]) -> QLearningConfig:
    """Change single options of a config.

    Raises:
        UsageError: on an unknown option.
    """
    try:
        return replace(config, **options)
    except TypeError as error:
        raise UsageError(f"{type(config).__doc__} has no such option: {error}.") from error


def build(config: DQNPriorConfig, lm: LanguageModel) -> DQNPrior:
    """Fill the prior's role with a language model, and embed with the configured encoder."""
    table = encoder_table(config, lm)
    return DQNPrior(build_prior(config.prior, lm, table), table, config)


def encoder_table(config: QLearningConfig, lm: LanguageModel) -> TextTable:
    """The frozen encoder for Q, shared with the prior where both are the same model."""
    return TextTable(lm if config.encoder == lm.name else load(config.encoder))
