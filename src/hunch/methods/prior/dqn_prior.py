"""DQN-Prior: Q-learning restricted to the actions that a language model proposes.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025,
sections 3.1 and 3.2)::

    for each step
        C^k(s)  <- k draws a_1 ... a_k from p_LM(. | s)                       the prior's proposals
        a       ~  softmax(Q(s, a_i) / alpha) over the k draws                posterior exploration
        store (s, a, r, s') in the replay buffer, with C^k(s) and C^k(s')
        after warmup steps, every update_every steps, for a batch of the replay buffer:
            y       <- r + gamma * max over a' in C^k(s') of Q_target(s', a')     maximum over proposals
            descend on 1/2 mean (Q(s, a) - y)^2
            Q_target <- Q_target + target_rate * (Q - Q_target)                   target_rate 0.005

As k grows the exploration rule converges to p_LM(a|s) exp(Q(s, a) / alpha) / Z, the policy that maximises
E[Q] - alpha KL(pi || p_LM) (Proposition 1).

The language model fills one role, the action prior. With an uninformed prior and ``k=None`` (all admissible
actions) it is :mod:`hunch.methods.prior.dqn`. With ``confidence`` the model's opinion counts only where it is
sure (:class:`HandOver`, ours). If the world has recorded data and no streams, the agent learns
from the data only, one update per pass of the loop; if it has both, from both.

Departures: states and actions are embedded separately by default, not as one text (``joint`` is the paper's
setting); the squared error is averaged over the batch, not summed; alpha divides Q, as in the paper's text,
while the released code multiplies by it. The authors' protocol is
the method dqn-prior-released of hunch-rl-contrib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from hunch.core import (
    Agent,
    EvidenceLevel,
    Explanation,
    FloatArray,
    IntArray,
    Memoryless,
    State,
    Transition,
    UsageError,
    World,
    wording_of,
)
from hunch.lm import load
from hunch.lm.ahead import Ahead, is_elsewhere
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, PROPOSES, Method
from hunch.methods.settings import configure, filled, models_of
from hunch.ranges import LATER, Decay, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.renamed import Renamed
from hunch.roles.encoder.features import StateFeatures, TextTable
from hunch.roles.prior.base import ROUNDING, ActionPrior, DistributionPrior, Proposal
from hunch.roles.prior.kinds import PriorConfig, build_prior

if TYPE_CHECKING:
    from hunch.rl.q_learning import QLearner, Row

When: TypeAlias = Literal["kept", "visited", "fresh"]
"""When proposals are drawn: once per state, on each arrival in a state, or at each use."""
FORGET_EVERY = 4_096
"""Number of new states after which those are forgotten that no stored transition has."""


# ---- settings ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DQNConfig(Renamed):
    """Settings of Q-learning over candidates."""

    renamed: ClassVar[Mapping[str, str]] = {"clip": "max_norm"}

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
    max_norm: NonNegativeFloat = 0.0
    """Maximum gradient norm; larger gradients are scaled down, 0 for no limit (released code: 1)."""
    batch_size: PositiveInt = 128
    """Transitions per update (paper)."""
    update_every: PositiveInt = 2
    """Environment steps per update (our choice)."""
    warmup: NonNegativeInt = 500
    """Environment steps before the first update (our choice)."""
    hidden: PositiveInt = 128
    """Width of the three-layer perceptron (released code: 64)."""


@dataclass(frozen=True, kw_only=True)
class DQNPriorConfig(DQNConfig):
    """Settings of Q-learning over the proposals of a prior."""

    k: PositiveInt | None = 5
    """Proposals per state (paper: 5); none for all actions with a positive probability under the prior."""
    proposals: When = "visited"
    """When proposals are drawn: once per state, on each arrival (authors' code), or at each use."""
    confidence: Share | None = field(default=None, metadata=LATER)
    """Hand-over (ours): where the prior's favourite has at least this probability, it is the only candidate;
    elsewhere all admissible actions are, and the prior has no say. With sampled answers the probability is
    the share of k, or of ``prior.samples``. Candidates are then found once per state. None: the prior
    proposes k everywhere."""
    ahead: bool = field(default=False, metadata=LATER)
    """Ask about the states that were reached while Q learns, where the model is in another process (ours).
    The newest steps are stored when their candidates are there: after the updates of the same pass."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""


# ---- the agent --------------------------------------------------------------------------------------------


class DQNPrior(Agent):
    """The agent of DQN-Prior.

    Args:
        prior: Proposes candidates; frozen.
        encoder: Embeds texts for Q; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = DQNPriorConfig
    saved: ClassVar[tuple[str, ...]] = ("learner", "features", "rng", "steps")
    config: Any

    def __init__(
        self,
        prior: ActionPrior,
        encoder: TextTable | None = None,
        config: DQNPriorConfig | None = None,
        **options: Any,
    ) -> None:
        config = configure(type(self), config, options)
        self.check(config, {})
        self.hold(prior, encoder, config)

    def hold(self, prior: ActionPrior, encoder: TextTable | None, config: Any) -> None:
        """Keep the parts of the agent."""
        self.config = config
        self.prior = filled(prior, "propose")
        self.table = filled(TextTable(load(config.encoder)) if encoder is None else encoder, "encode")
        self.models = models_of(lm=prior, encoder=self.table)

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> DQNPrior:
        """Make the agent; ``lm`` becomes the prior, and ``encoder`` embeds texts."""
        table = TextTable(models["encoder"])
        return cls(build_prior(config.prior, models["lm"], table), table, config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior."""
        return self.prior.evidence

    @property
    def wording(self) -> str:
        """The version of the prior's prompts."""
        return wording_of(self.prior)

    def begin(self, world: World, seed: int) -> None:
        """Start with new weights, and only recorded data in the replay buffer."""
        data = [transition for episode in world.data for transition in episode]
        self.offline = world.streams == 0
        self.rng = np.random.default_rng(seed)
        self.steps = 0
        self.handed_over: list[bool] = []  # with confidence: whether the prior chose, since the last metrics
        self.features = StateFeatures(self.table, joint=self.config.joint)
        self.proposals = self.new_candidates()
        self.awaiting: Awaiting | None = None
        self.learner = self.new_learner(seed, len(data))
        for row in self.rows(data):
            self.learner.replay.add(row)
        self.proposals.pending.clear()
        self.forget_at = FORGET_EVERY

    def new_candidates(self) -> Candidates:
        """Return the candidate sets C^k(s), of which there are none yet."""
        c = self.config
        if c.confidence is not None:
            hand_over = HandOver(self.prior, c.confidence, c.k)
            return Candidates(hand_over, self.features, k=None, when="kept", ahead=c.ahead)
        return Candidates(self.prior, self.features, c.k, c.proposals, ahead=c.ahead)

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Refuse to ask ahead for candidates that are drawn when they are used."""
        if not isinstance(config, DQNPriorConfig) or not config.ahead or config.confidence is not None:
            return  # with confidence, candidates are kept
        if config.proposals == "fresh" or (config.proposals == "visited" and config.k is None):
            raise UsageError(
                "With proposals fresh, or visited and k none, candidates are drawn in the middle of the "
                "updates, so they cannot be asked for ahead: set proposals to kept, or leave ahead out."
            )

    @property
    def hands_over(self) -> bool:
        """True with the setting ``confidence``."""
        return isinstance(self.proposals.prior, HandOver)

    def new_learner(self, seed: int, recorded: int) -> QLearner:
        """Return a new Q with its update, and room for so many recorded transitions besides new ones."""
        from hunch.rl.q_learning import QLearner  # loads torch

        c = self.config
        return QLearner(
            self.features,
            seed,
            hidden=c.hidden,
            learning_rate=c.learning_rate,
            gamma=c.gamma,
            max_norm=c.max_norm,
            k=self.proposals.stored,
            data=recorded,
        )

    # ---- acting -------------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action from the posterior over each state's candidates."""
        self.store_awaited()
        # C^k(s) of each state. `observe` stores the same sets with the transition.
        arrivals = self.proposals.arrive(states, self.rng)
        for state, arrival in zip(states, arrivals, strict=True):
            self.proposals.pending[state.stream] = arrival
            if self.hands_over:
                self.handed_over.append(len(arrival.proposal.indices) == 1 < len(state.options))

        # Q(s, a_i) for a_i in C^k(s), shape (candidates,) for each state.
        numbers = [arrival.state for arrival in arrivals]
        candidates = [arrival.proposal.indices for arrival in arrivals]
        q_values = self.learner.values(self.features, numbers, candidates)

        actions = []
        for state, arrival, q in zip(states, arrivals, q_values, strict=True):
            actions.append(state.options[self.explore(arrival.proposal, q)])
        return actions

    def explore(self, proposal: Proposal, q: FloatArray) -> int:
        """Return the index of the action to take in training.

        It is drawn from the posterior; or, with explore epsilon, it is a random candidate with probability
        epsilon, else the one with the largest Q.

        Args:
            proposal: The candidates.
            q: Q of each, shape (candidates,).
        """
        if self.config.explore == "posterior":
            return choose(proposal, q, self.config.alpha, self.rng)
        if self.rng.random() < self.epsilon:
            return int(self.rng.choice(proposal.indices))
        return choose(proposal, q, 0.0, self.rng)

    @property
    def epsilon(self) -> float:
        """The current share of random candidates."""
        start, end, over = self.config.epsilon
        return float(start + (end - start) * min(1.0, self.steps / max(1, over)))

    # ---- learning -----------------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Store the steps with the candidates of both states, or ask for these candidates ahead."""
        self.steps += len(transitions)
        if self.proposals.ahead:
            # The model is asked about the new states while `learn` makes its updates. The steps are stored
            # by whatever comes next: an action, an evaluation, a checkpoint.
            self.store_awaited()
            before = self.proposals.arrive([t.state for t in transitions], self.rng)
            reached = [t.next_state for t in transitions if not t.terminated]
            model = self.models.get("lm")
            in_thread = is_elsewhere(model) and model is not self.table.lm  # Q needs the table meanwhile
            drawing = self.proposals.begin_drawing(reached, self.rng, in_thread=in_thread)
            self.awaiting = Awaiting(transitions, before, drawing)
            return
        for row in self.rows(transitions):
            self.learner.replay.add(row)
        self.forget_states()

    def store_awaited(self) -> None:
        """Store the steps whose candidates were asked for ahead, once they are there."""
        if self.awaiting is None:
            return
        transitions, before, drawing = self.awaiting
        reached = self.proposals.end_drawing(drawing)
        self.awaiting = None
        for row in self.joined_rows(transitions, before, reached):
            self.learner.replay.add(row)
        self.forget_states()

    def forget_states(self) -> None:
        """Forget the states that are not needed any more, if there are many new ones."""
        if len(self.features.states) < self.forget_at:
            return
        needed = self.needed_states()
        self.features.keep(needed)
        self.proposals.keep(needed)
        self.forget_at = len(needed) + FORGET_EVERY

    def needed_states(self) -> set[int]:
        """Return the numbers of the states of stored transitions, and of those that have kept candidates."""
        return {*self.learner.replay.states(), *self.proposals.numbers()}

    def rows(self, transitions: Sequence[Transition]) -> list[Row]:
        """Return steps as rows of the replay buffer: (s, a, s', r, terminated, C^k(s), C^k(s')).

        The states are numbers, the actions indices. The sets are empty unless they were drawn on arrival;
        :meth:`candidates` finds them otherwise.
        """
        before = self.proposals.arrive([t.state for t in transitions], self.rng)
        reached = self.proposals.arrive([t.next_state for t in transitions if not t.terminated], self.rng)
        return self.joined_rows(transitions, before, reached)

    def joined_rows(
        self, transitions: Sequence[Transition], before: Sequence[Arrival], reached: Sequence[Arrival]
    ) -> list[Row]:
        """Return steps as rows, as :meth:`rows` does, and let the reached states await their actions.

        Args:
            transitions: The steps.
            before: The arrival in the state of each step.
            reached: The arrival in the next state of each step that did not terminate its episode.
        """
        alive = [i for i, t in enumerate(transitions) if not t.terminated]
        after = dict(zip(alive, reached, strict=True))

        rows: list[Row] = []
        for i, (t, arrival) in enumerate(zip(transitions, before, strict=True)):
            next_arrival = after.get(i, arrival)  # nothing follows a terminal state, so any value will do
            if not t.done:  # the next action is chosen from this very set
                self.proposals.pending[t.stream] = next_arrival
            candidates: list[int] = []
            next_candidates: list[int] = []
            if self.learner.replay.k:
                candidates = arrival.proposal.indices.tolist()
                next_candidates = next_arrival.proposal.indices.tolist()
            s, next_s = arrival.state, next_arrival.state
            a = t.state.options.index(t.action)
            rows.append((s, a, next_s, t.reward, t.terminated, candidates, next_candidates))
        return rows

    def learn(self) -> dict[str, float]:
        """Make the updates that are due, or one update if there are only recorded data; return metrics."""
        learner = self.learner
        due = learner.updates + 1 if self.offline else self.due
        losses = []
        while learner.updates < due and len(learner.replay) > 0:
            batch = learner.replay.sample(self.config.batch_size, self.rng)
            # y <- r + gamma max over a' in C^k(s') of Q_target(s', a');  descend on 1/2 mean (Q(s, a) - y)^2;
            # Q_target <- Q_target + target_rate (Q - Q_target)
            loss = learner.update(batch, self.candidates)
            losses.append(loss)

        metrics = {}
        if losses:
            metrics["loss"] = float(np.mean(losses))
        fallbacks = [share for share in self.proposals.fallbacks if not np.isnan(share)]
        self.proposals.fallbacks.clear()
        if fallbacks:
            metrics["fallback_rate"] = float(np.mean(fallbacks))
        if self.handed_over:
            metrics["by_prior"] = float(np.mean(self.handed_over))  # share of the steps that the prior chose
            self.handed_over = []
        return metrics

    @property
    def due(self) -> int:
        """Number of updates that should have been made so far."""
        return int(max(0, self.steps - self.config.warmup) // self.config.update_every)

    @property
    def first_update(self) -> int:
        """The step of the first update; 0 if it is not that of these settings, as in some subclasses."""
        if isinstance(self.config, DQNConfig):
            return self.config.warmup + self.config.update_every
        return 0

    def candidates(self, states: IntArray, stored: IntArray) -> list[IntArray]:
        """Return C^k(s) of the states of a batch, as action indices.

        Args:
            states: The numbers of the states, shape (batch,).
            stored: What the rows of the replay buffer hold, shape (batch, k), padded with -1; k may be 0.
        """
        if self.learner.replay.k:
            return [row[row >= 0] for row in stored]
        return self.proposals.for_update(states, self.rng)

    # ---- evaluating and explaining ------------------------------------------------------------------------

    @property
    def playing_alpha(self) -> float:
        """Temperature of the posterior in evaluations; 0 takes the best, after epsilon-greedy training."""
        return float(self.config.alpha) if self.config.explore == "posterior" else 0.0

    def player(self, seed: int) -> Memoryless:
        """Return a player with separate draws; acts by the posterior, or greedily if explore is epsilon."""
        self.store_awaited()  # the prior is free then
        features = self.features.copy()

        def act(states: Sequence[State], rng: np.random.Generator) -> list[str]:
            proposals = self.proposals.peek(states, rng)
            candidates = [proposal.indices for proposal in proposals]
            q_values = self.learner.values(features, features.number(states), candidates)
            actions = []
            for state, proposal, q in zip(states, proposals, q_values, strict=True):
                actions.append(state.options[choose(proposal, q, self.playing_alpha, rng)])
            return actions

        return Memoryless(act, seed)

    def q(self, states: Sequence[State]) -> list[FloatArray]:
        """Return Q of all actions of each state, shape (actions,); nothing is stored."""
        features = self.features.copy()
        every = [np.arange(len(state.options)) for state in states]
        return self.learner.values(features, features.number(states), every)

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the largest Q of each state over all its actions, shape (n,)."""
        return np.array([q.max() for q in self.q(states)])

    def explain(self, state: State) -> Explanation:
        """Return prior, Q and how a player acts, by action; all but Q is 0 except for candidates."""
        self.store_awaited()
        (q,) = self.q([state])
        (proposal,) = self.proposals.peek([state], np.random.default_rng(0))
        prior = np.zeros(len(state.options))
        prior[proposal.indices] = proposal.weights
        chosen = np.zeros(len(state.options))
        weights, of_candidates = proposal.weights, q[proposal.indices]  # (candidates,)
        if self.playing_alpha == 0:
            chosen[proposal.indices[of_candidates.argmax()]] = 1.0
        else:
            chosen[proposal.indices] = posterior(weights, of_candidates, self.playing_alpha)
        return Explanation({"prior": prior, "Q": q}, chosen)

    # ---- saving -------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes in ``saved``, the candidates, and the names of both models."""
        self.store_awaited()
        models = {"encoder": self.table.lm.name, "proposer": self._proposer()}
        state = {**super().state_dict(), **models, **self.proposals.state_dict()}
        if self.hands_over:
            state["handed_over"] = list(self.handed_over)
        return state

    def _proposer(self) -> dict[str, Any]:
        """Return the settings on which the candidates of a state depend."""
        on = ["lm", "k", "prior", "proposals"]
        if self.hands_over:
            on.append("confidence")
        return {name: self.settings.get(name) for name in on}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`; candidates of another prior are dropped.

        Raises:
            UsageError: if the stored Q is for another encoder or size; the agent is then left unchanged.
        """
        stored = {name: weights.shape for name, weights in state["learner"]["network"].items()}
        expected = {name: weights.shape for name, weights in self.learner.network.state_dict().items()}
        if state["encoder"] != self.table.lm.name or stored != expected:
            raise UsageError(
                f"The checkpoint's Q was trained on embeddings of {state['encoder']}; it cannot be used with "
                f"those of {self.table.lm.name}, another size of network or another form of input."
            )
        super().load_state_dict(state)
        self.awaiting = None
        same_prior = state["proposer"] == self._proposer()
        self.proposals.load_state_dict(state, same_prior)
        self.handed_over = list(state.get("handed_over", ()))  # without confidence there are none


def choose(proposal: Proposal, q: FloatArray, alpha: float, rng: np.random.Generator) -> int:
    """Draw a candidate from the posterior, or take the best one if alpha is 0; return its index.

    Args:
        proposal: The candidates.
        q: Q of each, shape (candidates,).
        alpha: Temperature of the posterior.
        rng: Draws the candidate.
    """
    if alpha == 0:
        return int(proposal.indices[int(np.argmax(q))])
    return int(rng.choice(proposal.indices, p=posterior(proposal.weights, q, alpha)))


def posterior(weights: FloatArray, q: FloatArray, alpha: float) -> FloatArray:
    """Return the probability of each candidate under softmax(Q / alpha), weighted by its number of draws.

    With weights from k draws of p_LM it converges to p_LM exp(Q / alpha) / Z as k grows (Proposition 1).

    Args:
        weights: Share of the k draws that gave each candidate, shape (candidates,).
        q: Q of each candidate, shape (candidates,).
        alpha: Temperature, above 0.
    """
    scores = weights * np.exp((q - q.max()) / alpha)  # the maximum cancels, and keeps exp from overflowing
    return np.asarray(scores / scores.sum())


# ---- the candidates ---------------------------------------------------------------------------------------


class HandOver:
    """Proposes the prior's favourite alone where the prior is confident, and all actions elsewhere.

    ::

        C(s) = {argmax p(. | s)}   if max p(. | s) >= confidence      the prior acts
               A(s)                otherwise                          Q acts, and the prior has no say

    A probability is worth this much trust only if it is calibrated, which an audition measures.

    Args:
        prior: The action prior. One without an explicit distribution is asked for k answers, whose shares are
            the probabilities; an answer that names no action counts for none.
        confidence: The least probability of the favourite.
        k: Number of answers; not used if the prior knows its distribution.
    """

    def __init__(self, prior: ActionPrior, confidence: float, k: int | None) -> None:
        self.prior = prior
        self.confidence = confidence
        self.k = k

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior."""
        return self.prior.evidence

    @property
    def knows_distribution(self) -> bool:
        """True if the probabilities are stated; False if they are shares of sampled answers."""
        return isinstance(self.prior, DistributionPrior)

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Return the favourite, or all actions with equal weights; k is not used."""
        prior_k = None if self.knows_distribution else self.k
        proposals = []
        for state, proposed in zip(states, self.prior.propose(states, prior_k, rng), strict=True):
            n = len(state.options)
            p = proposed.named(n)  # (actions,)
            favourite = int(p.argmax())
            if p[favourite] > 0 and p[favourite] >= self.confidence - ROUNDING:
                proposals.append(Proposal(np.array([favourite]), np.ones(1), proposed.fallbacks))
            else:
                proposals.append(Proposal(np.arange(n), np.full(n, 1 / n), proposed.fallbacks))
        return proposals


class Arrival(NamedTuple):
    """The number of a state that awaits an action, and its candidates."""

    state: int
    proposal: Proposal


class Drawing(NamedTuple):
    """Candidates that are being drawn.

    Attributes:
        numbers: The numbers of the states that were reached, in order.
        new: Of these, the numbers of the states that are drawn for, in order.
        proposals: The candidates of the latter.
    """

    numbers: list[int]
    new: list[int]
    proposals: Ahead[list[Proposal]]


class Awaiting(NamedTuple):
    """Steps that are not stored yet, because the candidates of their next states are being drawn.

    Attributes:
        transitions: The steps.
        before: The arrival in the state of each.
        drawing: The candidates of the next states, of the steps that did not terminate their episode.
    """

    transitions: Sequence[Transition]
    before: list[Arrival]
    drawing: Drawing


class Candidates:
    """The candidates C^k(s) of the states that an agent meets, which are numbered by their features.

    A set is drawn on each arrival in a state (``visited``). It is then used three times: to choose the action
    there, as C^k(s) of the step that leaves the state, and as C^k(s') of the step that reached it. Or it is
    drawn once per state (``kept``), or at each of these uses (``fresh``).

    Args:
        prior: Proposes candidates.
        features: Numbers the states.
        k: Draws per state; None for all actions with a positive prior.
        when: When candidates are drawn.
        ahead: Whether they are asked for while Q learns: by :meth:`begin_drawing` and :meth:`end_drawing`.

    Attributes:
        kept: With ``kept``: proposals by the number of the state.
        pending: The arrivals that await an action, by stream.
        fallbacks: Shares of draws that named no action, since they were last read.
    """

    def __init__(
        self,
        prior: ActionPrior,
        features: StateFeatures,
        k: int | None,
        when: When,
        *,
        ahead: bool = False,
    ) -> None:
        self.prior = prior
        self.features = features
        self.k = k
        self.when = when
        self.ahead = ahead
        self.kept: dict[int, Proposal] = {}
        self.pending: dict[int, Arrival] = {}
        self.fallbacks: list[float] = []

    @property
    def stored(self) -> int:
        """Size of the sets that are stored with a transition; 0 if none need to be.

        Only sets that were drawn on arrival could not be found again. Without k, a set is all
        actions with a positive probability.
        """
        if self.when != "visited" or self.k is None:
            return 0
        return self.k

    def arrive(self, states: Sequence[State], rng: np.random.Generator) -> list[Arrival]:
        """Number the states in which streams are or arrive, and return their candidates."""
        # The last step of a stream may have reached its state; then the candidates are drawn already.
        arrivals: dict[int, Arrival] = {}
        for i, state in enumerate(states):
            waiting = self.pending.pop(state.stream, None)
            if waiting is not None:
                arrivals[i] = waiting

        new = [i for i in range(len(states)) if i not in arrivals]
        numbers = self.features.number([states[i] for i in new])
        proposals = self._proposals([states[i] for i in new], numbers, rng)
        for i, number, proposal in zip(new, numbers, proposals, strict=True):
            arrivals[i] = Arrival(number, proposal)
        return [arrivals[i] for i in range(len(states))]

    def _proposals(
        self, states: Sequence[State], numbers: Sequence[int], rng: np.random.Generator
    ) -> list[Proposal]:
        """Return the candidates of numbered states, with one call of the prior for all that are drawn."""
        if self.when != "kept":
            return self._draw(states, rng)
        # A state may stand in the list twice, and is drawn once.
        new = {n: s for n, s in zip(numbers, states, strict=True) if n not in self.kept}
        self.kept.update(zip(new, self._draw(list(new.values()), rng), strict=True))
        return [self.kept[number] for number in numbers]

    def _draw(self, states: Sequence[State], rng: np.random.Generator) -> list[Proposal]:
        """Draw candidates, and count the draws that named no action."""
        proposals = self.prior.propose(states, self.k, rng) if states else []
        self.fallbacks += [proposal.fallbacks for proposal in proposals]
        return proposals

    def begin_drawing(self, states: Sequence[State], rng: np.random.Generator, *, in_thread: bool) -> Drawing:
        """Begin to draw the candidates of states that streams have reached.

        The draws have a generator of their own, so that what ``rng`` gives meanwhile does not depend on them.
        """
        numbers = self.features.number(states)
        new = list(zip(numbers, states, strict=True))
        if self.when == "kept":
            new = list({n: (n, s) for n, s in new if n not in self.kept}.values())
        asked = [state for _, state in new]
        own_rng = np.random.default_rng(rng.integers(2**63))

        def draw() -> list[Proposal]:
            return self.prior.propose(asked, self.k, own_rng) if asked else []

        return Drawing(numbers, [number for number, _ in new], Ahead(draw, in_thread=in_thread))

    def end_drawing(self, drawing: Drawing) -> list[Arrival]:
        """Wait for candidates that were asked for ahead; return the arrivals in the states."""
        proposals = drawing.proposals.result()
        self.fallbacks += [proposal.fallbacks for proposal in proposals]
        if self.when == "kept":
            self.kept.update(zip(drawing.new, proposals, strict=True))
            proposals = [self.kept[number] for number in drawing.numbers]
        return [Arrival(*pair) for pair in zip(drawing.numbers, proposals, strict=True)]

    def for_update(self, numbers: IntArray, rng: np.random.Generator) -> list[IntArray]:
        """Return candidates of states that were visited before: those kept, or new draws."""
        if self.when == "kept":
            return [self.kept[number].indices for number in numbers]
        states = [self.features.states[number] for number in numbers]
        return [proposal.indices for proposal in self.prior.propose(states, self.k, rng)]

    def peek(self, states: Sequence[State], rng: np.random.Generator) -> list[Proposal]:
        """Return candidates of any states without storing them: those kept, or new draws."""
        known: list[Proposal | None] = [None] * len(states)
        if self.when == "kept":
            known = [self.kept.get(self.features.find(state)) for state in states]
        new = [state for state, proposal in zip(states, known, strict=True) if proposal is None]
        proposals = iter(self.prior.propose(new, self.k, rng) if new else ())
        return [next(proposals) if proposal is None else proposal for proposal in known]

    def numbers(self) -> set[int]:
        """Return the numbers of the states that must not be forgotten."""
        numbers = {arrival.state for arrival in self.pending.values()}
        hands_over_by_answers = isinstance(self.prior, HandOver) and not self.prior.knows_distribution
        if self.k is not None or hands_over_by_answers:
            # A state that comes again would be drawn again, and have other candidates.
            numbers |= self.kept.keys()
        return numbers

    def keep(self, numbers: set[int]) -> None:
        """Forget the proposals of all states but those with these numbers."""
        self.kept = {number: proposal for number, proposal in self.kept.items() if number in numbers}

    def state_dict(self) -> dict[str, Any]:
        """Return the state, except that of prior and features, by the names in all checkpoints."""
        return {
            "kept": [(n, p.indices.tolist(), p.weights.tolist()) for n, p in self.kept.items()],
            "here": [(s, n, p.indices.tolist(), p.weights.tolist()) for s, (n, p) in self.pending.items()],
            "fallbacks": list(self.fallbacks),
        }

    def load_state_dict(self, state: Mapping[str, Any], same_prior: bool) -> None:
        """Restore a state; proposals of another prior are dropped."""
        self.kept = {}
        if same_prior:
            self.kept = {n: Proposal(np.array(i), np.array(w)) for n, i, w in state["kept"]}
        self.pending = {s: Arrival(n, Proposal(np.array(i), np.array(w))) for s, n, i, w in state["here"]}
        self.fallbacks = list(state["fallbacks"])


# ---- the row ----------------------------------------------------------------------------------------------

YAN = "Yan et al., Efficient Reinforcement Learning with Large Language Model Priors, ICLR 2025"
PRIOR: Mapping[str, Any] = {
    "paper": YAN,
    "leaf": "LLM4RL / policy",
    "models": {"lm": PROPOSES, **ENCODER},
    "lm": "minilm",
    "roles": ("action prior",),
    "control": "random k",
    "changeable": ("k", "proposals", "prior", "alpha"),
}
"""Entries that the :class:`~hunch.methods.method.Method` of each method with a prior and a Q shares."""

METHOD = Method(
    "dqn-prior",
    DQNPrior,
    "Q-learning restricted to k actions that a language model proposes",
    **PRIOR,
)
