"""DQN-Prior with the protocol of the authors' code, which has one script for ALFWorld and one for kitchens.

It differs from :mod:`hunch.methods.prior.dqn_prior`::

    act epsilon-greedily over C^k(s); in the kitchens randomly with epsilon, else by the posterior
    at the end of an episode: store it if it was solved, or if the failures that were stored before exceed the
        successes by at most 100 (kitchens: in any case)
    every 10 episodes (kitchens: 5)
        4 passes over the replay buffer (kitchens: 40 updates), on the sum of the squared errors, with AdamW
        and clipped gradients; the target is copied every 20 updates (kitchens: moves by 0.005)

Source: the code released with Yan et al., "Efficient Reinforcement Learning with Large Language Model
Priors", ICLR 2025; for the kitchens it is the script for Salad. Differences that are not settings of an agent
are listed in ``docs/methods/dqn_prior.md``. Its baseline without a prior is ``--lm uniform --k None
--no-mixed --copies 2 --surplus 1000000000``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from hunch.core import FloatArray, Transition, World
from hunch.methods.method import Method
from hunch.methods.prior.dqn_prior import PRIOR, Candidates, DQNPrior, choose
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import ActionPrior, Proposal
from hunch.roles.prior.kinds import PriorConfig

if TYPE_CHECKING:
    from hunch.rl.q_learning import QLearner, Row

ALL: Final = 1_000_000_000
"""A surplus that no run has: every failed episode is stored."""
SCRIPTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "alfworld": {"mixed": False, "round": 10, "round_updates": 0, "surplus": 100},
    "kitchens": {"mixed": True, "round": 5, "round_updates": 40, "surplus": ALL},
}
"""Settings that follow from the choice of a script, where the user sets no other value."""


RANDOM: Final = 0.2
"""Share of random candidates (authors' code)."""


@dataclass(frozen=True, kw_only=True)
class DQNPriorReleasedConfig:
    """Settings of DQN-Prior as in the authors' code."""

    script: Literal["alfworld", "kitchens"] = "alfworld"
    """Script of the authors' code whose protocol is followed."""
    mixed: bool | None = None
    """Draw non-random actions from the posterior, instead of taking the candidate with the largest Q.
    Default: on for kitchens, off for alfworld."""
    round: PositiveInt | None = None
    """Episodes between two series of updates. Default: 10 for alfworld, 5 for kitchens."""
    round_updates: NonNegativeInt | None = None
    """Updates per round; 0 for four passes over the replay buffer. Default: alfworld 0, kitchens 40."""
    surplus: NonNegativeInt | None = None
    """Store a failed episode only while stored failures exceed successes by at most this number. Default: 100
    for alfworld, no limit for kitchens."""
    copies: PositiveInt = 1
    """How often a failed episode is stored in the replay buffer (authors' baseline without a prior: 2)."""
    k: PositiveInt | None = 5
    """Proposals per state (paper: 5); none for all actions with a positive probability under the prior."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""
    alpha: PositiveFloat = 0.1
    """Temperature of the posterior softmax(Q / alpha), used with --mixed (authors' code)."""
    joint: bool = True
    """Embed state and action as one text; this needs one model call per pair."""
    encoder: str = "minilm"
    """Frozen text encoder for Q, given by its spec (paper: BERT)."""
    gamma: Share = 0.99
    """Discount per step (authors' code)."""
    learning_rate: PositiveFloat = 5e-4
    """Learning rate of AdamW (paper)."""
    batch_size: PositiveInt = 128
    """Transitions per update (paper)."""
    hidden: PositiveInt = 64
    """Width of the three-layer perceptron (authors' code)."""


class DQNPriorReleased(DQNPrior):
    """The agent of this protocol; arguments as for :class:`~hunch.methods.prior.dqn_prior.DQNPrior`."""

    config_class: ClassVar[type[Any]] = DQNPriorReleasedConfig
    playing_alpha = 0.0  # an evaluation takes the best candidate

    def __init__(
        self,
        prior: ActionPrior,
        encoder: TextTable | None = None,
        config: DQNPriorReleasedConfig | None = None,
        **options: Any,
    ) -> None:
        config = configure(type(self), config, options)
        script = SCRIPTS[config.script]
        unset = {name: value for name, value in script.items() if getattr(config, name) is None}
        self.hold(prior, encoder, replace(config, **unset))

    def begin(self, world: World, seed: int) -> None:
        """Start with new weights, and no finished episodes."""
        self.held: dict[int, list[Row]] = {}  # by stream: steps of an episode that may not be stored
        self.failures = 0  # those that were stored
        self.successes = 0
        self.episodes = 0
        self.owed = 0  # updates, see due
        super().begin(world, seed)

    def new_candidates(self) -> Candidates:
        """Return the candidate sets C^k(s), which are drawn on arrival."""
        return Candidates(self.prior, self.features, self.config.k, "visited")

    def new_learner(self, seed: int, recorded: int) -> QLearner:
        """Return a Q-learner with AdamW on summed errors; for ALFWorld its target is copied at intervals."""
        from torch.optim import AdamW

        from hunch.rl.q_learning import QLearner  # loads torch

        c = self.config
        learner = QLearner(
            self.features,
            seed,
            hidden=c.hidden,
            learning_rate=c.learning_rate,
            gamma=c.gamma,
            max_norm=0.5,  # of half the sum of the squares, where the release limits that of the sum to 1
            k=self.proposals.stored,
            data=recorded,
        )
        learner.reduction = "sum"
        learner.optimiser = AdamW(learner.network.parameters(), lr=c.learning_rate, foreach=True)
        if c.script == "alfworld":
            learner.target_rate = 1.0
            learner.target_every = 20
        return learner

    def explore(self, proposal: Proposal, q: FloatArray) -> int:
        """Take a random candidate with probability epsilon, else draw from the posterior or take the best."""
        if self.rng.random() < RANDOM:
            return int(self.rng.choice(proposal.indices))
        return choose(proposal, q, self.config.alpha if self.config.mixed else 0.0, self.rng)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Hold the steps back until their episode ends; then store it, unless too many have failed."""
        self.steps += len(transitions)
        for t, row in zip(transitions, self.rows(transitions), strict=True):
            self.held.setdefault(t.stream, []).append(row)
            if t.done:
                self._end(t)
        self.forget_states()

    def needed_states(self) -> set[int]:
        """Return the numbers of the states that DQN-Prior needs, and of the steps that are held back."""
        held: set[int] = set()
        for rows in self.held.values():
            for state, _action, next_state, *_rest in rows:
                held |= {state, next_state}
        return super().needed_states() | held

    def _end(self, last: Transition) -> None:
        """Store a finished episode, or not, and count the updates of a round if one is complete."""
        c = self.config
        rows = self.held.pop(last.stream, [])
        if last.success:
            self.successes += 1
        elif self.failures <= self.successes + c.surplus:
            # Only stored failures count: after many failures, each success lets one more in.
            self.failures += 1
            rows = rows * c.copies
        else:
            rows = []
        for row in rows:
            self.learner.replay.add(row)
        self.episodes += 1
        if self.episodes % c.round == 0:
            self.owed += c.round_updates or 4 * len(self.learner.replay) // c.batch_size

    @property
    def due(self) -> int:
        """Number of updates that should have been made after all rounds so far."""
        return self.owed

    def state_dict(self) -> dict[str, Any]:
        """Return the state of DQN-Prior, with unfinished episodes and counters."""
        held = [(stream, [list(row) for row in rows]) for stream, rows in self.held.items()]
        counters = [self.failures, self.successes, self.owed, self.episodes]
        return {**super().state_dict(), "held": held, "counters": counters}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.held = {stream: [tuple(row) for row in rows] for stream, rows in state["held"]}
        counters = state["counters"]
        if len(counters) == 3:  # a checkpoint of before, which counted all failures, stored or not
            failures, successes, owed = counters
            stored = min(failures, successes + self.config.surplus)  # as many as may have been stored
            counters = [stored, successes, owed, failures + successes]
        self.failures, self.successes, self.owed, self.episodes = counters


METHOD = Method(
    "dqn-prior-released",
    DQNPriorReleased,
    "dqn-prior by the protocol of the authors' code, for ALFWorld or for the kitchens",
    **{**PRIOR, "changeable": ("k", "prior", "alpha")},
)
