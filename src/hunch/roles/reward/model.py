"""A reward model: a language model with one number at the last token, fitted to compared texts.

    pairs   <- texts that answer the same prompt, and which is preferred
    r       <- w . h, where h is the state from which the model predicts the text's end
    descend on  -log sigmoid(r(preferred) - r(other)),  all weights, for some passes over the pairs
    r       <- r - its mean over all texts of the pairs

Source: Ouyang et al., "Training language models to follow instructions with human feedback" (NeurIPS 2022),
section 3.5. An ensemble (Coste et al., "Reward Model Ensembles Help Mitigate Overoptimization", ICLR 2024)
returns the mean or the worst of its rewards.

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
from hunch.lm.prompts import text_of
from hunch.lm.training import Learner
from hunch.rl.policy import cut, fitting
from hunch.rl.preference_losses import pairs as pair_loss
from hunch.roles.policy.text import transcript
from hunch.roles.reward.preferences import Compared, Preferences, read_pairs, require_contrast
from hunch.roles.reward.rewarded import RewardSource
from hunch.roles.reward.settings import RewardModelConfig

HELD_OUT = 0.1
"""Share of the pairs on which the fitted model is tested."""
TOGETHER = 128
"""Texts that are judged at once."""
BATCH, CENTRE = 32, 0.01
"""Pairs per update (InstructGPT: 64), and the weight of the squared sum of a pair's rewards, which keeps them
near 0 (Eisenstein et al., 2024)."""


class RewardModel(RewardSource):
    """Rewards a text by what preferences between other texts say.

    Until it is fitted it collects: two texts after equal states are a pair, and all rewards are 0. ``learn``
    fits it once there are enough pairs. Pairs from a file need no collecting.

    Attributes:
        pairs: All compared texts so far.
        fitted: Whether there are rewards.
        report: Results of the last fit, see :meth:`records`.

    Args:
        spec: The model on which it is built, as for :func:`hunch.lm.trainable`.
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
        """The weaker evidence level of the trunk and of who compares."""
        return weakest([self.members[0].lm.evidence, getattr(self.preferences, "evidence", None)])

    @property
    def settings(self) -> dict[str, Any]:
        """Who compares."""
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
        """Collect as many pairs again, and then fit to all of them."""
        self.fitted = False
        self.waiting.clear()

    def learn(self) -> dict[str, float]:
        """Fit the model if there are enough pairs."""
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
            UsageError: if nothing can be learned from the pairs.
            HunchError: if a reward is not finite.
        """
        require_contrast(pairs)
        known = [own for own in pairs if own.first != own.second]
        mixed = [known[int(i)] for i in self.rng.permutation(len(known))]
        cut_at = max(1, round(len(mixed) * (1 - HELD_OUT)))
        for member in self.members:
            member.fit(mixed[:cut_at], self.config, self.rng)
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
            HunchError: if one is not finite.
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
        """Return a record for each fit.

        It holds the number of ``pairs``, and of those with ``equal`` texts; the share of preferences that are
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
        spec: The model on which it is built.
    """

    def __init__(self, spec: str) -> None:
        self.lm = trainable(spec)

    def begin(self, seed: int) -> None:
        """Restore the model's initial weights, and draw those of the number at the end."""
        self.seed = seed
        self.lm.restart("weights", seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = nn.Linear(self.lm.dim, 1).to(self.lm.network.device)

    def __call__(self, states: Sequence[State], texts: Sequence[str]) -> Tensor:
        """Return the reward of each text, with gradients; shape (n,)."""
        prompts = [transcript(state) for state in states]
        found = self.lm.judged(prompts, self.lm.spelled(prompts, texts))
        last = found.states[torch.arange(len(texts)), found.mask.sum(1) - 1]
        rewards: Tensor = self.head(last)[:, 0]
        return rewards.float().cpu()

    def fit(self, pairs: Sequence[Compared], config: RewardModelConfig, rng: np.random.Generator) -> None:
        """Fit to pairs, from the initial weights."""
        self.begin(self.seed)
        self.lm.take(
            text for own in pairs for text in (text_of(transcript(own.state)), own.first, own.second)
        )
        weights = [*self.lm.parameters(), *self.head.parameters()]
        learner = Learner(torch.optim.Adam(weights, foreach=True), clip=weights)
        batches = [own for _ in range(config.reward_epochs) for own in _batches(pairs, BATCH, rng)]
        for number, batch in enumerate(batches):
            rewards = self(
                [own.state for own in batch] * 2, [*(o.first for o in batch), *(o.second for o in batch)]
            )
            first, second = rewards[: len(batch)], rewards[len(batch) :]
            shares = torch.tensor([own.share for own in batch])
            loss = pair_loss(first, second, shares, CENTRE)
            learner.update(loss, config.reward_rate * (1 - number / len(batches)))

    def state_dict(self) -> dict[str, Any]:
        """Return the weights and the words."""
        return {"lm": self.lm.state_dict(), "head": self.head.state_dict(), "words": list(self.lm.words)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.lm.take(state["words"])
        self.lm.load_state_dict(state["lm"])
        self.head.load_state_dict(state["head"])


def _batches(pairs: Sequence[Compared], size: int, rng: np.random.Generator) -> Sequence[Sequence[Compared]]:
    return [[pairs[int(i)] for i in rows] for rows in cut(rng.permutation(len(pairs)), size)]


def _mean(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")
