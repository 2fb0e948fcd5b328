"""The roles that a language model can fill in an RL loop; each file is imported when it is used."""

from typing import TYPE_CHECKING

from hunch import lazy

if TYPE_CHECKING:
    from hunch.roles.names import *  # noqa: F403 - a stub, for type checkers

_HOMES = lazy.homes(
    {
        "encoder.features": "StateFeatures TextTable",
        "goal.goaled": "Achievement GoalSource Goaled",
        "policy.in_context": "InContextPolicy LookUpPolicy",
        "policy.language": "LMPolicy",
        "policy.perceptron": "PerceptronPolicy",
        "policy.settings": "LMPolicyConfig",
        "prior.base": "ActionPrior DistributionPrior Proposal UniformPrior",
        "prior.kinds": "PriorConfig build_prior",
        "prior.language": "DecisionPrior LabelledPrior LikelihoodPrior MappedPrior SampledPrior",
        "prior.similarity": "NoveltyPrior SimilarityPrior",
        "reward.judge": "Judge JudgeConfig",
        "reward.rewarded": "RewardSource Rewarded Shaping",
        "reward.similarity": "Similarity",
        "world_model.experience": "Example Experience",
        "world_model.prompting": "Completer PromptConfig",
        "world_model.text": "InContextWorldModel LookUpWorldModel",
    }
)
__all__ = sorted(_HOMES)

if not TYPE_CHECKING:  # so that a wrong name is an error of types
    __getattr__ = lazy.importer(__name__, _HOMES)
