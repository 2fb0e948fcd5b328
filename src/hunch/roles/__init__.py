"""What a language model can be in a reinforcement-learning loop."""

from hunch.roles.encoder import StateFeatures, TextTable
from hunch.roles.prior import (
    LabelledPrior,
    LikelihoodPrior,
    MappedPrior,
    NoveltyPrior,
    SimilarityPrior,
    UniformPrior,
)
from hunch.roles.prior_config import PriorConfig, build_prior

__all__ = [
    "LabelledPrior",
    "LikelihoodPrior",
    "MappedPrior",
    "NoveltyPrior",
    "PriorConfig",
    "SimilarityPrior",
    "StateFeatures",
    "TextTable",
    "UniformPrior",
    "build_prior",
]
