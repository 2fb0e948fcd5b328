"""Behaviour cloning over admissible actions: the policy is fitted to the recorded actions.

Algorithm (Pomerleau, "ALVINN", NeurIPS 1988; a baseline of CQL-Prior in Yan et al., ICLR 2025)::

    f(s, a)   a three-layer perceptron on frozen embeddings of state and action, the network of the Q-learners
    for each update, on a batch of recorded (s, a)
        L  <- -log pi(a|s) = log sum over all b of exp f(s, b) - f(s, a),  averaged over the batch
        descend on L
    act by softmax(f(s, .) / alpha)

Rewards are ignored. :mod:`hunch.methods.prior.bc_lm` clones with a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from hunch.core import (
    Agent,
    EvidenceLevel,
    Explanation,
    FloatArray,
    Memoryless,
    State,
    Transition,
    UsageError,
    World,
)
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure, filled, models_of
from hunch.numbers import softmax
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt
from hunch.renamed import Renamed
from hunch.roles.encoder.features import StateFeatures, TextTable

WARMUP: Final = 500
"""Environment steps before the first update, if there is an environment besides the data (ours)."""


@dataclass(frozen=True, kw_only=True)
class BCConfig(Renamed):
    """Settings of behaviour cloning."""

    renamed: ClassVar[Mapping[str, str]] = {"clip": "max_norm"}

    alpha: PositiveFloat = 1.0
    """Temperature of the cloned policy softmax(logits / alpha); 1 is the fitted policy."""
    joint: bool = False
    """Embed state and action as one text; this needs one model call per pair."""
    encoder: str = "minilm"
    """Frozen text encoder, given by its spec."""
    learning_rate: PositiveFloat = 5e-4
    """Learning rate of Adam (that of the Q-learners)."""
    max_norm: NonNegativeFloat = 0.0
    """Maximum gradient norm; larger gradients are scaled down, 0 for no limit."""
    batch_size: PositiveInt = 128
    """Recorded actions per update."""
    update_every: PositiveInt = 2
    """Environment steps per update, if there is an environment besides the data (our choice)."""
    hidden: PositiveInt = 128
    """Width of the three-layer perceptron."""


class BC(Agent):
    """The agent of behaviour cloning.

    If the world has streams besides recorded data, the agent's own steps join the data.

    Args:
        encoder: Embeds texts; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = BCConfig
    saved = ("network", "optimiser", "features", "rng", "examples", "steps", "updates")

    def __init__(
        self, encoder: TextTable | None = None, config: BCConfig | None = None, **options: Any
    ) -> None:
        self.config: BCConfig = configure(type(self), config, options)
        self.table = filled(TextTable(load(self.config.encoder)) if encoder is None else encoder, "encode")
        self.models = models_of(encoder=self.table)

    @classmethod
    def build(cls, config: BCConfig, models: Mapping[str, LanguageModel]) -> BC:
        """Make the agent; the model ``encoder`` embeds texts."""
        return cls(TextTable(models["encoder"]), config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """None: the frozen encoder fills no role."""
        return None

    def begin(self, world: World, seed: int) -> None:
        """Start with new weights, and only recorded data."""
        import torch  # not needed to list methods

        from hunch.rl.q_learning import QNetwork  # loads torch

        c = self.config
        self.offline = world.streams == 0
        self.rng = np.random.default_rng(seed)
        self.features = StateFeatures(self.table, joint=c.joint)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = QNetwork(self.features.state_dim, self.features.action_dim, c.hidden)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=c.learning_rate, foreach=True)
        self.examples: list[tuple[int, int]] = []  # recorded: number of the state, index of the action
        self.updates = 0
        self.steps = 0
        self.remember([transition for episode in world.data for transition in episode])

    # ---- acting -------------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action from the cloned policy in each state."""
        return self.draw(states, self.rng)

    def draw(self, states: Sequence[State], rng: np.random.Generator) -> list[str]:
        """Draw an action from the cloned policy in each state, with this random generator."""
        actions = []
        for state, logits in zip(states, self.logits(states), strict=True):
            policy = softmax(logits / self.config.alpha)
            actions.append(state.options[int(rng.choice(len(policy), p=policy))])
        return actions

    def logits(self, states: Sequence[State]) -> list[FloatArray]:
        """Return f(s, a) of all actions of each state, shape (actions,)."""
        import torch

        from hunch.rl.q_learning import forward  # loads torch

        if not states:
            return []
        features = self.features.copy()
        every = [np.arange(len(state.options)) for state in states]
        with torch.no_grad():
            flat = forward(self.network, features, np.array(features.number(states)), every)
        ends = np.cumsum([len(actions) for actions in every])
        return np.split(flat.numpy().astype(np.float64), ends[:-1])

    # ---- learning -----------------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Store the states and the actions taken there."""
        self.steps += len(transitions)
        self.remember(transitions)

    def remember(self, transitions: Sequence[Transition]) -> None:
        """Store examples of what is to be cloned."""
        numbers = self.features.number([t.state for t in transitions])
        for number, t in zip(numbers, transitions, strict=True):
            self.examples.append((number, t.state.options.index(t.action)))

    def learn(self) -> dict[str, float]:
        """Make the updates that are due, or one update if there are only recorded data; return metrics."""
        due = self.updates + 1
        if not self.offline:
            due = max(0, self.steps - WARMUP) // self.config.update_every
        losses = []
        while self.updates < due and self.examples:
            losses.append(self.update())
        return {"loss": float(np.mean(losses))} if losses else {}

    def update(self) -> float:
        """Make one gradient step on a random batch, and return the loss."""
        import torch

        from hunch.rl.q_learning import forward  # loads torch

        drawn = self.rng.integers(len(self.examples), size=self.config.batch_size)
        states = np.array([self.examples[i][0] for i in drawn])  # (batch,)
        actions = np.array([self.examples[i][1] for i in drawn])  # (batch,)

        # f(s, a) of the recorded action.
        recorded = forward(self.network, self.features, states, actions[:, None])  # (batch,)

        # f(s, b) of all admissible actions, padded with -inf, which adds nothing to the sum.
        every = [np.arange(len(self.features.states[number].options)) for number in states]
        counts = torch.tensor([len(actions_here) for actions_here in every])  # (batch,)
        mask = torch.arange(int(counts.max())) < counts[:, None]  # (batch, most actions)
        flat = forward(self.network, self.features, states, every)  # (sum of counts,)
        logits = torch.full(mask.shape, -torch.inf).masked_scatter(mask, flat)  # (batch, most actions)

        # L = mean of log sum over b of exp f(s, b) - f(s, a)
        loss = (torch.logsumexp(logits, dim=1) - recorded).mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.config.max_norm:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_norm)
        self.optimiser.step()
        self.updates += 1
        return float(loss.detach())

    # ---- evaluating, explaining, saving -------------------------------------------------------------------

    def player(self, seed: int) -> Memoryless:
        """Return a player that draws from the cloned policy with a separate random generator."""
        return Memoryless(self.draw, seed)

    def explain(self, state: State) -> Explanation:
        """Return the logit and the probability of each action."""
        (logits,) = self.logits([state])
        return Explanation({"logit": logits}, softmax(logits / self.config.alpha))

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes in ``saved``, and the name of the encoder."""
        return {**super().state_dict(), "encoder": self.table.lm.name}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`.

        Raises:
            UsageError: if the network is for another encoder or size; the agent is then left unchanged.
        """
        stored = {name: weights.shape for name, weights in state["network"].items()}
        expected = {name: weights.shape for name, weights in self.network.state_dict().items()}
        if state["encoder"] != self.table.lm.name or stored != expected:
            raise UsageError(
                f"The checkpoint's policy was trained on embeddings of {state['encoder']}; it cannot be used "
                f"with those of {self.table.lm.name}, another size of network or another form of input."
            )
        super().load_state_dict(state)
        self.examples = [(number, action) for number, action in self.examples]  # JSON makes them lists


METHOD = Method(
    "bc",
    BC,
    "behaviour cloning: take the recorded actions",
    "Pomerleau, ALVINN, NeurIPS 1988",
    models=ENCODER,
    data="needed",
    changeable=("alpha",),
)
