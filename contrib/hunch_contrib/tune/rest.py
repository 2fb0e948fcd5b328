"""ReST: a model writes episodes, and is trained to imitate the best episodes of all rounds.

Algorithm (Gulcehre et al., "Reinforced Self-Training (ReST) for Language Modeling", 2023; each round from the
initial weights as in ReST-EM, Singh et al., "Beyond Human Data", TMLR 2024)::

    repeat
        grow:     write episodes with the model as it is, and add them to those of all rounds
        improve:  keep the best distinct episodes per beginning (the first prompt)
                  restore the initial weights; ascend on log p(text | prompt) of all texts that are kept

Departure: the papers keep texts above a reward threshold, which ReST raises. Here up to ``keep`` episodes are
kept per beginning, so that prompts with low returns are learnt as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hunch.core import HunchWarning, World
from hunch.lm.speech import text_of
from hunch.methods.policy.kept import plain_streams, streams_of
from hunch.methods.tune.agent import (
    GroupConfig,
    ListedConfig,
    WritingAgent,
    WritingConfig,
    figures,
    shuffled,
)
from hunch.methods.tune.grpo import METHOD as GRPO
from hunch.ranges import LATER, PositiveFloat, PositiveInt
from hunch.rl.policy import Passes, Step, cut

if TYPE_CHECKING:
    from hunch.lm.training import Learner


@dataclass(frozen=True, kw_only=True)
class ReSTConfig(GroupConfig, ListedConfig, WritingConfig):
    """Settings of ReST: rounds of writing, and of imitating the best."""

    episodes: PositiveInt = 2_048
    """Episodes that are written in each round (our choice)."""
    group: PositiveInt = field(default=1, metadata=LATER)
    """Answers to one prompt: this many parallel environments begin each episode with the same seed. Where
    prompts are many, each is met once: then only groups, or ``least``, leave bad answers out."""
    keep: PositiveInt = 8
    """Maximum episodes kept per first prompt: the best, among equals the shortest (ReST-EM: 10)."""
    least: float | None = None
    """Minimum return of episodes that are kept. Default: no minimum."""
    updates: PositiveInt = 200
    """Updates per round, from the initial weights (our choice)."""
    batch_size: PositiveInt = 64
    """Texts per update, in whole episodes."""
    learning_rate: PositiveFloat = 3e-3
    """Adam learning rate, falling linearly to 0 in each round, for a model under a million weights (ours)."""


class ReST(WritingAgent):
    """The agent of ReST; arguments as for :class:`~hunch.methods.tune.text.TextAgent`."""

    config_class: ClassVar[type[Any]] = ReSTConfig
    saved = ("policy", "rng", "kept", "best")

    @classmethod
    def compares(cls, config: Any) -> bool:
        """Return False: a group may be one answer, for nothing is compared with a mean."""
        return False

    def make_learner(self) -> Learner:
        """Return the update of a round: Adam on the weights of the model."""
        from hunch.lm.training import Learner  # loads torch

        return Learner.adam(self.lm.parameters())

    def begin(self, world: World, seed: int) -> None:
        """Start with the model as it was before training, and with nothing kept."""
        super().begin(world, seed)
        self.seed = seed
        self.passes = Passes(self.config.micro)
        self.best = TopEpisodes(self.config.keep, self.config.least)
        self.warned = False  # once is enough

    def learn(self) -> dict[str, float]:
        """End the round if enough has been written: keep the best, and imitate it."""
        groups = self.kept.whole()
        if sum(map(len, groups)) < self.config.episodes:
            return {}
        self.kept.clear()
        if self.config.shuffle:
            groups = shuffled(groups, self.rng)
        episodes = [episode for group in groups for episode in group]
        before = len(self.best.episodes())
        left_out = sum(
            self.best.add(text_of(self.policy.prompt(episode[0].transition.state)), episode)
            for episode in episodes
        )
        kept = self.best.episodes()
        more = len(kept) - before
        hardly_selects = left_out < len(episodes) / 10 and more > len(episodes) / 2
        if self.config.least is None and hardly_selects and not self.warned:
            self.warned = True
            warnings.warn(_ALL_KEPT.format(more, len(episodes)), HunchWarning, stacklevel=2)
        if not kept and not self.warned:
            self.warned = True
            best = max(_rank(episode)[0] for episode in episodes)
            warnings.warn(
                _NONE_KEPT.format(len(episodes), self.config.least, best), HunchWarning, stacklevel=2
            )
        metrics = {"kept": float(len(kept)), "left_out": left_out / len(episodes), **figures(episodes)}
        if kept:
            metrics["loss"] = self.improve(kept)
        return metrics

    def improve(self, kept: Sequence[list[Step]]) -> float:
        """Imitate the texts of episodes, from the initial weights on; return the last loss."""
        c = self.config
        self.lm.restart("weights", self.seed)
        self.learner = self.make_learner()
        loss = 0.0
        for update in range(c.updates):
            batch: list[Step] = []
            while len(batch) < c.batch_size:  # whole episodes, whose prompts continue each other
                batch += kept[int(self.rng.integers(len(kept)))]
            loss = self.imitate(batch)
            self.learner.step(c.learning_rate * (1 - update / c.updates))
        return loss

    def imitate(self, batch: Sequence[Step]) -> float:
        """Compute the gradients of  - sum log p(token | prompt) / tokens  of texts, and return this loss."""
        tokens = sum(self.tokens(step) for step in batch)

        def accumulate() -> float:
            loss = 0.0
            for few in cut(batch, self.passes.micro):
                states = [step.transition.state for step in few]
                decisions = [step.decision for step in few]
                texts = self.policy.evaluate(states, decisions, part="policy")  # (few, longest text)
                partial_loss = -(texts.logprobs * texts.mask).sum() / tokens
                partial_loss.backward()  # type: ignore[no-untyped-call]
                loss += float(partial_loss.detach())
            return loss

        return self.passes.accumulated(self.learner.zero_grad, accumulate)

    def tokens(self, step: Step) -> int:
        """Return the number of tokens of a text; a choice from a list counts as one."""
        state, decision = step.transition.state, step.decision
        if state.actions is not None:
            return 1
        if decision.tokens:
            return len(decision.tokens)
        [written] = self.lm.as_written([self.policy.prompt(state)], [decision.text])
        return len(written.tokens)


class TopEpisodes:
    """The best distinct episodes of each beginning, the first prompt of an episode.

    Args:
        size: Maximum number of episodes per beginning.
        least: Minimum return of an episode; None for no minimum.
    """

    def __init__(self, size: int, least: float | None) -> None:
        self.size, self.least = size, least
        self.known: dict[str, list[list[Step]]] = {}  # by beginning, the best first

    def add(self, beginning: str, episode: list[Step]) -> bool:
        """Keep an episode if it is among the best; of episodes with equal texts, keep the best one.

        Returns:
            Whether an episode was left out, this or another, for its return and not for its equal texts.
        """
        if self.least is not None and _rank(episode)[0] < self.least:
            return True
        by_texts = {_texts(kept): kept for kept in self.known.get(beginning, [])}
        texts = _texts(episode)
        rival = by_texts.get(texts)
        if rival is None or _rank(episode) > _rank(rival):
            by_texts[texts] = episode
        self.known[beginning] = sorted(by_texts.values(), key=_rank, reverse=True)[: self.size]
        return len(by_texts) > self.size

    def episodes(self) -> list[list[Step]]:
        """Return all episodes that are kept."""
        return [episode for episodes in self.known.values() for episode in episodes]

    def state_dict(self) -> list[Any]:
        """Return everything as plain values."""
        return [(beginning, plain_streams(dict(enumerate(best)))) for beginning, best in self.known.items()]

    def load_state_dict(self, state: Sequence[Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.known = {beginning: list(streams_of(best).values()) for beginning, best in state}


def _rank(episode: Sequence[Step]) -> tuple[float, int]:
    """Return the key by which episodes are ordered: the return, and among equals the shortest is best."""
    episode_return = sum(step.transition.reward for step in episode)
    return round(episode_return, 9), -len(episode)  # 0.1 + 0.2 + 0.3 equals 0.6


def _texts(episode: Sequence[Step]) -> tuple[str, ...]:
    """Return the texts that the model wrote in an episode."""
    return tuple(step.decision.text for step in episode)


_ALL_KEPT: Final = (
    "Of the {1} episodes of a round {0} were kept, also the worst: hardly anything was selected, because "
    "prompts are met too seldom. Set group, for several answers to each, a smaller keep, or least."
)
_NONE_KEPT: Final = (
    "None of the {0} episodes of a round has a return of at least {1:g}, so nothing was learnt from it; the "
    "best has {2:g}. Lower least, or write more episodes in a round."
)

METHOD = replace(
    GRPO,
    name="rest",
    agent_class=ReST,
    summary="a model that writes learns, in rounds, to write like the best of all that it has written",
    paper="Gulcehre et al., Reinforced Self-Training (ReST) for Language Modeling, 2023; Singh et al., "
    "Beyond Human Data: Scaling Self-Training for Problem-Solving with Language Models, TMLR 2024",
)
