"""The roles that a language model can fill in an RL loop; each file is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hunch.roles.encoder.features import StateFeatures, TextTable
    from hunch.roles.goal.goaled import Achievement, Goaled, GoalSource
    from hunch.roles.policy.in_context import InContextPolicy, LookUpPolicy
    from hunch.roles.policy.language import LMPolicy
    from hunch.roles.policy.perceptron import PerceptronPolicy
    from hunch.roles.policy.settings import LMPolicyConfig
    from hunch.roles.prior.action import ActionPrior, Proposal
    from hunch.roles.prior.distribution import DistributionPrior, UniformPrior
    from hunch.roles.prior.kinds import PriorConfig, build_prior
    from hunch.roles.prior.language import LabelledPrior, LikelihoodPrior, MappedPrior
    from hunch.roles.prior.similarity import NoveltyPrior, SimilarityPrior
    from hunch.roles.reward.judge import Judge, JudgeConfig
    from hunch.roles.reward.rewarded import Rewarded, RewardSource, Shaping
    from hunch.roles.reward.similarity import Similarity
    from hunch.roles.world_model.experience import Example, Experience
    from hunch.roles.world_model.prompting import Completer, PromptConfig
    from hunch.roles.world_model.text import InContextWorldModel, LookUpWorldModel

__all__ = [
    "Achievement",
    "ActionPrior",
    "Completer",
    "DistributionPrior",
    "Example",
    "Experience",
    "GoalSource",
    "Goaled",
    "InContextPolicy",
    "InContextWorldModel",
    "Judge",
    "JudgeConfig",
    "LMPolicy",
    "LMPolicyConfig",
    "LabelledPrior",
    "LikelihoodPrior",
    "LookUpPolicy",
    "LookUpWorldModel",
    "MappedPrior",
    "NoveltyPrior",
    "PerceptronPolicy",
    "PriorConfig",
    "PromptConfig",
    "Proposal",
    "RewardSource",
    "Rewarded",
    "Shaping",
    "Similarity",
    "SimilarityPrior",
    "StateFeatures",
    "TextTable",
    "UniformPrior",
    "build_prior",
]

_FILES = {
    "encoder.features": "StateFeatures TextTable",
    "goal.goaled": "Achievement GoalSource Goaled",
    "policy.in_context": "InContextPolicy LookUpPolicy",
    "policy.language": "LMPolicy",
    "policy.perceptron": "PerceptronPolicy",
    "policy.settings": "LMPolicyConfig",
    "prior.action": "ActionPrior Proposal",
    "prior.distribution": "DistributionPrior UniformPrior",
    "prior.kinds": "PriorConfig build_prior",
    "prior.language": "LabelledPrior LikelihoodPrior MappedPrior",
    "prior.similarity": "NoveltyPrior SimilarityPrior",
    "reward.judge": "Judge JudgeConfig",
    "reward.rewarded": "RewardSource Rewarded Shaping",
    "reward.similarity": "Similarity",
    "world_model.experience": "Example Experience",
    "world_model.prompting": "Completer PromptConfig",
    "world_model.text": "InContextWorldModel LookUpWorldModel",
}
_HOMES = {name: file for file, named in _FILES.items() for name in named.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
