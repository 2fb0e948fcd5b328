# ruff: noqa: E501
# fmt: off
# ruff: isort: off
from hunch.roles.encoder.features import StateFeatures as StateFeatures, TextTable as TextTable
from hunch.roles.goal.goaled import Achievement as Achievement, GoalSource as GoalSource, Goaled as Goaled
from hunch.roles.policy.in_context import InContextPolicy as InContextPolicy, LookUpPolicy as LookUpPolicy
from hunch.roles.policy.language import LMPolicy as LMPolicy
from hunch.roles.policy.perceptron import PerceptronPolicy as PerceptronPolicy
from hunch.roles.policy.settings import LMPolicyConfig as LMPolicyConfig
from hunch.roles.prior.base import ActionPrior as ActionPrior, DistributionPrior as DistributionPrior, Proposal as Proposal, UniformPrior as UniformPrior
from hunch.roles.prior.kinds import PriorConfig as PriorConfig, build_prior as build_prior
from hunch.roles.prior.language import DecisionPrior as DecisionPrior, LabelledPrior as LabelledPrior, LikelihoodPrior as LikelihoodPrior, MappedPrior as MappedPrior, SampledPrior as SampledPrior
from hunch.roles.prior.similarity import NoveltyPrior as NoveltyPrior, SimilarityPrior as SimilarityPrior
from hunch.roles.reward.judge import Judge as Judge, JudgeConfig as JudgeConfig
from hunch.roles.reward.rewarded import Rewarded as Rewarded, RewardSource as RewardSource, Shaping as Shaping
from hunch.roles.reward.similarity import Similarity as Similarity
from hunch.roles.world_model.experience import Example as Example, Experience as Experience
from hunch.roles.world_model.prompting import Completer as Completer, PromptConfig as PromptConfig
from hunch.roles.world_model.text import InContextWorldModel as InContextWorldModel, LookUpWorldModel as LookUpWorldModel
