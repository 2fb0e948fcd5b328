"""Action priors in words: a model continues a prompt, scores each action, or names one by a letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State, UsageError
from hunch.lm import require
from hunch.lm.base import LanguageModel, Normalisation, Sampling
from hunch.lm.scoring.choose import Tie, choose, estimator_of, project, softmax
from hunch.lm.usage import count_fallbacks
from hunch.lm.wording import version
from hunch.ranges import PositiveFloat, check_value
from hunch.roles.prior.action import DistributionPrior, Proposal

RELEASED_SAMPLING = Sampling(temperature=1.0, top_p=1.0)
"""Sampling of answers in training, as in the paper's released code."""


def prompt(state: State, listed: bool = True) -> str:
    """Return the prompt that a language model continues with an action.

    Args:
        state: Where an action is due.
        listed: Name the admissible actions, as the paper does, or give the bare transcript, to the letter.
    """
    if not listed:
        past = "".join(f"{seen}\n> {action}\n" for seen, action in state.history)
        return f"Your task is to: {state.aim}\n{past}{state.observation}\n>"
    offered = "\n".join(f"- {action}" for action in state.options)
    return (
        f"Your task is to: {state.aim}\n{state.text()}\n"
        f"You are allowed to take the following actions:\n{offered}\n"
        "The next action is one of them, copied exactly.\n>"
    )


def question(state: State) -> str:
    """Return the prompt below which the admissible actions are listed with letters."""
    return f"Your task is to: {state.aim}\n{state.text()}\nWhich of these actions comes next?"


class LikelihoodPrior(DistributionPrior):
    """p(a|s) from how likely each action is as the continuation of the prompt.

    Args:
        lm: A model that scores.
        normalise: ``sum`` (of token log-probabilities), per ``token`` or per ``word``.
        temperature: Temperature of the softmax.
        over: ``logprobs`` is the usual softmax over log-probabilities. ``probabilities`` is the paper's
            definition, a softmax over probabilities; it is nearly uniform, because they are in [0, 1].
        listed: Name the admissible actions in the prompt.

    Raises:
        UsageError: if the model cannot score or the temperature is not positive.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        normalise: Normalisation = "token",
        temperature: float = 1.0,
        over: Literal["logprobs", "probabilities"] = "logprobs",
        listed: bool = True,
    ) -> None:
        require(lm, "score", needed_by="The likelihood prior")
        self.lm = lm
        super().__init__(lm.evidence)
        self.normalise: Normalisation = normalise
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        self.over = over
        self.listed = listed

    @property
    def wording(self) -> str:
        """The version of the prompt."""
        return version(prompt)

    def _compute(self, states: list[State]) -> list[FloatArray]:
        scores = self.lm.score([prompt(s, self.listed) for s in states], [s.options for s in states])
        logprobs = [score.normalised(self.normalise) for score in scores]
        values = [np.exp(x) for x in logprobs] if self.over == "probabilities" else logprobs
        return [softmax(x / self.temperature) for x in values]


class LabelledPrior(DistributionPrior):
    """p(a|s) from the probability of each action's letter as the answer; see :mod:`hunch.lm.scoring.choose`.

    It suits chat models behind a server that lists the most likely first tokens.

    Args:
        lm: A model that labels, or scores.
        temperature: Temperature of the softmax over the letters' log-probabilities.
        rotations: Number of orders of the list to average over, since models favour some letters.

    Raises:
        UsageError: if the model can do neither, or a number is not positive.
    """

    def __init__(self, lm: LanguageModel, *, temperature: float = 1.0, rotations: int = 1) -> None:
        estimator_of(lm, "labelled")
        self.lm = lm
        super().__init__(lm.evidence)
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        if rotations < 1:
            raise UsageError(f"The labelled prior needs at least one rotation, not {rotations}.")
        self.rotations = rotations

    @property
    def wording(self) -> str:
        """The version of the prompt."""
        return version(question)

    def _compute(self, states: list[State]) -> list[FloatArray]:
        found = choose(
            self.lm,
            [question(s) for s in states],
            [s.options for s in states],
            how="labelled",
            rotations=self.rotations,
        )
        shares = [choice.probabilities ** (1 / self.temperature) for choice in found]
        return [share / share.sum() for share in shares]


class MappedPrior:
    """p(a|s) from free-form answers, each mapped by a rule to an admissible action.

    Args:
        lm: A model that generates.
        tie: How ties are broken, see :func:`hunch.lm.scoring.choose.project`.
        sampling: How answers are sampled.
        listed: Name the admissible actions in the prompt.

    Raises:
        UsageError: if the model cannot generate.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        tie: Tie = "last",
        sampling: Sampling = RELEASED_SAMPLING,
        listed: bool = True,
    ) -> None:
        require(lm, "generate", needed_by="The mapped prior")
        self.lm = lm
        self.evidence: EvidenceLevel | None = lm.evidence
        self.tie: Tie = tie
        self.sampling = sampling
        self.listed = listed

    @property
    def wording(self) -> str:
        """The version of the prompt."""
        return version(prompt)

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Sample k answers for each state and map them; see :class:`hunch.roles.prior.action.ActionPrior`.

        Raises:
            UsageError: if ``k`` is None, because a sampled prior has no full distribution.
        """
        if k is None:
            raise UsageError("The mapped prior samples its candidates: set the number of proposals k.")
        first = int(rng.integers(2**31))
        answers = self.lm.generate([prompt(s, self.listed) for s in states], k, self.sampling, first)
        return [self._count(texts, state, rng) for texts, state in zip(answers, states, strict=True)]

    def _count(self, answers: Sequence[str], state: State, rng: np.random.Generator) -> Proposal:
        projected = [project(answer, state.options, self.tie, rng) for answer in answers]
        counts = np.bincount([index for index, _ in projected], minlength=len(state.options))
        fallbacks = sum(not named for _, named in projected)
        count_fallbacks(self.lm, fallbacks)
        indices = np.flatnonzero(counts)
        return Proposal(indices, counts[indices] / counts.sum(), fallbacks / len(answers))
