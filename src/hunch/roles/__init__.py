"""The roles that a language model can fill in an RL loop; each file is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hunch.roles.encoder import StateFeatures, TextTable
    from hunch.roles.experience import Example, Experience
    from hunch.roles.goal import Achievement, Goaled, GoalSource
    from hunch.roles.in_context_policy import InContextPolicy, LookUpPolicy
    from hunch.roles.judge import Judge, JudgeConfig
    from hunch.roles.novelty import Counts, RandomDistillation
    from hunch.roles.policy import LMPolicy, LMPolicyConfig, PerceptronPolicy
    from hunch.roles.preference import Preference, PreferenceConfig
    from hunch.roles.prior import ActionPrior, DistributionPrior, Proposal, UniformPrior
    from hunch.roles.prior_kinds import PriorConfig, build_prior
    from hunch.roles.prior_language import LabelledPrior, LikelihoodPrior, MappedPrior
    from hunch.roles.prior_similarity import NoveltyPrior, SimilarityPrior
    from hunch.roles.prompting import Completer, PromptConfig
    from hunch.roles.reward import Rewarded, RewardSource, Shaping
    from hunch.roles.similarity import Similarity
    from hunch.roles.world_model import InContextWorldModel, LookUpWorldModel

__all__ = [
    "Achievement",
    "ActionPrior",
    "Completer",
    "Counts",
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
    "Preference",
    "PreferenceConfig",
    "PriorConfig",
    "PromptConfig",
    "Proposal",
    "RandomDistillation",
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
    "encoder": "StateFeatures TextTable",
    "experience": "Example Experience",
    "goal": "Achievement GoalSource Goaled",
    "in_context_policy": "InContextPolicy LookUpPolicy",
    "judge": "Judge JudgeConfig",
    "novelty": "Counts RandomDistillation",
    "policy": "LMPolicy LMPolicyConfig PerceptronPolicy",
    "preference": "Preference PreferenceConfig",
    "prior": "ActionPrior DistributionPrior Proposal UniformPrior",
    "prior_kinds": "PriorConfig build_prior",
    "prior_language": "LabelledPrior LikelihoodPrior MappedPrior",
    "prior_similarity": "NoveltyPrior SimilarityPrior",
    "prompting": "Completer PromptConfig",
    "reward": "RewardSource Rewarded Shaping",
    "similarity": "Similarity",
    "world_model": "InContextWorldModel LookUpWorldModel",
}
_HOMES = {name: file for file, named in _FILES.items() for name in named.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
