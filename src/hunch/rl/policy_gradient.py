"""Policy gradients: one update with settings for PPO, A2C, REINFORCE, GRPO and RLOO.

One update, on the steps that were collected since the last one::

    old log pi, V, log pi_ref  <- the policy and its reference on the stored decisions, without gradients
    r   <- scale reward - confidence pi_old(action) [- kl_weight (log pi - log pi_ref), with kl_in="reward"]
    A   <- advantage(r, V),    R  <- A + V
    repeat epochs times, minibatch by minibatch
        rho  <- pi / pi_old
        A_b  <- A of the minibatch, with whiten standardised over it; R stays as it is
        step down the gradient, whose norm over all weights is limited to max_norm, of
            - mean min(rho A_b, clip(rho, 1 - clip, 1 + clip) A_b) - entropy H + kl_weight KL(pi || pi_ref)
            + value 1/2 mean max((V - R)^2, (V_clipped - R)^2)

V_clipped is V moved no further than ``clip`` from the old value; without ``clip_value`` the second square is
left out.

The clipped surrogate is from Schulman et al., "Proximal Policy Optimization Algorithms" (2017), and the
details are from CleanRL's ``ppo.py`` (Huang et al., JMLR 2022). The algorithms differ in the advantage
(:mod:`hunch.rl.advantages`) and in what counts as one action, a token or a whole text;
:data:`hunch.rl.settings.PRESETS` holds their settings. A policy (:mod:`hunch.rl.policy`) may be regularised
towards a prior (Yan et al., ICLR 2025), and learn its values separately from its actions (TWOSOME, ICLR
2024).

If a decision has no recorded log-probabilities, the policy that acted has not changed before the
update, so they are computed here.

Letters in the comments on shapes: n is the number of decisions of the update, b of one pass. T is the number
of columns of the update: the tokens of its longest decision, or 1 with ``unit="text"``, where a whole text is
one action. ``tokens`` is the number of tokens of the longest decision, whatever the unit. A choice from a
list is one token.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import HunchError, IntArray, State, UsageError
from hunch.rl.advantages import ADVANTAGES, GROUPED, Actions, Advantage, anchors, standardised
from hunch.rl.policy import Decision, Evaluated, Part, Passes, Step, TrainablePolicy, cut, fitting, joined
from hunch.rl.rollout import StoppedError
from hunch.rl.settings import PRESETS as PRESETS
from hunch.rl.settings import UpdateConfig

CHECKED: Final = 8
"""Number of steps that are evaluated again after an update, to check its outputs and how far it moved."""
ADAPTS: Final = 0.1
"""Step size of the adaptation of ``kl_weight``, K_beta (Ziegler et al., 2019)."""


class Batch(NamedTuple):
    """The n steps of an update, stream by stream, with the outputs of the policy that took them.

    Attributes:
        steps: The steps.
        logprobs: Log-probability of each action under the policy before the update, shape (n, T).
        values: Value before each action, shape (n, T).
        advantages: Advantage of each action, shape (n, T).
        returns: Target of the value, the advantage plus the value, shape (n, T).
        mask: True where a decision has an action, shape (n, T).
        reference_logprobs: Log-probability of each token under the reference, shape (n, tokens); None
            without reference.
        reference_log_ratio: Log-probability of each token under the policy before the update, minus that
            under the reference, shape (n, tokens); None without reference.
        surprise: Mean of -log pi over the tokens, as they were drawn: an estimate of the entropy in nats per
            token.
    """

    steps: list[Step]
    logprobs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    mask: Tensor
    reference_logprobs: Tensor | None = None
    reference_log_ratio: Tensor | None = None
    surprise: float = 0.0


class PolicyGradient:
    """A policy, its optimiser, and its update.

    Args:
        policy: The policy to train.
        config: All settings.

    Attributes:
        critic: True if a value is learnt.
        advantage: Function that returns the advantages.
        kl_weight: Weight of the KL divergence from the reference in the next update.
        updates: Number of updates so far.
        update_kl: KL divergence of the policy before the last update from the one after it, in nats per
            action, estimated by k3 from the first CHECKED steps.
        passes: How many steps are computed at once: ``micro`` of the config, halved each time that a pass
            does not fit into memory.
        extra: Draws what a further loss is of, such as texts against forgetting, at each gradient step of the
            policy. What it returns adds the gradients of this loss, and returns the loss; it may be called
            again. None adds nothing.
    """

    extra: Callable[[np.random.Generator], Callable[[], float]] | None = None

    def __init__(self, policy: TrainablePolicy, config: UpdateConfig) -> None:
        self.policy = policy
        self.config = config
        self.critic = config.advantage == "gae"
        self.advantage: Advantage = ADVANTAGES[config.advantage]
        self.kl_weight = config.kl
        self.updates = 0
        self.update_kl = 0.0
        self.passes = Passes(config.micro)

        # One group of weights for the policy and one for what the value alone uses, with their rates.
        self.weights: list[nn.Parameter] = []
        self.rates: list[float] = []
        param_groups = []
        for name, weights in policy.parameters().items():
            if not weights:
                continue
            value_only = name == "value"
            rate = config.value_rate if value_only and config.value_rate else config.learning_rate
            self.weights += weights
            self.rates.append(rate)
            param_groups.append({"params": weights, "lr": rate})
        # eps is CleanRL's. It shortens the steps of a model so large that its gradients are as small.
        self.optimiser = torch.optim.Adam(param_groups, eps=1e-5, foreach=True)

    @property
    def micro(self) -> int:
        """Steps that are computed at once."""
        return self.passes.micro

    def update(
        self,
        streams: Sequence[Sequence[Step]],
        rng: np.random.Generator,
        remaining: float = 1.0,
        parts: Sequence[Part] = ("both",),
        groups: Sequence[int] = (),
    ) -> dict[str, float]:
        """Train on the steps since the last update, and return the metrics to log.

        Args:
            streams: Consecutive steps of each stream, across ends of episodes. Whole episodes for the
                advantage ``returns``, and one each for ``group`` and ``leave_one_out``.
            rng: Random generator for the order of steps.
            remaining: Share of the run that remains, 0 to 1, for ``anneal`` and ``kl_end``.
            parts: Parts to train, in this order in each epoch; if values are not learnt, only the policy.
            groups: Group of each episode; episodes of one group answer the same prompt.

        Raises:
            UsageError: if episodes are unfinished, or alone in their group, where that is not allowed.
            HunchError: if a gradient, or an output after the update, is not finite, or memory runs out.
        """
        c = self.config
        self._check_streams(streams, groups)

        # Schedules. `remaining` falls from 1 to 0 over the run.
        for param_group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            param_group["lr"] = rate * remaining if c.anneal else rate
        if not c.kl_aim:  # otherwise step 4 sets the weight of the next update
            kl_end = c.kl if c.kl_end is None else c.kl_end
            self.kl_weight = kl_end + (c.kl - kl_end) * remaining

        self.optimiser.zero_grad()  # the last update's gradients would take memory in step 1
        with fitting(c.micro):  # an error of memory for one step names the settings that need less
            # 1. Old log-probabilities, values, advantages and returns. No gradients.
            batch = self.passes.fitted(lambda: self.collect(streams, groups))
            self._check_drift(batch)
            self.updates += 1
            # 2. Gradient steps: epochs x parts x minibatches, until target_kl is passed.
            if not self.critic:
                parts = ("policy",)
            steps_metrics = self._gradient_steps(batch, rng, parts)
            # 3. Weights with outputs that are not finite must not act or reach a checkpoint.
            self._check(batch, min(self.micro, CHECKED))
        metrics = mean_metrics(steps_metrics)

        # 4. Move the KL weight, by at most 2 %, so that the KL approaches kl_aim
        #    (Ziegler et al., 2019). The KL is that of the policy before the update.
        if batch.reference_log_ratio is not None:
            kl = float(batch.reference_log_ratio.sum(1).mean())  # (n, tokens) -> (n,) -> scalar
            metrics["kl"] = kl
            metrics["kl_weight"] = self.kl_weight  # the one that this update used
            if c.kl_aim:
                error = float(np.clip((kl - c.kl_aim) / c.kl_aim, -0.2, 0.2))
                self.kl_weight *= 1 + ADAPTS * error

        # 5. A group whose returns are all equal has advantage 0 and teaches nothing. All steps count: an
        #    advantage may differ between those of an episode (hunch.rl.advantages.anchored).
        if groups:
            group_of_step = np.repeat(groups, [len(stream) for stream in streams])  # (n,)
            teaches = (batch.advantages != 0).any(1).cpu().numpy()  # (n,)
            teaching = np.unique(group_of_step[teaches])
            metrics["flat_groups"] = 1 - len(teaching) / len(set(groups))
        return metrics

    def _check_streams(self, streams: Sequence[Sequence[Step]], groups: Sequence[int]) -> None:
        """Refuse parts of episodes where the advantage needs whole ones, and groups of one."""
        advantage = self.config.advantage
        if not self.critic and not all(stream[-1].transition.done for stream in streams):
            raise UsageError(f"The advantage {advantage!r} needs whole episodes, but one has not ended.")
        if advantage not in GROUPED:
            return
        if any(step.transition.done for stream in streams for step in stream[:-1]):
            raise UsageError(f"The advantage {advantage!r} needs one episode per stream.")
        if len(groups) != len(streams) or min(np.unique(groups, return_counts=True)[1]) < 2:
            raise UsageError(
                f"The advantage {advantage!r} compares the episodes of a group, so each episode needs a "
                "group, and each group at least two episodes."
            )

    # ---- step 1: what the policy said before the update ---------------------------------------------------

    @torch.no_grad()
    def collect(self, streams: Sequence[Sequence[Step]], groups: Sequence[int] = ()) -> Batch:
        """Return the steps with the policy's outputs before the update, their advantages and returns.

        Args:
            streams: Consecutive steps of each stream.
            groups: Group of each episode, for advantages that compare those of a group.
        """
        c = self.config
        steps = [step for stream in streams for step in stream]  # n
        old, reference_logprobs, reference_log_ratio = self._old_outputs(steps)
        surprise = float(-masked_mean(old.logprobs, old.mask))
        if c.unit == "text":
            old = old.whole()  # (n, tokens) -> (n, 1)

        actions = self._actions(streams, old.values, old.mask, groups)  # m, one after the other
        if reference_log_ratio is not None and c.kl_in == "reward":
            # r <- r - kl_weight (log pi - log pi_ref), of each token or of the whole text
            log_ratio = reference_log_ratio  # (n, tokens)
            if c.unit == "text":
                log_ratio = log_ratio.sum(1, keepdim=True)  # (n, 1)
            penalty = self.kl_weight * log_ratio[old.mask].double().cpu().numpy()  # (m,)
            actions = actions._replace(rewards=actions.rewards - penalty)
        if c.confidence:
            # r <- r - confidence pi_old(action), at the last token of a text. If r is 1 for a right action,
            # its mean is p(right) - pi(action): no action is better than another where the two are equal.
            probability = (old.logprobs * old.mask).sum(1).exp()  # (n, T) -> (n,)
            last_action = last_actions(old.mask)  # (n,)
            rewards = actions.rewards.copy()
            rewards[last_action] -= c.confidence * probability.double().cpu().numpy()
            actions = actions._replace(rewards=rewards)

        # A by GAE or what else the algorithm takes, and R = A + V.
        flat_advantages = self.advantage(actions, c.gamma, c.gae)  # (m,)
        advantages = torch.zeros_like(old.values)  # (n, T)
        advantages[old.mask] = torch.from_numpy(flat_advantages).to(old.values)
        returns = advantages + old.values
        return Batch(
            steps,
            old.logprobs,
            old.values,
            advantages,
            returns,
            old.mask,
            reference_logprobs,
            reference_log_ratio,
            surprise,
        )

    def _old_outputs(self, steps: Sequence[Step]) -> tuple[Evaluated, Tensor | None, Tensor | None]:
        """Return what the policy says of the tokens of n steps, what the reference says, and their log-ratio.

        There are two sources of log pi of a token. Where it was recorded when the token was drawn, that is
        pi_old of the ratio, because the policy may have changed since. log pi - log pi_ref is computed from
        the present weights wherever the policy is asked: both are then from passes of the same kind. The
        policy is not asked where everything is recorded and no values are needed.
        """
        part: Part = "both" if self.critic else "policy"
        passes: list[Evaluated] = []
        references: list[Tensor] = []
        for few in cut(steps, self.micro):
            states, decisions = _states_and_decisions(few)
            reference = self.policy.reference_logprobs(states, decisions)  # (b, tokens of these)
            if reference is not None:
                references.append(reference)
            if not self.critic and all(decision.logprobs for decision in decisions):
                passes.append(Evaluated.recorded(decisions, self.weights[0].device))
            else:
                passes.append(self.policy.evaluate(states, decisions, part))
        old = Evaluated.joined(passes)  # each field (n, tokens)

        reference_logprobs = None
        reference_log_ratio = None
        if references:
            reference_logprobs = joined(references).to(old.logprobs)  # (n, tokens)
            # The reference has no mask of tokens, so the policy is compared without its own.
            unmasked = old.logprobs if old.free is None else old.free
            reference_log_ratio = (unmasked - reference_logprobs) * old.mask

        for row, step in enumerate(steps):  # pi_old of the ratio
            recorded = step.decision.logprobs
            if recorded:
                old.logprobs[row, old.mask[row]] = torch.tensor(recorded).to(old.logprobs)
        return old, reference_logprobs, reference_log_ratio

    def _actions(
        self, streams: Sequence[Sequence[Step]], values: Tensor, mask: Tensor, groups: Sequence[int]
    ) -> Actions:
        """Return the m actions of all steps, one after the other; a step's reward is at its last one.

        An action is followed by the value of the next one. That is the next of the stream, except where an
        episode was truncated or the stream continues only after the update: there it is the value of the
        next state. After a terminated episode it is 0.

        Args:
            streams: Consecutive steps of each stream, n in all.
            values: Value before each action, shape (n, T).
            mask: True where a step has an action, shape (n, T), m in all.
            groups: Group of each episode.
        """
        c = self.config
        transitions = [step.transition for stream in streams for step in stream]  # n
        last_of_stream = [step is stream[-1] for stream in streams for step in stream]  # n
        flat_values = values[mask].double().cpu().numpy()  # (m,)
        last_action = last_actions(mask)  # (n,)

        rewards = np.zeros(len(flat_values))
        rewards[last_action] = [c.scale * t.reward for t in transitions]
        ends = np.zeros(len(flat_values), dtype=bool)
        ends[last_action] = [t.done or last for t, last in zip(transitions, last_of_stream, strict=True)]

        next_values = np.append(flat_values[1:], 0.0)
        next_values[ends] = 0.0
        if self.critic:
            goes_on = [
                i
                for i, (t, last) in enumerate(zip(transitions, last_of_stream, strict=True))
                if not t.terminated and (t.truncated or last)
            ]
            for few in cut(goes_on, self.micro):
                next_values[last_action[few]] = self.policy.values([transitions[i].next_state for i in few])

        if not groups:
            return Actions(rewards, flat_values, next_values, ends)
        step_of_action, anchor_of_step = anchors(streams, groups, mask)
        group_of_episode = np.array(groups, dtype=np.int64)
        return Actions(
            rewards, flat_values, next_values, ends, group_of_episode, step_of_action, anchor_of_step
        )

    # ---- step 2: gradient steps ---------------------------------------------------------------------------

    def _gradient_steps(
        self, batch: Batch, rng: np.random.Generator, parts: Sequence[Part]
    ) -> list[dict[str, float]]:
        """Make the gradient steps of an update, and return the metrics of each.

        Each epoch trains the parts in their order, each on all steps in minibatches. The update ends early
        where the policy is further than ``target_kl`` from the one before the update.
        """
        c = self.config
        n = len(batch.steps)
        steps_metrics = []
        for _ in range(c.epochs):
            for part in parts:
                size = c.value_batch_size if part == "value" else c.batch_size or n
                for rows in cut(rng.permutation(n), size):
                    if c.advantage in GROUPED:
                        rows = np.sort(rows)  # neighbours share their prompt, which the model reads once
                    metrics = self._gradient_step(batch, rows, part, rng)
                    steps_metrics.append(metrics)
                    if c.target_kl and metrics.get("moved", 0.0) > c.target_kl:
                        return steps_metrics
        return steps_metrics

    def _gradient_step(
        self, batch: Batch, rows: IntArray, part: Part, rng: np.random.Generator
    ) -> dict[str, float]:
        """Make one gradient step on one minibatch, and return its metrics.

        Args:
            batch: All steps of the update.
            rows: The steps of the minibatch, by their place in the batch, at most batch_size.
            part: The part to train.
            rng: Random generator for ``extra``.
        """
        c = self.config
        mask = batch.mask[rows]  # (batch_size, T)
        advantages = batch.advantages[rows]  # (batch_size, T)
        if c.whiten:
            advantages[mask] = standardised(advantages[mask])

        add_extra_loss = None
        if self.extra is not None and part != "value":
            add_extra_loss = self.extra(rng)

        def accumulate() -> dict[str, float]:
            self.optimiser.zero_grad()
            metrics = self._accumulate(batch, rows, advantages, part)
            if add_extra_loss is not None:
                metrics["extra_loss"] = add_extra_loss()
            return metrics

        metrics = self.passes.fitted(accumulate)

        norm = nn.utils.clip_grad_norm_(self.weights, c.max_norm)  # before the clip
        if not torch.isfinite(norm):
            raise HunchError(_INFINITE)
        self.optimiser.step()
        return metrics

    def _accumulate(self, batch: Batch, rows: IntArray, advantages: Tensor, part: Part) -> dict[str, float]:
        """Add the gradient of the loss over a minibatch, in passes of at most ``micro`` steps.

        Each pass counts by its share of the actions, so that the sum of the gradients is that of the mean
        over the minibatch, and so are the figures that are returned.

        Args:
            batch: All steps of the update.
            rows: The steps of the minibatch, by their place in the batch, at most batch_size.
            advantages: Their advantages, shape (batch_size, T).
            part: The part to train.
        """
        mask = batch.mask[rows]  # (batch_size, T)
        metrics: dict[str, float] = {}
        total = int(mask.sum())
        for start in range(0, len(rows), self.micro):
            few = slice(start, start + self.micro)
            loss, figures = self._loss(batch, rows[few], advantages[few], part)
            share = int(mask[few].sum()) / total
            (loss * share).backward()  # type: ignore[no-untyped-call]
            for name, figure in figures.items():
                metrics[name] = metrics.get(name, 0.0) + share * figure
        return metrics

    def _loss(
        self, batch: Batch, rows: IntArray, advantages: Tensor, part: Part
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of some decisions, and figures to log. Means are over actions::

            policy   -mean min(rho A, clip(rho) A)  -  entropy H  +  kl_weight KL(pi || reference)
            value    1/2 mean max((V - R)^2, (V_clipped - R)^2)
            both     policy + c.value * value

        Args:
            batch: All steps of the update.
            rows: The decisions of this pass, by their place in the batch, shape (b,).
            advantages: Their advantages, standardised over the minibatch with ``whiten``, shape (b, T).
            part: The loss to compute.

        Returns:
            A scalar with gradients, and metrics without.
        """
        c = self.config

        # The current policy on the stored decisions, with gradients.
        steps = [batch.steps[i] for i in rows]  # b
        with_kl = c.kl_in == "loss" and self.kl_weight != 0 and part != "value"
        reference = None
        if with_kl and batch.reference_logprobs is not None:
            reference = batch.reference_logprobs[rows]  # (b, tokens)
        new = self._evaluate(steps, part, with_kl, reference)  # each field (b, width)
        mask = new.mask
        width = mask.shape[1]  # the batch may be wider than these rows

        figures: dict[str, Tensor] = {}
        if part != "value":
            # rho = pi / pi_old
            old_logprobs = batch.logprobs[rows, :width]
            log_ratio = new.logprobs - old_logprobs
            ratio = log_ratio.exp()

            # No gain from moving a probability further than the clip range.
            advantages = advantages[:, :width]
            clipped_ratio = ratio.clamp(1 - c.clip, 1 + (c.clip_high or c.clip))
            surrogate = torch.minimum(ratio * advantages, clipped_ratio * advantages)

            entropy = masked_mean(new.entropy, mask)
            loss = -masked_mean(surrogate, mask) - c.entropy * entropy
            figures["entropy"] = entropy
            figures["moved"] = masked_mean(ratio - 1 - log_ratio, mask)  # k3 of KL(old || new)
            # Where the minimum takes the clipped term, an action has no gradient.
            clipped = (clipped_ratio * advantages < ratio * advantages).to(ratio.dtype)
            figures["clipped"] = masked_mean(clipped, mask)

            # Listed actions: the exact KL. Written tokens: k3, from those that were drawn.
            if new.kl is not None:
                kl = masked_mean(new.kl, mask)
                loss = loss + self.kl_weight * kl
                figures["prior_kl"] = kl

        if part != "policy":
            returns = batch.returns[rows, :width]
            error = (new.values - returns) ** 2
            if c.clip_value:  # the larger error counts: clipping never makes a value look better
                old_values = batch.values[rows, :width]
                change = (new.values - old_values).clamp(-c.clip, c.clip)
                error = torch.maximum(error, (old_values + change - returns) ** 2)
            value_loss = 0.5 * masked_mean(error, mask)
            figures["value_loss"] = value_loss
            # Learnt in a step of its own, the value needs no weight against the policy.
            loss = value_loss if part == "value" else loss + c.value * value_loss

        return loss, {name: float(figure.detach()) for name, figure in figures.items()}

    def _evaluate(
        self, steps: Sequence[Step], part: Part, with_kl: bool = False, reference: Tensor | None = None
    ) -> Evaluated:
        """Evaluate decisions by the current weights, in the unit of the config.

        Args:
            steps: The b steps.
            part: Outputs to compute; the others are 0.
            with_kl: Also return the KL divergence from the prior or the reference, if there is one.
            reference: Log-probabilities of the tokens under the reference, shape (b, tokens). They serve to
                estimate the divergence where the policy does not compute it exactly.
        """
        states, decisions = _states_and_decisions(steps)
        new = self.policy.evaluate(states, decisions, part, with_kl)
        if reference is not None and new.kl is None:
            width = new.mask.shape[1]
            log_ratio = reference[:, :width].to(new.logprobs) - new.logprobs  # log pi_ref - log pi
            new = new._replace(kl=k3(log_ratio) * new.mask)
        return new if self.config.unit == "token" else new.whole()

    def stop_if_drifted(self, streams: Sequence[Sequence[Step]], groups: Sequence[int]) -> None:
        """Check steps from which no update is made as an update would check them.

        A policy that says always the same earns the same throughout each group, so that no group teaches: no
        update would come to stop it.

        Args:
            streams: As for :meth:`update`.
            groups: As for :meth:`update`.

        Raises:
            StoppedError: if the KL divergence exceeds ``stop_kl``, or the entropy is below ``stop_entropy``.
        """
        if self.config.stop_kl or self.config.stop_entropy:
            with fitting(self.config.micro):
                self._check_drift(self.passes.fitted(lambda: self.collect(streams, groups)))

    def _check_drift(self, batch: Batch) -> None:
        """Stop a run whose policy has left its reference, or says always the same, before it gets worse.

        The weights are then those from before this update.

        Raises:
            StoppedError: if the KL divergence exceeds ``stop_kl``, or the entropy is below ``stop_entropy``.
        """
        c = self.config
        advice = (
            "Lower learning_rate, or raise kl or entropy; a run's folder keeps the model as it was before "
            "this update."
        )
        problem = ""
        if c.stop_kl and batch.reference_log_ratio is not None:
            kl = float(batch.reference_log_ratio.sum(1).mean())  # (n, tokens) -> (n,) -> scalar
            if kl > c.stop_kl:
                problem = (
                    f"the KL divergence from the reference is {kl:.3g} nats per answer, more than stop_kl, "
                    f"{c.stop_kl:g}"
                )
        if not problem and c.stop_entropy and batch.surprise < c.stop_entropy:
            problem = (
                f"the entropy is {batch.surprise:.3g} nats per token, less than stop_entropy, "
                f"{c.stop_entropy:g}"
            )
        if problem:
            number = self.updates + 1
            raise StoppedError(f"Before update {number} {problem}, so the run was stopped. {advice}")

    # ---- step 3, and checkpoints --------------------------------------------------------------------------

    @torch.no_grad()
    def _check(self, batch: Batch, count: int) -> None:
        """Refuse a policy without finite outputs, before it acts and before a checkpoint holds it.

        The same pass tells how far the update moved the policy (``update_kl``).

        Args:
            batch: All steps of the update.
            count: Number of steps to evaluate again, the first ones.
        """
        new = self._evaluate(batch.steps[:count], "both" if self.critic else "policy")
        if new.logprobs.isnan().any() or not new.values.isfinite().all():
            raise HunchError(_INFINITE)
        old_logprobs = batch.logprobs[:count, : new.mask.shape[1]]
        self.update_kl = float(masked_mean(k3((new.logprobs - old_logprobs).double()), new.mask))

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimiser, number of updates, and the weight of the KL divergence."""
        return {
            "policy": self.policy.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "updates": self.updates,
            "pull": self.kl_weight,  # the name in the checkpoints of all versions
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))  # it would share the tensors
        self.updates = state["updates"]
        self.kl_weight = state.get("pull", self.kl_weight)  # old checkpoints have none


_INFINITE = (
    "A gradient or an output of the policy is not finite, so this update was stopped; the last checkpoint is "
    "sound. A lower learning_rate, or dtype=float32 in the model's spec, may help."
)


def _states_and_decisions(steps: Sequence[Step]) -> tuple[list[State], list[Decision]]:
    return [step.transition.state for step in steps], [step.decision for step in steps]


def last_actions(mask: Tensor) -> IntArray:
    """Return the place of each step's last action among the actions of all steps, shape (n,).

    Args:
        mask: Which actions of a step are real, shape (n, longest); each step has at least one.
    """
    places: IntArray = mask.sum(1).cumsum(0).cpu().numpy() - 1
    return places


def mean_metrics(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over those that have it."""
    names = dict.fromkeys(name for metrics in several for name in metrics)
    return {name: float(np.mean([m[name] for m in several if name in m])) for name in names}


def k3(log_ratio: Tensor) -> Tensor:
    """Estimate KL(p || q) at each token that p drew: ``q/p - 1 - log(q/p)``, never below 0 (Schulman's k3).

    Args:
        log_ratio: log q - log p of the drawn tokens, any shape.

    Returns:
        A tensor of the same shape, whose mean is an unbiased estimate.
    """
    return log_ratio.exp() - log_ratio - 1


def masked_mean(each: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the actions where the mask is True, a scalar; both have shape (b, T)."""
    return (each * mask).sum() / mask.sum()
