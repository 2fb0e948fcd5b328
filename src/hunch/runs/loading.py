"""Loads the agent of a run from a checkpoint, to play, to be evaluated, or as the skills of a planner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hunch import methods
from hunch.core import Agent, HunchError, UsageError
from hunch.envs.offers import HasSubtasks
from hunch.methods.planner.plan import PlannerConfig
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import world_of
from hunch.roles.planner.skills import Skill, Trained
from hunch.runs.checkpoints import (
    CHECKPOINT,
    Checkpoint,
    file_of,
    kept_steps,
    read_checkpoint,
    require_identity,
    restoring,
    settings_identity,
)
from hunch.runs.config import RunConfig
from hunch.runs.differences import differences, leaves
from hunch.runs.earlier import current_identity, current_settings
from hunch.runs.files import plain
from hunch.runs.models import Loaded
from hunch.runs.resolve import resolve
from hunch.runs.stored import read_record, read_run
from hunch.runs.training import who


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
    folder = Path(folder)
    config = read_run(folder)
    state = _read_state(folder, checkpoint)
    require_identity(folder, state, _identity(folder, config, state))
    if agent is None:
        config = refill(config, lm, options or {})
    resolved = resolve(config)
    import torch  # takes a second, and a wrong folder is refused before

    torch.set_num_threads(config.threads)
    if env is None and "env" not in config.objects:
        (env,) = resolved.environments()
    if agent is None:
        if "agent" in config.objects:
            raise UsageError(
                f"The run in {folder} was made in Python with a {config.method} that cannot be rebuilt from "
                f"settings: make one, and load it with hunch.load({str(folder)!r}, agent=...)."
            )
        agent, _ = resolved.build(loaded=loaded, parts=parts_of(config))
    else:
        _require_same_agent(folder, agent, state)
    agent.begin(world_of(None, env, config.steps, ()), config.seed)
    with restoring(folder):
        agent.load_state_dict(state["agent"])
    return agent, config


def _identity(folder: Path, config: RunConfig, state: dict[str, Any]) -> dict[str, Any]:
    """Return what the checkpoint of a run must share with its ``config.json``."""
    if "run" in state["identity"]:
        return {"run": settings_identity(current_settings(read_record(folder)["run"]))}
    if read_record(folder).get("format") is not None:
        return {"run": settings_identity(config.settings())}  # the checkpoint is of an earlier format
    return {"seed": config.seed} if "seed" in state["identity"] else {}


def _read_state(folder: Path, checkpoint: Checkpoint) -> dict[str, Any]:
    """Read a checkpoint.

    Raises:
        UsageError: if the run did not keep the checkpoint of this step.
        HunchError: if there is no checkpoint yet, or it is damaged.
    """
    state = read_checkpoint(folder, file_of(checkpoint))
    if state is not None:
        return state
    if isinstance(checkpoint, int):
        steps = ", ".join(map(str, kept_steps(folder))) or "none"
        raise UsageError(f"The run in {folder} keeps no checkpoint of step {checkpoint}; it keeps {steps}.")
    needs = " of an evaluation" if checkpoint == "best" else ""
    raise HunchError(f"The run in {folder} has no checkpoint{needs} yet.")


def _require_same_agent(folder: Path, agent: Agent, state: dict[str, Any]) -> None:
    """Check that an agent made in Python is like the checkpoint's; its models may have another level."""
    given = {name: value for name, value in plain(who(agent)).items() if name in ("agent", "settings")}
    stored = current_identity(state["identity"], given["settings"])
    there = {name: stored.get(name) for name in ("agent", "settings")}
    if there != given:
        raise UsageError(f"{folder} holds another agent ({differences(leaves(there), leaves(given))}).")


def refill(config: RunConfig, lm: str, options: Mapping[str, Any]) -> RunConfig:
    """Return the settings of a run with another model, or with other ``changeable`` options.

    Raises:
        UsageError: if the method uses no model, or an option is not ``changeable``.
    """
    if not lm and not options:
        return config
    method = methods.find(config.method)
    if lm and "lm" not in method.models:
        if method.takes_lm:  # a setting of the method, whose agent loads it
            raise UsageError(
                f"A run of {method.name} keeps the model that it was made with, so {lm} cannot take its "
                "place."
            )
        raise UsageError(f"{method.name} uses no language model, so there is no role for {lm}.")
    defaults = config.options or method.config_class()
    changeable = method.changeable
    for name in options:
        if name == "env":
            raise UsageError(
                f"An evaluation plays the environment of its run, {config.env}; --env.NAME VALUE changes its "
                "options. In another one, an agent plays in Python: hunch.evaluate(hunch.load(RUN), ENV)."
            )
        if name not in changeable:
            has = hasattr(defaults, name)
            why = f"{name} affected what was learnt" if has else f"{method.name} has no {name}"
            raise UsageError(
                f"{why}; an evaluation of {method.name} can change {', '.join(changeable) or 'nothing'}."
            )
    return replace(config, lm=lm or config.lm, options=replace(defaults, **options))


def parts_of(config: RunConfig) -> dict[str, Any]:
    """Load what a method needs besides models: the skills, from the runs in the option ``skills``.

    Raises:
        UsageError: if a folder holds no run of an environment with subtasks.
    """
    options = config.options
    if not isinstance(options, PlannerConfig) or not options.skills:
        return {}
    return {"skills": [skill for folder in options.skills for skill in load_skills(folder)]}


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
    agent, config = load_agent(folder)
    digest = hashlib.sha256((Path(folder) / CHECKPOINT).read_bytes()).hexdigest()[:16]
    (env,) = resolve(config).environments()
    return Trained.of(agent, env, digest)


def _subtasks(folder: str | Path) -> Sequence[Any]:
    config = read_run(folder)
    (env,) = resolve(config).environments()
    inner = env.unwrapped
    subtasks = inner.subtasks if isinstance(inner, HasSubtasks) else ()
    if not subtasks:
        raise UsageError(
            f"{folder} is a run in {config.env}, which has no subtasks, so it has no skills for a planner."
        )
    return subtasks
