"""The agent whose policy is trained by policy gradients: the loop of PPO, and of GLAM and its variants.

Algorithm (Schulman et al., "Proximal Policy Optimization Algorithms", 2017)::

    every horizon steps of each stream
        A       <- advantages by GAE from rewards and V
        repeat epochs times, batch by batch
            ratio  <- pi(a|s) / pi_old(a|s)
            ascend on  min(ratio A, clip(ratio) A) + entropy - value error - kl KL(pi(.|s) || prior(.|s))

The update is in :mod:`hunch.rl.policy_gradient`. The policy is a role (:mod:`hunch.roles.policy`): in
:mod:`hunch.methods.policy.ppo` two perceptrons on frozen embeddings, and in :mod:`hunch.methods.policy.glam`
and its variants a language model. Everything else, including randomness, is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from hunch.core import Agent, Explanation, FloatArray, Memoryless, Player, State, Transition, World
from hunch.methods.policy.kept import Kept
from hunch.methods.settings import configure
from hunch.rl.policy import Decision, Part, Step, TrainablePolicy, cut, fitting
from hunch.rl.settings import UpdateConfig

if TYPE_CHECKING:
    from hunch.rl.policy_gradient import PolicyGradient

View: TypeAlias = Callable[[Sequence[State]], list[State]]
LISTED: Final[Mapping[str, Any]] = {
    **{"advantage": "gae", "unit": "token", "whiten": True, "clip_high": None},
    **{"clip_value": True, "max_norm": 0.5, "anneal": False, "kl_in": "loss", "kl_aim": 0.0},
}
"""Settings that PPO over listed actions fixes."""
TOGETHER: Final[Mapping[str, Any]] = {
    **{"separate": False, "warmup": 0, "value_batch_size": 128, "value_rate": 0.0, "target_kl": 0.0}
}
"""Settings that are fixed in methods which learn values and actions in one update."""
UNPULLED: Final[Mapping[str, Any]] = {"kl": 0.0, "kl_end": None}  # of a method without a prior


class PolicyAgent(Agent):
    """An agent whose policy is trained by PPO; a subclass provides the policy.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = UpdateConfig
    parts: ClassVar[tuple[Part, ...]] = ("both",)
    """Parts of the policy that an update trains, in this order."""
    saved: ClassVar[tuple[str, ...]] = ("learner", "rng", "steps", "kept")
    recorded: ClassVar[bool] = False
    """True if steps store their log-probabilities, because the policy may change before their update."""
    policy: TrainablePolicy

    def __init__(self, config: Any = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)

    def make_policy(self, seed: int) -> TrainablePolicy:
        """Make the untrained policy."""
        raise NotImplementedError

    def make_learner(self) -> PolicyGradient:
        """Make the update of the policy."""
        from hunch.rl.policy_gradient import PolicyGradient  # loads torch

        return PolicyGradient(self.policy, self.config)

    def make_memory(self) -> Any:
        """Make the memory of the steps since the last update."""
        return Kept()

    def view(self, states: Sequence[State]) -> list[State]:
        """Return states as the policy sees them."""
        return list(states)

    def viewer(self, seed: int) -> View:
        """Return a function like :meth:`view` for a player with this seed; it does not change the agent."""
        return list

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained policy; recorded data are ignored."""
        self.rng = np.random.default_rng(seed)
        self.policy = self.make_policy(seed)
        self.learner = self.make_learner()
        self.kept = self.make_memory()
        self.decided: dict[int, Decision] = {}  # by stream: what was decided last
        self.steps, self.of = 0, world.steps
        self.streams = max(1, world.streams)

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action for each state from the policy."""
        drawn = self.decide(self.view(states), self.rng)
        self.decided |= {state.stream: own for state, own in zip(states, drawn, strict=True)}
        return [own.text for own in drawn]

    def decide(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Draw decisions from the policy, one state after the other.

        Raises:
            HunchError: if memory runs out.
        """
        micro = self.config.micro
        with fitting(micro):
            return [d for few in cut(states, micro) for d in self.policy.sample(few, [rng] * len(few))]

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probabilities of each state's actions; empty arrays where any text is allowed."""
        if states[0].actions is None:
            return [np.zeros(0) for _ in states]
        policy: Any = self.policy
        return [own for few in cut(states, self.config.micro) for own in policy.probabilities(few)]

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, shape (n,)."""
        seen = self.viewer(0)(states)
        return np.concatenate([self.policy.values(few) for few in cut(seen, self.config.micro)])

    def player(self, seed: int) -> Player:
        """Return a player that draws from the same policy with a separate random generator."""
        view = self.viewer(seed)
        return Memoryless(lambda states, rng: [own.text for own in self.decide(view(states), rng)], seed)

    def explain(self, state: State) -> Explanation:
        """Explain by the policy's probabilities, with the value of the state as a note."""
        [seen] = self.viewer(0)([state])
        note = f"value {self.values([state])[0]:.3f}"
        if state.actions is None:
            return Explanation(note=note)
        shares = dict(zip(seen.options, self.probabilities([seen])[0], strict=True))
        chosen = np.array([shares.get(action, 0.0) for action in state.options])
        return Explanation({"policy": chosen}, chosen, note)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep the steps until the next update."""
        self.steps += len(transitions)
        seen = self.view([s for t in transitions for s in (t.state, t.next_state)])
        for t, state, following in zip(transitions, seen[::2], seen[1::2], strict=True):
            made = self.decided.pop(t.stream, None)
            if made is None or made.text != t.action:
                made = Decision(t.action)
            # where the policy does not change before the update, that gives the log-probabilities again
            made = made if self.recorded else made._replace(logprobs=())
            self.kept.add(Step(replace(t, state=state, next_state=following), made))

    def learn(self) -> dict[str, float]:
        """Make an update if enough steps are kept, and return its metrics."""
        streams = self.kept.streams()
        if sum(map(len, streams)) < self.config.horizon * self.streams:
            return {}
        left = 1 - (self.steps - 1) / max(1, self.of, self.steps)
        waits = self.steps <= self.config.warmup and "value" in self.parts
        told = self.learner.update(streams, self.rng, left, ("value",) if waits else self.parts)
        self.kept.clear()
        return told
