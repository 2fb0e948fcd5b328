"""Offline RLHF: a model that writes learns from recorded texts and their rewards, without writing.

Algorithms (Hu et al., "Aligning Language Models with Offline Learning from Human Feedback", 2023; others):
all minimise a loss over the log-probabilities of recorded texts y after prompts x::

    likelihood   -log p(y | x)                                   the control: rewards are ignored
    filter       -log p(y | x), where r(x, y) is in the top share
    weighted     -exp(z(r) / spread) log p(y | x), weights of mean 1        reward-weighted regression
    conditioned  -log p(y | level of r, x); write after the highest level   decision transformer
    dpo          -log sigmoid(beta (g(better) - g(worse)))                     (Rafailov et al., 2023)
    kto          1 - sigmoid(+-beta (g - z)),  + for good texts, - for others  (Ethayarajh et al., 2024)

    g = log p(y | x) - log p_ref(y | x),  p_ref the model before training: sums over the tokens of y
    z = max(0, mean of g over the batch, each text after the prompt of another one);  no gradient
    z(r) = (r - mean) / standard deviation over the recorded texts

Each update is a step of Adam on a random batch (:meth:`RecordedAgent.step`). The norm of its gradient is at
most 1, and the learning rate falls to 0.

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

from hunch.core import FloatArray, IntArray, State, UsageError, World
from hunch.methods.tune.recorded import Example, RecordedAgent, RecordedConfig
from hunch.methods.tune.sft import METHOD as SFT
from hunch.ranges import NonNegativeInt, PositiveFloat, Share
from hunch.rl.policy import cut

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
        """Check before loading that the model can be trained, the level exists, a batch suits the loss."""
        super().check(config, specs)
        if config.loss == "kto" and config.batch_size < 2:
            raise UsageError(
                "kto measures the divergence z with the text of another example of the batch: set batch_size "
                "to at least 2."
            )
        if config.request >= LEVELS:
            raise UsageError(f"request is a level from 0 to {LEVELS - 1}, not {config.request}.")

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and select the texts for the loss.

        Raises:
            UsageError: if the recorded texts do not suit the loss, or one does not fit into the context.
        """
        self.pairs: list[tuple[int, int]] = []  # dpo: better and worse example
        self.weights = np.ones(0)  # weighted: weight of each example
        self.good = np.zeros(0, dtype=bool)  # kto: whether each example is good
        super().begin(replace(world, examples=()), seed)  # demonstrations have no rewards
        if self.config.loss == "conditioned" and self.examples:
            self._require_levels()
        if self.config.loss == "kto" and self.examples:
            # z pairs each text with the prompt of another one, by chance: any two may meet.
            prompts = [self.policy.prompt(example.state) for example in self.examples]
            longest = max((decision.tokens for decision in self.decisions), key=len)
            what = "A prompt with the longest text, which kto may judge after it,"
            self.lm.require_room(prompts, [longest] * len(prompts), what)

    def select(self, known: list[Example]) -> list[Example]:
        """Return the examples that the loss uses; with levels, their prompts name one."""
        c = self.config
        if not known:
            return []
        rewards = np.array([example.reward for example in known])  # (n,)
        if c.loss != "likelihood" and np.isnan(rewards).any():
            raise UsageError(f"--loss {c.loss} needs recorded texts with rewards: give --data.")
        if c.loss != "likelihood" and np.ptp(rewards) == 0:
            raise UsageError(
                f"--loss {c.loss} needs recorded texts whose rewards differ, and here every reward is "
                f"{rewards[0]:g}: --loss likelihood learns without rewards."
            )
        if c.shuffle:
            rewards = self.rng.permutation(rewards)
            known = [example._replace(reward=float(r)) for example, r in zip(known, rewards, strict=True)]

        if c.loss == "filter":
            least = np.quantile(rewards, 1 - c.top)
            # Where most have the lowest reward, what is better than it is kept; with top 1, all.
            if least == rewards.min() and c.top < 1:
                return [example for example in known if example.reward > least]
            return [example for example in known if example.reward >= least]
        if c.loss == "weighted":
            # exp(z / spread) / its mean, where z is the standardised reward.
            z = (rewards - rewards.mean()) / (rewards.std() or 1.0)
            weights = np.exp((z - z.max()) / c.spread)  # the same after the division, without overflow
            self.weights = weights / weights.mean()
        if c.loss == "conditioned":
            levels = levels_of(rewards)
            return [
                example._replace(state=at(example.state, int(level)))
                for example, level in zip(known, levels, strict=True)
            ]
        if c.loss == "dpo":
            self.pairs = preference_pairs(known)
        if c.loss == "kto":
            self.good = rewards > rewards.mean()
        return known

    def _require_levels(self) -> None:
        """Refuse a tokenizer to which the levels of the texts and the one that is requested are the same."""
        levels = {example.state.observation.split()[0] for example in self.examples}
        levels.add(str(self.config.request))
        tokens = {self.lm.as_written([""], [level])[0].tokens for level in levels}
        if len(tokens) < len(levels):
            raise UsageError(
                f"{self.lm.name} has no words for the levels 0 to {LEVELS - 1} of conditioned: use a model "
                "whose tokenizer has them, or scratch."
            )

    def prompted(self, states: Sequence[State]) -> Sequence[State]:
        """Return the states with the requested level before their prompts, if the loss is ``conditioned``.

        So ``kl`` of an evaluation compares the model after such a prompt with the model before training after
        the prompt alone, which is what that one would have been asked.
        """
        if self.config.loss != "conditioned":
            return states
        return [at(state, self.config.request) for state in states]

    # ---- the update -----------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Make one update by the loss of the config.

        Raises:
            HunchError: if the loss is not finite, or memory runs out.
        """
        if not self.examples:
            return {}
        if self.config.loss == "dpo":
            drawn = self.rng.integers(len(self.pairs), size=self.config.batch_size)
            pairs = [self.pairs[i] for i in drawn]
            metrics = self.passes.accumulated(self.learner.zero_grad, lambda: self.dpo(pairs))
        else:
            rows = self.draw()  # batch_size
            loss = self.kto if self.config.loss == "kto" else self.likelihood
            metrics = {"loss": self.passes.accumulated(self.learner.zero_grad, lambda: loss(rows))}
        self.step(metrics["loss"])
        return metrics

    # Each of these accumulates the gradients of its loss on what was drawn, `micro` texts or pairs at a time,
    # and returns the loss; that of pairs with other figures. The gradient step is made by `learn`.

    def likelihood(self, rows: Sequence[int]) -> float:
        """Accumulate gradients of  - sum over texts y of w(y) log p(y | x) / number of tokens.

        The weight w is 1 but in ``weighted``.
        """
        import torch

        tokens = self.tokens(rows)
        loss = 0.0
        for few in cut(rows, self.passes.micro):
            texts = self.evaluate(few)  # log-probabilities and mask: (few, longest text)
            logprobs = texts.logprobs
            if self.config.loss == "weighted":
                weights = torch.tensor(self.weights[few]).float()  # (few,)
                logprobs = logprobs * weights.to(logprobs)[:, None]
            partial_loss = -(logprobs * texts.mask).sum() / tokens
            partial_loss.backward()  # type: ignore[no-untyped-call]
            loss += float(partial_loss.detach())
        return loss

    def dpo(self, pairs: Sequence[tuple[int, int]]) -> dict[str, float]:
        """Accumulate gradients of  - mean log sigmoid(beta (g(better) - g(worse)))  over random pairs.

        The loss falls as well where both texts become less likely, and the worse one more so. Therefore the
        means of g are logged: where ``better`` is below 0, the model leaves the texts that it should prefer.
        """
        from hunch.rl.preference_losses import accumulate_dpo  # loads torch

        return accumulate_dpo(pairs, self.log_ratios, self.passes.micro, self.config.beta)

    def kto(self, rows: Sequence[int]) -> float:
        """Accumulate gradients of  mean (1 - sigmoid(+-beta (g - z)))  over random texts."""
        import torch

        from hunch.rl.preference_losses import kto  # loads torch

        beta, micro = self.config.beta, self.passes.micro

        # z, the divergence from the reference: g of each text after the prompt of the one before it.
        others = [*rows[1:], rows[0]]
        with torch.no_grad():
            g_others = torch.cat(
                [
                    self.log_ratios(prompts, texts)
                    for prompts, texts in zip(cut(rows, micro), cut(others, micro), strict=True)
                ]
            )  # (batch_size,)

        loss = 0.0
        for few in cut(rows, micro):
            g = self.log_ratios(few)  # (few,)
            good = torch.tensor(self.good[few], device=g.device)
            share = len(few) / len(rows)  # of this pass in the batch's mean
            partial_loss = kto(g, good, g_others, beta) * share
            partial_loss.backward()  # type: ignore[no-untyped-call]
            loss += float(partial_loss.detach())
        return loss

    def log_ratios(self, rows: Sequence[int], texts: Sequence[int] | None = None) -> Tensor:
        """Return g = log p(y | x) - log p_ref(y | x), shape (n,), with gradients of the first term.

        Args:
            rows: Examples whose prompts are x.
            texts: Examples whose texts are y. Default: the same.
        """
        from hunch.rl.preference_losses import log_ratios  # loads torch

        states = [self.examples[i].state for i in rows]
        decisions = [self.decisions[i] for i in (rows if texts is None else texts)]
        reference = self.policy.reference_logprobs(states, decisions)  # (n, tokens), without gradients
        assert reference is not None
        current = self.policy.evaluate(states, decisions, part="policy")
        return log_ratios(current, reference)


def levels_of(rewards: FloatArray) -> IntArray:
    """Return the level of each reward, the number of quantiles that it reaches, shape (n,).

    Equal rewards that span several levels have one of them, which worse and better rewards do not share: the
    worst have the lowest, the best the highest, and others the middle.
    """
    edges = np.quantile(rewards, np.arange(1, LEVELS) / LEVELS)  # (LEVELS - 1,)
    lowest = np.searchsorted(edges, rewards, side="left")  # (n,)
    highest = np.searchsorted(edges, rewards, side="right")  # (n,)
    levels = np.where(highest - lowest > 1, (lowest + highest) // 2, highest)
    levels = np.where(rewards == rewards.min(), lowest, levels)
    return np.where(rewards == rewards.max(), highest, levels)


def at(state: State, level: int) -> State:
    """Return a state whose observation begins with the level of reward.

    Raises:
        UsageError: if its prompt is a conversation, which has no place for the level.
    """
    if isinstance(state.raw, Mapping) and "messages" in state.raw:
        raise UsageError("A level of reward stands before a prompt of one text, and this is a conversation.")
    return replace(state, observation=f"{level} {state.observation}")


def preference_pairs(known: Sequence[Example]) -> list[tuple[int, int]]:
    """Return all pairs of texts of one group with different rewards, the better one first.

    Raises:
        UsageError: if there are no such pairs.
    """
    groups: dict[int, list[int]] = {}
    for i, example in enumerate(known):
        if example.group is not None:
            groups.setdefault(example.group, []).append(i)
    if not groups:
        raise UsageError("--loss dpo compares texts of one prompt, and the data have no groups.")
    compared: list[tuple[int, int]] = []
    for rows in groups.values():
        for i, j in combinations(rows, 2):
            if known[i].reward == known[j].reward or known[i].text == known[j].text:
                continue
            compared.append((i, j) if known[i].reward > known[j].reward else (j, i))
    if not compared:
        raise UsageError("No group of the data has two different texts with different rewards to compare.")
    return compared


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
    imitates=False,
    changeable=("request", "temperature"),
)
