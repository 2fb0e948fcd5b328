"""What a language model can be in a reinforcement-learning loop."""

from hunch.roles.encoder import StateFeatures, TextTable
from hunch.roles.prior import (
    LikelihoodPrior,
    MappedPrior,
    PriorConfig,
    SimilarityPrior,
    UniformPrior,
    build_prior,
)

__all__ = [
    "LikelihoodPrior",
    "MappedPrior",
    "PriorConfig",
    "SimilarityPrior",
    "StateFeatures",
    "TextTable",
    "UniformPrior",
    "build_prior",
]
