"""Offline RLHF: a model that writes learns from recorded texts and their rewards, without writing.

Algorithms (Hu et al., "Aligning Language Models with Offline Learning from Human Feedback", 2023; others):
all minimise a loss over the log-probabilities of recorded texts y after prompts x::

    likelihood   -log p(y | x)                                   the control: rewards are ignored
    filter       -log p(y | x), where r(x, y) is in the top share
    weighted     -exp(z(r) / beta) log p(y | x), weights of mean 1          reward-weighted regression
    conditioned  -log p(y | level of r, x); write after the highest level   decision transformer
    dpo          -log sigmoid(beta (g(better) - g(worse))),  g = log p / p_ref        (Rafailov et al., 2023)
    kto          1 - sigmoid(+-beta (g - its mean for other prompts))            (Ethayarajh et al., 2024)

Rewards are the recorded ones. dpo compares texts that answer the same prompt. For kto, texts with a
reward above the mean are good. No code with thresholds, temperatures or levels is published:
those here are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np

from hunch.core import State, UsageError, World
from hunch.methods.tune.sft import METHOD as SFT
from hunch.methods.tune.text import Example, RecordedAgent, RecordedConfig
from hunch.ranges import NonNegativeInt, PositiveFloat, Share
from hunch.rl.policy import Decision

if TYPE_CHECKING:
    from torch import Tensor

LEVELS: Final = 5
"""Number of reward levels in prompts, each with as many texts."""
Loss = Literal["likelihood", "filter", "weighted", "conditioned", "dpo", "kto"]


@dataclass(frozen=True, kw_only=True)
class OfflineRLHFConfig(RecordedConfig):
    """Settings of learning from recorded texts."""

    loss: Loss = "dpo"
    """Loss function: likelihood, filter, weighted, conditioned, dpo or kto; see the method's page."""
    top: Share = 0.2
    """With filter: share of the texts, those with the highest rewards, that are learnt (ours)."""
    beta: PositiveFloat = 0.1
    """With dpo or kto: weight of the KL divergence from the initial model (papers)."""
    spread: PositiveFloat = 1.0
    """With weighted: temperature of the standardised rewards; lower imitates the best more (ours)."""
    request: NonNegativeInt = LEVELS - 1
    """With conditioned: reward level in the prompt when the model writes, from 0 to 4 (highest)."""
    shuffle: bool = False
    """Give each recorded text the reward of another one (control)."""
    learning_rate: PositiveFloat = 3e-4
    """Adam learning rate, which falls linearly to 0 over the run, for a model under a million weights (our
    choice; DPO: 1e-6)."""


