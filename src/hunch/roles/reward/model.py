"""A reward model: a language model with a linear head, fitted to compared texts.

    pairs   <- texts that answer the same prompt, and which one is preferred
    r       <- w . (the state that predicts the text's end, the sum of all states, the text's log-likelihood)
    descend on  -log sigmoid(r(preferred) - r(other)):  w until convergence, then all weights for some passes
    r       <- r - its mean over all texts of the pairs

Fitting the head first, and then all weights, preserves the pretrained features (Kumar et al.,
"Fine-Tuning Can Distort Pretrained Features and Underperform Out-of-Distribution", ICLR 2022). The sum and
the likelihood are ours. Source: Ouyang et al., "Training language models to follow instructions with human
feedback" (NeurIPS 2022), section 3.5. An ensemble (Coste et al., "Reward Model Ensembles Help Mitigate
Overoptimization", ICLR 2024) returns the mean or the worst of its rewards.

This module imports torch, so import it only where a reward model is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import EvidenceLevel, FloatArray, HunchError, State, Transition, World, weakest
from hunch.lm import trainable
from hunch.lm.prompts import Prompt
from hunch.lm.speech import text_of
from hunch.lm.training import Learner, Written
from hunch.rl.policy import cut, fitting
from hunch.rl.preference_losses import pairs as pair_loss
from hunch.roles.policy.text import transcript
from hunch.roles.reward.preferences import Compared, Preferences, read_pairs, require_contrast
from hunch.roles.reward.rewarded import RewardSource
from hunch.roles.reward.settings import RewardModelConfig

HELD_OUT = 0.1
"""Share of the pairs that are held out to test the fitted model (ours)."""
TOGETHER = 128
"""Texts per batch when texts are scored."""
BATCH, CENTRE = 64, 0.01
"""Pairs per update (InstructGPT), and the weight of the squared sum of a pair's rewards, which keeps both
near 0 (Eisenstein et al., 2024)."""
SHRINK = 3e-3
"""Weight of the squared length of the head, over standardised features (our choice)."""


class RewardModel(RewardSource):
    """Rewards a text by a model that was fitted to preferences between other texts.

    Before the fit it collects pairs, two texts after equal states, and all rewards are 0. ``learn``
    fits the model when there are enough pairs. Pairs from a file need no collecting.

    Attributes:
        pairs: All compared texts so far.
        fitted: Whether the model has been fitted.
        report: Results of the last fit, see :meth:`records`.

    Args:
        spec: The model below the head, as for :func:`hunch.lm.trainable`.
        preferences: Compares texts; or a file, see :func:`hunch.roles.reward.preferences.read_pairs`.
        config: All settings.
    """

    def __init__(self, spec: str, preferences: Preferences | str, config: RewardModelConfig) -> None:
        self.preferences, self.config = preferences, config
        self.members = [Member(spec) for _ in range(config.ensemble)]
        judge = getattr(preferences, "lm", None)
        self.models = {} if judge is None else {"judge": judge}

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weaker evidence level of the model below the head and of the source of preferences."""
        return weakest([self.members[0].lm.evidence, getattr(self.preferences, "evidence", None)])

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
        self.fitted, self.wanted, self.mean = False, self.config.pairs, 0.0
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
            return [0.0] * len(transitions)
        return list(map(float, self.score([t.state for t in transitions], [t.action for t in transitions])))

    def _pair(self, t: Transition) -> None:
        other = self.waiting.pop(t.state, None)
        if other is None:
            self.waiting[t.state] = t
        elif len(self.drawn) < self.wanted:
            self.drawn.append((other, t))

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
            self.pairs += [
                Compared(one.state, one.action, other.action, share)
                for (one, other), share in zip(self.drawn, shares, strict=True)
            ]
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
        known = [own for own in pairs if own.first != own.second]
        mixed = [known[int(i)] for i in self.rng.permutation(len(known))]
        cut_at = max(1, round(len(mixed) * (1 - HELD_OUT)))
        for member in self.members:  # several differ by their samples of the pairs
            own = self.rng.integers(cut_at, size=cut_at) if len(self.members) > 1 else range(cut_at)
            member.fit([mixed[int(i)] for i in own], self.config, self.rng)
        self.fitted, self.mean = True, 0.0
        states = [own.state for own in mixed] * 2
        rewards = self.score(states, [own.first for own in mixed] + [own.second for own in mixed])
        self.mean = float(rewards.mean())
        apart = rewards[: len(mixed)] - rewards[len(mixed) :]
        right = [
            gap * (own.share - 0.5) > 0 for gap, own in zip(apart, mixed, strict=True) if own.share != 0.5
        ]
        shown = sum(own.share != 0.5 for own in mixed[:cut_at])
        told = {"accuracy": _mean(right[shown:]), "accuracy_fitted": _mean(right[:shown])}
        deviation = float(rewards.std())
        self.reports.append(
            {"pairs": len(pairs), "equal": len(pairs) - len(known), **told, "deviation": deviation}
        )
        return {f"pair_{name}": value for name, value in told.items() if value == value}

    def score(self, states: Sequence[State], texts: Sequence[str]) -> FloatArray:
        """Return the rewards of texts, shape (n,).

        Raises:
            HunchError: if a reward is not finite.
        """
        with torch.no_grad(), fitting(TOGETHER):
            each = torch.stack(
                [
                    torch.cat(
                        [own(*few) for few in zip(cut(states, TOGETHER), cut(texts, TOGETHER), strict=True)]
                    )
                    for own in self.members
                ]
            )
        found: FloatArray = (each.mean(0) if self.config.combine == "mean" else each.amin(0)).double().numpy()
        if len(bad := np.flatnonzero(~np.isfinite(found))):
            raise HunchError(f"The reward model gives {texts[bad[0]]!r} the reward {found[bad[0]]}.")
        return found - self.mean

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
            "pairs": [(own.state.plain(), *own[1:]) for own in self.pairs],
            "figures": (self.fitted, self.mean, [dict(own) for own in self.reports]),
            "members": [member.state_dict() for member in self.members] if self.fitted else [],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.rng.bit_generator.state = state["rng"]
        self.waiting = {t.state: t for t in map(Transition.of, state["waiting"])}
        self.drawn = [(Transition.of(one), Transition.of(other)) for one, other in state["drawn"]]
        self.pairs = [Compared(State.of(own), *rest) for own, *rest in state["pairs"]]
        self.fitted, self.mean, reports = state["figures"]
        self.reports = [dict(own) for own in reports]
        for member, own in zip(self.members, state["members"], strict=False):
            member.load_state_dict(own)


