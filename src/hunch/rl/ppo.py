"""Proximal policy optimisation over admissible actions.

Each state has its own list of actions, and a policy returns their log-probabilities. The clipped surrogate is
from Schulman et al., "Proximal Policy Optimization Algorithms" (2017), the advantages from Schulman
et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (ICLR 2016), and the
details from CleanRL's ``ppo.py`` (Huang et al., JMLR 2022). A policy may be pulled towards a prior
(Yan et al., ICLR 2025), and learn its values separately from its actions (TWOSOME, ICLR 2024).

The policy that acted is still the current one before an update, so its log-probabilities are computed here,
from the transitions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import FloatArray, HunchError, IntArray, State, Transition
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share

Part: TypeAlias = Literal["both", "policy", "value"]
ROUNDING: Final = 1e-6
"""Deviation of advantages, as a share of the largest, below which they are equal up to rounding."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Proximal policy optimisation."""

    gamma: Share = 0.99
    """Discount per step (CleanRL)."""
    gae: Share = 0.95
    """Lambda of generalised advantage estimation (CleanRL)."""
    horizon: PositiveInt = 128
    """Steps per stream between updates (CleanRL)."""
    epochs: PositiveInt = 4
    """Passes over these steps per update (CleanRL)."""
    batch_size: PositiveInt = 128
    """Steps per gradient step (CleanRL: a quarter of the steps of an update)."""
    micro: PositiveInt = 128
    """Steps computed at once; gradients are accumulated over a batch, which may be larger than memory
    allows."""
    learning_rate: PositiveFloat = 2.5e-4
    """Adam learning rate (CleanRL)."""
    value_rate: NonNegativeFloat = 0.0
    """Adam learning rate of the value's own weights; 0 for the same rate."""
    anneal: bool = False
    """Decrease the learning rates linearly to 0 over the run (CleanRL: yes)."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability (CleanRL)."""
    clip_value: bool = True
    """Also clip the change of the value by this range (CleanRL)."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value (CleanRL)."""
    entropy: NonNegativeFloat = 0.01
    """Weight of the policy's entropy (CleanRL)."""
    kl: NonNegativeFloat = 0.0
    """Weight of KL(policy || prior), if there is a prior."""
    kl_end: NonNegativeFloat | None = None
    """Value to which ``kl`` falls linearly over the run; none keeps it constant."""
    target_kl: NonNegativeFloat = 0.0
    """Stop an update once the KL divergence from the old policy exceeds this; 0 for never."""
    max_norm: PositiveFloat = 0.5
    """Maximum gradient norm; larger gradients are scaled down (CleanRL)."""
    scale: PositiveFloat = 1.0
    """Factor applied to rewards."""
    separate: bool = False
    """Learn values first and then actions, in separate batches, instead of both at once."""
    value_batch_size: PositiveInt = 128
    """separate: steps per gradient step of the value."""
    warmup: NonNegativeInt = 0
    """separate: environment steps during which only values are learnt."""


