"""DQN-Prior: Q-learning restricted to the actions that a language model proposes; and DQN, the same code.

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

The language model fills one role, the action prior. With :class:`hunch.roles.prior.action.UniformPrior` and
``k=None`` (all admissible actions) it is DQN. If the world has recorded data and no streams, the agent learns
from the data only, one update per pass of the loop; if it has both, from both.

Departures: states and actions are embedded separately by default, not as one text (``joint`` is the paper's
setting); the squared error is averaged over the batch, not summed; alpha divides Q, as in the paper's text,
while the released code multiplies by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from hunch.core import (
    Agent,
    EvidenceLevel,
    Explanation,
    FloatArray,
    IntArray,
    State,
    Transition,
    UsageError,
    World,
)
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.prior.released import Preset, preset
from hunch.methods.settings import configure, filled, models_of
from hunch.ranges import Decay, PositiveFloat, PositiveInt
from hunch.rl.q_learning import QConfig, QLearner, values
from hunch.rl.schedule import Row, Schedule
from hunch.roles.encoder.features import StateFeatures, TextTable
from hunch.roles.prior.action import ActionPrior, Proposal, UniformPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior


@dataclass(frozen=True, kw_only=True)
class DQNPriorConfig(QConfig):
    """Q-learning over the proposals of a prior."""

    preset: Preset = "own"
    """Use the settings of the authors' code for ALFWorld or for the kitchens, unless you set an option."""
    k: PositiveInt | None = 5
    """Proposals per state (paper: 5); none for all actions with a positive prior."""
    proposals: Literal["kept", "visited", "fresh"] = "visited"
    """When proposals are drawn: once per state, on each arrival (authors' code), or at each use."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""
    alpha: PositiveFloat = 0.02
    """Temperature of the posterior softmax(Q / alpha) (paper: 0.01 to 0.1)."""
    explore: Literal["posterior", "epsilon", "mixed"] = "posterior"
    """Draw from the posterior over the candidates, act epsilon-greedily on them, or mix both: any candidate
    with probability epsilon, else one from the posterior. In evaluations the latter two take the best."""
    epsilon: Decay = (1.0, 0.05, 5_000)
    """epsilon, mixed: start, end, and environment steps in between."""
    joint: bool = False
    """Embed state and action as one text, as in the paper; needs one model call per pair."""
    encoder: str = "minilm"
    """Frozen text encoder for Q (paper: BERT)."""


class Arrival(NamedTuple):
    """A state that awaits an action: its number, and the number of its candidate set."""

    state: int
    candidates: int


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
    fixed: ClassVar[Mapping[str, Any]] = {"bellman": 1.0, "beta": 0.0, "floor": False}
    """Settings that define this method; they are not options of its command."""

    def __init__(
        self,
        prior: ActionPrior,
        encoder: TextTable | None = None,
        config: DQNPriorConfig | None = None,
        **options: Any,
    ) -> None:
        config = configure(type(self), config, options)
        self.config = preset(config, self.fixed, isinstance(self, DQN))
        self.prior = filled(prior, "propose")
        self.table = filled(TextTable(load(self.config.encoder)) if encoder is None else encoder, "encode")
        self.models = models_of(lm=prior, encoder=self.table)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior."""
        return self.prior.evidence

    def begin(self, world: World, seed: int) -> None:
        """Start with new weights, and a replay buffer with recorded data only."""
        data = [transition for episode in world.data for transition in episode]
        self.rng = np.random.default_rng(seed)
        self.features = StateFeatures(self.table, joint=self.config.joint)
        self.learner = QLearner(self.features, self.config, seed, len(data))
        self.sets: dict[int, Proposal] = {}  # by state if they are kept, else by arrival
        self.here: dict[int, Arrival] = {}  # by stream
        self.schedule = Schedule(self.config, self.learner.replay)
        self.fallbacks: list[float] = []
        self.drawn = 0
        self.schedule.store(self._rows(data))
        self.here.clear()
        self.alone = world.streams == 0

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action from the posterior over each state's candidates."""
        here = self._arrive(states)
        self.here.update(zip([state.stream for state in states], here, strict=True))
        proposals = [self.sets[arrival.candidates] for arrival in here]
        candidates = [proposal.indices for proposal in proposals]
        q = values(self.learner.network, self.features, [arrival.state for arrival in here], candidates)
        chosen = [self._explore(p, row) for p, row in zip(proposals, q, strict=True)]
        return [state.options[i] for state, i in zip(states, chosen, strict=True)]

    def _arrive(self, states: Sequence[State]) -> list[Arrival]:
        """Number states and assign candidates: those of the arrival, kept ones, or newly drawn ones."""
        here = {i: a for i, s in enumerate(states) if (a := self.here.pop(s.stream, None)) is not None}
        new = [i for i in range(len(states)) if i not in here]
        numbers = self.features.number([states[i] for i in new])
        keys = numbers if self.config.proposals == "kept" else range(self.drawn, self.drawn + len(new))
        due = {key: states[i] for key, i in zip(keys, new, strict=True) if key not in self.sets}
        proposals = self.prior.propose(list(due.values()), self.config.k, self.rng) if due else []
        self.sets.update(zip(due, proposals, strict=True))
        self.drawn += len(due)
        self.fallbacks += [proposal.fallbacks for proposal in proposals]
        here |= {i: Arrival(*pair) for i, *pair in zip(new, numbers, keys, strict=True)}
        return [here[i] for i in range(len(states))]

    def _explore(self, proposal: Proposal, q: FloatArray) -> int:
        """Draw a random candidate with probability epsilon, else one from the posterior, or take the best."""
        (start, end, over), how = self.config.epsilon, self.config.explore
        epsilon = start + (end - start) * min(1.0, self.schedule.steps / max(1, over))
        if how != "posterior" and self.rng.random() < epsilon:
            return int(self.rng.choice(proposal.indices))
        return choose(proposal, q, 0.0 if how == "epsilon" else self.config.alpha, self.rng)

    # ---- learning -----------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Note the next states, and store the steps with both candidate sets."""
        self.schedule.observe(transitions, self._rows(transitions))
        if self.config.proposals != "kept" and len(self.sets) > 2 * self.learner.replay.capacity:
            self._forget()

    def _forget(self) -> None:
        """Drop the candidates of arrivals that no stored step refers to any more."""
        stored = self.learner.replay.rows[: len(self.learner.replay)]
        held = [row for rows in self.schedule.held.values() for row in rows]
        rows = np.array([*stored, *held])[:, [3, 4]]
        used = {*rows.astype(int).flat, *(arrival.candidates for arrival in self.here.values())}
        self.sets = {key: proposal for key, proposal in self.sets.items() if key in used}

    def _rows(self, transitions: Sequence[Transition]) -> list[Row]:
        """Return steps as rows of the replay buffer."""
        before = self._arrive([t.state for t in transitions])
        alive = [i for i, t in enumerate(transitions) if not t.terminated]
        after = dict(zip(alive, self._arrive([transitions[i].next_state for i in alive]), strict=True))
        rows: list[Row] = []
        for i, (t, s) in enumerate(zip(transitions, before, strict=True)):
            n = after.get(i, s)  # nothing follows a terminal state, so any value will do
            action = t.state.options.index(t.action)
            rows.append((s.state, action, n.state, s.candidates, n.candidates, t.reward, t.terminated))
            if not t.done:
                self.here[t.stream] = n
        return rows

    def learn(self) -> dict[str, float]:
        """Make the updates that are due, or one if there are only data."""
        learner, losses = self.learner, []
        due = learner.updates + 1 if self.alone else self.schedule.due
        while learner.updates < due and len(learner.replay):
            batch = learner.replay.sample(self.config.batch_size, self.rng)
            losses.append(learner.update(batch, self._candidates))
        told, self.fallbacks = [share for share in self.fallbacks if share == share], []
        means = {"loss": losses, "fallback_rate": told}
        return {name: float(np.mean(figures)) for name, figures in means.items() if figures}

    def _candidates(self, states: IntArray, sets: IntArray) -> list[IntArray]:
        """Return the stored candidates of states, or newly drawn ones."""
        if self.config.proposals != "fresh":
            return [self.sets[i].indices for i in sets]
        asked = [self.features.states[i] for i in states]
        return [proposal.indices for proposal in self.prior.propose(asked, self.config.k, self.rng)]

    # ---- evaluating ---------------------------------------------------------------------------------

    def player(self, seed: int) -> PosteriorPlayer:
        """Return a player with its own draws of candidates and actions."""
        return PosteriorPlayer(self, seed)

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the largest Q of each state over all its actions, shape (n,)."""
        every = [np.arange(len(state.options)) for state in states]
        return np.array([q.max() for q in self.player(0).values(states, every)])

    def explain(self, state: State) -> Explanation:
        """Return prior, Q and posterior of each action; prior and posterior are 0 except for candidates."""
        player, n = self.player(0), len(state.options)
        q = player.values([state], [np.arange(n)])[0]
        proposal = player.propose([state])[0]
        prior, chosen = np.zeros(n), np.zeros(n)
        prior[proposal.indices] = proposal.weights
        chosen[proposal.indices] = posterior(proposal.weights, q[proposal.indices], self.config.alpha)
        return Explanation({"prior": prior, "Q": q}, chosen)

    # ---- state --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """See :class:`hunch.core.Agent`."""
        return {
            "learner": self.learner.state_dict(),
            "features": self.features.state_dict(),
            "encoder": self.table.lm.name,
            "proposer": self._proposer(),
            "sets": [(key, p.indices.tolist(), p.weights.tolist()) for key, p in self.sets.items()],
            "here": [(stream, *arrival) for stream, arrival in self.here.items()],
            "rng": self.rng.bit_generator.state,
            "schedule": self.schedule.state_dict(),
            "drawn": self.drawn,
            "fallbacks": list(self.fallbacks),
        }

    def _proposer(self) -> dict[str, Any]:
        return {name: self.settings.get(name) for name in ("lm", "k", "prior", "proposals")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`; kept candidates of another prior are dropped.

        Raises:
            UsageError: if its Q is for another encoder or size; the agent is left unchanged.
        """
        shapes = [
            {name: tuple(weights.shape) for name, weights in q.items()}
            for q in (state["learner"]["network"], self.learner.network.state_dict())
        ]
        if state["encoder"] != self.table.lm.name or shapes[0] != shapes[1]:
            raise UsageError(
                f"The checkpoint's Q was trained on embeddings of {state['encoder']}; it cannot be used with "
                f"those of {self.table.lm.name}, another size of network or another form of input."
            )
        self.learner.load_state_dict(state["learner"])
        self.features.load_state_dict(state["features"])
        own = state["proposer"] == self._proposer()
        self.sets = {key: Proposal(np.array(i), np.array(w)) for key, i, w in state["sets"] if own}
        self.here = {stream: Arrival(*arrival) for stream, *arrival in state["here"]}
        self.rng.bit_generator.state = state["rng"]
        self.schedule.load_state_dict(state["schedule"])
        self.drawn, self.fallbacks = state["drawn"], list(state["fallbacks"])


