"""How a language model becomes an action prior: ways to get p(a|s), each a few lines over its verbs.

=========== ======== ====================================================================================
prior       verb     p(a|s)
=========== ======== ====================================================================================
uniform     none     1 / number of admissible actions
mapped      generate share of k free-form answers that a rule projects to a (Yan et al. 2025, section 3.1)
likelihood  score    softmax over the actions' log-probabilities as continuations of the prompt
labelled    label    softmax over the log-probabilities of letters, behind which the actions are listed
novelty     none     softmax against what was just done: a control
similarity  embed    softmax over how like a is to task and history, and unlike what was just done
=========== ======== ====================================================================================

Source: Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State, UsageError
from hunch.lm import require
from hunch.lm.base import LanguageModel, Normalisation, Sampling, Verb
from hunch.lm.scoring.choose import Tie, choose, estimator_of, project, softmax
from hunch.lm.usage import count_fallbacks
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt
from hunch.roles.encoder import TextTable, Vectors, recency_weights
from hunch.roles.prior import DistributionPrior, Proposal, UniformPrior

SEEN_DECAY = 0.3
"""similarity: how much a line that was seen counts against the next younger one."""
DONE_DECAY = 0.8
"""similarity: how much an action that was taken counts against the next younger one."""
RELEASED_SAMPLING = Sampling(temperature=1.0, top_p=1.0)
"""How the paper's released code samples its answers in training."""


def prompt(state: State, listed: bool = True) -> str:
    """The text after which a language model is to continue with an action.

    Args:
        state: Where an action is due.
        listed: Name the admissible actions, as the paper does, or leave the bare transcript.
    """
    if not listed:
        return f"Your task is to: {state.task}\n{state.text()}\n>"
    offered = "\n".join(f"- {action}" for action in state.options)
    return (
        f"Your task is to: {state.task}\n{state.text()}\n"
        f"You are allowed to take the following actions:\n{offered}\n"
        "The next action is one of them, copied exactly.\n>"
    )


def question(state: State) -> str:
    """The text below which the admissible actions are listed behind letters."""
    return f"Your task is to: {state.task}\n{state.text()}\nWhich of these actions comes next?"


class NoveltyPrior(DistributionPrior):
    """No view but one: not again what was just done. The control of the similarity prior's second term.

    The same rule without a model: two actions are alike if they are the same text. What a similarity prior
    achieves beyond it is owed to the embeddings.
    """

    def __init__(self, *, temperature: float = 0.1, repeat: float = 1.0) -> None:
        super().__init__("L0")
        self.temperature = _positive(temperature)
        self.repeat = repeat

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return [softmax(-self.repeat * self._staleness(state) / self.temperature) for state in states]

    def _staleness(self, state: State) -> FloatArray:
        past = [action for _, action in state.history]
        alike = np.array([[float(action == earlier) for earlier in past] for action in state.options])
        return staleness(alike) if past else np.zeros(len(state.options))


class SimilarityPrior(DistributionPrior):
    """p(a|s) from sentence embeddings: actions like the task and what was seen, unlike what was just done.

    With q the embedding of the task plus ``history`` times the recency-weighted mean of the embeddings of
    what was seen, and a_1, a_2, ... the actions already taken, youngest first::

        p(a|s) = softmax( [cos(q, a) - repeat * max_i 0.8^i max(0, cos(a, a_i))^4] / temperature )

    The second term is needed because a similarity does not know that a thing is done: without it the prior
    goes to the receptacle that the task names and examines it for ever.

    Args:
        lm: A model that embeds, or a table over one.
        temperature: Of the softmax over cosines, which lie in [-1, 1].
        history: Weight of what was seen against the task.
        repeat: Weight against actions like those just taken.

    Raises:
        UsageError: if the model cannot embed or the temperature is not positive.
    """

    def __init__(
        self,
        lm: LanguageModel | TextTable,
        *,
        temperature: float = 0.1,
        history: float = 0.2,
        repeat: float = 1.0,
    ) -> None:
        self.table = lm if isinstance(lm, TextTable) else TextTable(lm)
        super().__init__(self.table.lm.evidence)
        self.temperature = _positive(temperature)
        self.history = history
        self.repeat = repeat

    def _compute(self, states: list[State]) -> list[FloatArray]:
        self.table.add(
            t
            for state in states
            for t in (state.task, *seen(state), *(a for _, a in state.history), *state.options)
        )
        return [softmax(self.affinities(state) / self.temperature) for state in states]

    def affinities(self, state: State) -> FloatArray:
        """Return what the softmax is taken over, shape (number of actions,)."""
        texts, past = seen(state), [action for _, action in state.history]
        query = self.table.encode([state.task])[0].copy()
        query += self.history * (recency_weights(len(texts), SEEN_DECAY) @ self.table.encode(texts))
        actions = self.table.encode(state.options)
        affinities = cosines(actions, query[None])[:, 0]
        if past:
            affinities -= self.repeat * staleness(cosines(actions, self.table.encode(past)))
        return affinities


