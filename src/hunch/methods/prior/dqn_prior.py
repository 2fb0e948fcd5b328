"""DQN-Prior: Q-learning restricted to the actions that a language model proposes.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025,
sections 3.1 and 3.2)::

    for each step
        C^k(s)  <- k draws from p_LM(. | s)                                   the prior's proposals
        a       ~  softmax(Q(s, a_i) / alpha) over a_i in C^k(s)              posterior exploration
        store (s, a, r, s') with C^k(s) and C^k(s')
        y       <- r + gamma * max over a' in C^k(s') of Q_target(s', a')     Bellman maximum over proposals
        descend on (Q(s, a) - y)^2;  Q_target <- Q_target + rate * (Q - Q_target)

As k grows the exploration rule converges to p_LM(a|s) exp(Q(s, a) / alpha) / Z, the policy that maximises
E[Q] - alpha KL(pi || p_LM) (Proposition 1).

The language model fills one role, the action prior. With an uninformed prior and ``k=None`` (all admissible
actions) it is :mod:`hunch.methods.prior.dqn`. If the world has recorded data and no streams, the agent learns
from the data only, one update per pass of the loop; if it has both, from both.

Departures: states and actions are embedded separately by default, not as one text (``joint`` is the paper's
setting); the squared error is averaged over the batch, not summed; alpha divides Q, as in the paper's text,
while the released code multiplies by it. The authors' protocol is
the method dqn-prior-released of hunch-rl-contrib.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hunch.core import (
    Agent,
    Explanation,
    FloatArray,
    IntArray,
    Memoryless,
    State,
    Transition,
    UsageError,
    World,
)
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, PROPOSES, Method
from hunch.methods.settings import configure, filled, models_of
from hunch.ranges import Decay, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.roles.encoder.features import StateFeatures, TextTable
from hunch.roles.prior.base import ActionPrior, Proposal
from hunch.roles.prior.candidates import Candidates, When
from hunch.roles.prior.kinds import PriorConfig

if TYPE_CHECKING:
    from hunch.rl.q_learning import QLearner, Row

YAN = "Yan et al., Efficient Reinforcement Learning with Large Language Model Priors, ICLR 2025"
PRIOR: Mapping[str, Any] = {
    **{"paper": YAN, "leaf": "LLM4RL / policy", "models": {"lm": PROPOSES, **ENCODER}, "lm": "minilm"},
    **{"roles": ("action prior",), "control": "random k"},
    "changeable": ("k", "proposals", "prior", "alpha"),
}
"""Entries that the :class:`~hunch.methods.method.Method` of each method with a prior and a Q shares."""


@dataclass(frozen=True, kw_only=True)
class DQNPriorConfig:
    """Settings of Q-learning over the proposals of a prior."""

    k: PositiveInt | None = 5
    """Proposals per state (paper: 5); none for all actions with a positive probability under the prior."""
    proposals: When = "visited"
    """When proposals are drawn: once per state, on each arrival (authors' code), or at each use."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""
    alpha: PositiveFloat = 0.02
    """Temperature of the posterior softmax(Q / alpha) (paper: 0.01 to 0.1)."""
    explore: Literal["posterior", "epsilon"] = "posterior"
    """Draw from the posterior over the candidates, or act epsilon-greedily on them."""
    epsilon: Decay = (1.0, 0.05, 5_000)
    """With explore epsilon: share of random candidates: start, end, and environment steps between (ours)."""
    joint: bool = False
    """Embed state and action as one text, as in the paper; this needs one model call per pair."""
    encoder: str = "minilm"
    """Frozen text encoder for Q, given by its spec (paper: BERT)."""
    gamma: Share = 0.9
    """Discount per step (ours, the best of 0.9, 0.95 and 0.97 for DQN; released code: 0.99)."""
    learning_rate: PositiveFloat = 5e-4
    """Learning rate of Adam (paper)."""
    clip: NonNegativeFloat = 0.0
    """Maximum gradient norm; larger gradients are scaled down, 0 for no limit (released code: 1)."""
    batch_size: PositiveInt = 128
    """Transitions per update (paper)."""
    update_every: PositiveInt = 2
    """Environment steps per update (our choice)."""
    warmup: NonNegativeInt = 500
    """Environment steps before the first update (our choice)."""
    hidden: PositiveInt = 128
    """Width of the three-layer perceptron (released code: 64)."""


class DQNPrior(Agent):
    """The agent of DQN-Prior.

    Args:
        prior: Proposes candidates; frozen.
        encoder: Embeds texts for Q; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[DQNPriorConfig]] = DQNPriorConfig
    saved = ("learner", "features", "rng", "steps")

    def __init__(
        self,
        prior: ActionPrior,
        encoder: TextTable | None = None,
        config: DQNPriorConfig | None = None,
        **options: Any,
    ) -> None:
        self.config: Any = configure(type(self), config, options)
        self.prior = filled(prior, "propose")
        self.table = filled(TextTable(load(self.config.encoder)) if encoder is None else encoder, "encode")
        self.models = models_of(lm=prior, encoder=self.table)

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> DQNPrior:
        """Make the agent; ``lm`` becomes the prior, and ``encoder`` embeds texts."""
        from hunch.roles.prior.kinds import build_prior

        table = TextTable(models["encoder"])
        return cls(build_prior(config.prior, models["lm"], table), table, config)

    def begin(self, world: World, seed: int) -> None:
        """Start with new weights, and only recorded data in the replay buffer."""
        data = [transition for episode in world.data for transition in episode]
        self.rng = np.random.default_rng(seed)
        self.features = StateFeatures(self.table, joint=self.config.joint)
        self.learner = self.new_learner(seed, len(data))
        self.proposals = Candidates(self.prior, self.features, self.config.k, self.config.proposals)
        self.steps = 0
        for row in self._rows(data):
            self.learner.replay.add(row)
        self.proposals.here.clear()
        self.alone = world.streams == 0

    def new_learner(self, seed: int, data: int) -> QLearner:
        """Return a new Q-learner, with room for recorded and new transitions."""
        from hunch.rl.q_learning import QLearner

        return QLearner(self.features, seed, data=data, **self.rule())

    def rule(self) -> dict[str, Any]:
        """Return the settings of the update; see :class:`hunch.rl.q_learning.QLearner`."""
        c = self.config
        k = (c.k or 0) if c.proposals == "visited" else 0  # otherwise the row needs no candidates
        own = {name: getattr(c, name) for name in ("hidden", "learning_rate", "gamma", "clip")}
        return {"k": k, **own}

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action from the posterior over each state's candidates."""
        here = self.proposals.arrive(states, self.rng)
        self.proposals.here.update(zip([state.stream for state in states], here, strict=True))
        numbers, candidates = [own.state for own in here], [own.proposal.indices for own in here]
        q = self.learner.values(self.features, numbers, candidates)
        chosen = [self.explore(own.proposal, row) for own, row in zip(here, q, strict=True)]
        return [state.options[i] for state, i in zip(states, chosen, strict=True)]

    @property
    def epsilon(self) -> float:
        """The current share of random candidates."""
        start, end, over = self.config.epsilon
        return float(start + (end - start) * min(1.0, self.steps / max(1, over)))

    def explore(self, proposal: Proposal, q: FloatArray) -> int:
        """Draw from the posterior; or take a random candidate with probability epsilon, else the best."""
        if self.config.explore == "posterior":
            return choose(proposal, q, self.config.alpha, self.rng)
        if self.rng.random() < self.epsilon:
            return int(self.rng.choice(proposal.indices))
        return choose(proposal, q, 0.0, self.rng)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Number the next states, and store the steps with both candidate sets."""
        self.steps += len(transitions)
        for row in self._rows(transitions):
            self.learner.replay.add(row)

    def _rows(self, transitions: Sequence[Transition]) -> Iterator[Row]:
        """Yield steps as rows of the replay buffer."""
        arrive, rng = self.proposals.arrive, self.rng
        before = arrive([t.state for t in transitions], rng)
        alive = [i for i, t in enumerate(transitions) if not t.terminated]
        after = dict(zip(alive, arrive([transitions[i].next_state for i in alive], rng), strict=True))
        for i, (t, s) in enumerate(zip(transitions, before, strict=True)):
            n = after.get(i, s)  # nothing follows a terminal state, so any value will do
            action = t.state.options.index(t.action)
            own, later = (a.proposal.indices.tolist() if self.learner.replay.k else () for a in (s, n))
            if not t.done:
                self.proposals.here[t.stream] = n
            yield s.state, action, n.state, t.reward, t.terminated, own, later

    @property
    def due(self) -> int:
        """Number of updates that should have been made so far."""
        return int(max(0, self.steps - self.config.warmup) // self.config.update_every)

    def learn(self) -> dict[str, float]:
        """Make the updates that are due, or one update if there are only recorded data; return metrics."""
        learner, losses = self.learner, []
        due = learner.updates + 1 if self.alone else self.due
        while learner.updates < due and len(learner.replay):
            batch = learner.replay.sample(self.config.batch_size, self.rng)
            losses.append(learner.update(batch, self.candidates))
        told = [share for share in self.proposals.fallbacks if share == share]
        self.proposals.fallbacks.clear()
        means = {"loss": losses, "fallback_rate": told}
        return {name: float(np.mean(figures)) for name, figures in means.items() if figures}

    def candidates(self, states: IntArray, stored: IntArray) -> list[IntArray]:
        """Return candidates of states from the rows of the replay buffer, or else stored or new ones."""
        if self.learner.replay.k:
            return [row[row >= 0] for row in stored]
        return self.proposals.again(states, self.rng)

    def player(self, seed: int) -> Memoryless:
        """Return a player with separate draws; acts by the posterior, or greedily if explore is epsilon."""
        features, c = self.features.copy(), self.config
        alpha = c.alpha if c.explore == "posterior" else 0.0

        def act(states: Sequence[State], rng: np.random.Generator) -> list[str]:
            proposals = self.proposals.drawn(states, rng)
            candidates = [proposal.indices for proposal in proposals]
            q = self.learner.values(features, features.number(states), candidates)
            chosen = [choose(p, row, alpha, rng) for p, row in zip(proposals, q, strict=True)]
            return [state.options[i] for state, i in zip(states, chosen, strict=True)]

        return Memoryless(act, seed)

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the largest Q of each state over all its actions, shape (n,)."""
        features, every = self.features.copy(), [np.arange(len(state.options)) for state in states]
        return np.array([q.max() for q in self.learner.values(features, features.number(states), every)])

    def explain(self, state: State) -> Explanation:
        """Return prior, Q and posterior of each action; prior and posterior are 0 except for candidates."""
        n, features = len(state.options), self.features.copy()
        (q,) = self.learner.values(features, features.number([state]), [np.arange(n)])
        (proposal,) = self.proposals.drawn([state], np.random.default_rng(0))
        prior, chosen = np.zeros(n), np.zeros(n)
        prior[proposal.indices] = proposal.weights
        chosen[proposal.indices] = posterior(proposal.weights, q[proposal.indices], self.config.alpha)
        return Explanation({"prior": prior, "Q": q}, chosen)

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes in ``saved``, the candidates, and the names of both models."""
        models = {"encoder": self.table.lm.name, "proposer": self._proposer()}
        return {**super().state_dict(), **models, **self.proposals.state_dict()}

    def _proposer(self) -> dict[str, Any]:
        return {name: self.settings.get(name) for name in ("lm", "k", "prior", "proposals")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`; candidates of another prior are dropped.

        Raises:
            UsageError: if the stored Q is for another encoder or size; the agent is then left unchanged.
        """
        networks = (state["learner"]["network"], self.learner.network.state_dict())
        shapes = [{name: weights.shape for name, weights in network.items()} for network in networks]
        if state["encoder"] != self.table.lm.name or shapes[0] != shapes[1]:
            raise UsageError(
                f"The checkpoint's Q was trained on embeddings of {state['encoder']}; it cannot be used with "
                f"those of {self.table.lm.name}, another size of network or another form of input."
            )
        super().load_state_dict(state)
        self.proposals.load_state_dict(state, own=state["proposer"] == self._proposer())


def choose(proposal: Proposal, q: FloatArray, alpha: float, rng: np.random.Generator) -> int:
    """Draw a candidate from the posterior, or take the best one if alpha is 0; return its index."""
    if not alpha:
        return int(proposal.indices[int(np.argmax(q))])
    return int(rng.choice(proposal.indices, p=posterior(proposal.weights, q, alpha)))


def posterior(weights: FloatArray, q: FloatArray, alpha: float) -> FloatArray:
    """Return the probability of each candidate under softmax(Q / alpha), weighted by its number of draws.

    With weights from k draws of p_LM it converges to p_LM exp(Q / alpha) / Z as k grows (Proposition 1).
    """
    scores = weights * np.exp((q - q.max()) / alpha)
    return np.asarray(scores / scores.sum())


METHOD = Method(
    "dqn-prior",
    DQNPrior,
    "Q-learning restricted to k actions that a language model proposes",
    **PRIOR,
)
