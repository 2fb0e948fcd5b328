"""TRPO: the largest step of the policy that a bound on the KL divergence allows.

Algorithm (Schulman et al., "Trust Region Policy Optimization", ICML 2015)::

    L  =  mean of  pi(a|s) / pi_old(a|s) A + entropy H(pi)
    g  <- gradient of L
    F  =  the Fisher matrix, the curvature of KL(pi_old || pi), plus damping on its diagonal
    x  <- F^-1 g  by conjugate gradients
    s  <- sqrt(2 step_kl / x F x) x
    for i = 0, 1, ..: accept shrink^i s if L rises and the KL divergence is at most step_kl

Values are learnt afterwards. Departure: the KL divergence is estimated from the drawn tokens instead of
computed over the vocabulary, so F is the mean of the outer products of their gradients.

In the comments on shapes, d is the number of weights, b the number of decisions of one pass, and T the number
of tokens of the longest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from hunch.core import HunchError
from hunch.rl.advantages import standardised
from hunch.rl.policy import Part, cut
from hunch.rl.policy_gradient import Batch, PolicyGradient, k3
from hunch_contrib.tune.trpo_settings import TrustRegionConfig


class TrustRegion(PolicyGradient):
    """The update of TRPO, which replaces the clipped gradient steps."""

    config: TrustRegionConfig

    def _gradient_steps(
        self, batch: Batch, rng: np.random.Generator, parts: Sequence[Part]
    ) -> list[dict[str, float]]:
        """Make one step of the policy, then gradient steps of the value."""
        c = self.config
        n = len(batch.steps)
        steps_metrics = [self._natural_step(batch)]
        for _ in range(c.epochs if self.critic else 0):
            for rows in cut(rng.permutation(n), c.batch_size or n):
                metrics = self._gradient_step(batch, rows, "value", rng)
                steps_metrics.append(metrics)
        return steps_metrics

    def _natural_step(self, batch: Batch) -> dict[str, float]:
        """Step along the natural gradient as far as the divergence allows; return figures to log."""
        c = self.config
        weights = self.policy.parameters()["policy"]
        x, curvature, surrogate_before = self.passes.fitted(lambda: self._direction(batch, weights))
        if not np.isfinite(curvature):
            raise HunchError("TRPO's step is not finite; the last checkpoint is sound. Use a larger damping.")

        # s = sqrt(2 step_kl / x F x) x: by the quadratic approximation its KL is step_kl.
        step = x * (2 * c.step_kl / max(curvature, 1e-12)) ** 0.5
        # The line search: the KL itself decides, not the approximation.
        start = [weight.detach().clone() for weight in weights]
        for i in range(c.backtracks):
            move(weights, start, step * c.shrink**i)
            surrogate, kl, entropy = self.passes.fitted(lambda: self._total(batch))
            if surrogate > surrogate_before and kl <= c.step_kl:
                return {"moved": kl, "accepted": 1.0, "entropy": entropy}
        move(weights, start, torch.zeros_like(step))
        return {"moved": 0.0, "accepted": 0.0}

    def _direction(self, batch: Batch, weights: Sequence[Tensor]) -> tuple[Tensor, float, float]:
        """Return the natural gradient x, shape (d,), the curvature x F x, and the surrogate.

        Everything is computed in passes of at most ``micro`` decisions. A graph is kept only where one pass
        is enough. Where there are several, each product with F computes them again.
        """
        c = self.config
        passes = list(cut(np.arange(len(batch.steps)), self.micro))

        def kl_gradient(rows: np.ndarray) -> Tensor:
            """Return the share of some decisions in the gradient of the KL, which F is the derivative of."""
            _, kl, _ = self._measures(batch, rows)
            return gradient(kl, weights, create_graph=True)  # (d,)

        with sdpa_kernel(SDPBackend.MATH):  # the others have no second derivative
            # g: the gradient of the surrogate.
            surrogate_before = 0.0
            g = zeros_like(weights)  # (d,)
            for rows in passes:
                surrogate, _, _ = self._measures(batch, rows)
                g += gradient(surrogate, weights)
                surrogate_before += float(surrogate.detach())

            kept = kl_gradient(passes[0]) if len(passes) == 1 else None

            def fisher_times(vector: Tensor) -> Tensor:
                """Return (F + damping I) v: the gradient of (gradient of the KL) v, plus damping v."""
                product = c.damping * vector
                for rows in passes:
                    if kept is not None:
                        product += gradient(kept @ vector, weights, retain_graph=True)
                    else:
                        product += gradient(kl_gradient(rows) @ vector, weights)
                return product

            # x = F^-1 g, and the curvature along it.
            x = conjugate(fisher_times, g, c.cg_steps)  # (d,)
            curvature = float(x @ fisher_times(x))  # x F x
        return x, curvature, surrogate_before

    @torch.no_grad()
    def _total(self, batch: Batch) -> tuple[float, float, float]:
        """Return surrogate, KL divergence and entropy of the whole batch."""
        passes = cut(np.arange(len(batch.steps)), self.micro)
        measures = torch.stack([torch.stack(self._measures(batch, rows)) for rows in passes])  # (passes, 3)
        surrogate, kl, entropy = measures.sum(0).tolist()
        return surrogate, kl, entropy

    def _measures(self, batch: Batch, rows: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Return the share of some decisions in the mean surrogate, KL divergence and entropy of all tokens.

        Args:
            batch: All steps of the update.
            rows: The decisions, by their place in the batch, shape (b,).
        """
        c = self.config
        new = self._evaluate([batch.steps[i] for i in rows], "policy")  # each field (b, T)
        width = new.mask.shape[1]
        advantages = batch.advantages.clone()
        if c.whiten:
            advantages[batch.mask] = standardised(advantages[batch.mask])

        log_ratio = new.logprobs - batch.logprobs[rows, :width]  # log pi - log pi_old
        surrogate = log_ratio.exp() * advantages[rows][:, :width]
        tokens = batch.mask.sum()
        surrogate = (surrogate * new.mask / tokens).sum()
        kl = (k3(log_ratio) * new.mask / tokens).sum()
        entropy = (new.entropy * new.mask / tokens).sum()
        return surrogate + c.entropy * entropy, kl, entropy


