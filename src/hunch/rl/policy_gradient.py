"""Policy gradients: one update with settings for PPO, A2C, REINFORCE, GRPO and RLOO.

The clipped surrogate is from Schulman et al., "Proximal Policy Optimization Algorithms" (2017), and the
details are from CleanRL's ``ppo.py`` (Huang et al., JMLR 2022). The algorithms differ in the advantage
(:mod:`hunch.rl.advantages`) and in what counts as one action, a token or a whole text;
:data:`hunch.rl.settings.PRESETS` holds their settings. A policy (:mod:`hunch.rl.policy`) may be regularised
towards a prior (Yan et al., ICLR 2025), and learn its values separately from its actions (TWOSOME, ICLR
2024).

If a decision has no recorded log-probabilities, the policy that acted has not changed before the
update, so they are computed here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import HunchError, IntArray, State, UsageError
from hunch.rl.advantages import ADVANTAGES, GROUPED, Advantage, Rows, anchors, standardised
from hunch.rl.policy import Decision, Evaluated, Part, Step, TrainablePolicy, cut, fitting, joined
from hunch.rl.settings import PRESETS as PRESETS
from hunch.rl.settings import UpdateConfig

CHECKED: Final = 8
"""Number of steps that are evaluated again after an update, to check that all outputs are finite."""
ADAPTS: Final = 0.1
"""Step size of the adaptation of ``kl``, K_beta (Ziegler et al., 2019)."""


class Batch(NamedTuple):
    """The steps of an update, stream by stream; all fields except the steps have shape (n, T).

    ``expected`` is the log-probability of each token under the reference, and ``apart`` the difference of
    the policy's and this; both have a column per token, whatever the unit, and are None without reference.
    """

    steps: list[Step]
    logprobs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    mask: Tensor
    expected: Tensor | None = None
    apart: Tensor | None = None

    def cut(self, rows: IntArray, width: int) -> Batch:
        """Return some steps and their first ``width`` tokens, without the reference."""
        own = [self.steps[i] for i in rows]
        return Batch(own, *(part[rows, :width] for part in self[1:6] if part is not None))


class PolicyGradient:
    """A policy, its optimiser, and its update.

    Args:
        policy: The policy to train.
        config: All settings.

    Attributes:
        extra: Returns a loss that is added at each gradient step of the policy, such as that of texts against
            forgetting; None adds nothing.
    """

    extra: Callable[[np.random.Generator], Tensor] | None = None

    def __init__(self, policy: TrainablePolicy, config: UpdateConfig) -> None:
        self.policy, self.config, self.updates = policy, config, 0
        self.critic = config.advantage == "gae"
        self.advantage: Advantage = ADVANTAGES[config.advantage]
        self.pull = config.kl
        own = [(name, weights) for name, weights in policy.parameters().items() if weights]
        self.weights = [weight for _, weights in own for weight in weights]
        self.rates = [config.value_rate * (name == "value") or config.learning_rate for name, _ in own]
        groups = [{"params": weights, "lr": r} for (_, weights), r in zip(own, self.rates, strict=True)]
        self.optimiser = torch.optim.Adam(groups, eps=1e-5, foreach=True)

    def update(
        self,
        streams: Sequence[Sequence[Step]],
        rng: np.random.Generator,
        left: float = 1.0,
        parts: Sequence[Part] = ("both",),
        groups: Sequence[int] = (),
    ) -> dict[str, float]:
        """Train on the steps since the last update, and return the metrics to log.

        Args:
            streams: Consecutive steps of each stream, across ends of episodes. Whole episodes for the
                advantage ``returns``, and one each for ``group`` and ``leave_one_out``.
            rng: Random generator for the order of steps.
            left: Remaining share of the run, 0 to 1, for ``anneal`` and ``kl_end``.
            parts: Parts to train, in this order in each epoch; if values are not learnt, only the policy.
            groups: Group of each episode; episodes of one group answer the same prompt.

        Raises:
            UsageError: if episodes are unfinished, or alone in their group, where that is not allowed.
            HunchError: if a gradient, or an output after the update, is not finite, or memory runs out.
        """
        c = self.config
        self._check_streams(streams, groups)
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * left if c.anneal else rate
        if not c.kl_aim:
            self.pull = c.kl if c.kl_end is None else c.kl_end + (c.kl - c.kl_end) * left
        self.updates += 1
        with fitting(c.micro):
            batch = self.collect(streams, groups)
            told = _mean(list(self._steps(batch, rng, parts if self.critic else ("policy",))))
            self._check(batch.steps[: min(c.micro, CHECKED)])
        if batch.apart is not None:
            told |= {"kl": (kl := float(batch.apart.sum(1).mean())), "kl_weight": self.pull}
            if c.kl_aim:
                self.pull *= 1 + ADAPTS * float(np.clip((kl - c.kl_aim) / c.kl_aim, -0.2, 0.2))
        if groups:  # those whose episodes have equal returns teach nothing
            firsts = np.cumsum([0, *map(len, streams[:-1])])
            live = {own for own, gained in zip(groups, batch.advantages[firsts, 0], strict=True) if gained}
            told["flat_groups"] = 1 - len(live) / len(set(groups))
        return told

    def _check_streams(self, streams: Sequence[Sequence[Step]], groups: Sequence[int]) -> None:
        """Refuse parts of episodes where the advantage needs whole ones, and groups of one."""
        c, grouped = self.config, self.config.advantage in GROUPED
        if not self.critic and not all(stream[-1].transition.done for stream in streams):
            raise UsageError(f"The advantage {c.advantage!r} needs whole episodes, but one has not ended.")
        if grouped and any(step.transition.done for stream in streams for step in stream[:-1]):
            raise UsageError(f"The advantage {c.advantage!r} needs one episode per stream.")
        if grouped and (len(groups) != len(streams) or min(np.unique(groups, return_counts=True)[1]) < 2):
            raise UsageError(
                f"The advantage {c.advantage!r} compares the episodes of a group, so each episode needs a "
                "group, and each group at least two episodes."
            )

    def _steps(
        self, batch: Batch, rng: np.random.Generator, parts: Sequence[Part]
    ) -> Iterator[dict[str, float]]:
        """Make the gradient steps of an update, until the policy is too far from the old one."""
        c, n = self.config, len(batch.steps)
        for part in [*parts] * c.epochs:
            size = c.value_batch_size if part == "value" else c.batch_size or n
            for rows in cut(rng.permutation(n), size):
                rows = np.sort(rows) if c.advantage in GROUPED else rows  # neighbours share their prompt
                yield (told := self._step(batch, rows, part, rng))
                if c.target_kl and told.get("moved", 0.0) > c.target_kl:
                    return

    def _step(self, batch: Batch, rows: IntArray, part: Part, rng: np.random.Generator) -> dict[str, float]:
        """Make one gradient step with the mean gradient over the tokens of some rows."""
        c, told, mask = self.config, list[dict[str, float]](), batch.mask[rows]
        self.optimiser.zero_grad()
        advantages = batch.advantages[rows]
        if c.whiten:
            advantages[mask] = standardised(advantages[mask])
        tokens = int(mask.sum())
        for few, gained, own in zip(*(cut(x, c.micro) for x in (rows, advantages, mask)), strict=True):
            loss, figures = self._loss(batch, few, gained, part)
            (loss * (int(own.sum()) / tokens)).backward()  # type: ignore[no-untyped-call]
            told.append(figures)
        if self.extra and part != "value":
            (loss := self.extra(rng)).backward()  # type: ignore[no-untyped-call]
            told.append({"extra_loss": float(loss.detach())})
        if not torch.isfinite(nn.utils.clip_grad_norm_(self.weights, c.max_norm)):
            raise HunchError(_INFINITE)
        self.optimiser.step()
        return _mean(told)

    def _loss(
        self, batch: Batch, rows: IntArray, advantages: Tensor, part: Part
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of some rows, a mean over their tokens, and figures to log."""
        steps = [batch.steps[i] for i in rows]
        pulled = bool(self.pull) and part != "value" and self.config.kl_in == "loss"
        reference = None if batch.expected is None or not pulled else batch.expected[rows]
        found = self._evaluate(steps, part, pulled, reference)
        old = batch.cut(rows, width := found.mask.shape[1])
        if part == "value":  # learnt separately, so the loss needs no weight
            return self._value_loss(old, found)
        acting, told = self._policy_loss(old, found, advantages[:, :width])
        if part == "policy":
            return acting, told
        judging, also = self._value_loss(old, found)
        return acting + self.config.value * judging, told | also

    def _policy_loss(
        self, old: Batch, found: Evaluated, advantages: Tensor
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the clipped surrogate minus entropy plus the distance from the prior."""
        c, mask = self.config, found.mask
        moved = found.logprobs - old.logprobs
        ratio = moved.exp()
        near = ratio.clamp(1 - c.clip, 1 + (c.clip_high or c.clip))
        gain = torch.minimum(ratio * advantages, near * advantages)
        entropy = mean(found.entropy, mask)
        loss = -mean(gain, mask) - c.entropy * entropy
        told = {"entropy": entropy, "moved": mean(ratio - 1 - moved, mask)}
        if found.kl is not None:
            told["prior_kl"] = mean(found.kl, mask)
            loss = loss + self.pull * told["prior_kl"]
        return loss, {name: float(figure.detach()) for name, figure in told.items()}

    def _value_loss(self, old: Batch, found: Evaluated) -> tuple[Tensor, dict[str, float]]:
        """Return half the squared error of the clipped value."""
        c = self.config
        error = (found.values - old.returns) ** 2
        if c.clip_value:
            near = old.values + (found.values - old.values).clamp(-c.clip, c.clip)
            error = torch.maximum(error, (near - old.returns) ** 2)
        loss = 0.5 * mean(error, found.mask)
        return loss, {"value_loss": float(loss.detach())}

    def _evaluate(
        self, steps: Sequence[Step], part: Part, pulled: bool = False, reference: Tensor | None = None
    ) -> Evaluated:
        """Judge decisions in the unit of the config."""
        found = self.policy.evaluate(*_parts(steps), part, pulled)
        if reference is not None and found.kl is None:
            kl = estimate(reference[:, : found.mask.shape[1]].to(found.logprobs) - found.logprobs)
            found = found._replace(kl=kl * found.mask)
        return found if self.config.unit == "token" else found.whole()

    @torch.no_grad()
    def _check(self, steps: Sequence[Step]) -> None:
        """Refuse a policy without finite outputs, before it acts and before a checkpoint holds it."""
        found = self._evaluate(steps, "both" if self.critic else "policy")
        if found.logprobs.isnan().any() or not found.values.isfinite().all():
            raise HunchError(_INFINITE)

    @torch.no_grad()
    def collect(self, streams: Sequence[Sequence[Step]], groups: Sequence[int] = ()) -> Batch:
        """Return steps with the policy's outputs before the update, and their advantages."""
        c, steps = self.config, [step for stream in streams for step in stream]
        found, expected, apart = self._known(steps)
        whole = found if c.unit == "token" else found.whole()
        rows = self._rows(streams, whole.values, whole.mask, groups)
        if apart is not None and c.kl_in == "reward":
            paid = apart if c.unit == "token" else apart.sum(1, keepdim=True)
            rows = rows._replace(rewards=rows.rewards - self.pull * paid[whole.mask].double().cpu().numpy())
        gained = self.advantage(rows, c.gamma, c.gae)
        advantages = torch.zeros_like(whole.values)
        advantages[whole.mask] = torch.from_numpy(gained).to(whole.values)
        returns = advantages + whole.values
        return Batch(steps, whole.logprobs, whole.values, advantages, returns, whole.mask, expected, apart)

    def _known(self, steps: Sequence[Step]) -> tuple[Evaluated, Tensor | None, Tensor | None]:
        """Return what the policy says of the tokens of steps, what the reference does, and their distance.

        Recorded log-probabilities count, because the policy may have changed since. Where all are recorded
        and there are no values, the policy is not asked.
        """
        part: Part = "both" if self.critic else "policy"
        pieces, references = list[Evaluated](), list[Tensor]()
        for few in cut(steps, self.config.micro):
            states, decisions = _parts(few)
            if (reference := self.policy.expected(states, decisions)) is not None:
                references.append(reference)
            if not self.critic and all(own.logprobs for own in decisions):
                pieces.append(Evaluated.recorded(decisions, self.weights[0].device))
            else:
                pieces.append(self.policy.evaluate(states, decisions, part))
        found = Evaluated.joined(pieces)
        expected = joined(references).to(found.logprobs) if references else None
        own = found.logprobs if found.free is None else found.free
        apart = None if expected is None else (own - expected) * found.mask
        for row, step in enumerate(steps):
            if drawn := step.decision.logprobs:
                found.logprobs[row, found.mask[row]] = torch.tensor(drawn).to(found.logprobs)
        return found, expected, apart

    def _rows(
        self, streams: Sequence[Sequence[Step]], values: Tensor, mask: Tensor, groups: Sequence[int]
    ) -> Rows:
        """Return the tokens of all steps; the reward of a step is at its last token.

        A token is followed by the value of the next one. That is the next token of the stream, except where
        an episode was truncated or the stream continues only after the update.
        """
        c = self.config
        steps = [(own.transition, own is stream[-1]) for stream in streams for own in stream]
        flat = values[mask].double().cpu().numpy()
        at = mask.sum(1).cumsum(0).cpu().numpy() - 1  # row of the last token of each step
        rewards, follows = np.zeros(len(flat)), np.append(flat[1:], 0.0)
        ends = np.zeros(len(flat), dtype=bool)
        rewards[at] = [c.scale * t.reward for t, _ in steps]
        ends[at] = [t.done or last for t, last in steps]
        follows[ends] = 0.0
        open_ = [i for i, (t, last) in enumerate(steps) if not t.terminated and (t.truncated or last)]
        for few in cut(open_ if self.critic else [], c.micro):
            follows[at[few]] = self.policy.values([steps[i][0].next_state for i in few])
        known = np.array(groups, dtype=np.int64), *(() if not len(groups) else anchors(streams, groups, mask))
        return Rows(rewards, flat, follows, ends, *known)

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimiser and counter."""
        both = {"policy": self.policy.state_dict(), "optimiser": self.optimiser.state_dict()}
        return {**both, "updates": self.updates, "pull": self.pull}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))  # it would share the tensors
        self.updates, self.pull = state["updates"], state.get("pull", self.pull)


_INFINITE = (
    "A gradient or an output of the policy is not finite, so this update was stopped; the last checkpoint is "
    "sound. A lower learning_rate, or dtype=float32 in the model's spec, may help."
)


def _parts(steps: Sequence[Step]) -> tuple[list[State], list[Decision]]:
    return [step.transition.state for step in steps], [step.decision for step in steps]


def _mean(told: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for figures in told for name in figures)
    return {name: float(np.mean([f[name] for f in told if name in f])) for name in names}


def estimate(apart: Tensor) -> Tensor:
    """Estimate the KL divergence from a reference at each token, never below 0 (Schulman's k3).

    Args:
        apart: Log-probabilities of the reference minus those of the policy, for tokens that the policy drew.
    """
    return apart.exp() - apart - 1


def mean(each: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the tokens where the mask is True."""
    return (each * mask).sum() / mask.sum()