def seen(state: State) -> list[str]:
    """Return the lines that were seen in the episode, oldest first."""
    texts = (*(observation for observation, _ in state.history), state.observation)
    return [line for text in texts for line in text.splitlines() if line.strip()]


def staleness(likeness: FloatArray) -> FloatArray:
    """How much each action is like one just taken: max_i 0.8^i likeness_i^4, the youngest being i = 0.

    Args:
        likeness: Of each action with each earlier one, oldest first, shape (actions, earlier actions). The
            fourth power leaves little of a likeness that is not near 1; below 0 there is none.
    """
    fading = DONE_DECAY ** np.arange(likeness.shape[1] - 1, -1, -1)
    return np.asarray((fading * np.maximum(likeness, 0) ** 4).max(axis=1))


def cosines(rows: Vectors, columns: Vectors) -> FloatArray:
    """Cosine of each row of one matrix with each row of the other."""
    lengths = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(columns, axis=1)
    return np.asarray(rows @ columns.T / np.maximum(lengths, 1e-12), dtype=np.float64)


class LikelihoodPrior(DistributionPrior):
    """p(a|s) from how likely each action is as the continuation of the prompt.

    Args:
        lm: A model that scores.
        normalise: ``sum`` (of token log-probabilities), per ``token`` or per ``word``.
        temperature: Of the softmax.
        over: ``logprobs`` is the usual softmax over log-probabilities. ``probabilities`` is the paper's own
            definition, a softmax over probabilities; as those lie in [0, 1] it is nearly uniform.
        listed: Whether the prompt names the admissible actions.

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
        self.temperature = _positive(temperature)
        self.over = over
        self.listed = listed

    def _compute(self, states: list[State]) -> list[FloatArray]:
        scores = self.lm.score([prompt(s, self.listed) for s in states], [s.options for s in states])
        logprobs = [score.normalised(self.normalise) for score in scores]
        values = [np.exp(x) for x in logprobs] if self.over == "probabilities" else logprobs
        return [softmax(x / self.temperature) for x in values]


class LabelledPrior(DistributionPrior):
    """p(a|s) from how likely the model names each action by its letter; see :mod:`hunch.lm.scoring.choose`.

    This is what chat models behind a server can do that list their likeliest first tokens.

    Args:
        lm: A model that labels, or scores.
        temperature: Of the softmax over the letters' log-probabilities.
        rotations: Orders of the list over which the mean is taken, as models favour some letters.

    Raises:
        UsageError: if the model can do neither, or a number is not positive.
    """

    def __init__(self, lm: LanguageModel, *, temperature: float = 1.0, rotations: int = 1) -> None:
        estimator_of(lm, "labelled")
        self.lm = lm
        super().__init__(lm.evidence)
        self.temperature = _positive(temperature)
        if rotations < 1:
            raise UsageError(f"The labelled prior needs at least one rotation, not {rotations}.")
        self.rotations = rotations

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
    """p(a|s) by free-form answers, each projected by a rule to an admissible action.

    Args:
        lm: A model that generates.
        tie: See :func:`hunch.lm.scoring.choose.project`.
        sampling: How the answers are sampled.
        listed: Whether the prompt names the admissible actions.

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

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Sample k answers for each state and project them; see :class:`hunch.roles.prior.ActionPrior`.

        Raises:
            UsageError: if ``k`` is None; a sampled prior has no full list to offer.
        """
        if k is None:
            raise UsageError("The mapped prior samples its candidates: give the number of proposals k.")
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


def _positive(temperature: float) -> float:
    if not temperature > 0:
        raise UsageError(f"A prior's temperature must be positive, not {temperature}.")
    return temperature


TEMPERATURES = {"similarity": 0.1, "novelty": 0.1}
"""Default temperature of each way where it is not 1: of the softmax."""

NEEDS: dict[str, tuple[Verb, ...]] = {
    "mapped": ("generate",),
    "likelihood": ("score",),
    "labelled": ("label", "score"),
    "similarity": ("embed",),
}
"""The verbs of which each way needs one."""


@dataclass(frozen=True)
class PriorConfig:
    """How a language model becomes an action prior."""

    kind: Literal["auto", "uniform", "novelty", "mapped", "likelihood", "labelled", "similarity"] = "auto"
    """Way to get p(a|s); auto takes what the model can do: generate, else embed, score, label."""
    temperature: PositiveFloat | None = None
    """Of softmax or sampling. Default: mapped 1 (released code), similarity 0.1, others 1 (ours)."""
    history: NonNegativeFloat = 0.2
    """similarity: weight of what was seen against the task (ours)."""
    repeat: float = 1.0
    """similarity, novelty: weight against actions like those just taken (ours)."""
    normalise: Normalisation = "token"
    """likelihood: what a log-probability is divided by (TWOSOME compares the three)."""
    over: Literal["logprobs", "probabilities"] = "logprobs"
    """likelihood: softmax over log-probabilities, or the paper's over probabilities (nearly uniform)."""
    listed: bool = True
    """mapped, likelihood: name the admissible actions in the prompt (paper), or leave the bare transcript."""
    tie: Tie = "last"
    """mapped: which of equally often named actions an answer means (released code: last)."""
    rotations: PositiveInt = 1
    """labelled: orders of the list over which the mean is taken, one model call each (ours)."""


