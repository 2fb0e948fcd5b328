"""Action priors by text: a model decides, writes an action, scores each, or names one by a letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State, UsageError
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import AskConfig, Asking, about
from hunch.lm.base import LanguageModel, Normalisation
from hunch.lm.decision import DecisionQuestion
from hunch.lm.hearing import show_choices
from hunch.lm.prompts import Prompt
from hunch.lm.scoring.choose import choose, decide, project
from hunch.lm.ways import require_way
from hunch.numbers import softmax
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt, check_value
from hunch.roles.prior.base import DistributionPrior, Proposal, draw, forget, read_of

ASKS: Final = AskConfig(temperature=1.0)
"""Default requests: temperature 1, as in training in the released code, and the model's default length."""

# ---- prompts ----------------------------------------------------------------------------------------------

WORDING: Final = "7273793e"
"""Version of the words of :func:`prompt`. Change it with them: runs with different words are different
runs."""
LABELLED_WORDING: Final = "eb39cd99"
"""Version of the words of :func:`question`. Change it with them: runs with different words are different
runs."""
CHOICE: Final = "Which of these actions comes next?"
"""The question to a decision model."""
DECISION_WORDING: Final = "d5e0c7a1"
"""Version of the words of :func:`situation` and :data:`CHOICE`. Change it with them: runs with different
words are different runs."""


def prompt(state: State, listed: bool = True) -> str:
    """Return the prompt that a language model continues with an action: of priors, and of policies.

    Args:
        state: The state in which an action is to be chosen.
        listed: List the admissible actions, as the paper does; otherwise return only the transcript.
    """
    if not listed:
        past = "".join(f"{line(observation)}> {action}\n" for observation, action in state.history)
        return f"{task(state)}{past}{line(state.observation)}>"
    actions = "\n".join(f"- {action}" for action in state.options)
    return (
        f"{task(state)}{state.text()}\n"
        f"You are allowed to take the following actions:\n{actions}\n"
        "The next action is one of them, copied exactly.\n>"
    )


def line(observation: str) -> str:
    """Return the lines of an observation; nothing of an empty one, such as a planner's without feedback."""
    return f"{observation}\n" if observation else ""


def task(state: State) -> str:
    """Return the line with the task; nothing in a state that has neither a task nor a goal."""
    return f"Your task is to: {state.aim}\n" if state.aim else ""


def question(state: State) -> str:
    """Return the prompt that is followed by the admissible actions with letters."""
    return f"{task(state)}{state.text()}\nWhich of these actions comes next?"


def situation(state: State) -> str:
    """Return what a decision model reads; the question :data:`CHOICE` and the actions go apart."""
    return f"{task(state)}{state.text()}"


# ---- priors that score ------------------------------------------------------------------------------------


