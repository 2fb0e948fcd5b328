"""A reward model: a language model with a linear head, fitted to compared texts.

    pairs   <- texts that answer the same prompt, and which one is preferred
    r       <- w . (the state that predicts the text's end, the sum of all states, the text's log-likelihood)
    descend on  -log sigmoid(r(preferred) - r(other)) + centre (r(preferred) + r(other))^2:
                w until convergence, with + l2 |w|^2;  then all weights for some passes
    r       <- r - its mean over all texts of the pairs

Fitting the head first, and then all weights, preserves the pretrained features (Kumar et al.,
"Fine-Tuning Can Distort Pretrained Features and Underperform Out-of-Distribution", ICLR 2022). The sum and
the likelihood are ours. Source: Ouyang et al., "Training language models to follow instructions with human
feedback" (NeurIPS 2022), section 3.5. An ensemble (Coste et al., "Reward Model Ensembles Help Mitigate
Overoptimization", ICLR 2024) returns the mean or the worst of its rewards.

This module imports torch, so import it only where a reward model is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import (
    EvidenceLevel,
    FloatArray,
    HunchError,
    HunchWarning,
    IntArray,
    State,
    Transition,
    World,
    weakest,
)
from hunch.lm import trainable
from hunch.lm.prompts import Prompt
from hunch.lm.speech import text_of
from hunch.lm.training import Learner, Written
from hunch.rl.policy import Passes, cut, fitting
from hunch.rl.preference_losses import pairs as pair_loss
from hunch.roles.policy.settings import Start
from hunch.roles.policy.text import transcript
from hunch.roles.reward.preferences import Compared, Preferences, read_pairs, require_contrast
from hunch.roles.reward.rewarded import RewardSource
from hunch.roles.reward.settings import RewardModelConfig

HELD_OUT = 0.1
"""Share of the pairs that are held out to test the fitted model (ours)."""
UNPAIRED = 48
"""Minimum number of texts without a pair before a warning is given (ours)."""
TOGETHER = 64
"""Texts that are computed at once, unless a method says otherwise."""
BATCH = 64
"""Pairs per update (InstructGPT)."""
CENTRE = 0.01
"""Weight of the squared sum of a pair's rewards, which keeps both near 0 (Eisenstein et al., 2024)."""
HEAD_L2 = 3e-3
"""Weight of the squared length of the head, over standardised features, for small models (our choice)."""
HEAD_L2S = (3e-3, 3e-2, 3e-1, 3.0, 30.0)
"""Weights among which cross-validation chooses for large models."""
FOLDS = 5
"""Parts of the pairs in cross-validation; each is held out once."""


