"""Published systems that nothing else in Hunch stands on: the distribution ``hunch-rl-contrib``.

Each is one file, as in :mod:`hunch.methods`, and joins the library by the entry-point group
``hunch.methods``. Its name works in every command and in ``hunch.train``; its classes are here:
``hunch_contrib.RAIN``.
"""

from typing import TYPE_CHECKING

from hunch import lazy

if TYPE_CHECKING:
    from hunch_contrib.names import *  # noqa: F403 - a stub, for type checkers

_HOMES = lazy.homes(
    {
        "decode.rain": "RAIN RAINConfig",
        "goal.rl_adapter": "RLAdapter RLAdapterConfig",
        "goal.task_explore": "TaskExplore TaskExploreConfig",
        "in_context.decision_pretrained": "DecisionPretrained DecisionPretrainedConfig",
        "in_context.decision_transformer": "DecisionTransformer DecisionTransformerConfig",
        "planner.plan4mc": "Plan4MC Plan4MCConfig",
        "planner.planner_actor_reporter": "PlannerActorReporter PlannerActorReporterConfig",
        "planner.spring": "SPRING SPRINGConfig",
        "policy.instruct_ppo": "InstructPPO InstructPPOConfig",
        "prior.dqn_prior_released": "DQNPriorReleased DQNPriorReleasedConfig",
        "prior.instruct_q": "InstructQ InstructQConfig",
        "prior.likelihood_value": "LikelihoodValue LikelihoodValueConfig",
        "program.evotune": "EvoTune EvoTuneConfig",
        "program.song": "Song SongConfig",
        "program.text2reward": "Text2Reward Text2RewardConfig",
        "prompt.prompt_oirl": "PromptOIRL PromptOIRLConfig",
        "prompt.rlprompt": "RLPrompt RLPromptConfig",
        "prompt.tempera": "TEMPERA TEMPERAConfig",
        "reward.rl_vlm_f": "RLVLMF RLVLMFConfig",
        "reward.vlm_rm": "VLMRM VLMRMConfig",
        "tune.a2c_text": "A2CText A2CTextConfig",
        "tune.compress": "Compress CompressConfig",
        "tune.constitutional": "Constitutional ConstitutionalConfig",
        "tune.context_distillation": "ContextDistillation ContextDistillationConfig",
        "tune.gigpo": "GiGPO GiGPOConfig",
        "tune.nlpo": "NLPO NLPOConfig",
        "tune.red_team": "RedTeam RedTeamConfig",
        "tune.rest": "ReST ReSTConfig",
        "tune.rloo": "RLOO RLOOConfig",
        "tune.syndicom": "SYNDICOM SYNDICOMConfig",
        "tune.trpo_text": "TRPOText TRPOTextConfig",
    }
)
__all__ = sorted(_HOMES)

if not TYPE_CHECKING:  # so that a wrong name is an error of types
    __getattr__ = lazy.importer(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
