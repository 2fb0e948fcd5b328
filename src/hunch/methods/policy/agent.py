"""The agent whose policy chooses from a list and is trained by PPO: the loop of PPO, GLAM and its variants.

Algorithm (Schulman et al., "Proximal Policy Optimization Algorithms", 2017)::

    every horizon steps of each stream
        delta_t <- r_t + gamma V(s_t+1) - V(s_t)
        A_t     <- sum over k of (gamma lambda)^k delta_t+k;  R_t <- A_t + V(s_t)          lambda is ``gae``
        repeat epochs times, minibatch by minibatch
            rho  <- pi(a|s) / pi_old(a|s)
            descend on  - mean min(rho A, clip(rho, 1 - clip, 1 + clip) A)      A standardised per minibatch
                        + value 1/2 mean max((V - R)^2, (V clipped to V_old +- clip - R)^2)
                        - entropy mean H(pi(.|s))  [+ kl mean KL(pi(.|s) || prior(.|s))]

The update is an object of :mod:`hunch.rl.policy_gradient`, made from the settings that
:meth:`PolicyAgent.objective` returns. The policy is a role (:mod:`hunch.roles.policy`): in
:mod:`hunch.methods.policy.ppo` two perceptrons on frozen embeddings, and in :mod:`hunch.methods.policy.glam`
and its variants a language model. Everything else, including randomness, is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hunch.core import Agent, Explanation, FloatArray, Memoryless, Player, State, Transition, World
from hunch.methods.policy.kept import Kept, decisions_of, plain_decisions
from hunch.methods.settings import configure
from hunch.ranges import MEMORY, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.rl.policy import Decision, Part, Step, TrainablePolicy, cut, fitting, taken
from hunch.rl.settings import UpdateConfig

View: TypeAlias = Callable[[Sequence[State]], list[State]]


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """Settings of PPO over listed actions."""

    gamma: Share = 0.99
    """Discount per step (CleanRL)."""
    gae: Share = 0.95
    """Lambda of generalised advantage estimation (CleanRL)."""
    horizon: PositiveInt = 128
    """Steps per stream between updates (CleanRL)."""
    epochs: PositiveInt = 4
    """Passes over the collected steps per update (CleanRL)."""
    batch_size: NonNegativeInt = 128
    """Steps per gradient step (CleanRL: a quarter of the update's steps); 0 for all steps of the update. An
    update has horizon steps of each environment: with fewer than this, each epoch is one gradient step."""
    micro: PositiveInt = field(default=128, metadata=MEMORY)
    """Steps per forward and backward pass; gradients are accumulated over a batch, so batches may exceed the
    memory."""
    learning_rate: PositiveFloat = 2.5e-4
    """Adam learning rate (CleanRL)."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability, and of the change of the value (CleanRL)."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value (CleanRL)."""
    entropy: NonNegativeFloat = 0.01
    """Weight of the policy's entropy (CleanRL)."""
    scale: PositiveFloat = 1.0
    """Factor applied to rewards."""


class PolicyAgent(Agent):
    """An agent whose policy is trained by PPO.

    It has a policy (:meth:`make_policy`, which a subclass provides), an objective (:meth:`objective`), and an
    update of the policy by the objective (``learner``).

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = PolicyConfig
    saved: ClassVar[tuple[str, ...]] = ("learner", "rng", "steps", "kept")
    policy: TrainablePolicy

    def __init__(self, config: Any = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)

    def make_policy(self, seed: int) -> TrainablePolicy:
        """Make the untrained policy."""
        raise NotImplementedError

    def objective(self) -> UpdateConfig:
        """Return what an update does: the objective of PPO, and how it is optimised.

        What is left out keeps its default: no KL divergence, a constant learning rate, and no early end.
        """
        c = self.config
        return UpdateConfig(
            # A by GAE, standardised over each minibatch.
            advantage="gae",
            gamma=c.gamma,
            gae=c.gae,
            scale=c.scale,
            whiten=True,
            # The clipped surrogate, the clipped value, the entropy.
            clip=c.clip,
            clip_value=True,
            value=c.value,
            entropy=c.entropy,
            # Passes of Adam over the steps of the update.
            epochs=c.epochs,
            batch_size=c.batch_size,
            micro=c.micro,
            learning_rate=c.learning_rate,
            max_norm=0.5,
        )

    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the policy that the next update trains: here both together."""
        return ("both",)

    def view(self, states: Sequence[State]) -> list[State]:
        """Return states as the policy sees them."""
        return list(states)

    def viewer(self, seed: int) -> View:
        """Return a function like :meth:`view` for a player with this seed; it does not change the agent."""
        return list

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained policy; recorded data are ignored."""
        from hunch.rl.policy_gradient import PolicyGradient  # loads torch

        self.rng = np.random.default_rng(seed)
        self.policy = self.make_policy(seed)
        self.learner = PolicyGradient(self.policy, self.objective())
        self.kept = Kept()
        self.decided: dict[int, Decision] = {}  # by stream: the decision of a step that is not over
        self.steps = 0
        self.all_steps = world.steps
        self.streams = max(1, world.streams)

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action for each state from the policy."""
        decisions = self.decide(self.view(states), self.rng)
        for state, decision in zip(states, decisions, strict=True):
            self.decided[state.stream] = decision
        return [decision.text for decision in decisions]

    def decide(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Draw decisions from the policy, one state after the other.

        Raises:
            HunchError: if memory runs out.
        """
        micro = self.config.micro
        decisions: list[Decision] = []
        with fitting(micro, large=False):
            for few in cut(states, micro):
                decisions += self.policy.sample(few, [rng] * len(few))
        return decisions

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probabilities of each state's actions; empty arrays where any text is allowed."""
        if states[0].actions is None:
            return [np.zeros(0) for _ in states]
        policy: Any = self.policy
        return [probs for few in cut(states, self.config.micro) for probs in policy.probabilities(few)]

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, shape (n,)."""
        seen = self.viewer(0)(states)
        return np.concatenate([self.policy.values(few) for few in cut(seen, self.config.micro)])

    def player(self, seed: int) -> Player:
        """Return a player that draws from the same policy with a separate random generator."""
        view = self.viewer(seed)
        return Memoryless(
            lambda states, rng: [decision.text for decision in self.decide(view(states), rng)], seed
        )

    def explain(self, state: State) -> Explanation:
        """Explain by the policy's probabilities, with the value of the state as a note."""
        [seen] = self.viewer(0)([state])
        note = f"value {self.values([state])[0]:.3f}"
        if state.actions is None:
            return Explanation(note=note)
        probs = dict(zip(seen.options, self.probabilities([seen])[0], strict=True))
        chosen = np.array([probs.get(action, 0.0) for action in state.options])
        return Explanation({"policy": chosen}, chosen, note)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep the steps until the next update."""
        self.steps += len(transitions)
        seen = self.view([s for t in transitions for s in (t.state, t.next_state)])
        for t, state, next_state in zip(transitions, seen[::2], seen[1::2], strict=True):
            # The policy does not change before the update, which computes the log-probabilities again.
            decision = taken(self.decided, t)._replace(logprobs=())
            self.kept.add(Step(replace(t, state=state, next_state=next_state), decision))

    def learn(self) -> dict[str, float]:
        """Make an update if horizon steps of each stream are kept, and return its metrics."""
        streams = self.kept.streams()
        if sum(map(len, streams)) < self.config.horizon * self.streams:
            return {}
        # The share of the run that remained at the last step, for weights and rates that fall over a run.
        remaining = 1 - (self.steps - 1) / max(1, self.all_steps, self.steps)
        metrics = self.learner.update(streams, self.rng, remaining, self.parts())
        self.kept.clear()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes in ``saved``, and the decisions whose steps are not over."""
        return {**super().state_dict(), "decided": plain_decisions(self.decided)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.decided = decisions_of(state.get("decided", ()))  # earlier versions did not save it
