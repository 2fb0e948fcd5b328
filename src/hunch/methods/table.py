"""The table of methods, with their names, modules, models and papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hunch.lm.base import Verb
from hunch.methods.method import Method

if TYPE_CHECKING:
    from hunch.envs.offers import Reads

PROPOSES: tuple[Verb, ...] = ("generate", "embed", "score", "label")
_YAN = "Yan et al., Efficient Reinforcement Learning with Large Language Model Priors, ICLR 2025"
_BROOKS = "Brooks et al., Large Language Models can Implement Policy Iteration, NeurIPS 2023"
_ENCODER: dict[str, tuple[Verb, ...]] = {"encoder": ("embed",)}
_PRIOR: dict[str, Any] = {
    "paper": _YAN,
    "leaf": "LLM4RL / policy",
    "models": {"lm": PROPOSES, **_ENCODER},
    "lm": "minilm",
    "roles": ("action prior",),
    "changeable": ("k", "proposals", "prior", "alpha"),
}
_EVENTS: frozenset[Reads] = frozenset(("events",))
_WORDING: frozenset[Reads] = frozenset(("wording",))
_RAW: frozenset[Reads] = frozenset(("raw",))
_IN_CONTEXT: dict[str, Any] = {
    "paper": _BROOKS,
    "models": {"lm": ("generate",)},
    "lm": "pocket",
    "environments": "the domains of ICPI",
    "reads": _WORDING,
}

_PROGRAM: dict[str, Any] = {
    "models": {"lm": ("generate",)},
    "roles": ("program",),
    "environments": "design problems",
    "acts": "program",
    "reads": _RAW,
    "data": "none",
}

_REWARD_PROGRAM: dict[str, Any] = {**_PROGRAM, "models": {"lm": ("generate", "embed")}}

_PLANNER: dict[str, Any] = {
    "reads": _RAW,
    "optional": _RAW,  # for trained skills
    "leaf": "LLM4RL / planner",
    "models": {"lm": PROPOSES},
    "lm": "minilm",
    "roles": ("planner",),
    "control": "uniform planner",
    "data": "none",
    "changeable": ("score", "affordance", "pick", "prior"),
}
_REWARD: dict[str, Any] = {
    "models": {"lm": ("generate", "score", "label"), **_ENCODER},
    "leaf": "LLM4RL / reward",
    "roles": ("reward source",),
}
_LEANING: dict[str, Any] = {
    "leaf": "LLM4RL / policy",
    "environments": "small text environments",
    "models": {"lm": PROPOSES},
    "lm": "minilm",
    "roles": ("action prior",),
    "changeable": ("prior", "instruction", "weight", "floor", "samples"),
}
_WRITES: dict[str, tuple[Verb, ...]] = {"lm": ("generate",), **_ENCODER}

_POLICY: dict[str, Any] = {
    "leaf": "LLM4RL / policy",
    "lm": "pocket?corpus=walks",
    "roles": ("policy",),
    "data": "none",
}

_LIST = (
    Method(
        "dqn",
        ".prior.dqn_prior:DQN",
        "Q-learning over all admissible actions; the baseline of dqn-prior",
        "Mnih et al., Human-level control through deep reinforcement learning, Nature 2015",
        models=_ENCODER,
        changeable=("alpha",),
    ),
    Method(
        "dqn-prior",
        ".prior.dqn_prior:DQNPrior",
        "Q-learning restricted to k actions that a language model proposes",
        control="random k",
        **_PRIOR,
    ),
    Method(
        "zero-shot",
        ".prior.zero_shot:ZeroShot",
        "act by the language model's prior only, without learning",
        data="none",
        **{**_PRIOR, "models": {"lm": PROPOSES}, "changeable": ("prior",)},
    ),
    Method(
        "cql-prior",
        ".prior.cql_prior:CQLPrior",
        "conservative Q-learning from recorded data, over k proposals of a model",
        control="random k",
        data="needed",
        **_PRIOR,
    ),
    Method(
        "cql",
        ".prior.cql_prior:CQL",
        "conservative Q-learning from recorded data; the baseline of cql-prior",
        "Kumar et al., Conservative Q-Learning for Offline RL, NeurIPS 2020",
        models=_ENCODER,
        data="needed",
        changeable=("alpha",),
    ),
    Method(
        "bc",
        ".prior.bc:BC",
        "behaviour cloning: take the recorded actions",
        "Pomerleau, ALVINN, NeurIPS 1988",
        models=_ENCODER,
        data="needed",
        changeable=("alpha",),
    ),
    Method(
        "bc-lm",
        ".prior.bc_lm:BCLM",
        "behaviour cloning by training a language model to write the recorded actions",
        _YAN,
        data="needed",
        changeable=("alpha", "normalise"),
    ),
    Method(
        "ppo",
        ".policy.ppo:PPO",
        "proximal policy optimisation on embedded texts; the baseline of glam and its variants",
        "Schulman et al., Proximal Policy Optimization Algorithms, 2017",
        models=_ENCODER,
        data="none",
    ),
    Method(
        "glam",
        ".policy.glam:GLAM",
        "a language model is the policy, and PPO trains all its weights",
        "Carta et al., Grounding Large Language Models in Interactive Environments with Online Reinforcement "
        "Learning, ICML 2023",
        **_POLICY,
    ),
    Method(
        "twosome",
        ".policy.twosome:TWOSOME",
        "a language model is the policy, normalised by length, and PPO trains adapters",
        "Tan et al., True Knowledge Comes from Practice: Aligning LLMs with Embodied Environments via "
        "Reinforcement Learning, ICLR 2024",
        **_POLICY,
    ),
    Method(
        "gflan-prior",
        ".policy.gflan_prior:GFlanPrior",
        "glam with its policy pulled towards the proposals of a frozen model",
        _YAN,
        models={"proposer": PROPOSES},
        **_POLICY,
    ),
    Method(
        "instruct-ppo",
        ".policy.instruct_ppo:InstructPPO",
        "PPO that an instruction, read by a language model, pulls towards one of many good policies",
        "Hu and Sadigh, Language Instructed Reinforcement Learning for Human-AI Coordination, ICML 2023",
        control="uninformed prior",
        leaf="LLM4RL / policy",
        models={"lm": PROPOSES, **_ENCODER},
        lm="minilm",
        roles=("action prior",),
        data="none",
    ),
    Method(
        "instruct-q",
        ".prior.instruct_q:InstructQ",
        "Q-learning in which an instruction to a language model selects one of many good policies",
        "Hu and Sadigh, Language Instructed Reinforcement Learning for Human-AI Coordination, ICML 2023",
        control="uninformed prior",
        **_LEANING,
    ),
    Method(
        "likelihood-value",
        ".prior.likelihood_value:LikelihoodValue",
        "choose actions by a language model's likelihood times a learnt probability of success",
        "the rule of Ahn et al., Do As I Can, Not As I Say, CoRL 2022, for the actions of any environment",
        control="uninformed prior",
        **_LEANING,
    ),
    Method(
        "icpi",
        ".in_context.icpi:ICPI",
        "policy iteration by rollouts that a language model imagines from examples",
        leaf="LLM4RL / world model and policy",
        roles=("world model", "in-context policy"),
        control="no model",
        **{**_IN_CONTEXT, "models": {"lm": ("generate",), "policy_lm": ("generate",)}},
    ),
    Method(
        "icpi-no-argmax",
        ".in_context.no_argmax:NoArgMax",
        "imitate its own successes from examples, without planning; a baseline of icpi",
        leaf="LLM4RL / policy",
        roles=("in-context policy",),
        **_IN_CONTEXT,
    ),
    Method(
        "matching",
        ".in_context.matching:Matching",
        "ICPI with a look-up of past steps instead of a model; a baseline of icpi",
        _BROOKS,
        environments="the domains of ICPI",
        reads=_WORDING,
    ),
    Method(
        "tabular-q",
        ".in_context.tabular_q:TabularQ",
        "Q-learning in a table; a baseline of icpi",
        "Watkins, Learning from Delayed Rewards, 1989; schedule of Brooks et al., NeurIPS 2023",
        environments="the domains of ICPI",
        reads=_WORDING,
    ),
    Method(
        "saycan",
        ".planner.saycan:SayCan",
        "choose the skill that a language model finds useful and whose own value says it will work",
        "Ahn et al., Do As I Can, Not As I Say: Grounding Language in Robotic Affordances, CoRL 2022",
        **_PLANNER,
    ),
    Method(
        "inner-monologue",
        ".planner.inner_monologue:InnerMonologue",
        "SayCan with feedback on whether its skills worked and what is seen",
        "Huang et al., Inner Monologue: Embodied Reasoning through Planning with Language Models, CoRL 2022",
        **{**_PLANNER, "changeable": (*_PLANNER["changeable"], "feedback")},
    ),
    Method(
        "planner-actor-reporter",
        ".planner.reporter:PlannerActorReporter",
        "a frozen planner, a trained actor, and a reporter that learns what to report from the reward",
        "Dasgupta et al., Collaborating with language models for embodied reasoning, 2023",
        **{**_PLANNER, "lm": "scripted:examiner"},
    ),
    Method(
        "plan4mc",
        ".planner.plan4mc:Plan4MC",
        "search a graph of skills that a model wrote once, and replan from the real inventory",
        "Yuan et al., Skill Reinforcement Learning and Planning for Open-World Long-Horizon Tasks, 2023",
        environments="the craft world with a target",
        **{
            **_PLANNER,
            "models": {"lm": ("generate",)},
            "optional": frozenset(),
            "lm": "scripted:recipes",
            "changeable": ("replan", "find"),
        },
    ),
    Method(
        "spring",
        ".planner.spring:SPRING",
        "answer a graph of questions about a manual and observations; the last answer is the action",
        "Wu et al., SPRING: Studying the Paper and Reasoning to Play Games, NeurIPS 2023",
        leaf="LLM4RL / policy",
        models={"lm": ("generate",)},
        lm="scripted:player",
        roles=("policy",),
        control="uninformed answers",
        environments="environments with listed actions; the craft world has a manual",
        data="none",
        changeable=("ask", "window", "temperature"),
    ),
    Method(
        "funsearch",
        ".program.funsearch:FunSearch",
        "search for a heuristic on islands of programs, with two programs in every prompt",
        "Romera-Paredes et al., Mathematical discoveries from program search with LLMs, Nature 2023",
        leaf="LLM4RL / policy",
        lm="scripted:mutator",
        **_PROGRAM,
    ),
    Method(
        "eureka",
        ".program.eureka:Eureka",
        "write batches of rewards; the best one with its curves is the context of the next batch",
        "Ma et al., Eureka: Human-Level Reward Design via Coding Large Language Models, ICLR 2024",
        leaf="LLM4RL / reward",
        lm="scripted:writer?repair=0.4",
        **_REWARD_PROGRAM,
    ),
    Method(
        "text2reward",
        ".program.text2reward:Text2Reward",
        "write a dense reward from a description, and refine it in one conversation",
        "Xie et al., Text2Reward: Reward Shaping with Language Models for RL, ICLR 2024",
        leaf="LLM4RL / reward",
        lm="scripted:writer?repair=0.4",
        **_REWARD_PROGRAM,
    ),
    Method(
        "song",
        ".program.song:Song",
        "rewrite one reward, guided by its evaluation, until it is good",
        "Song et al., Self-Refined Large Language Model as Automated Reward Function Designer, 2023",
        leaf="LLM4RL / reward",
        lm="scripted:writer?repair=0.4",
        **_REWARD_PROGRAM,
    ),
    Method(
        "gif-mcts",
        ".program.gif_mcts:GIFMCTS",
        "write a world model as code, by tree search over programs: generate, improve, fix",
        "Dainese et al., Generating Code World Models with Large Language Models Guided by Monte Carlo Tree "
        "Search, NeurIPS 2024",
        leaf="LLM4RL / world model",
        lm="scripted:modeller?repair=0.3",
        **_PROGRAM,
    ),
    Method(
        "worldcoder",
        ".program.worldcoder:WorldCoder",
        "write the world model as code while acting, with optimism as a constraint, and plan in it",
        "Tang, Key and Ellis, WorldCoder: Building World Models by Writing Code and Interacting with the "
        "Environment, NeurIPS 2024",
        leaf="LLM4RL / world model",
        environments="environments with raw states and without chance",
        reads=_RAW,
        lm="scripted:modeller?repair=0.5",
        models={"lm": ("generate",)},
        roles=("world model",),
    ),
    Method(
        "code-policy",
        ".program.code_policy:CodePolicy",
        "write the policy as a program, and revise it after its episodes",
        "Liang et al., Code as Policies, ICRA 2023; search as in FunSearch",
        leaf="LLM4RL / policy",
        lm="scripted:mutator",
        **_PROGRAM,
    ),
    Method(
        "q-learning",
        ".q_learning:QLearning",
        "Q-learning in a table; trains the skills of planners; the baseline of kwon, motif and ellm",
        "Watkins, Learning from Delayed Rewards, 1989",
        environments="small text environments",
    ),
    Method(
        "kwon",
        ".reward.kwon:Kwon",
        "learn from a model's verdict on each episode instead of the environment's reward",
        "Kwon et al., Reward Design with Language Models, ICLR 2023",
        reads=_EVENTS,
        optional=_EVENTS,
        control="uninformed judge",
        lm="scripted:judge",
        **_REWARD,
    ),
    Method(
        "motif",
        ".reward.motif:Motif",
        "fit a reward to a model's preferences between captions, and learn from it",
        "Klissarov et al., Motif: Intrinsic Motivation from Artificial Intelligence Feedback, ICLR 2024",
        environments="environments that tell events",
        reads=_EVENTS,
        control="uninformed judge",
        lm="scripted:captions",
        **_REWARD,
    ),
    Method(
        "ellm",
        ".goal.ellm:ELLM",
        "learn by reaching goals that a model suggests in every state",
        "Du et al., Guiding Pretraining in Reinforcement Learning with LLMs, ICML 2023",
        environments="environments that tell events",
        reads=_EVENTS,
        control="uniform goals",
        lm="scripted:suggest",
        **{
            **_REWARD,
            "leaf": "LLM4RL / goal",
            "roles": ("goal source",),
            "models": {"lm": PROPOSES, **_ENCODER},
        },
    ),
    Method(
        "task-explore",
        ".goal.task_explore:TaskExplore",
        "also learn similar tasks, with objects replaced by similar ones, from the same steps",
        "Quartey et al., Exploiting Contextual Structure to Generate Useful Auxiliary Tasks, 2023",
        leaf="LLM4RL / goal",
        environments="environments with raw states and tasks in temporal logic",
        reads=_EVENTS | _RAW,
        models=_ENCODER,
        roles=("goal source",),
    ),
    Method(
        "rl-adapter",
        ".goal.rl_adapter:RLAdapter",
        "pursue sub-goals of a model to which a small trained model reports the player's progress",
        "Zhang and Lu, AdaRefiner: Refining Decisions of Language Models with Adaptive Feedback, NAACL 2024",
        environments="environments that tell events",
        reads=_EVENTS,
        control="random sub-goals",
        lm="scripted:mentor",
        **{**_REWARD, "leaf": "LLM4RL / goal", "roles": ("goal source",), "models": _WRITES},
    ),
    Method(
        "count-bonus",
        ".reward.novelty:CountBonus",
        "learn from a bonus for rare states or events; a baseline of motif and ellm",
        "Strehl and Littman, An analysis of model-based interval estimation, JCSS 2008",
        reads=_EVENTS,
        optional=_EVENTS,
        models=_ENCODER,
    ),
    Method(
        "rnd",
        ".reward.novelty:RND",
        "learn from the error of predicting a random network; a baseline of motif and ellm",
        "Burda et al., Exploration by Random Network Distillation, ICLR 2019",
        models=_ENCODER,
    ),
)
METHODS: dict[str, Method] = {method.name: method for method in _LIST}
