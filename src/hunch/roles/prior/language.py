"""Action priors by text: a model continues a prompt, scores each action, or names one by a letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State, UsageError
from hunch.lm import require
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import AskConfig, Asking, about, require_knows
from hunch.lm.base import LanguageModel, Normalisation
from hunch.lm.prompts import Prompt
from hunch.lm.scoring.choose import choose, estimator_of, project
from hunch.numbers import softmax
from hunch.ranges import PositiveFloat, check_value
from hunch.roles.prior.action import Proposal
from hunch.roles.prior.distribution import DistributionPrior
from hunch.roles.prior.prompt import WORDING, prompt

ASKS = AskConfig()
"""Default requests: temperature 1, as in training in the released code, and the model's default length."""

LABELLED_WORDING: Final = "eb39cd99"
"""Version of the words of :func:`question`. Change it with them: runs with different words are different
runs."""


def question(state: State) -> str:
    """Return the prompt that is followed by the admissible actions with letters."""
    return f"Your task is to: {state.aim}\n{state.text()}\nWhich of these actions comes next?"


class LikelihoodPrior(DistributionPrior):
    """p(a|s) from the likelihood of each action as the continuation of the prompt.

    Args:
        lm: A model that scores.
        normalise: Log-probabilities per action (``sum``), per ``token`` or per ``word``.
        temperature: Temperature of the softmax.
        over: ``logprobs`` is a softmax over log-probabilities. ``probabilities`` is the paper's
            definition, a softmax over probabilities; it is nearly uniform, because all are in [0, 1].
        listed: Name the admissible actions in the prompt.
        asks: How the model is asked, possibly with a prompt file.

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
        asks: AskConfig = ASKS,
    ) -> None:
        require(lm, "score", needed_by="The likelihood prior")
        self.lm, self.asks, self._asking = lm, asks, Asking(lm, asks)
        super().__init__(lm.evidence)
        self.normalise: Normalisation = normalise
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        self.over = over
        self.listed = listed

    wording = WORDING

    def _compute(self, states: list[State]) -> list[FloatArray]:
        prompts = [self._asking.prompt(prompt(s, self.listed), **about(s)) for s in states]
        scores = self.lm.score(prompts, [s.options for s in states])
        logprobs = [score.normalised(self.normalise) for score in scores]
        values = [np.exp(x) for x in logprobs] if self.over == "probabilities" else logprobs
        return [softmax(x / self.temperature) for x in values]


class LabelledPrior(DistributionPrior):
    """p(a|s) from the probability of each action's letter as the answer; see :mod:`hunch.lm.scoring.choose`.

    This prior suits chat models behind a server that lists the most likely first tokens.

    Args:
        lm: A model that labels, or scores.
        temperature: Temperature of the softmax over the letters' log-probabilities.
        rotations: Number of orders of the list to average over, because models favour some letters.
        asks: How the model is asked, possibly with a prompt file; the lettered list follows the prompt.

    Raises:
        UsageError: if the model can neither label nor score, or a number is not positive.
    """

    def __init__(
        self, lm: LanguageModel, *, temperature: float = 1.0, rotations: int = 1, asks: AskConfig = ASKS
    ) -> None:
        estimator_of(lm, "labelled")
        self.lm, self.asks, self._asking = lm, asks, Asking(lm, asks)
        super().__init__(lm.evidence)
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        if rotations < 1:
            raise UsageError(f"The labelled prior needs at least one rotation, not {rotations}.")
        self.rotations = rotations

    wording = LABELLED_WORDING

    def _compute(self, states: list[State]) -> list[FloatArray]:
        found = choose(
            self.lm,
            [self._asking.prompt(question(s), **about(s)) for s in states],
            [s.options for s in states],
            how="labelled",
            rotations=self.rotations,
            patience=self.asks.patience,
        )
        shares = [choice.probabilities ** (1 / self.temperature) for choice in found]
        return [share / share.sum() for share in shares]


class MappedPrior:
    """p(a|s) from free-form answers, each read as an admissible action.

    Args:
        lm: A model that generates.
        read: ``decided`` takes the action decided on (:func:`hunch.lm.answers.reading.read_option`);
            ``named`` takes the action that an answer names most often, as the paper's released code does.
        asks: How answers are sampled, possibly with a prompt file.
        listed: Name the admissible actions in the prompt.
        structured: Let the server restrict each answer to one of the actions, with a JSON schema.

    Raises:
        UsageError: if the model cannot generate, or does not support a setting.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        read: Literal["decided", "named"] = "decided",
        asks: AskConfig = ASKS,
        listed: bool = True,
        structured: bool = False,
    ) -> None:
        require(lm, "generate", needed_by="The mapped prior")
        if structured:
            require_knows(lm, "choices", "structured answers")
        self.lm = lm
        self.evidence: EvidenceLevel | None = lm.evidence
        self.read: Literal["decided", "named"] = read
        self.asks, self._asking = asks, Asking(lm, asks)
        self.listed, self.structured = listed, structured

    wording = WORDING

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Sample k answers for each state and map them to actions; see :class:`ActionPrior`.

        Raises:
            UsageError: if ``k`` is None, because a sampled prior has no full distribution.
            HunchError: if the model gives too many answers in a row that name no action.
        """
        if k is None:
            raise UsageError("The mapped prior samples its candidates: set the number of proposals k.")
        first = int(rng.integers(2**31))
        answers = self.answers(states, k, first)
        return [self._count(texts, state) for texts, state in zip(answers, states, strict=True)]

    def prompt(self, state: State) -> Prompt:
        """Return the prompt for a state."""
        return self._asking.prompt(prompt(state, self.listed), **about(state))

    def answers(self, states: Sequence[State], k: int, first: int = 0) -> list[list[str]]:
        """Return k answers for each state, with one call, or one call per list of actions if structured."""
        sampling = self._asking.sampling
        if not self.structured:
            return self.lm.generate([self.prompt(state) for state in states], k, sampling, first)
        found: dict[int, list[str]] = {}
        for options in dict.fromkeys(state.options for state in states):
            due = [i for i, state in enumerate(states) if state.options == options]
            prompts = [self.prompt(states[i]) for i in due]
            made = self.lm.generate(prompts, k, replace(sampling, choices=options), first)
            found |= dict(zip(due, made, strict=True))
        return [found[i] for i in range(len(states))]

    def _count(self, answers: Sequence[str], state: State) -> Proposal:
        chosen = [self.understood(answer, state.options) for answer in answers]
        counts = np.bincount([index for index, _ in chosen], minlength=len(state.options))
        self._asking.hear(answers, [state.options[i] if named else None for i, named in chosen])
        indices = np.flatnonzero(counts)
        fallbacks = sum(not named for _, named in chosen)
        return Proposal(indices, counts[indices] / counts.sum(), fallbacks / len(answers))

    def understood(self, answer: str, options: Sequence[str]) -> tuple[int, bool]:
        """Return the index of the action that an answer names, else the last, and whether it names one."""
        if self.read == "named":
            return project(answer, options)
        index = read_option(answer, options)
        return (len(options) - 1, False) if index is None else (index, True)
