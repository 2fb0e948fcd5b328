"""The published tables and figures as studies that can be repeated: ``hunch study NAME``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from hunch.core import UsageError
from hunch.suggest import suggest

if TYPE_CHECKING:
    from hunch_studies.study import Study


class Listed(NamedTuple):
    """A study in the list of ``hunch study --help``, which imports none of their modules: that takes seconds.

    Attributes:
        module: The module that holds it.
        question: Its question, as the study has it.
    """

    module: str
    question: str


_LISTED = {
    "abilities": Listed(
        "abilities",
        "What can a model predict about a small world from examples alone: end, reward, next state, action?",
    ),
    "icpi": Listed(
        "icpi",
        "Does a frozen model that sees only its own episodes improve a policy, and how good must it be?",
    ),
    "icpi-models": Listed(
        "icpi",
        "Which models learn with ICPI, and does drawing prompts only once per episode change the result?",
    ),
    "icpi-roles": Listed(
        "icpi",
        "Which role of ICPI does a model fill well enough, the world model or the policy?",
    ),
    "icpi-written": Listed(
        "icpi",
        "Does a small model that writes improve a policy with ICPI, in both roles or in one of them?",
    ),
    "priors-knowledge": Listed(
        "priors_knowledge",
        "What does a sentence encoder know, as the action prior, beyond which words are equal?",
    ),
    "priors-online": Listed(
        "priors",
        "Does confining Q-learning to a model's proposals save environment steps, and how good must the "
        "model be?",
    ),
    "priors-k": Listed(
        "priors",
        "How many proposals?",
    ),
    "priors-temperature": Listed(
        "priors",
        "How sharp should the posterior softmax(Q / alpha) be?",
    ),
    "priors-cache": Listed(
        "priors",
        "How much does keeping a state's proposals save, and what does it cost?",
    ),
    "in-context": Listed(
        "in_context",
        "Does a frozen network that has read how learners improve get better within a lifetime?",
    ),
    "pretrained-dt": Listed(
        "pretrained_dt",
        "Does a Decision Transformer learn faster if its body was pretrained on text?",
    ),
    "priors-offline": Listed(
        "priors_offline",
        "Does a model's prior reduce the recorded data that are needed?",
    ),
    "priors-learned": Listed(
        "priors_learned",
        "Does DQN-Prior work with a prior that writes its actions and has not read the games that are "
        "played?",
    ),
    "priors-transfer": Listed(
        "priors_transfer",
        "Does a Q that was trained with one model's proposals improve other models, on seen and unseen "
        "tasks?",
    ),
    "priors-encoder": Listed(
        "priors_encoder",
        "How much does success depend on the encoder of Q, and what does the encoder cost?",
    ),
    "saycan": Listed(
        "saycan",
        "Is usefulness times the probability of working a better score for skills than either alone?",
    ),
    "inner-monologue": Listed(
        "inner_monologue",
        "How much of the success lost to disturbances does feedback recover?",
    ),
    "reporter": Listed(
        "reporter",
        "Does a reporter learn, from the reward alone, what to report to its planner?",
    ),
    "plan4mc": Listed(
        "plan4mc",
        "How much does a search over a graph of skills help if skills fail, or if the graph is wrong?",
    ),
    "plan4mc-written": Listed(
        "plan4mc_written",
        "Does a small real model write a skill graph from a manual that a search can plan with?",
    ),
    "spring": Listed(
        "spring",
        "Does a graph of questions correct more wrong answers than it adds?",
    ),
    "proofs-written": Listed(
        "proofs_written",
        "Does a small real model guide a search for proofs better than rules that do not read the goal?",
    ),
    "proofs": Listed(
        "proofs",
        "Does a guide that learns from its own proofs prove more than a rule, at equal budgets?",
    ),
    "adapt": Listed(
        "adapt",
        "How often do a real model's recorded decompositions reach the goal if single steps are executed "
        "without error?",
    ),
    "planbench": Listed(
        "planbench_page",
        "How often is a recorded plan of a real model valid, and how much do several models and a verifier "
        "help?",
    ),
    "planbench-execution": Listed(
        "planbench_execution",
        "How well do recorded language models predict the state after a sequence of actions?",
    ),
    "planbench-judge": Listed(
        "planbench_judge",
        "How often do recorded models call valid and invalid plans valid?",
    ),
    "funsearch": Listed(
        "programs_funsearch",
        "Do islands and clusters find better programs than simpler rules with the same writer?",
    ),
    "policies-written": Listed(
        "programs_written",
        "Does a small real model write policies that read its task, in household games and in control?",
    ),
    "funsearch-written": Listed(
        "programs_written",
        "With a small real model as the writer: does FunSearch find better programs than asking afresh?",
    ),
    "genplan": Listed(
        "programs_genplan",
        "How often do GPT-4's programs for whole planning domains work, and how much do repairs help?",
    ),
    "genplan-written": Listed(
        "programs_written",
        "Does a small real model write programs that plan for a whole domain, and do repairs help?",
    ),
    "games-written": Listed(
        "programs_written",
        "Does a small real model write the rules of a game as code, and does feedback help?",
    ),
    "game24": Listed(
        "game24",
        "Does a learner save environment steps if it chooses only among a large model's proposals?",
    ),
    "eureka": Listed(
        "programs_eureka",
        "At which repair and break rates of the writer does Eureka's loop find better rewards than its "
        "controls?",
    ),
    "text2reward": Listed(
        "programs_text2reward",
        "Does a reward written as a program teach a task that its sparse reward does not teach?",
    ),
    "rewards-written": Listed(
        "rewards_written",
        "Does a small real model write rewards from which a policy learns, and does feedback improve them?",
    ),
    "code-policies": Listed(
        "programs_policies",
        "Do searches over programs find better policies than random changes of the first one?",
    ),
    "writers": Listed(
        "writers",
        "With a small real model as the writer: does a search find better programs than asking afresh?",
    ),
    "writers-drawn": Listed(
        "writers_drawn",
        "With a small real model as the writer: do searches find better programs than asking afresh, and is "
        "that better than random changes of a first program?",
    ),
    "cwmb": Listed(
        "cwmb_models",
        "How well do small models write world models as code, and does the tree search help them?",
    ),
    "code-world-models": Listed(
        "code_world_models",
        "Does tree search find better world models than simpler rules with the same number of calls, and are"
        " they good enough for planning?",
    ),
    "worldcoder": Listed(
        "worldcoder",
        "Does optimism as a constraint lead to an earlier first success, and do model calls decrease once "
        "the model is right?",
    ),
    "game-models": Listed(
        "game_models",
        "Does search find the rules of a game as code, and is play with the code as good as play with the "
        "true rules?",
    ),
    "text-world-models": Listed(
        "text_world_models",
        "How good a world model is a language model that is shown examples, and is planning in it possible?",
    ),
    "kwon": Listed(
        "kwon",
        "How good must a judge be, for a policy trained on its verdicts to do what the user wants?",
    ),
    "novelty": Listed(
        "novelty",
        "Does random network distillation find what random play does not, and what does it need for that?",
    ),
    "arena": Listed(
        "arena",
        "Do small models that write play games of TextArena better than random moves?",
    ),
    "motif": Listed(
        "motif",
        "Do preferences between captions help to find a sparse reward sooner, and how much noise do they "
        "tolerate?",
    ),
    "ellm": Listed(
        "ellm",
        "Do goals that a model suggests lead to more achievements than novelty or nonsense goals?",
    ),
    "kwon-recorded": Listed(
        "kwon",
        "How often are the verdicts right that GPT-3 gave in Kwon et al.?",
    ),
    "glam": Listed(
        "policies",
        "Does a policy that was pretrained on text about a world act better in it than the same network "
        "without pretraining, and does training improve it further?",
    ),
    "twosome": Listed(
        "policies",
        "Does dividing by the length of an action help where actions have one to six words?",
    ),
    "gflan-prior": Listed(
        "policies",
        "Does a penalty for the divergence from a frozen model's proposals save steps?",
    ),
    "instruct-rl": Listed(
        "instruct_rl",
        "Does an instruction decide which of many equally good conventions two players learn?",
    ),
    "likelihood-value": Listed(
        "likelihood_value",
        "Is likelihood times value better than either factor if the value is learnt while acting?",
    ),
    "decision-models": Listed(
        "decision_models",
        "What are the probabilities of small models worth that are asked as decision models?",
    ),
    "audition": Listed(
        "audition",
        "Does the audition say which models pay, where no frontier was made?",
    ),
    "ladder": Listed(
        "ladder",
        "Which model, asked in which way, is good for which role?",
    ),
    "beside-published": Listed(
        "beside_published",
        "What do small models that write score in BabyAI and TextWorld-Express, beside published tables?",
    ),
    "ladder-lake": Listed(
        "ladder_lake",
        "Does the audition foretell what real models are worth as prior and as policy on the Frozen Lake?",
    ),
    "ladder-kitchen": Listed(
        "ladder_kitchen",
        "Does a real model that writes pay as the prior of DQN-Prior and CQL-Prior in Overcooked?",
    ),
    "ladder-pick": Listed(
        "ladder_pick",
        "Does a real model that writes pay as the prior of DQN-Prior in Household-Pick?",
    ),
    "frontiers": Listed(
        "frontiers",
        "How good must the model in a role be before the loop pays?",
    ),
    "task-explore": Listed(
        "task_explore",
        "Are tasks with similar objects learned at no cost while the target is pursued?",
    ),
    "rl-adapter": Listed(
        "rl_adapter",
        "Does an adapter that learns how well sub-goals are followed lead to more achievements?",
    ),
    "trained": Listed(
        "trained",
        "Does reinforcement learning improve a small real model on unseen requests, beyond SFT?",
    ),
    "rlhf": Listed(
        "rlhf",
        "What does a policy gain from a reward model beyond selection, and where does its gold reward turn?",
    ),
    "hhh": Listed(
        "hhh",
        "Does a writer do without its context after distillation, and are rounds of preferences worth more "
        "than one?",
    ),
    "offline-rlhf": Listed(
        "rl4llm",
        "Which losses on recorded texts and their rewards beat the likelihood of all texts?",
    ),
    "rl4lms": Listed(
        "rl4llm",
        "Which of PPO, NLPO, A2C and TRPO gains most from as many texts?",
    ),
    "lima": Listed(
        "rl4llm",
        "Are few good demonstrations worth more than many at random?",
    ),
    "agents": Listed(
        "agents",
        "Does training a model as an agent make it a better agent, and is that better than keeping it frozen"
        " as a prior?",
    ),
    "prompting": Listed(
        "prompting",
        "What do policies over prompts find that search at equal calls does not?",
    ),
    "film-prompts": Listed(
        "film_prompts",
        "Which prompts make a small real model a better judge of film reviews, at equal calls?",
    ),
    "film-choices": Listed(
        "film_choices",
        "Does a prompt for each film review make a small real model a better judge than one for all?",
    ),
    "feedback": Listed(
        "feedback",
        "What do rewards without references, critique, attack, rewind and repair bring?",
    ),
    "vision-encoders": Listed(
        "vision_encoders",
        "Which encoder of pictures lets DQN learn soonest?",
    ),
    "vision-facts": Listed(
        "vision",
        "Does a small model with eyes read the facts that a policy needs, and does a text method run on "
        "them?",
    ),
    "vision-rewards": Listed(
        "vision",
        "Is the likeness of a picture to a sentence about the goal a good reward?",
    ),
    "vision-preferences": Listed(
        "vision",
        "How good must a judge of pictures be before the reward fitted to its preferences teaches a policy?",
    ),
}


def names() -> tuple[str, ...]:
    """Return the names of the studies."""
    return tuple(_LISTED)


def question(name: str) -> str:
    """Return the question of a study, without importing its module."""
    return _LISTED[name].question


def find(name: str) -> Study:
    """Return the study of that name.

    Raises:
        UsageError: if there is none, with similar names.
    """
    if name not in _LISTED:
        raise UsageError(f"There is no study called {name!r}; {suggest(name, _LISTED.keys())}")
    studies: dict[str, Study] = import_module(f"hunch_studies.{_LISTED[name].module}").STUDIES
    return studies[name]