class PosteriorPlayer:
    """Acts by the posterior of an agent's Q over its own candidates, without memory."""

    def __init__(self, agent: DQNPrior, seed: int) -> None:
        self.agent, self.rng = agent, np.random.default_rng(seed)
        self.features = StateFeatures(agent.table, joint=agent.config.joint, known=agent.features)

    def propose(self, states: Sequence[State]) -> list[Proposal]:
        """Return C^k(s) of each state: the agent's kept proposals, or newly drawn ones."""
        agent = self.agent
        keeps = agent.config.proposals == "kept"
        kept = [agent.sets.get(agent.features.find(state)) if keeps else None for state in states]
        new = [state for state, own in zip(states, kept, strict=True) if own is None]
        drawn = iter(agent.prior.propose(new, agent.config.k, self.rng) if new else ())
        return [next(drawn) if own is None else own for own in kept]

    def values(self, states: Sequence[State], candidates: Sequence[IntArray]) -> list[FloatArray]:
        """Return Q(s, a) of each state's candidates."""
        return values(self.agent.learner.network, self.features, self.features.number(states), candidates)

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw from the posterior; take the best candidate if the agent explores by epsilon."""
        proposals = self.propose(states)
        q = self.values(states, [proposal.indices for proposal in proposals])
        config = self.agent.config
        alpha = config.alpha if config.explore == "posterior" else 0.0
        chosen = [choose(p, row, alpha, self.rng) for p, row in zip(proposals, q, strict=True)]
        return [state.options[i] for state, i in zip(states, chosen, strict=True)]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: it has no memory."""


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


class DQN(DQNPrior):
    """DQN over all admissible actions (Mnih et al., 2015): DQN-Prior without a prior.

    Args:
        encoder: Embeds texts for Q; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.
    """

    fixed: ClassVar[Mapping[str, Any]] = {
        **DQNPrior.fixed,
        "k": None,
        "proposals": "kept",
        "prior": PriorConfig(kind="uniform"),
    }

    def __init__(
        self, encoder: TextTable | None = None, config: DQNPriorConfig | None = None, **options: Any
    ) -> None:
        super().__init__(UniformPrior(), encoder, config, **options)


def build(agent: type[DQNPrior], config: DQNPriorConfig, models: Mapping[str, LanguageModel]) -> DQNPrior:
    """Build the agent: embed with the model ``encoder``, and make the prior from ``lm`` if there is one."""
    table = TextTable(models["encoder"])
    if issubclass(agent, DQN):
        return agent(table, config)
    return agent(build_prior(config.prior, models["lm"], table), table, config)
