"""PPO: proximal policy optimisation on embedded texts; the baseline and the loop of GLAM and its variants.

Algorithm (Schulman et al., "Proximal Policy Optimization Algorithms", 2017)::

    every horizon steps of each stream
        A       <- advantages by GAE from rewards and V
        repeat epochs times, batch by batch
            ratio  <- pi(a|s) / pi_old(a|s)
            ascend on  min(ratio A, clip(ratio) A) + entropy - value error - kl KL(pi(.|s) || prior(.|s))

The update is in :mod:`hunch.rl.ppo`. The policy is a role (:mod:`hunch.roles.policy`): here two perceptrons
on frozen embeddings, and in :mod:`hunch.methods.policy.glam` and its variants a language model. Everything
else, including randomness, is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch

from hunch.core import Agent, Explanation, FloatArray, State, Transition, World
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.settings import configure, filled, models_of
from hunch.ranges import PositiveInt
from hunch.rl.ppo import Part, PPOConfig, PPOLearner, TrainablePolicy, cut, fitting
from hunch.roles.encoder import TextTable
from hunch.roles.policy import PerceptronPolicy

View: TypeAlias = Callable[[Sequence[State]], list[State]]


class PolicyAgent(Agent):
    """An agent whose policy is trained by PPO; a subclass fills the policy's role.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = PPOConfig
    fixed: ClassVar[Mapping[str, Any]] = {}
    parts: ClassVar[tuple[Part, ...]] = ("both",)
    """Parts that an update learns, one after the other."""
    policy: TrainablePolicy

    def __init__(self, config: Any = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)
        self.begin(World(), 0)

    def make_policy(self, seed: int) -> TrainablePolicy:
        """Make the untrained policy."""
        raise NotImplementedError

    def view(self, states: Sequence[State]) -> list[State]:
        """Return states as the policy sees them."""
        return list(states)

    def viewer(self, seed: int) -> View:
        """Return the same for a player, without changing the agent; the seed is the player's."""
        return list

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained policy; recorded data are ignored."""
        self.rng = np.random.default_rng(seed)
        self.policy = self.make_policy(seed)
        self.learner = PPOLearner(self.policy, self.config)
        self.kept: dict[int, list[Transition]] = {}  # by stream: the steps since the last update
        self.steps, self.of = 0, world.steps
        self.streams = max(1, world.streams)

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action for each state from the policy."""
        seen = self.view(states)
        return draw(self.probabilities(seen), seen, self.rng)

    @torch.no_grad()
    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the policy's probabilities over the actions of each state.

        Raises:
            HunchError: if memory runs out.
        """
        micro, found = self.config.micro, list[FloatArray]()
        with fitting(micro):
            for few in cut(states, micro):
                shares = self.policy.logprobs(few).double().exp().cpu().numpy()
                found += [row[: len(s.options)] / row.sum() for row, s in zip(shares, few, strict=True)]
        return found

    def player(self, seed: int) -> PolicyPlayer:
        """Return a player that draws from the same policy."""
        return PolicyPlayer(self, seed)

    def explain(self, state: State) -> Explanation:
        """Return the policy, with the value of the state as a note."""
        [seen] = self.viewer(0)([state])
        shares = dict(zip(seen.options, self.probabilities([seen])[0], strict=True))
        with torch.no_grad():
            value = float(self.policy.values([seen])[0])
        chosen = np.array([shares.get(action, 0.0) for action in state.options])
        return Explanation({"policy": chosen}, chosen, f"value {value:.3f}")

    # ---- learning -----------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep the steps until the next update."""
        self.steps += len(transitions)
        seen = self.view([s for t in transitions for s in (t.state, t.next_state)])
        for t, state, following in zip(transitions, seen[::2], seen[1::2], strict=True):
            own = self.kept.setdefault(t.stream, [])
            own.append(replace(t, state=state, next_state=following))

    def learn(self) -> dict[str, float]:
        """Make the update if one is due."""
        if sum(map(len, self.kept.values())) < self.config.horizon * self.streams:
            return {}
        left = 1 - (self.steps - 1) / max(1, self.of, self.steps)
        waits = self.steps <= self.config.warmup and "value" in self.parts
        streams = [self.kept[stream] for stream in sorted(self.kept)]
        told = self.learner.update(streams, self.rng, left, ("value",) if waits else self.parts)
        self.kept.clear()
        return told

    # ---- state --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimiser, random state, and the steps since the last update."""
        kept = [(stream, [_plain(t) for t in own]) for stream, own in self.kept.items()]
        rng = self.rng.bit_generator.state
        return {"learner": self.learner.state_dict(), "rng": rng, "steps": self.steps, "kept": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.learner.load_state_dict(state["learner"])
        self.rng.bit_generator.state = state["rng"]
        self.steps = state["steps"]
        self.kept = {stream: [_transition(stream, t) for t in own] for stream, own in state["kept"]}


class PolicyPlayer:
    """Draws from an agent's policy, and remembers nothing."""

    def __init__(self, agent: PolicyAgent, seed: int) -> None:
        self.agent, self.view, self.rng = agent, agent.viewer(seed), np.random.default_rng(seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action in each state."""
        seen = self.view(states)
        return draw(self.agent.probabilities(seen), seen, self.rng)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: it has no memory."""


def draw(shares: Sequence[FloatArray], states: Sequence[State], rng: np.random.Generator) -> list[str]:
    """Draw an action for each state."""
    return [s.options[int(rng.choice(len(own), p=own))] for own, s in zip(shares, states, strict=True)]


def told(state: State) -> tuple[Any, ...]:
    """Return a state as plain values, without its raw part."""
    return (state.observation, state.task, state.actions, state.history)


def read(values: Sequence[Any], stream: int = 0) -> State:
    """Make a state from the result of :func:`told`."""
    text, task, actions, history = values
    return State(text, task, tuple(actions), tuple(map(tuple, history)), stream=stream)


def _plain(t: Transition) -> tuple[Any, ...]:
    return (told(t.state), t.action, t.reward, told(t.next_state), t.terminated, t.truncated)


def _transition(stream: int, values: Sequence[Any]) -> Transition:
    state, action, reward, following, terminated, truncated = values
    return Transition(read(state, stream), action, reward, read(following, stream), terminated, truncated)


@dataclass(frozen=True, kw_only=True)
class PerceptronPPOConfig(PPOConfig):
    """PPO on embedded texts."""

    hidden: PositiveInt = 64
    """Width of the perceptrons (CleanRL)."""
    encoder: str = "phrases"
    """Frozen text encoder."""
    standardise: bool = True
    """Standardise the embeddings of states by their running mean and standard deviation (our choice)."""


class PPO(PolicyAgent):
    """PPO with perceptrons on embedded texts.

    Args:
        encoder: Embeds texts; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.
    """

    config_class = PerceptronPPOConfig
    policy: PerceptronPolicy
    fixed: ClassVar[Mapping[str, Any]] = {"separate": False, "kl": 0.0, "kl_end": None, "warmup": 0}

    def __init__(
        self, encoder: TextTable | None = None, config: PerceptronPPOConfig | None = None, **options: Any
    ) -> None:
        own = configure(type(self), config, options)
        self.table = filled(TextTable(load(own.encoder)) if encoder is None else encoder, "encode")
        self.models = models_of(encoder=self.table)
        super().__init__(own)

    def make_policy(self, seed: int) -> PerceptronPolicy:
        """Make perceptrons on embeddings."""
        return PerceptronPolicy(self.table, self.config.hidden, seed)

    def learn(self) -> dict[str, float]:
        """Make the update if one is due; its states then enter the running mean and standard deviation."""
        states = [t.state for own in self.kept.values() for t in own]
        told = super().learn()
        if told and self.config.standardise:
            self.policy.see(states)
        return told


def build(agent: type[PPO], config: PerceptronPPOConfig, models: Mapping[str, LanguageModel]) -> PPO:
    """Embed with the model ``encoder``."""
    return agent(TextTable(models["encoder"]), config)