class DecisionPrior(DistributionPrior):
    """p(a|s) as a decision model returns it for one choice among the actions, with what is known of each.

    Further questions about the same state cost little: they are part of the same request.

    Args:
        lm: A model that decides.
        temperature: Temperature of the probabilities: 1 leaves them as they are.
        asks: How the model is asked, possibly with a prompt file.
        role: The role that the prior fills, a key of :data:`hunch.lm.hearing.ANSWERS`.
        beside: Further questions about each state; :meth:`answers` returns what the model says.

    Raises:
        UsageError: if the model cannot decide or the temperature is not positive.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        temperature: float = 1.0,
        asks: AskConfig = ASKS,
        role: str = "prior",
        beside: Sequence[DecisionQuestion] = (),
    ) -> None:
        require_way(lm, "decision", needed_by="An action prior")
        super().__init__(lm.evidence)
        self.beside = tuple(beside)
        self._answers: dict[State, tuple[FloatArray, ...]] = {}
        self.lm = lm
        self.asks = asks
        self.role = role
        self._asking = Asking(lm, asks, role=role)
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature

    wording = DECISION_WORDING

    def _compute(self, states: list[State]) -> list[FloatArray]:
        forget(self._answers)  # as the distributions, which came in the same order
        choices = [
            DecisionQuestion("choice", CHOICE, s.options, tuple(d or None for d in s.descriptions))
            for s in states
        ]
        answered = decide(
            self.lm,
            [self._asking.prompt(situation(s), **about(s)) for s in states],
            [[choice, *self.beside] for choice in choices],  # one request per state
            patience=self.asks.patience,
            role=self.role,
        )
        probabilities = []
        for state, (choice, *others) in zip(states, answered, strict=True):
            probabilities.append(tempered(choice.probabilities, self.temperature))
            self._answers[state] = tuple(other.probabilities for other in others)
        return probabilities

    def ask_beside(self, questions: Sequence[DecisionQuestion]) -> None:
        """Ask these further questions about each state from now on; answers without them are forgotten."""
        if self.beside != tuple(questions):
            self.beside = tuple(questions)
            self._known.clear()
            self._answers.clear()

    def answers(self, states: Sequence[State]) -> list[tuple[FloatArray, ...]]:
        """Return the probabilities of the answers to the further questions about each state.

        A question that the model refuses has equal probabilities, and counts as a fallback.
        """
        self.probabilities(states)
        return [self._answers[self.read(state)] for state in states]


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
        role: The role that the prior fills, a key of :data:`hunch.lm.hearing.ANSWERS`.

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
        role: str = "prior",
    ) -> None:
        require_way(lm, "likelihood", needed_by="An action prior")
        super().__init__(lm.evidence)
        self.lm = lm
        self.asks = asks
        self.role = role
        self._asking = Asking(lm, asks, role=role)
        self.normalise: Normalisation = normalise
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        self.over = over
        self.listed = listed

    wording = WORDING

    def _compute(self, states: list[State]) -> list[FloatArray]:
        prompts = [self._asking.prompt(prompt(s, self.listed), **about(s)) for s in states]
        scores = self.lm.score(prompts, [s.options for s in states])
        probabilities = []
        for score in scores:
            logits = score.normalised(self.normalise)  # log p_LM(a | prompt), shape (actions,)
            if self.over == "probabilities":
                logits = np.exp(logits)
            probabilities.append(softmax(logits / self.temperature))
        show_choices(self.lm, self.role, [s.options for s in states], probabilities)
        return probabilities


class LabelledPrior(DistributionPrior):
    """p(a|s) from the probability of each action's letter as the answer; see :mod:`hunch.lm.scoring.choose`.

    This prior suits chat models behind a server that lists the most likely first tokens.

    Args:
        lm: A model that labels, or scores.
        temperature: Temperature of the softmax over the letters' log-probabilities.
        rotations: Number of orders of the list to average over, because models favour some letters.
        asks: How the model is asked, possibly with a prompt file; the lettered list follows the prompt.
        role: The role that the prior fills.

    Raises:
        UsageError: if the model can neither label nor score, or a number is not positive.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        temperature: float = 1.0,
        rotations: int = 1,
        asks: AskConfig = ASKS,
        role: str = "prior",
    ) -> None:
        require_way(lm, "label", needed_by="An action prior")
        super().__init__(lm.evidence)
        self.lm = lm
        self.asks = asks
        self.role = role
        self._asking = Asking(lm, asks, role=role)
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        if rotations < 1:
            raise UsageError(f"The labelled prior needs at least one rotation, not {rotations}.")
        self.rotations = rotations

    wording = LABELLED_WORDING

    def _compute(self, states: list[State]) -> list[FloatArray]:
        choices = choose(
            self.lm,
            [self._asking.prompt(question(s), **about(s)) for s in states],
            [s.options for s in states],
            way="label",
            rotations=self.rotations,
            patience=self.asks.patience,
            role=self.role,
        )
        return [tempered(choice.probabilities, self.temperature) for choice in choices]


def tempered(probabilities: FloatArray, temperature: float) -> FloatArray:
    """Return probabilities p^(1/temperature), normalised: shape (actions,)."""
    p = probabilities ** (1 / temperature)
    return np.asarray(p / p.sum())


# ---- the prior that generates -----------------------------------------------------------------------------