class Member:
    """One reward model of an ensemble.

    Args:
        spec: The model below the head.
    """

    def __init__(self, spec: str) -> None:
        self.lm = trainable(spec)

    def begin(self, seed: int) -> None:
        """Restore the model's initial weights, and draw those of the head."""
        self.seed = seed
        self.lm.restart("weights", seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = nn.Linear(2 * self.lm.dim + 1, 1).to(self.lm.network.device)

    def __call__(self, states: Sequence[State], texts: Sequence[str]) -> Tensor:
        """Return the reward of each text, with gradients; shape (n,)."""
        prompts = [transcript(state) for state in states]
        rewards: Tensor = self.head(self._features(prompts, self.lm.spelled(prompts, texts)))[:, 0]
        return rewards.cpu()

    def _features(self, prompts: Sequence[Prompt], texts: Sequence[Written]) -> Tensor:
        """Return what the head reads of each text, shape (n, 2 * dim + 1)."""
        found = self.lm.judged(prompts, texts)
        last = found.states[torch.arange(len(texts)), found.mask.sum(1) - 1]
        whole = (found.states * found.mask[..., None]).sum(1)
        likely = (found.logprobs * found.mask).sum(1, keepdim=True)
        return torch.cat([last.float(), whole.float(), likely.float()], 1)

    def fit(self, pairs: Sequence[Compared], config: RewardModelConfig, rng: np.random.Generator) -> None:
        """Fit the initial weights to pairs: the head first, and then all weights."""
        self.begin(self.seed)
        n, prompts = len(pairs), [transcript(own.state) for own in pairs] * 2
        texts = [own.first for own in pairs] + [own.second for own in pairs]
        self.lm.take(text for both in zip(map(text_of, prompts), texts, strict=True) for text in both)
        written = self.lm.spelled(prompts, texts)
        shares = torch.tensor([own.share for own in pairs])
        with torch.no_grad():
            both = zip(cut(prompts, TOGETHER), cut(written, TOGETHER), strict=True)
            features = torch.cat([self._features(*few) for few in both])
        self._fit_head(features, shares.to(features.device))
        learner = Learner.adam([*self.lm.parameters(), *self.head.parameters()])
        batches = [own for _ in range(config.reward_epochs) for own in cut(rng.permutation(n), BATCH)]
        for number, rows in enumerate(batches):
            two = [*rows, *(n + rows)]
            read = self._features([prompts[i] for i in two], [written[i] for i in two])
            first, second = self.head(read)[:, 0].cpu().chunk(2)
            loss = pair_loss(first, second, shares[rows], CENTRE)
            learner.update(loss, config.reward_rate * (1 - number / len(batches)))

    def _fit_head(self, features: Tensor, shares: Tensor) -> None:
        """Fit the head to features, those of all first texts before those of the second ones."""
        mean, spread = features.mean(0), features.std(0) + 1e-6
        first, second = ((features - mean) / spread).chunk(2)
        weights = torch.zeros_like(mean, requires_grad=True)
        solver = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            solver.zero_grad()
            value = (
                pair_loss(first @ weights, second @ weights, shares, CENTRE) + SHRINK * weights.square().sum()
            )
            value.backward()  # type: ignore[no-untyped-call]
            return value

        solver.step(loss)  # type: ignore[no-untyped-call]
        with torch.no_grad():
            self.head.weight[0] = weights / spread
            self.head.bias[0] = -(weights * mean / spread).sum()

    def state_dict(self) -> dict[str, Any]:
        """Return the weights and the vocabulary."""
        return {"lm": self.lm.state_dict(), "head": self.head.state_dict(), "words": list(self.lm.words)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.lm.take(state["words"])
        self.lm.load_state_dict(state["lm"])
        self.head.load_state_dict(state["head"])


def _mean(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")
