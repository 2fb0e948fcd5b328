# ruff: noqa: E501
# fmt: off
# ruff: isort: off
from hunch.methods.decode.best_of_n import BestOfN as BestOfN, BestOfNConfig as BestOfNConfig
from hunch.methods.goal.ellm import ELLM as ELLM, ELLMConfig as ELLMConfig
from hunch.methods.in_context.algorithm_distillation import AlgorithmDistillation as AlgorithmDistillation, AlgorithmDistillationConfig as AlgorithmDistillationConfig
from hunch.methods.in_context.icpi import ICPI as ICPI, ICPIConfig as ICPIConfig, PlanConfig as PlanConfig
from hunch.methods.in_context.icpi_no_argmax import ICPINoArgMax as ICPINoArgMax, ICPINoArgMaxConfig as ICPINoArgMaxConfig
from hunch.methods.in_context.in_context_lm import InContextLM as InContextLM, InContextLMConfig as InContextLMConfig
from hunch.methods.in_context.matching import Matching as Matching
from hunch.methods.in_context.nearest_history import NearestHistory as NearestHistory, NearestHistoryConfig as NearestHistoryConfig
from hunch.methods.in_context.tabular_q import TabularQ as TabularQ, TabularQConfig as TabularQConfig
from hunch.methods.planner.inner_monologue import InnerMonologue as InnerMonologue, InnerMonologueConfig as InnerMonologueConfig
from hunch.methods.planner.saycan import SayCan as SayCan, SayCanConfig as SayCanConfig
from hunch.methods.policy.gflan_prior import GFlanPrior as GFlanPrior, GFlanPriorConfig as GFlanPriorConfig
from hunch.methods.policy.glam import GLAM as GLAM, GLAMConfig as GLAMConfig
from hunch.methods.policy.ppo import PPO as PPO, PPOConfig as PPOConfig
from hunch.methods.policy.twosome import TWOSOME as TWOSOME, TWOSOMEConfig as TWOSOMEConfig
from hunch.methods.prior.bc import BC as BC, BCConfig as BCConfig
from hunch.methods.prior.bc_lm import BCLM as BCLM, BCLMConfig as BCLMConfig
from hunch.methods.prior.cql import CQL as CQL
from hunch.methods.prior.cql_prior import CQLConfig as CQLConfig, CQLPrior as CQLPrior, CQLPriorConfig as CQLPriorConfig
from hunch.methods.prior.dqn import DQN as DQN
from hunch.methods.prior.dqn_prior import DQNConfig as DQNConfig, DQNPrior as DQNPrior, DQNPriorConfig as DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShot as ZeroShot, ZeroShotConfig as ZeroShotConfig
from hunch.methods.program.code_policy import CodePolicy as CodePolicy, CodePolicyConfig as CodePolicyConfig
from hunch.methods.program.eureka import Eureka as Eureka, EurekaConfig as EurekaConfig
from hunch.methods.program.funsearch import FunSearch as FunSearch, FunSearchConfig as FunSearchConfig
from hunch.methods.program.gif_mcts import GIFMCTS as GIFMCTS, GIFMCTSConfig as GIFMCTSConfig
from hunch.methods.program.worldcoder import WorldCoder as WorldCoder, WorldCoderConfig as WorldCoderConfig
from hunch.methods.q_learning import QLearning as QLearning, QLearningConfig as QLearningConfig
from hunch.methods.reward.count_bonus import CountBonus as CountBonus, CountBonusConfig as CountBonusConfig
from hunch.methods.reward.kwon import Kwon as Kwon, KwonConfig as KwonConfig
from hunch.methods.reward.motif import Motif as Motif, MotifConfig as MotifConfig
from hunch.methods.reward.rewarded import RewardedLearner as RewardedLearner, RewardedLearnerConfig as RewardedLearnerConfig
from hunch.methods.reward.rnd import RND as RND, RNDConfig as RNDConfig
from hunch.methods.solver.alpha_proof import AlphaProof as AlphaProof, AlphaProofConfig as AlphaProofConfig
from hunch.methods.tune.grpo import GRPO as GRPO, GRPOConfig as GRPOConfig
from hunch.methods.tune.offline_rlhf import OfflineRLHF as OfflineRLHF, OfflineRLHFConfig as OfflineRLHFConfig
from hunch.methods.tune.ppo_text import PPOText as PPOText, PPOTextConfig as PPOTextConfig
from hunch.methods.tune.rlhf import RLHF as RLHF, RLHFConfig as RLHFConfig
from hunch.methods.tune.sft import SFT as SFT, SFTConfig as SFTConfig
