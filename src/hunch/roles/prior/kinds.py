"""Kinds of action priors: the ways to get p(a|s) from a language model.

=========== ======== ====================================================================================
prior       verb     p(a|s)
=========== ======== ====================================================================================
uniform     none     1 / number of admissible actions
mapped      generate share of k free-form answers that a rule maps to a (Yan et al. 2025, section 3.1)
likelihood  score    softmax over the actions' log-probabilities as continuations of the prompt
labelled    label    softmax over the log-probabilities of letters that number the actions
novelty     none     softmax with a penalty for actions just taken: a control
similarity  embed    softmax over the similarity of a to task and history, minus that to actions just taken
=========== ======== ====================================================================================

Source: Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hunch.lm.base import LanguageModel, Normalisation, Verb
from hunch.lm.settings import AskConfig, ask_config
from hunch.ranges import LATER, NonNegativeFloat, PositiveFloat
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.distribution import DistributionPrior, UniformPrior

if TYPE_CHECKING:
    from hunch.roles.prior.language import MappedPrior

TEMPERATURES = {"similarity": 0.1, "novelty": 0.1}
"""Default temperature of the softmax of each kind, if it is not 1."""

NEEDS: dict[str, tuple[Verb, ...]] = {
    "mapped": ("generate",),
    "likelihood": ("score",),
    "labelled": ("label", "score"),
    "similarity": ("embed",),
}
"""Verbs of which each kind needs one."""


@dataclass(frozen=True)
class PriorConfig(AskConfig):
    """How a language model becomes an action prior."""

    kind: Literal["auto", "uniform", "novelty", "mapped", "likelihood", "labelled", "similarity"] = "auto"
    """How p(a|s) is computed; auto takes the first that the model supports: generate, embed, score, label."""
    temperature: PositiveFloat | None = None
    """Temperature of softmax or sampling. Default: mapped 1 (released code), similarity 0.1, others 1 (our
    choice)."""
    history: NonNegativeFloat = 0.2
    """similarity: weight of observed lines relative to the task (our choice)."""
    repeat: float = 1.0
    """similarity, novelty: weight of the penalty for recent actions (our choice)."""
    normalise: Normalisation = "token"
    """likelihood: divisor of a log-probability (TWOSOME compares the three)."""
    listed: bool = True
    """mapped, likelihood: name the admissible actions in the prompt (paper), or leave the bare transcript."""
    read: Literal["decided", "named"] = field(default="decided", metadata=LATER)
    """mapped: the action that an answer decides on, or that it names most often (released code)."""
    structured: bool = field(default=False, metadata=LATER)
    """mapped: the server makes each answer one of the actions, with a JSON schema (response_format)."""


def build_prior(
    config: PriorConfig, lm: LanguageModel, table: TextTable | None = None
) -> DistributionPrior | MappedPrior:
    """Make an action prior from a language model.

    Args:
        config: Settings of the prior.
        lm: The model; ``uniform`` gives the uninformed prior.
        table: Embeddings to share, used if they are this model's.

    Raises:
        UsageError: if the model lacks the verb that this prior needs.
    """
    kind = choose_kind(config, lm)
    temperature = TEMPERATURES.get(kind, 1.0) if config.temperature is None else config.temperature
    if kind == "uniform":
        return UniformPrior("L0")
    if kind in ("novelty", "similarity"):
        from hunch.roles.prior.similarity import NoveltyPrior, SimilarityPrior

        if kind == "novelty":
            return NoveltyPrior(temperature=temperature, repeat=config.repeat)
        source = table if table is not None and table.lm is lm else lm
        return SimilarityPrior(source, temperature=temperature, history=config.history, repeat=config.repeat)
    from hunch.roles.prior.language import LabelledPrior, LikelihoodPrior, MappedPrior

    asks = ask_config(config, temperature=temperature)
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
    """Return the kind of prior for this model; ``auto`` depends on the model's verbs."""
    if config.kind != "auto":
        return config.kind
    if lm.name == "uniform":
        return "uniform"
    if "generate" in lm.verbs:
        return "mapped"
    if "embed" in lm.verbs:
        return "similarity"
    return "likelihood" if "score" in lm.verbs else "labelled"
