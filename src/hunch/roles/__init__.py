"""What a language model can be in a reinforcement-learning loop."""

from hunch.roles.encoder import StateFeatures, TextTable
from hunch.roles.experience import Example, Experience
from hunch.roles.in_context_policy import InContextPolicy, LookUpPolicy
from hunch.roles.prior import (
    LabelledPrior,
    LikelihoodPrior,
    MappedPrior,
    NoveltyPrior,
    SimilarityPrior,
    UniformPrior,
)
from hunch.roles.prior_config import PriorConfig, build_prior
from hunch.roles.prompting import Completer, PromptConfig
from hunch.roles.world_model import InContextWorldModel, LookUpWorldModel, Prediction

__all__ = [
    "Completer",
    "Example",
    "Experience",
    "InContextPolicy",
    "InContextWorldModel",
    "LabelledPrior",
    "LikelihoodPrior",
    "LookUpPolicy",
    "LookUpWorldModel",
    "MappedPrior",
    "NoveltyPrior",
    "Prediction",
    "PriorConfig",
    "PromptConfig",
    "SimilarityPrior",
    "StateFeatures",
    "TextTable",
    "UniformPrior",
    "build_prior",
]
