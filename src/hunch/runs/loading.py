"""Loads the agent of a run from a checkpoint, to play, to be evaluated, or as the skills of a planner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hunch import methods
from hunch.core import Agent, HunchError, UsageError
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import world_of
from hunch.runs.build import build, environments
from hunch.runs.config import RunConfig
from hunch.runs.differences import differences, leaves
from hunch.runs.files import read_checkpoint, restoring
from hunch.runs.kept import Checkpoint, file_of, kept_steps
from hunch.runs.models import Loaded
from hunch.runs.stored import read_run
from hunch.runs.training import who
from hunch.runs.writing import CHECKPOINT, plain

if TYPE_CHECKING:
    from hunch.roles.planner.skills import Skill, Trained


def load_agent(
    folder: str | Path,
    lm: str = "",
    options: Mapping[str, Any] | None = None,
    *,
    checkpoint: Checkpoint = "last",
    agent: Agent | None = None,
    env: TextEnvironment | None = None,
    loaded: Loaded | None = None,
) -> tuple[Agent, RunConfig]:
    """Load the agent of a run from a checkpoint, without changing the folder.

    The number of threads is set to the run's.

    Args:
        folder: The run's folder.
        lm: Model to use instead of the run's model; empty for the latter.
        options: Changed options of the method, among its ``changeable`` ones.
        checkpoint: ``last``, ``best`` (of the best evaluation), or a step whose checkpoint was kept.
        agent: An agent like the run's, into which the checkpoint is loaded. Needed only if the run was made
            in Python with an agent that cannot be rebuilt from settings.
        env: An environment like the run's; needed in the same case.
        loaded: See :func:`hunch.runs.models.load_models`.

    Returns:
        The agent and its settings.

    Raises:
        UsageError: if the folder holds no run, the method has no such option or role, the model cannot fill
            the role, the checkpoint does not fit, or a needed object is missing.
        HunchError: if there is no such checkpoint.
    """
    config = read_run(folder)
    if agent is None:
        config = refill(config, lm, options or {})
    state = read_checkpoint(Path(folder), file_of(checkpoint))
    if state is None and isinstance(checkpoint, int):
        there = ", ".join(map(str, kept_steps(Path(folder)))) or "none"
        raise UsageError(f"The run in {folder} keeps no checkpoint of step {checkpoint}; it keeps {there}.")
    if state is None:
        needs = " of an evaluation" if checkpoint == "best" else ""
        raise HunchError(f"The run in {folder} has no checkpoint{needs} yet.")
    import torch

    torch.set_num_threads(config.threads)
    if env is None and "env" not in config.objects:
        env = environments(config, 1)[0]
    if agent is None:
        _refuse_objects(config, folder)
        agent, _ = build(config, loaded=loaded, parts=parts_of(config))
    elif (told := {**plain(who(agent)), "evidence": None}) != {**_told(state), "evidence": None}:
        raise UsageError(f"{folder} holds another agent ({differences(leaves(_told(state)), leaves(told))}).")
    agent.begin(world_of(None, env, config.steps, ()), config.seed)
    with restoring(Path(folder)):
        agent.load_state_dict(state["agent"])
    return agent, config


def _told(state: dict[str, Any]) -> dict[str, Any]:
    """Return what identifies the agent of a checkpoint."""
    return {name: state["identity"][name] for name in ("agent", "settings", "evidence")}


def _refuse_objects(config: RunConfig, folder: str | Path) -> None:
    if "agent" in config.objects:
        raise UsageError(
            f"The run in {folder} was made in Python with a {config.method} that cannot be rebuilt from "
            f"settings: make one, and load it with hunch.load({str(folder)!r}, agent=...)."
        )


def refill(config: RunConfig, lm: str, options: Mapping[str, Any]) -> RunConfig:
    """Return the settings of a run with another model, or with other ``changeable`` options.

    Raises:
        UsageError: if the method uses no model, or an option is not ``changeable``.
    """
    if not lm and not options:
        return config
    method = methods.find(config.method)
    if lm and "lm" not in method.models:
        raise UsageError(f"{method.name} uses no language model, so there is no role for {lm}.")
    own = config.options or method.config_class()
    free = method.changeable
    for name in options:
        if name not in free:
            has = hasattr(own, name) and name not in method.fixed
            why = f"{name} affected what was learnt" if has else f"{method.name} has no {name}"
            raise UsageError(
                f"{why}; an evaluation of {method.name} can change {', '.join(free) or 'nothing'}."
            )
    return replace(config, lm=lm or config.lm, options=replace(own, **options))


def parts_of(config: RunConfig) -> dict[str, Any]:
    """Load what a method needs besides models: the skills, from the runs in the option ``skills``.

    Raises:
        UsageError: if a folder holds no run of an environment with subtasks.
    """
    folders = getattr(config.options, "skills", ())
    return {"skills": [skill for folder in folders for skill in load_skills(folder)]} if folders else {}


def load_skills(folder: str | Path) -> list[Skill]:
    """Return the skills of a run's agent, one per subtask of the environment that it was trained in.

    Raises:
        UsageError: if the folder holds no run, or its environment has no subtasks.
        HunchError: if there is no checkpoint.
    """
    subtasks = _subtasks(folder)
    trained = load_trained(folder)
    return [trained.skill(subtask) for subtask in subtasks]


def load_trained(folder: str | Path) -> Trained:
    """Return the agent of a run with calibrated values, tested in an environment like that of the run."""
    from hunch.roles.planner.skills import Trained

    agent, config = load_agent(folder)
    digest = hashlib.sha256((Path(folder) / CHECKPOINT).read_bytes()).hexdigest()[:16]
    return Trained.of(agent, environments(config, 1)[0], digest)


def _subtasks(folder: str | Path) -> Sequence[Any]:
    config = read_run(folder)
    (env,) = environments(config, 1)
    found: Sequence[Any] = getattr(env.unwrapped, "subtasks", ())
    if not found:
        raise UsageError(
            f"{folder} is a run in {config.env}, which has no subtasks, so it has no skills for a planner."
        )
    return found