def build_prior(
    config: PriorConfig, lm: LanguageModel, table: TextTable | None = None
) -> DistributionPrior | MappedPrior:
    """Fill the action prior role with a language model.

    Args:
        config: How.
        lm: The model; ``uniform`` fills the role with nothing.
        table: Embeddings to share, used where they are this model's.

    Raises:
        UsageError: if the model lacks the verb that this prior needs.
    """
    kind = choose_kind(config, lm)
    temperature = TEMPERATURES.get(kind, 1.0) if config.temperature is None else config.temperature
    if kind == "uniform":
        return UniformPrior("L0")
    if kind == "novelty":
        return NoveltyPrior(temperature=temperature, repeat=config.repeat)
    if kind == "mapped":
        sampling = replace(RELEASED_SAMPLING, temperature=temperature)
        return MappedPrior(lm, tie=config.tie, sampling=sampling, listed=config.listed)
    if kind == "likelihood":
        return LikelihoodPrior(
            lm,
            normalise=config.normalise,
            temperature=temperature,
            over=config.over,
            listed=config.listed,
        )
    if kind == "labelled":
        return LabelledPrior(lm, temperature=temperature, rotations=config.rotations)
    source = table if table is not None and table.lm is lm else lm
    return SimilarityPrior(source, temperature=temperature, history=config.history, repeat=config.repeat)


def choose_kind(config: PriorConfig, lm: LanguageModel) -> str:
    """Return the kind of prior that ``config`` asks of this model; ``auto`` goes by the model's verbs."""
    if config.kind != "auto":
        return config.kind
    if lm.name == "uniform":
        return "uniform"
    if "generate" in lm.verbs:
        return "mapped"
    if "embed" in lm.verbs:
        return "similarity"
    return "likelihood" if "score" in lm.verbs else "labelled"
