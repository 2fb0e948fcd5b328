"""Losses on recorded texts, over the log-probabilities of their tokens.

DPO and KTO compare a policy with its reference, the frozen initial policy, by the log-ratio of a
whole text: log p(text) - log p_reference(text), summed over its tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hunch.rl.policy import Evaluated, cut
from hunch.rl.settings import Divergence

Text = TypeVar("Text")
"""A text, in whatever form its log-ratio is computed from."""
LARGEST: Final = 30.0
"""Exponent of the forward divergence from which on exp goes on as a line (ours): so a gradient stays, and its
square is finite in float32."""


class Logprobs(Protocol):
    """The outputs for n texts, of a policy or of its model."""

    @property
    def logprobs(self) -> Tensor:
        """Log-probability of each token, shape (n, T)."""

    @property
    def mask(self) -> Tensor:
        """True where a text has a token, shape (n, T)."""


def likelihood(texts: Evaluated, weights: Tensor | None = None) -> Tensor:
    """Return the negative log-likelihood of texts: a mean over the tokens of all texts.

    Args:
        texts: The policy's outputs for the texts.
        weights: Weight of each text, shape (n,); by default 1.
    """
    logprobs = texts.logprobs if weights is None else texts.logprobs * weights[:, None]  # (n, T)
    return -(logprobs * texts.mask).sum() / texts.mask.sum()


def pairs(chosen: Tensor, rejected: Tensor, shares: Tensor | None = None, centre: float = 0.0) -> Tensor:
    """Return the loss of a reward model: the negative log-likelihood under a Bradley-Terry model.

    Ouyang et al., "Training language models to follow instructions with human feedback" (NeurIPS 2022),
    equation 1; centring as in Eisenstein et al., "Helping or Herding?" (COLM 2024).

    Args:
        chosen: Rewards of the first texts, shape (n,).
        rejected: Rewards of the second texts of the same prompts, shape (n,).
        shares: Preference for the first text of each pair, 0 to 1, shape (n,); default 1; 0.5 is a tie.
        centre: Weight of the squared sum of both rewards, which keeps their mean near 0.

    Returns:
        The mean loss.
    """
    margin = chosen - rejected  # (n,)
    share = torch.ones_like(chosen) if shares is None else shares
    loss = -(share * logsigmoid(margin) + (1 - share) * logsigmoid(-margin)).mean()
    return loss + centre * ((chosen + rejected) ** 2).mean()


def log_ratios(texts: Logprobs, reference: Tensor) -> Tensor:
    """Return log p(text) - log p_reference(text) of each text, shape (n,), with the gradients of ``texts``.

    Args:
        texts: The outputs of the policy, or of its model, for the texts.
        reference: Log-probability of each token under the reference, shape (n, T).
    """
    return ((texts.logprobs - reference.detach()) * texts.mask).sum(1)


def dpo(chosen: Tensor, rejected: Tensor, beta: float = 0.1, divergence: Divergence = "reverse") -> Tensor:
    """Return the loss of DPO: the negative log-likelihood of choices under a Bradley-Terry model.

    Rafailov et al., "Direct Preference Optimization" (NeurIPS 2023), equation 7, with g = log pi / ref::

        L = - mean log sigmoid( beta [ g(y_w) - g(y_l) ] )

    With the forward divergence (Wang et al., "Beyond Reverse KL: Generalizing Direct Preference Optimization
    with Diverse Divergence Constraints", ICLR 2024) -1 / u stands in the place of log u, with u = pi / ref::

        L = - mean log sigmoid( beta [ exp(-g(y_l)) - exp(-g(y_w)) ] )

    Args:
        chosen: Log-ratios g of the preferred texts, shape (n,).
        rejected: Log-ratios of the other texts of the same prompts, shape (n,).
        beta: Weight of the KL divergence from the reference (paper: 0.1).
        divergence: Which divergence.

    Returns:
        The mean loss.
    """
    if divergence == "forward":
        chosen, rejected = (-_bounded_exp(-g) for g in (chosen, rejected))
    return -logsigmoid(beta * (chosen - rejected)).mean()


def _bounded_exp(exponents: Tensor) -> Tensor:
    """Return exp, and from :data:`LARGEST` on its tangent."""
    return exponents.clamp(max=LARGEST).exp() * (1 + (exponents - LARGEST).clamp(min=0))


def accumulate_dpo(
    pairs: Sequence[tuple[Text, Text]],
    log_ratios_of: Callable[[Sequence[Text]], Tensor],
    micro: int,
    beta: float,
    divergence: Divergence = "reverse",
) -> dict[str, float]:
    """Add the gradients of the mean of :func:`dpo` over pairs, a few at a time; return figures of the pairs.

    The loss falls as well where both texts become less likely, and the worse one more so. Therefore the means
    of g are returned: where ``better`` is below 0, the model leaves the texts that it should prefer.

    Args:
        pairs: The better and the worse text of each pair.
        log_ratios_of: Returns the log-ratio g of each of n texts, shape (n,), with gradients.
        micro: Number of pairs whose gradients are computed at once.
        beta: As for :func:`dpo`.
        divergence: As for :func:`dpo`.

    Returns:
        ``loss``; the means of g as ``better`` and ``worse``; and ``ordered``, the share of pairs whose better
        text has the higher g.
    """
    figures = dict.fromkeys(("loss", "better", "worse", "ordered"), 0.0)
    for few in cut(pairs, micro):
        better, worse = zip(*few, strict=True)
        g = log_ratios_of([*better, *worse])  # (2 few,), in one pass
        g_better, g_worse = g[: len(few)], g[len(few) :]
        share = len(few) / len(pairs)  # of this pass in the mean
        partial_loss = dpo(g_better, g_worse, beta, divergence) * share
        partial_loss.backward()  # type: ignore[no-untyped-call]
        figures["loss"] += float(partial_loss.detach())
        figures["better"] += share * float(g_better.detach().mean())
        figures["worse"] += share * float(g_worse.detach().mean())
        figures["ordered"] += share * float((g_better > g_worse).float().mean())
    return figures


def kto(
    ratios: Tensor,
    good: Tensor,
    others: Tensor,
    beta: float = 0.1,
    weight_good: float = 1.0,
    weight_bad: float = 1.0,
) -> Tensor:
    """Return the loss of Kahneman-Tversky optimisation, for texts labelled good or bad, without pairs.

    Ethayarajh et al., "KTO: Model Alignment as Prospect Theoretic Optimization" (ICML 2024), equations 7 and
    8, without their constant. With r = log pi(y|x) / ref(y|x)::

        z  = max(0, mean of r over texts of other prompts)              the KL divergence from the reference
        L  = mean of  w_good (1 - sigmoid( beta (r - z)))   for a good text
                      w_bad  (1 - sigmoid(-beta (r - z)))   for a bad one

    No gradient flows through z.

    Args:
        ratios: Log-ratios of the texts, shape (n,).
        good: True for good texts, shape (n,).
        others: Log-ratios of texts after prompts that are not their own, shape (m,).
        beta: Weight of the KL divergence (paper: 0.1).
        weight_good: Weight of each good text.
        weight_bad: Weight of each bad text.

    Returns:
        The mean loss.
    """
    reference_point = others.detach().mean().clamp(min=0.0)  # z, a scalar
    sign = torch.where(good, 1.0, -1.0)  # (n,)
    weights = torch.where(good, weight_good, weight_bad)  # (n,)
    values = torch.sigmoid(beta * sign * (ratios - reference_point))  # (n,)
    return (weights * (1 - values)).mean()