class TrainablePolicy(Protocol):
    """A policy that acts and is trained. Log-probabilities are padded with -inf, whose gradient is 0."""

    def both(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of actions, shape (n, max. actions), and values, shape (n,)."""
        ...

    def logprobs(self, states: Sequence[State]) -> Tensor:
        """Return the log-probabilities of :meth:`both`."""
        ...

    def values(self, states: Sequence[State]) -> Tensor:
        """Return the values of :meth:`both`."""
        ...

    def parameters(self) -> Mapping[str, list[nn.Parameter]]:
        """Return the trained weights: those of the ``policy``, and those of the ``value`` only."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the trained weights, to be saved."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        ...


Prior: TypeAlias = Callable[[Sequence[State]], Tensor]
"""Log-probabilities of the actions of some states, padded with -inf; shape (n, max. actions). A
row of padding alone leaves its state unregularised."""


class Batch(NamedTuple):
    """The steps of an update, one stream after the other; all except the states have shape (n,)."""

    states: list[State]
    actions: Tensor
    logprobs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor


class PPOLearner:
    """A policy, its optimiser, and the update.

    Args:
        policy: The policy to train.
        config: All settings.
        prior: Log-probabilities towards which the policy is pulled, if ``config.kl`` is above 0.
    """

    def __init__(self, policy: TrainablePolicy, config: PPOConfig, prior: Prior | None = None) -> None:
        self.policy, self.config, self.prior, self.updates = policy, config, prior, 0
        self.pull = config.kl
        own = [(name, weights) for name, weights in policy.parameters().items() if weights]
        self.weights = [weight for _, weights in own for weight in weights]
        self.rates = [config.value_rate * (name == "value") or config.learning_rate for name, _ in own]
        groups = [{"params": weights, "lr": r} for (_, weights), r in zip(own, self.rates, strict=True)]
        self.optimiser = torch.optim.Adam(groups, eps=1e-5, foreach=True)

    def update(
        self,
        streams: Sequence[Sequence[Transition]],
        rng: np.random.Generator,
        left: float = 1.0,
        parts: Sequence[Part] = ("both",),
    ) -> dict[str, float]:
        """Learn from the steps since the last update, and return the metrics to log.

        Args:
            streams: Consecutive steps of each stream, across ends of episodes.
            rng: Random generator for the order of steps.
            left: Share of the run that is left, for ``anneal`` and ``kl_end``.
            parts: Parts to learn, one after the other in each epoch.

        Raises:
            HunchError: if a gradient, or an output after the update, is not finite, or memory runs out.
        """
        c = self.config
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * left if c.anneal else rate
        self.pull = c.kl if c.kl_end is None else c.kl_end + (c.kl - c.kl_end) * left
        self.updates += 1
        with fitting(c.micro):
            batch = self.collect(streams)
            told = _mean(list(self._steps(batch, rng, parts)))
            self._check(batch.states[: c.micro])
        return told

    def _steps(
        self, batch: Batch, rng: np.random.Generator, parts: Sequence[Part]
    ) -> Iterator[dict[str, float]]:
        """Make the gradient steps of an update, until the policy is too far from the old one."""
        c = self.config
        for part in [*parts] * c.epochs:
            size = c.value_batch_size if part == "value" else c.batch_size
            for rows in cut(rng.permutation(len(batch.states)), size):
                yield (told := self._step(batch, rows, part))
                if c.target_kl and told.get("moved", 0.0) > c.target_kl:
                    return

    @torch.no_grad()
    def _check(self, states: Sequence[State]) -> None:
        """Refuse a policy without finite outputs, before it acts and before a checkpoint holds it."""
        logprobs, values = self.policy.both(states)
        if logprobs.isnan().any() or not values.isfinite().all():
            raise HunchError(_INFINITE)

    def _step(self, batch: Batch, rows: IntArray, part: Part) -> dict[str, float]:
        """Make one gradient step with the mean gradient over some rows."""
        c, told = self.config, list[dict[str, float]]()
        self.optimiser.zero_grad()
        advantages = standardised(batch.advantages[rows])
        for few, gained in zip(cut(rows, c.micro), cut(advantages, c.micro), strict=True):
            loss, figures = self._loss(batch, few, gained, part)
            (loss * (len(few) / len(rows))).backward()  # type: ignore[no-untyped-call]
            told.append(figures)
        if not torch.isfinite(nn.utils.clip_grad_norm_(self.weights, c.max_norm)):
            raise HunchError(_INFINITE)
        self.optimiser.step()
        return _mean(told)

    def _loss(
        self, batch: Batch, rows: IntArray, advantages: Tensor, part: Part
    ) -> tuple[Tensor, dict[str, float]]:
        c, states = self.config, [batch.states[i] for i in rows]
        if part == "value":  # learnt separately, so the loss needs no weight
            return self._value_loss(batch, rows, self.policy.values(states))
        if part == "policy":
            return self._policy_loss(batch, rows, advantages, self.policy.logprobs(states))
        logprobs, values = self.policy.both(states)
        acting, told = self._policy_loss(batch, rows, advantages, logprobs)
        judging, also = self._value_loss(batch, rows, values)
        return acting + c.value * judging, told | also

    def _policy_loss(
        self, batch: Batch, rows: IntArray, advantages: Tensor, logprobs: Tensor
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the clipped surrogate minus entropy plus the distance from the prior."""
        c, shares = self.config, logprobs.exp()
        moved = logprobs.gather(1, batch.actions[rows, None])[:, 0] - batch.logprobs[rows]
        ratio = moved.exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(1 - c.clip, 1 + c.clip) * advantages)
        known = logprobs.masked_fill(logprobs == -torch.inf, 0.0)  # so that padding counts 0 instead of nan
        entropy = -(shares * known).sum(1).mean()
        loss = -gain.mean() - c.entropy * entropy
        told = {"entropy": entropy, "moved": (ratio - 1 - moved).mean()}
        if self.prior and self.pull:
            expected = self.prior([batch.states[i] for i in rows]).to(known)
            given = (expected > -torch.inf).any(1)
            expected = expected.masked_fill(expected == -torch.inf, 0.0)
            told["prior_kl"] = ((shares * (known - expected)).sum(1) * given).mean()
            loss = loss + self.pull * told["prior_kl"]
        return loss, {name: float(figure.detach()) for name, figure in told.items()}

    def _value_loss(self, batch: Batch, rows: IntArray, values: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Return half the squared error of the clipped value."""
        c, before, returns = self.config, batch.values[rows], batch.returns[rows]
        error = (values - returns) ** 2
        if c.clip_value:
            near = before + (values - before).clamp(-c.clip, c.clip)
            error = torch.maximum(error, (near - returns) ** 2)
        loss = 0.5 * error.mean()
        return loss, {"value_loss": float(loss.detach())}

    @torch.no_grad()
    def collect(self, streams: Sequence[Sequence[Transition]]) -> Batch:
        """Return steps with the policy's outputs before the update."""
        states = [t.state for stream in streams for t in stream]
        taken = [t.state.options.index(t.action) for stream in streams for t in stream]
        known = [self.policy.both(few) for few in cut(states, self.config.micro)]
        values = torch.cat([own for _, own in known])
        actions = torch.tensor(taken, device=values.device)
        old = [
            logprobs.gather(1, few[:, None])[:, 0]
            for (logprobs, _), few in zip(known, cut(actions, self.config.micro), strict=True)
        ]
        gained = self._advantages(streams, values.double().cpu().numpy())
        advantages = torch.from_numpy(gained).to(values)
        return Batch(states, actions, torch.cat(old), values, advantages, advantages + values)

    def _advantages(self, streams: Sequence[Sequence[Transition]], values: FloatArray) -> FloatArray:
        """Return the advantages of all steps, shape (n,).

        A step is followed by the value of its next state. That is the next state of the stream, except where
        an episode was truncated or the stream continues only after the update.
        """
        c = self.config
        follows = np.append(values[1:], 0.0)
        steps = [(t, last) for stream in streams for t, last in _with_last(stream)]
        open_ = [i for i, (t, last) in enumerate(steps) if not t.terminated and (t.truncated or last)]
        for few in cut(open_, c.micro):
            found = self.policy.values([steps[i][0].next_state for i in few])
            follows[few] = found.double().cpu().numpy()
        advantages, later = np.zeros(len(values)), 0.0
        for i in range(len(values) - 1, -1, -1):
            t, last = steps[i]
            error = c.scale * t.reward + c.gamma * follows[i] * (not t.terminated) - values[i]
            advantages[i] = later = error + (0.0 if t.done or last else c.gamma * c.gae * later)
        return advantages

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser and counter."""
        own = {"policy": self.policy.state_dict(), "optimiser": self.optimiser.state_dict()}
        return {**own, "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))  # it would share the tensors
        self.updates = state["updates"]


_INFINITE = (
    "A gradient or an output of the policy is not finite, so this update was stopped; the last checkpoint is "
    "sound. A lower learning_rate, or dtype=float32 in the model's spec, may help."
)
_MEMORY = (
    "The accelerator's memory is too small for {} steps at once; the last checkpoint is sound. Use a smaller "
    "micro, or train=lora or dtype=bfloat16 in the model's spec."
)


@contextmanager
def fitting(micro: int) -> Iterator[None]:
    """Name settings that need less memory where the accelerator has too little.

    Args:
        micro: Number of steps computed at once.

    Raises:
        HunchError: in place of torch's error.
    """
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise HunchError(_MEMORY.format(micro)) from error


def cut(items: Any, size: int) -> Iterator[Any]:
    """Yield pieces of at most ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _with_last(stream: Sequence[Transition]) -> Iterator[tuple[Transition, bool]]:
    return ((t, i == len(stream) - 1) for i, t in enumerate(stream))


def _mean(told: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for figures in told for name in figures)
    return {name: float(np.mean([f[name] for f in told if name in f])) for name in names}


def standardised(advantages: Tensor) -> Tensor:
    """Return advantages with mean 0 and variance 1; zeros if they are equal up to rounding.

    Equal advantages differ from their mean by its rounding error alone. Divided by an equally small
    deviation, this would raise or lower the probability of every action of the batch.
    """
    spread = advantages.std(correction=0)
    if spread <= ROUNDING * advantages.abs().max():
        return torch.zeros_like(advantages)
    return (advantages - advantages.mean()) / (spread + 1e-8)