class MappedPrior:
    """p(a|s) from free-form answers, each read as an admissible action.

    Args:
        lm: A model that generates.
        read: ``decided`` takes the action decided on (:func:`hunch.lm.answers.reading.read_option`);
            ``named`` takes the action that an answer names most often, as the paper's released code does.
        asks: How answers are sampled, possibly with a prompt file.
        listed: Name the admissible actions in the prompt.
        structured: Let the model's server restrict each answer to one of the actions.
        role: The role that the prior fills.

    Attributes:
        blank: The model reads neither task nor goals; see :func:`hunch.roles.prior.blank.aimless`.
        recent: Number of past steps that the model reads, at most; None for all that a state holds.

    Raises:
        UsageError: if the model cannot generate, or does not support a setting.
    """

    blank: bool = False
    recent: int | None = None

    def __init__(
        self,
        lm: LanguageModel,
        *,
        read: Literal["decided", "named"] = "decided",
        asks: AskConfig = ASKS,
        listed: bool = True,
        structured: bool = False,
        role: str = "prior",
    ) -> None:
        require_way(lm, "structured" if structured else "text", needed_by="An action prior")
        self.lm = lm
        self.evidence: EvidenceLevel | None = lm.evidence
        self.read: Literal["decided", "named"] = read
        self.asks = asks
        self.role = role
        self._asking = Asking(lm, asks, role=role)
        self.listed = listed
        self.structured = structured

    wording = WORDING

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Sample k answers for each state and map them to actions; see :class:`ActionPrior`.

        Raises:
            UsageError: if ``k`` is None, because a sampled prior has no full distribution.
            HunchError: if the model gives too many answers in a row that name no action.
        """
        if k is None:
            raise UsageError("The mapped prior samples its candidates: set the number of proposals k.")
        first = int(rng.integers(2**31))  # the number of the first sample: all randomness of the answers
        return self.sampled(states, k, first)

    def sampled(self, states: Sequence[State], k: int, first: int) -> list[Proposal]:
        """Return for each state the actions that answers number ``first`` to ``first + k - 1`` name."""
        answers = self.answers(states, k, first)
        return [self._proposal(texts, state) for texts, state in zip(answers, states, strict=True)]

    def prompt(self, state: State) -> Prompt:
        """Return the prompt for a state."""
        read = read_of(state, blank=self.blank, recent=self.recent)
        return self._asking.prompt(prompt(read, self.listed), **about(read))

    def answers(self, states: Sequence[State], k: int, first: int = 0) -> list[list[str]]:
        """Return k answers for each state, with one call, or one call per list of actions if structured."""
        prompts = [self.prompt(state) for state in states]
        if not self.structured:
            return self._asking.generate(prompts, k, first)
        return self._asking.restricted(prompts, [state.options for state in states], k, first)

    def _proposal(self, answers: Sequence[str], state: State) -> Proposal:
        """Map each of k answers to an action, and count how often each action was named."""
        counts = np.zeros(len(state.options), dtype=np.int64)
        named: list[str | None] = []  # None where an answer names no action
        for answer in answers:
            index, is_named = self.understood(answer, state.options)
            counts[index] += 1
            named.append(state.options[index] if is_named else None)
        self._asking.hear(answers, named)
        indices = np.flatnonzero(counts)
        return Proposal(indices, counts[indices] / counts.sum(), named.count(None) / len(answers))

    def understood(self, answer: str, options: Sequence[str]) -> tuple[int, bool]:
        """Return the index of the action that an answer names, else the last, and whether it names one."""
        if self.read == "named":
            return project(answer, options)
        index = read_option(answer, options)
        return (len(options) - 1, False) if index is None else (index, True)


class SampledPrior(DistributionPrior):
    """p(a|s) estimated from written answers: the share of ``samples`` answers that name each action.

    :class:`MappedPrior` asks for new answers at each proposal. Here the same answers serve all proposals in
    states of which the model reads the same, so a model is asked once for each of them. An answer that names
    no action counts for the last one, as there.

    Args:
        lm: A model that generates.
        samples: Number of answers. An action of probability p is missed with probability (1 - p)^samples.
        drawing: Which answers: numbers ``drawing * samples`` and following. They do not depend on the seed of
            a run, so the luck of one drawing is the same in all seeds of a comparison.
        reading: How an answer is read; ``read`` of :class:`MappedPrior`.
        asks: How answers are sampled, possibly with a prompt file.
        listed: Name the admissible actions in the prompt.
        structured: Let the model's server restrict each answer to one of the actions.
        role: The role that the prior fills.

    Raises:
        UsageError: if the model cannot generate or does not support a setting, or without a sample.
    """

    def __init__(
        self,
        lm: LanguageModel,
        samples: int,
        *,
        drawing: int = 0,
        reading: Literal["decided", "named"] = "decided",
        asks: AskConfig = ASKS,
        listed: bool = True,
        structured: bool = False,
        role: str = "prior",
    ) -> None:
        super().__init__(lm.evidence)
        self._mapped = MappedPrior(
            lm, read=reading, asks=asks, listed=listed, structured=structured, role=role
        )
        check_value("samples", samples, PositiveInt)
        check_value("drawing", drawing, NonNegativeInt)
        self._unread: dict[State, float] = {}  # the share of answers that name no action
        self.lm = lm
        self.samples = samples
        self.drawing = drawing
        self.reading: Literal["decided", "named"] = reading
        self.asks = asks
        self.listed = listed
        self.structured = structured
        self.role = role

    wording = WORDING

    def _compute(self, states: list[State]) -> list[FloatArray]:
        probabilities = []
        first = self.drawing * self.samples
        forget(self._unread)  # as the distributions, which came in the same order
        for state, proposal in zip(states, self._mapped.sampled(states, self.samples, first), strict=True):
            p = np.zeros(len(state.options))  # (actions,)
            p[proposal.indices] = proposal.weights
            probabilities.append(p)
            self._unread[state] = proposal.fallbacks
        return probabilities

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; see :class:`ActionPrior`.

        A draw of the last action stands for answers without an action as often as these were its answers.
        """
        proposals = []
        for state, p in zip(states, self.probabilities(states), strict=True):
            drawn = draw(p, k, rng)
            last = len(p) - 1
            share = float(drawn.weights[drawn.indices == last].sum())
            unread = share * self._unread[self.read(state)] / p[last] if share else 0.0
            proposals.append(Proposal(drawn.indices, drawn.weights, unread))
        return proposals