class OfflineRLHF(RecordedAgent):
    """The agent of offline RLHF; arguments as for :class:`~hunch.methods.tune.text.TextAgent`."""

    config_class: ClassVar[type[Any]] = OfflineRLHFConfig

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that a model is named and that the level exists."""
        super().check(config, specs)
        if config.request >= LEVELS:
            raise UsageError(f"request is a level from 0 to {LEVELS - 1}, not {config.request}.")

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and select the texts for the loss."""
        self.pairs: list[tuple[int, int]] = []
        self.weights = np.ones(0)
        super().begin(replace(world, examples=()), seed)  # demonstrations have no rewards
        if self.config.loss == "conditioned" and self.examples:
            self._require_levels()

    def chosen(self, known: list[Example]) -> list[Example]:
        """Return the texts that the loss uses; with levels, their prompts name one."""
        c, rewards = self.config, np.array([own.reward for own in known])
        if not known:
            return []
        if c.loss != "likelihood" and (np.isnan(rewards).any() or np.ptp(rewards) == 0):
            raise UsageError(f"--loss {c.loss} needs recorded texts whose rewards differ: give --data.")
        if c.shuffle:
            rewards = self.rng.permutation(rewards)
            known = [own._replace(reward=float(r)) for own, r in zip(known, rewards, strict=True)]
        scaled = (rewards - rewards.mean()) / (rewards.std() or 1.0)
        if c.loss == "filter":
            return [own for own in known if own.reward >= np.quantile(rewards, 1 - c.top)]
        if c.loss == "weighted":
            self.weights = np.exp(scaled / c.spread) / np.exp(scaled / c.spread).mean()
        if c.loss == "conditioned":
            edges = np.quantile(rewards, np.arange(1, LEVELS) / LEVELS)
            levels = np.searchsorted(edges, rewards, side="right")
            return [own._replace(state=at(own.state, int(k))) for own, k in zip(known, levels, strict=True)]
        if c.loss == "dpo":
            self.pairs = pairs(known)
        if c.loss == "kto":
            self.good = rewards > rewards.mean()
        return known

    def _require_levels(self) -> None:
        """Refuse a tokenizer to which all levels are the same."""
        told = {self.lm.spelled([""], [str(level)])[0].tokens for level in range(LEVELS)}
        if len(told) < LEVELS:
            raise UsageError(
                f"{self.lm.name} has no words for the levels 0 to {LEVELS - 1} of conditioned: use a model "
                "whose tokenizer has them, or scratch."
            )

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write a text in each state; with levels, the prompt names the requested one."""
        if self.config.loss == "conditioned":
            states = [at(state, self.config.request) for state in states]
        return super().write(states, rng)

    # ---- losses ---------------------------------------------------------------------------------------

    def loss(self) -> Tensor:
        """Return the loss of a random batch."""
        if self.config.loss == "dpo":
            return self.dpo()
        if self.config.loss == "kto":
            return self.kto()
        import torch

        from hunch.rl.preference_losses import likelihood  # loads torch

        rows = self.draw()
        weights = torch.tensor(self.weights[rows]).float() if self.config.loss == "weighted" else None
        return likelihood(self.judged(rows), weights)

    def dpo(self) -> Tensor:
        """Return the DPO loss of a random batch of pairs."""
        from hunch.rl.preference_losses import dpo  # loads torch

        drawn = [self.pairs[i] for i in self.rng.integers(len(self.pairs), size=self.config.batch_size)]
        better, worse = zip(*drawn, strict=True)
        ratios = self.ratios([*better, *worse])
        return dpo(ratios[: len(drawn)], ratios[len(drawn) :], self.config.beta)

    def kto(self) -> Tensor:
        """Return the KTO loss of a random batch; the divergence is estimated on texts of other prompts."""
        import torch

        from hunch.rl.preference_losses import kto  # loads torch

        rows = self.draw()
        with torch.no_grad():
            others = self.ratios(rows, texts=[*rows[1:], rows[0]])
        return kto(self.ratios(rows), torch.tensor(self.good[rows]), others, self.config.beta)

    def ratios(self, rows: Sequence[int], texts: Sequence[int] | None = None) -> Tensor:
        """Return log p / p_ref of texts (default: the examples') after the examples' prompts, shape (n,)."""
        from hunch.rl.preference_losses import log_ratios  # loads torch

        states = [self.examples[i].state for i in rows]
        decisions = [self.decisions[i] for i in texts or rows]
        known = self.policy.reference_logprobs(states, decisions)
        assert known is not None
        found = self.policy.evaluate(states, decisions, part="policy")
        return log_ratios(found, found._replace(logprobs=known))


def at(state: State, level: int) -> State:
    """Return a state whose observation begins with the level of reward."""
    return replace(state, observation=f"{level} {state.observation}")


def pairs(known: Sequence[Example]) -> list[tuple[int, int]]:
    """Return all pairs of texts of one group with different rewards, the better one first.

    Raises:
        UsageError: if there are no such pairs.
    """
    groups: dict[int, list[int]] = {}
    for i, own in enumerate(known):
        if own.group is not None:
            groups.setdefault(own.group, []).append(i)
    if not groups:
        raise UsageError("--loss dpo compares texts of one prompt, and the data have no groups.")
    found = [
        (i, j) if known[i].reward > known[j].reward else (j, i)
        for rows in groups.values()
        for i, j in combinations(rows, 2)
        if known[i].reward != known[j].reward and known[i].text != known[j].text
    ]
    if not found:
        raise UsageError("No group of the data has two different texts with different rewards to compare.")
    return found


METHOD = replace(
    SFT,
    name="offline-rlhf",
    agent_class=OfflineRLHF,
    summary="a model that writes learns from recorded texts and their rewards, by one of six losses",
    paper="Hu et al., Aligning Language Models with Offline Learning from Human Feedback, 2023; Rafailov et "
    "al., Direct Preference Optimization, NeurIPS 2023",
    environments="free text of one step",
    suggested=(),
    control="shuffled rewards",
    data="needed",
    changeable=("request", "temperature"),
)
