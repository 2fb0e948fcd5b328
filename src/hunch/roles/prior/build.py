"""Makes an action prior of any kind from a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hunch.lm.base import LanguageModel
from hunch.lm.settings import ask_config
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.distribution import DistributionPrior, UniformPrior
from hunch.roles.prior.kinds import PriorConfig

if TYPE_CHECKING:
    from hunch.roles.prior.language import MappedPrior

TEMPERATURES = {"similarity": 0.1, "novelty": 0.1}
"""Default softmax temperatures of the kinds whose default is not 1."""


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
    temperature = TEMPERATURES.get(kind, 1.0) if config.temperature is None else config.temperature
    if kind == "uniform":
        return UniformPrior("L0")
    if kind == "novelty":
        from hunch.roles.prior.novelty import NoveltyPrior

        return NoveltyPrior(temperature=temperature, repeat=config.repeat)
    if kind == "similarity":
        from hunch.roles.prior.similarity import SimilarityPrior

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
    """Return the kind of prior; ``auto`` chooses by the requests that the model supports."""
    if config.kind != "auto":
        return config.kind
    if lm.name == "uniform":
        return "uniform"
    if "generate" in lm.verbs:
        return "mapped"
    if "embed" in lm.verbs:
        return "similarity"
    return "likelihood" if "score" in lm.verbs else "labelled"
