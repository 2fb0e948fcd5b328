"""The published tables and figures as studies that can be repeated: ``hunch study NAME``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hunch.core import UsageError
from hunch.suggest import suggest

if TYPE_CHECKING:
    from hunch_studies.study import Study

_MODULES = {
    "abilities": "abilities",
    "icpi": "icpi",
    "icpi-models": "icpi",
    "icpi-roles": "icpi",
    "priors-knowledge": "priors_knowledge",
    "priors-online": "priors",
    "priors-k": "priors",
    "priors-temperature": "priors",
    "priors-cache": "priors",
    "in-context": "in_context",
    "pretrained-dt": "pretrained_dt",
    "priors-offline": "priors_offline",
    "priors-learned": "priors_learned",
    "priors-transfer": "priors_transfer",
    "priors-encoder": "priors_encoder",
    "saycan": "saycan",
    "inner-monologue": "inner_monologue",
    "reporter": "reporter",
    "plan4mc": "plan4mc",
    "spring": "spring",
    "proofs": "proofs",
    "adapt": "adapt",
    "planbench": "planbench_page",
    "planbench-execution": "planbench_execution",
    "planbench-judge": "planbench_judge",
    "funsearch": "programs_funsearch",
    "policies-written": "programs_written",
    "funsearch-written": "programs_written",
    "genplan": "programs_genplan",
    "genplan-written": "programs_written",
    "games-written": "programs_written",
    "game24": "game24",
    "eureka": "programs_eureka",
    "text2reward": "programs_text2reward",
    "rewards-written": "rewards_written",
    "code-policies": "programs_policies",
    "writers": "writers",
    "writers-drawn": "writers_drawn",
    "cwmb": "cwmb_models",
    "code-world-models": "code_world_models",
    "worldcoder": "worldcoder",
    "game-models": "game_models",
    "text-world-models": "text_world_models",
    "kwon": "kwon",
    "novelty": "novelty",
    "arena": "arena",
    "motif": "motif",
    "ellm": "ellm",
    "kwon-recorded": "kwon",
    "glam": "policies",
    "twosome": "policies",
    "gflan-prior": "policies",
    "instruct-rl": "instruct_rl",
    "likelihood-value": "likelihood_value",
    "decision-models": "decision_models",
    "audition": "audition",
    "ladder": "ladder",
    "beside-published": "beside_published",
    "ladder-lake": "ladder_lake",
    "ladder-pick": "ladder_pick",
    "frontiers": "frontiers",
    "task-explore": "task_explore",
    "rl-adapter": "rl_adapter",
    "trained": "trained",
    "rlhf": "rlhf",
    "hhh": "hhh",
    "offline-rlhf": "rl4llm",
    "rl4lms": "rl4llm",
    "lima": "rl4llm",
    "agents": "agents",
    "prompting": "prompting",
    "film-prompts": "film_prompts",
    "film-choices": "film_choices",
    "feedback": "feedback",
    "vision-encoders": "vision_encoders",
    "vision-facts": "vision",
    "vision-rewards": "vision",
    "vision-preferences": "vision",
}


def names() -> tuple[str, ...]:
    """Return the names of the studies."""
    return tuple(_MODULES)


def find(name: str) -> Study:
    """Return the study of that name.

    Raises:
        UsageError: if there is none, with similar names.
    """
    if name not in _MODULES:
        raise UsageError(f"There is no study called {name!r}; {suggest(name, _MODULES.keys())}")
    studies: dict[str, Study] = import_module(f"hunch_studies.{_MODULES[name]}").STUDIES
    return studies[name]
