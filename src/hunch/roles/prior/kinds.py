"""How a language model becomes an action prior: the kinds of priors, their settings, and how they are made.

=========== ======== ====================================================================================
kind        verb     p(a|s)
=========== ======== ====================================================================================
uniform     none     1 / number of admissible actions
mapped      generate share of k free-form answers that a rule maps to a (Yan et al. 2025, section 3.1)
likelihood  score    softmax over the actions' log-probabilities as continuations of the prompt
labelled    label    softmax over the log-probabilities of letters that number the actions
similarity  embed    softmax of the similarity to task and history, minus that to recent actions
novelty     none     softmax with the penalty for recent actions alone: the control of similarity
=========== ======== ====================================================================================

Source: Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from hunch.lm.base import LanguageModel, Normalisation, Verb
from hunch.lm.settings import AskConfig, ask_config
from hunch.ranges import LATER, NonNegativeFloat, PositiveFloat
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import DistributionPrior, UniformPrior
from hunch.roles.prior.language import LabelledPrior, LikelihoodPrior, MappedPrior
from hunch.roles.prior.similarity import NoveltyPrior, SimilarityPrior

NEEDS: Final[dict[str, tuple[Verb, ...]]] = {
    "mapped": ("generate",),
    "likelihood": ("score",),
    "labelled": ("label", "score"),
    "similarity": ("embed",),
}
"""Kinds of request by kind of prior; the model must support at least one."""
TEMPERATURES: Final = {"similarity": 0.1, "novelty": 0.1}
"""Default softmax temperatures of the kinds whose default is not 1."""


@dataclass(frozen=True)
class PriorConfig(AskConfig):
    """Settings of an action prior."""

    kind: Literal["auto", "uniform", "novelty", "mapped", "likelihood", "labelled", "similarity"] = "auto"
    """Computation of p(a|s); auto takes the first that the model supports: generate, embed, score, label."""
    temperature: PositiveFloat | None = None
    """Temperature of softmax or sampling. Default: 1 (released code), for similarity and novelty 0.1 (our
    choice)."""
    history: NonNegativeFloat = 0.2
    """With similarity: weight of observed lines relative to the task (our choice)."""
    repeat: float = 1.0
    """With similarity or novelty: weight of the penalty for recent actions (our choice)."""
    normalise: Normalisation = "token"
    """With likelihood: divide log-probabilities by nothing (sum), tokens or words (TWOSOME compares all)."""
    listed: bool = True
    """With mapped or likelihood: list the admissible actions in the prompt (paper), or show none."""
    read: Literal["decided", "named"] = field(default="decided", metadata=LATER)
    """With mapped: read the action that an answer decides on, or names most often (named, released code)."""
    structured: bool = field(default=False, metadata=LATER)
    """With mapped: the server restricts each answer to one of the actions (JSON schema, response_format)."""


def build_prior(
    config: PriorConfig, lm: LanguageModel, table: TextTable | None = None
) -> DistributionPrior | MappedPrior:
    """Make an action prior from a language model.

    Args:
        config: Settings of the prior.
        lm: The model; ``uniform`` gives the uninformed prior.
        table: Embeddings to share; used if they come from the same model.

    Raises:
        UsageError: if the model does not support the requests that this prior needs.
    """
    kind = choose_kind(config, lm)
    temperature = config.temperature
    if temperature is None:
        temperature = TEMPERATURES.get(kind, 1.0)
    asks = ask_config(config, temperature=temperature)

    if kind == "uniform":
        return UniformPrior("L0")
    if kind == "novelty":
        return NoveltyPrior(temperature=temperature, repeat=config.repeat)
    if kind == "similarity":
        embeddings = table if table is not None and table.lm is lm else lm
        return SimilarityPrior(
            embeddings, temperature=temperature, history=config.history, repeat=config.repeat
        )
    if kind == "mapped":
        return MappedPrior(
            lm, read=config.read, asks=asks, listed=config.listed, structured=config.structured
        )
    if kind == "likelihood":
        return LikelihoodPrior(
            lm, normalise=config.normalise, temperature=temperature, listed=config.listed, asks=asks
        )
    return LabelledPrior(lm, temperature=temperature, asks=asks)


def choose_kind(config: PriorConfig, lm: LanguageModel) -> str:
    """Return the kind of prior; ``auto`` chooses by the requests that the model supports."""
    if config.kind != "auto":
        return config.kind
    if lm.name == "uniform":
        return "uniform"
    if "generate" in lm.verbs:
        return "mapped"
    if "embed" in lm.verbs:
        return "similarity"
    if "score" in lm.verbs:
        return "likelihood"
    return "labelled"