class RewardModel(RewardSource):
    """Rewards a text by a model that was fitted to preferences between other texts.

    Before the fit it collects pairs, two texts after equal states, and all rewards are 0. ``learn``
    fits the model when there are enough pairs. Pairs from a file need no collecting.

    Attributes:
        pairs: All compared texts so far.
        fitted: Whether the model has been fitted to these pairs.
        reports: Results of each fit, see :meth:`records`.

    Args:
        spec: The model below the head, as for :func:`hunch.lm.trainable`.
        preferences: Compares texts; or a file, see :func:`hunch.roles.reward.preferences.read_pairs`.
        config: All settings.
        micro: Texts that are computed at once, in fits and for rewards: fewer need less memory and change
            nothing else.
        start: Initial weights of the model below the head, before each fit.
    """

    def __init__(
        self,
        spec: str,
        preferences: Preferences | str,
        config: RewardModelConfig,
        micro: int = TOGETHER,
        start: Start = "weights",
    ) -> None:
        self.preferences = preferences
        self.config = config
        passes = Passes(micro)  # of all members: what does not fit for one does not for the others
        self.members = [Member(spec, passes, start) for _ in range(config.ensemble)]
        judge = None if isinstance(preferences, str) else preferences.lm
        self.models = {} if judge is None else {"judge": judge}

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weaker evidence level of the model below the head and of the source of preferences."""
        of_preferences = None if isinstance(self.preferences, str) else self.preferences.evidence
        return weakest([self.members[0].lm.evidence, of_preferences])

    @property
    def settings(self) -> dict[str, Any]:
        """The source of the preferences."""
        known = self.preferences if isinstance(self.preferences, str) else type(self.preferences).__name__
        return {"preferences": known}

    def begin(self, world: World, seed: int) -> None:
        """Forget all pairs and rewards."""
        self.rng = np.random.default_rng([seed, 3])
        self.waiting: dict[State, Transition] = {}  # texts without another one after the same state
        self.drawn: list[tuple[Transition, Transition]] = []  # pairs that nobody has compared yet
        self.pairs: list[Compared] = []
        self.fitted = False
        self.warned = False  # that hardly two texts answer the same prompt
        self.wanted = self.config.pairs
        self.mean = 0.0  # of the rewards of all pairs, which is subtracted
        self.reports: list[dict[str, Any]] = []
        for number, member in enumerate(self.members):
            member.begin(seed + number)

    # ---- collecting -----------------------------------------------------------------------------------

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the reward of each text; 0 until the model is fitted.

        Raises:
            HunchError: if a reward is not finite.
        """
        if not self.fitted:
            for t in transitions:
                self._pair(t)
            self._warn_of_few_pairs()
            return [0.0] * len(transitions)
        rewards = self.score([t.state for t in transitions], [t.action for t in transitions])
        return list(map(float, rewards))

    def _pair(self, t: Transition) -> None:
        """Make a pair of a text and an earlier one after the same state, or keep it for a later one."""
        other = self.waiting.pop(t.state, None)
        if other is None:
            self.waiting[t.state] = t
        elif len(self.drawn) < self.wanted:
            self.drawn.append((other, t))

    def _warn_of_few_pairs(self) -> None:
        """Warn once if as many texts as the pairs need have no other text to the same prompt."""
        unpaired = len(self.waiting)
        if self.warned or unpaired < max(UNPAIRED, 2 * self.wanted) or len(self.drawn) > self.wanted // 2:
            return
        self.warned = True
        warnings.warn(
            f"{unpaired:,} texts have no other text to the same prompt, and only "
            f"{len(self.drawn):,} of {self.wanted:,} pairs could be made, so that no reward model is fitted: "
            "set paired (--paired), which gives neighbouring streams the same prompts.",
            HunchWarning,
            stacklevel=2,
        )

    def warn_unfitted(self, texts: int) -> None:
        """Warn at the end of a run that no model was fitted, unless that was said before.

        Args:
            texts: Number of texts that were written.
        """
        if self.warned:
            return
        self.warned = True
        warnings.warn(
            f"The run ends before a reward model is fitted: its {texts:,} texts made {len(self.drawn):,} of "
            f"{self.wanted:,} pairs, because the two texts of a pair answer the same prompt. Set paired "
            "(--paired), which gives neighbouring streams the same prompts, or more steps.",
            HunchWarning,
            stacklevel=2,
        )

    def collect(self) -> None:
        """Start to collect further pairs; the next fit uses all pairs."""
        self.fitted = False
        self.waiting.clear()

    def learn(self) -> dict[str, float]:
        """Fit the model if there are enough pairs, and return metrics."""
        if self.fitted or (not isinstance(self.preferences, str) and len(self.drawn) < self.wanted):
            return {}
        if isinstance(self.preferences, str):
            self.pairs = read_pairs(self.preferences)
        else:
            shares = self.preferences.compare(self.drawn, self.rng)
            for (first, second), share in zip(self.drawn, shares, strict=True):
                self.pairs.append(Compared(first.state, first.action, second.action, share))
        self.drawn = []
        return self.fit(self.pairs)

    # ---- fitting --------------------------------------------------------------------------------------

    def fit(self, pairs: Sequence[Compared]) -> dict[str, float]:
        """Fit all members to pairs, and return the accuracy on those held out.

        Raises:
            UsageError: if the pairs carry no information.
            HunchError: if a reward is not finite.
        """
        require_contrast(pairs)
        different = [pair for pair in pairs if pair.first != pair.second]
        shuffled = [different[int(i)] for i in self.rng.permutation(len(different))]  # n
        n = len(shuffled)
        n_fitted = max(1, round(n * (1 - HELD_OUT)))

        # Fit each member. Several differ by their samples of the pairs (with replacement).
        rewards_of_members = []
        for member in self.members:
            rows = np.arange(n_fitted)
            if len(self.members) > 1:
                rows = self.rng.integers(n_fitted, size=n_fitted)
            rewards_of_members.append(member.fit(shuffled, rows, self.config, self.rng))  # (2 n,)

        # r <- r - mean, so that the mean over all texts of the pairs is 0.
        texts = [text for pair in shuffled for text in (pair.first, pair.second)]  # 2 n
        rewards = self._combined(rewards_of_members, texts)  # (2 n,)
        self.mean = float(rewards.mean())
        self.fitted = True

        # Accuracy: the share of pairs, without ties, whose better text has the larger reward.
        difference = rewards[0::2] - rewards[1::2]  # (n,)
        right: dict[str, list[bool]] = {"accuracy": [], "accuracy_fitted": []}
        for i, pair in enumerate(shuffled):
            if pair.share != 0.5:
                name = "accuracy_fitted" if i < n_fitted else "accuracy"
                right[name].append(bool(difference[i] * (pair.share - 0.5) > 0))
        accuracies = {name: _mean(values) for name, values in right.items()}
        self.reports.append(
            {
                "pairs": len(pairs),
                "equal": len(pairs) - n,
                **accuracies,
                "deviation": float(rewards.std()),
            }
        )
        return {f"pair_{name}": value for name, value in accuracies.items() if not np.isnan(value)}

    def score(self, states: Sequence[State], texts: Sequence[str]) -> FloatArray:
        """Return the rewards of texts, shape (n,).

        Raises:
            HunchError: if a reward is not finite, or memory runs out.
        """
        rewards_of_members = [member(states, texts) for member in self.members]  # each (n,)
        return self._combined(rewards_of_members, texts) - self.mean

    def _combined(self, rewards_of_members: Sequence[Tensor], texts: Sequence[str]) -> FloatArray:
        """Return the rewards of n texts, given those of each member; all of shape (n,).

        Raises:
            HunchError: if a reward is not finite.
        """
        stacked = torch.stack(list(rewards_of_members))  # (members, n)
        combined = stacked.mean(0) if self.config.combine == "mean" else stacked.amin(0)  # (n,)
        rewards: FloatArray = combined.double().numpy()
        not_finite = np.flatnonzero(~np.isfinite(rewards))
        if len(not_finite):
            text, reward = texts[not_finite[0]], rewards[not_finite[0]]
            raise HunchError(f"The reward model gives {text!r} the reward {reward}.")
        return rewards

    def records(self) -> list[dict[str, Any]]:
        """Return one record per fit.

        A record holds the number of ``pairs``, and of those with ``equal`` texts; the share of preferences
        predicted, ``accuracy`` for those held out and ``accuracy_fitted`` for the others; and the standard
        ``deviation`` of the rewards.
        """
        return self.reports

    # ---- state ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return pairs, members and random state."""
        return {
            "rng": self.rng.bit_generator.state,
            "waiting": [t.plain() for t in self.waiting.values()],
            "drawn": [(one.plain(), other.plain()) for one, other in self.drawn],
            "pairs": [(pair.state.plain(), *pair[1:]) for pair in self.pairs],
            "figures": (self.fitted, self.mean, [dict(report) for report in self.reports]),
            "members": [member.state_dict() for member in self.members] if self.fitted else [],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.rng.bit_generator.state = state["rng"]
        self.waiting = {t.state: t for t in map(Transition.of, state["waiting"])}
        self.drawn = [(Transition.of(one), Transition.of(other)) for one, other in state["drawn"]]
        self.pairs = [Compared(State.of(before), *rest) for before, *rest in state["pairs"]]
        self.fitted, self.mean, reports = state["figures"]
        self.reports = [dict(report) for report in reports]
        for member, saved in zip(self.members, state["members"], strict=False):
            member.load_state_dict(saved)


class Member:
    """One reward model of an ensemble.

    Args:
        spec: The model below the head.
        passes: How many texts are computed at once.
        start: Its initial weights.
    """

    def __init__(self, spec: str, passes: Passes, start: Start = "weights") -> None:
        self.lm = trainable(spec)
        self.passes = passes
        self.start = start

    def begin(self, seed: int) -> None:
        """Restore the model's initial weights, and draw those of the head."""
        self.seed = seed
        self.lm.restart(self.start, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = nn.Linear(2 * self.lm.dim + 1, 1).to(self.lm.network.device)

    def __call__(self, states: Sequence[State], texts: Sequence[str]) -> Tensor:
        """Return the reward of each text, without gradients; shape (n,)."""
        prompts = [transcript(state) for state in states]
        return self._rewards(self._features_of_all(prompts, self.lm.as_written(prompts, texts)))

    @torch.no_grad()
    def _rewards(self, features: Tensor) -> Tensor:
        """Return the reward of texts with these features, without gradients; shape (n,)."""
        rewards: Tensor = self.head(features)[:, 0]
        return rewards.cpu()

    def _features(self, prompts: Sequence[Prompt], texts: Sequence[Written]) -> Tensor:
        """Return what the head reads of each text, shape (n, 2 * dim + 1).

        The hidden state that predicts the text's end, the sum of those that predict its tokens, and
        log p(text | prompt).
        """
        read = self.lm.evaluate(prompts, texts)  # states (n, T, dim), logprobs and mask (n, T)
        last_token = read.mask.sum(1) - 1  # (n,)
        last = read.states[torch.arange(len(texts)), last_token]  # (n, dim)
        total = (read.states * read.mask[..., None]).sum(1)  # (n, dim)
        logprob = (read.logprobs * read.mask).sum(1, keepdim=True)  # (n, 1)
        return torch.cat([last.float(), total.float(), logprob.float()], 1)

    def fit(
        self,
        pairs: Sequence[Compared],
        rows: IntArray,
        config: RewardModelConfig,
        rng: np.random.Generator,
    ) -> Tensor:
        """Fit the initial weights to some of n pairs, the head first; return the rewards of all pairs' texts.

        Args:
            pairs: All pairs.
            rows: Places of those that are fitted, which may repeat, shape (m,).
            config: The settings.
            rng: Draws the order of the pairs in the second stage.

        Returns:
            The rewards of all texts, both of each pair side by side, shape (2 n,), without gradients.
        """
        self.begin(self.seed)
        # Side by side, two texts share the prompt, which is then read once.
        prompts = [prompt for pair in pairs for prompt in [transcript(pair.state)] * 2]  # 2 n
        texts = [text for pair in pairs for text in (pair.first, pair.second)]  # 2 n
        fitted = [pairs[row] for row in rows]  # m
        known = []
        for pair in fitted:
            known += [text_of(transcript(pair.state)), pair.first, pair.second]
        self.lm.take(known)  # a growing vocabulary adds the words of the fitted pairs
        written = self.lm.as_written(prompts, texts)
        shares = torch.tensor([pair.share for pair in fitted])  # (m,): preference for the first text

        # 1. The head on the features of the model as it is.
        features = self._features_of_all(prompts, written)  # (2 n, features)
        first, second = features[2 * rows], features[2 * rows + 1]  # (m, features) each
        fold = torch.as_tensor(rows % FOLDS)  # (m,): equal rows are held out together
        self._fit_head(first, second, shares.to(features.device), fold.to(features.device), config.head_l2)

        # 2. All weights: step down the gradient of
        #    - mean [ p log sigmoid(r_1 - r_2) + (1 - p) log sigmoid(r_2 - r_1) ] + CENTRE mean (r_1 + r_2)^2
        #    with a rate that falls linearly to 0.
        learner = Learner.adam([*self.lm.parameters(), *self.head.parameters()])
        minibatches = []
        for _ in range(config.reward_epochs):
            minibatches += list(cut(rng.permutation(len(rows)), BATCH))

        def accumulate(batch: IntArray) -> None:
            """Add the gradients of the loss of some pairs, a few pairs at once."""
            pairs_at_once = max(1, self.passes.micro // 2)  # both texts of a pair share its prompt
            for few in cut(batch, pairs_at_once):
                both = [place for row in rows[few] for place in (2 * row, 2 * row + 1)]  # of the texts
                read = self._features([prompts[i] for i in both], [written[i] for i in both])
                rewards = self.head(read)[:, 0].cpu()  # (2 few,)
                loss = pair_loss(rewards[0::2], rewards[1::2], shares[few], CENTRE)
                share = len(few) / len(batch)  # of this pass in the batch's mean
                (loss * share).backward()  # type: ignore[no-untyped-call]

        for number, batch in enumerate(minibatches):
            self.passes.accumulated(learner.zero_grad, partial(accumulate, batch))
            learner.step(config.reward_rate * (1 - number / len(minibatches)))

        if minibatches:  # the weights have moved
            features = self._features_of_all(prompts, written)
        return self._rewards(features)

    @torch.no_grad()
    def _features_of_all(self, prompts: Sequence[Prompt], texts: Sequence[Written]) -> Tensor:
        """Return the features of many texts, shape (n, 2 * dim + 1), without gradients.

        Raises:
            HunchError: if memory runs out.
        """

        def read() -> Tensor:
            micro = self.passes.micro
            batches = zip(cut(prompts, micro), cut(texts, micro), strict=True)
            return torch.cat([self._features(*few) for few in batches])

        with fitting(self.passes.micro):
            return self.passes.fitted(read)

    def _fit_head(
        self, first: Tensor, second: Tensor, shares: Tensor, fold: Tensor, head_l2: float | None
    ) -> None:
        """Fit the head to pairs.

        Args:
            first: Features of the first text of each pair, shape (m, features).
            second: The same of the second texts.
            shares: The preference for the first text of each pair, shape (m,).
            fold: See :func:`best_head_l2`.
            head_l2: See :attr:`RewardModelConfig.head_l2`.
        """
        both = torch.cat([first, second])  # (2 m, features)
        mean = both.mean(0)
        deviation = both.std(0) + 1e-6
        first = (first - mean) / deviation
        second = (second - mean) / deviation
        if head_l2 is None:
            head_l2 = best_head_l2(first, second, shares, fold) if self.lm.large else HEAD_L2
        weights = head_weights(first, second, shares, head_l2)
        # The head reads features that are not standardised: w . (x - mean) / deviation.
        with torch.no_grad():
            self.head.weight[0] = weights / deviation
            self.head.bias[0] = -(weights * mean / deviation).sum()

    def state_dict(self) -> dict[str, Any]:
        """Return the weights and the vocabulary."""
        return {"lm": self.lm.state_dict(), "head": self.head.state_dict(), "words": list(self.lm.words)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.lm.take(state["words"])
        self.lm.load_state_dict(state["lm"])
        self.head.load_state_dict(state["head"])


def head_weights(first: Tensor, second: Tensor, shares: Tensor, head_l2: float) -> Tensor:
    """Return the weights w of a head that minimise the loss of the pairs, + head_l2 |w|^2.

    Args:
        first: Standardised features of the first text of each pair, shape (n, features).
        second: The same of the second texts.
        shares: The preference for the first text of each pair, shape (n,).
        head_l2: Weight of the squared length.

    Returns:
        Shape (features,).
    """
    weights = torch.zeros_like(first[0], requires_grad=True)
    solver = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        of_pairs = pair_loss(first @ weights, second @ weights, shares, CENTRE)
        value = of_pairs + head_l2 * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    solver.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach()


def best_head_l2(first: Tensor, second: Tensor, shares: Tensor, fold: Tensor) -> float:
    """Return the weight of the squared length with the smallest loss on pairs that were held out.

    The 1,153 features of a model of 135 million weights outnumber some hundred pairs: a head that is hardly
    shrunk fits those wholly, and says little of others. What is held out is compared by the likelihood of its
    preferences alone, without the weight that centres the rewards.

    Args:
        first: Standardised features of the first text of each pair, shape (m, features).
        second: The same of the second texts.
        shares: The preference for the first text of each pair, shape (m,).
        fold: The part, 0 to FOLDS - 1, in which each pair is held out, shape (m,).
    """
    losses = np.zeros(len(HEAD_L2S))
    for number in range(FOLDS):
        fitted, held_out = fold != number, fold == number
        if not fitted.any() or not held_out.any():
            continue
        for place, head_l2 in enumerate(HEAD_L2S):
            weights = head_weights(first[fitted], second[fitted], shares[fitted], head_l2)
            loss = pair_loss(first[held_out] @ weights, second[held_out] @ weights, shares[held_out])
            losses[place] += float(loss) * int(held_out.sum())
    return HEAD_L2S[int(np.argmin(np.nan_to_num(losses, nan=np.inf)))]


def _mean(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")
