"""TRPO: the largest step of the policy that a bound on the KL divergence allows.

Algorithm (Schulman et al., "Trust Region Policy Optimization", ICML 2015)::

    g  <- gradient of the mean of  pi(a|s) / pi_old(a|s) A
    x  <- F^-1 g  by conjugate gradients, F the Fisher matrix: the curvature of KL(pi_old || pi)
    s  <- sqrt(2 step_kl / x F x) x
    for i = 0, 1, ..: accept shrink^i s if the mean above rises and the KL divergence is at most step_kl

Values are learnt afterwards. Departure: the KL divergence is estimated from the drawn tokens instead of
computed over the vocabulary, so F is the mean of the outer products of their gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from hunch.core import HunchError
from hunch.rl.advantages import standardised
from hunch.rl.policy import Part, cut
from hunch.rl.policy_gradient import Batch, PolicyGradient, estimate
from hunch.rl.settings import TrustRegionConfig


class TrustRegion(PolicyGradient):
    """The update of TRPO, which replaces the clipped gradient steps."""

    config: TrustRegionConfig

    def _steps(
        self, batch: Batch, rng: np.random.Generator, parts: Sequence[Part]
    ) -> Iterator[dict[str, float]]:
        """Make one step of the policy, then gradient steps of the value."""
        c, n = self.config, len(batch.steps)
        yield self._natural(batch)
        for _ in range(c.epochs if self.critic else 0):
            for rows in cut(rng.permutation(n), c.batch_size or n):
                yield self._step(batch, rows, "value", rng)

    def _natural(self, batch: Batch) -> dict[str, float]:
        """Step along the natural gradient as far as the divergence allows; return figures to log."""
        c, weights = self.config, self.policy.parameters()["policy"]
        pieces = self._pieces(batch)
        with sdpa_kernel(SDPBackend.MATH):  # the others have no second derivative
            found = [self._measured(batch, rows) for rows in pieces]
            slope = sum_of(gradient(own[0], weights, retain_graph=True) for own in found)
            curves = [gradient(own[1], weights, create_graph=True) for own in found]
            before = float(sum_of(own[0].detach() for own in found))

            def fisher(vector: Tensor) -> Tensor:
                along = (gradient(own @ vector, weights, retain_graph=True) for own in curves)
                return sum_of(along) + c.damping * vector

            x = conjugate(fisher, slope, c.cg_steps)
            size = float(x @ fisher(x))
        if not np.isfinite(size):
            raise HunchError("TRPO's step is not finite; the last checkpoint is sound. Use a larger damping.")
        step = x * (2 * c.step_kl / max(size, 1e-12)) ** 0.5
        start = [weight.detach().clone() for weight in weights]
        for i in range(c.backtracks):
            move(weights, start, step * c.shrink**i)
            gain, kl, entropy = (float(own) for own in self._total(batch, pieces))
            if gain > before and kl <= c.step_kl:
                return {"moved": kl, "accepted": 1.0, "entropy": entropy}
        move(weights, start, torch.zeros_like(step))
        return {"moved": 0.0, "accepted": 0.0}

    def _pieces(self, batch: Batch) -> list[np.ndarray]:
        return list(cut(np.arange(len(batch.steps)), self.config.micro))

    @torch.no_grad()
    def _total(self, batch: Batch, pieces: Sequence[np.ndarray]) -> Tensor:
        return sum_of(torch.stack(self._measured(batch, rows)) for rows in pieces)

    def _measured(self, batch: Batch, rows: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Return the share of some rows in the surrogate, the divergence and the entropy of all tokens."""
        found = self._evaluate([batch.steps[i] for i in rows], "policy")
        old = batch.cut(rows, found.mask.shape[1])
        gained = batch.advantages.clone()
        if self.config.whiten:
            gained[batch.mask] = standardised(gained[batch.mask])
        moved = found.logprobs - old.logprobs
        surrogate = moved.exp() * gained[rows][:, : found.mask.shape[1]]
        shares = (
            part * found.mask / batch.mask.sum() for part in (surrogate, estimate(moved), found.entropy)
        )
        surrogate, kl, entropy = (share.sum() for share in shares)
        return surrogate + self.config.entropy * entropy, kl, entropy


def conjugate(product: Callable[[Tensor], Tensor], target: Tensor, steps: int) -> Tensor:
    """Solve A x = target for a positive definite matrix A, given its product with a vector."""
    x, left = torch.zeros_like(target), target.clone()
    direction, norm = left.clone(), left @ left
    enough = 1e-10 * norm
    for _ in range(steps):
        if norm <= enough:
            break
        along = product(direction)
        x += (share := norm / (direction @ along)) * direction
        left -= share * along
        norm, earlier = left @ left, norm
        direction = left + norm / earlier * direction
    return x


def gradient(figure: Tensor, weights: Sequence[Tensor], **options: Any) -> Tensor:
    """Return the gradient of a scalar with respect to the weights as one vector."""
    parts = torch.autograd.grad(figure, [*weights], allow_unused=True, materialize_grads=True, **options)
    return torch.cat([part.reshape(-1) for part in parts])


def sum_of(parts: Iterable[Tensor]) -> Tensor:
    """Return the sum of tensors."""
    return torch.stack(list(parts)).sum(0)


@torch.no_grad()
def move(weights: Sequence[Tensor], start: Sequence[Tensor], step: Tensor) -> None:
    """Set weights to start values plus a step, which is given as one vector."""
    own: Any = step.split([weight.numel() for weight in weights])  # type: ignore[no-untyped-call]
    for weight, first, part in zip(weights, start, own, strict=True):
        weight.copy_(first + part.view_as(first))