def conjugate(product: Callable[[Tensor], Tensor], target: Tensor, steps: int) -> Tensor:
    """Solve A x = target for a positive definite matrix A, given its product with a vector.

    Args:
        product: Returns A v of a vector v, shape (d,).
        target: The right side, shape (d,).
        steps: Maximum number of iterations; fewer where the residual is 1e-5 of the target.

    Returns:
        x, shape (d,).
    """
    x = torch.zeros_like(target)
    residual = target.clone()  # target - A x
    direction = residual.clone()
    norm = residual @ residual
    enough = 1e-10 * norm
    for _ in range(steps):
        if norm <= enough:
            break
        along = product(direction)
        length = norm / (direction @ along)
        x += length * direction
        residual -= length * along
        earlier = norm
        norm = residual @ residual
        direction = residual + norm / earlier * direction
    return x


def gradient(figure: Tensor, weights: Sequence[Tensor], **options: Any) -> Tensor:
    """Return the gradient of a scalar with respect to the weights as one vector."""
    parts = torch.autograd.grad(figure, [*weights], allow_unused=True, materialize_grads=True, **options)
    return torch.cat([part.reshape(-1) for part in parts])


def zeros_like(weights: Sequence[Tensor]) -> Tensor:
    """Return zeros for a sum of gradients, shape (d,)."""
    return torch.cat([torch.zeros_like(weight).reshape(-1) for weight in weights])


@torch.no_grad()
def move(weights: Sequence[Tensor], start: Sequence[Tensor], step: Tensor) -> None:
    """Set weights to start values plus a step, which is given as one vector."""
    parts: Any = step.split([weight.numel() for weight in weights])  # type: ignore[no-untyped-call]
    for weight, first, part in zip(weights, start, parts, strict=True):
        weight.copy_(first + part.view_as(first))
