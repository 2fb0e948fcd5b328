# ruff: noqa: E501
# fmt: off
# ruff: isort: off
from hunch_contrib.decode.rain import RAIN as RAIN, RAINConfig as RAINConfig
from hunch_contrib.goal.rl_adapter import RLAdapter as RLAdapter, RLAdapterConfig as RLAdapterConfig
from hunch_contrib.goal.task_explore import TaskExplore as TaskExplore, TaskExploreConfig as TaskExploreConfig
from hunch_contrib.in_context.decision_pretrained import DecisionPretrained as DecisionPretrained, DecisionPretrainedConfig as DecisionPretrainedConfig
from hunch_contrib.in_context.decision_transformer import DecisionTransformer as DecisionTransformer, DecisionTransformerConfig as DecisionTransformerConfig
from hunch_contrib.planner.plan4mc import Plan4MC as Plan4MC, Plan4MCConfig as Plan4MCConfig
from hunch_contrib.planner.planner_actor_reporter import PlannerActorReporter as PlannerActorReporter, PlannerActorReporterConfig as PlannerActorReporterConfig
from hunch_contrib.planner.spring import SPRING as SPRING, SPRINGConfig as SPRINGConfig
from hunch_contrib.policy.instruct_ppo import InstructPPO as InstructPPO, InstructPPOConfig as InstructPPOConfig
from hunch_contrib.prior.dqn_prior_released import DQNPriorReleased as DQNPriorReleased, DQNPriorReleasedConfig as DQNPriorReleasedConfig
from hunch_contrib.prior.instruct_q import InstructQ as InstructQ, InstructQConfig as InstructQConfig
from hunch_contrib.prior.likelihood_value import LikelihoodValue as LikelihoodValue, LikelihoodValueConfig as LikelihoodValueConfig
from hunch_contrib.program.evotune import EvoTune as EvoTune, EvoTuneConfig as EvoTuneConfig
from hunch_contrib.program.song import Song as Song, SongConfig as SongConfig
from hunch_contrib.program.text2reward import Text2Reward as Text2Reward, Text2RewardConfig as Text2RewardConfig
from hunch_contrib.prompt.prompt_oirl import PromptOIRL as PromptOIRL, PromptOIRLConfig as PromptOIRLConfig
from hunch_contrib.prompt.rlprompt import RLPrompt as RLPrompt, RLPromptConfig as RLPromptConfig
from hunch_contrib.prompt.tempera import TEMPERA as TEMPERA, TEMPERAConfig as TEMPERAConfig
from hunch_contrib.reward.rl_vlm_f import RLVLMF as RLVLMF, RLVLMFConfig as RLVLMFConfig
from hunch_contrib.reward.vlm_rm import VLMRM as VLMRM, VLMRMConfig as VLMRMConfig
from hunch_contrib.tune.a2c_text import A2CText as A2CText, A2CTextConfig as A2CTextConfig
from hunch_contrib.tune.compress import Compress as Compress, CompressConfig as CompressConfig
from hunch_contrib.tune.constitutional import Constitutional as Constitutional, ConstitutionalConfig as ConstitutionalConfig
from hunch_contrib.tune.context_distillation import ContextDistillation as ContextDistillation, ContextDistillationConfig as ContextDistillationConfig
from hunch_contrib.tune.gigpo import GiGPO as GiGPO, GiGPOConfig as GiGPOConfig
from hunch_contrib.tune.nlpo import NLPO as NLPO, NLPOConfig as NLPOConfig
from hunch_contrib.tune.red_team import RedTeam as RedTeam, RedTeamConfig as RedTeamConfig
from hunch_contrib.tune.rest import ReST as ReST, ReSTConfig as ReSTConfig
from hunch_contrib.tune.rloo import RLOO as RLOO, RLOOConfig as RLOOConfig
from hunch_contrib.tune.syndicom import SYNDICOM as SYNDICOM, SYNDICOMConfig as SYNDICOMConfig
from hunch_contrib.tune.trpo_text import TRPOText as TRPOText, TRPOTextConfig as TRPOTextConfig
