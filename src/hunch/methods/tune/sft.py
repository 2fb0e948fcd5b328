"""SFT: a language model learns to write like demonstrations. LIMA asks how many of them it needs.

Algorithm (Ouyang et al., "Training language models to follow instructions with human feedback", NeurIPS 2022,
section 3.5)::

    demonstrations  <- pairs of a prompt and a text: recorded ones, or those of the environment
    repeat
        draw a batch of demonstrations (x, y), with replacement
        loss <- - sum over y, t of log p(y_t | x, y_<t) / number of tokens     end tokens included
        a step of Adam, whose learning rate falls linearly to 0

LIMA (Zhou et al., "LIMA: Less Is More for Alignment", NeurIPS 2023) learns from few texts of high quality:
``curated`` keeps the best by recorded reward, and ``drawn``, the control, as many at random. Of a file of
answers, those that it calls rejected or bad are left out.

One update is made per step of the loop. With ``--lm scratch`` the model is new and small, and its
vocabulary is that of the demonstrations. At the end the model is saved in the run's folder, so that
``--lm hf:RUN`` names it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from hunch.core import HunchWarning, State, UsageError, World
from hunch.methods.method import Method
from hunch.methods.policy.glam import WALKS
from hunch.methods.tune.recorded import Example, RecordedAgent, RecordedConfig
from hunch.ranges import NonNegativeInt
from hunch.rl.policy import Decision, cut

WORSE: Final = 1.0
"""Nats per token by which a loss exceeds that of even guesses among all tokens where it is said (ours). New
models begin near that of even guesses."""


@dataclass(frozen=True, kw_only=True)
class SFTConfig(RecordedConfig):
    """Settings of supervised fine-tuning."""

    curated: NonNegativeInt = 0
    """Learn only from this many demonstrations with the best recorded rewards; 0 for all (LIMA: 1,000)."""
    drawn: NonNegativeInt = 0
    """Learn only from this many randomly drawn demonstrations (control); 0 for all."""
    more_words: str = ""
    """Words, separated by spaces, that a vocabulary which grows has besides those of the texts, such as the
    levels 0 1 2 3 4 in the prompts of a later, conditioned training."""


class SFT(RecordedAgent):
    """The agent of SFT; arguments as for :class:`~hunch.methods.tune.text.TextAgent`."""

    config_class: ClassVar[type[Any]] = SFTConfig

    @classmethod
    def check(cls, config: Any, specs: Any) -> None:
        """Check before loading that the model can be trained, and that curated or drawn is set, not both."""
        super().check(config, specs)
        if config.curated and config.drawn:
            raise UsageError("curated keeps the best demonstrations and drawn any: choose one of them.")

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, and keep the texts; see :meth:`RecordedAgent.begin`.

        Raises:
            UsageError: if there are too few texts, or the vocabulary is full.
        """
        super().begin(world, seed)
        self.has_warned = False  # True once the loss was too large, so that this is said once
        self.first_loss: float | None = None  # of this session
        if isinstance(self.config, SFTConfig):  # a method that learns like this may have other settings
            self.lm.take(self.config.more_words.split())

    def select(self, known: list[Example]) -> list[Example]:
        """Return the best demonstrations, randomly drawn ones, or all."""
        c = self.config
        if len(known) < max(1, c.curated, c.drawn):
            raise UsageError(
                f"Too few demonstrations: {len(known):,}. Give --data, or prompts with a 'completion'."
            )
        if c.curated:
            if np.isnan([example.reward for example in known]).any():
                raise UsageError(
                    "The best demonstrations are those of highest reward: give recorded ones, --data."
                )
            return sorted(known, key=lambda example: -example.reward)[: c.curated]
        if c.drawn:
            return [known[i] for i in self.rng.permutation(len(known))[: c.drawn]]
        return known

    def learn(self) -> dict[str, float]:
        """Make one update: raise the mean log-likelihood of the tokens of a batch.

        Raises:
            HunchError: if the loss is not finite, or memory runs out.
        """
        if not self.examples:
            return {}
        rows = self.draw()  # batch_size
        loss = self.passes.accumulated(self.learner.zero_grad, lambda: self.negative_likelihood(rows))
        self._warn_if_destroyed(loss)
        self.step(loss)
        return {"loss": loss}

    def _warn_if_destroyed(self, loss: float) -> None:
        """Warn once if updates have made the demonstrations less likely than even guesses would.

        To a model that was trained on other texts they may be less likely from the start.
        """
        tokens = int(self.lm.network.config.get_text_config().vocab_size)
        guessing = math.log(tokens)
        if self.first_loss is None:
            self.first_loss = loss
        if self.updates == 0 or self.has_warned or loss < max(guessing, self.first_loss) + WORSE:
            return
        self.has_warned = True
        warnings.warn(
            f"After update {self.updates} the loss is {loss:.3g} nats per token, where even guesses among "
            f"{tokens:,} tokens have {guessing:.3g}: the model has forgotten how to write. Lower "
            f"learning_rate, which is {self.config.learning_rate:g}.",
            HunchWarning,
            stacklevel=3,
        )

    def negative_likelihood(self, rows: Sequence[int]) -> float:
        """Accumulate gradients of  - sum log p(y_t | x, y_<t) / tokens,  and return this loss."""
        tokens = self.tokens(rows)
        loss = 0.0
        for few in cut(rows, self.passes.micro):
            texts = self.evaluate(few)  # log-probabilities and mask: (few, longest text)
            partial_loss = -(texts.logprobs * texts.mask).sum() / tokens
            partial_loss.backward()  # type: ignore[no-untyped-call]
            loss += float(partial_loss.detach())
        return loss

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return no metrics: a divergence from the initial model says little here."""
        return {}


METHOD = Method(
    "sft",
    SFT,
    "a language model learns to write like demonstrations",
    "Ouyang et al., Training language models to follow instructions with human feedback, NeurIPS 2022; "
    "Zhou et al., LIMA: Less Is More for Alignment, NeurIPS 2023",
    leaf="RL4LLM / fine-tuning",
    acts="text",
    reads={"raw"},
    optional={"raw"},
    environments="free text, with demonstrations or recorded texts",
    lm=WALKS,
    suggested=("scratch?width=64&layers=2", "hf:<name or folder>"),
    roles=("policy",),
    imitates=True,
    changeable=("temperature",),
)
