"""Makes agents, environments and data from settings, or loads agents from a run's checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hunch.envs
from hunch import methods
from hunch.core import Agent, HunchError, UsageError
from hunch.lm.base import LanguageModel
from hunch.methods.settings import configure
from hunch.rl.episodes import world_of
from hunch.rl.rollout import TextEnvironment
from hunch.runs.config import RunConfig
from hunch.runs.files import CHECKPOINT, Checkpoint, file_of, kept_steps, read_checkpoint, restoring
from hunch.runs.folder import differences, leaves
from hunch.runs.models import Join, Loaded, Models
from hunch.runs.training import plain, who

if TYPE_CHECKING:
    from hunch.rl.dataset import Dataset
    from hunch.roles.planner.skills import Skill, Trained


def build(
    config: RunConfig, join: Join | None = None, lm: LanguageModel | None = None, loaded: Loaded | None = None
) -> tuple[Agent, Mapping[str, LanguageModel]]:
    """Load the language models and make the agent.

    Args:
        config: All settings.
        join: See :class:`hunch.runs.models.Models`.
        lm: The model of the option ``lm``, if it is an object.
        loaded: See there.

    Raises:
        UsageError: on an unknown method or model, a model without the verb that the method needs, or a
            setting out of range.
    """
    method = methods.find(config.method)
    options = config.options or method.config_class()
    if lm is None and "lm" in method.config_class.__dataclass_fields__:
        options = replace(options, lm=config.lm)
    options = configure(method.agent_class, options, {})
    parts = parts_of(options)
    specs = {name: spec for name, spec in config.specs().items() if lm is None or name != "lm"}
    models: Mapping[str, LanguageModel] = Models(specs, join, loaded)
    models = models if lm is None else {**models, "lm": lm}
    return method.build(options, models, **parts), models


def parts_of(options: Any) -> dict[str, Any]:
    """Load the parts of a method besides models: the skills from the runs in its option ``skills``.

    Raises:
        UsageError: if a folder holds no run of an environment of skills.
    """
    folders = getattr(options, "skills", ())
    return {"skills": [skill for folder in folders for skill in load_skills(folder)]} if folders else {}


def environments(config: RunConfig, n: int, data: Dataset | None = None) -> list[TextEnvironment]:
    """Make n environments of a run; by default with the options of its data, if there are any.

    Args:
        config: The run.
        n: Number of environments.
        data: Its data, if they have been read.

    Raises:
        UsageError: on an unknown environment or option.
    """
    if "env" in config.objects:
        raise UsageError(f"The environment {config.env} was made in Python; settings cannot rebuild it.")
    options = tasks(config, data or recorded(config))
    return [hunch.envs.make(config.env, **options) for _ in range(n)]


def recorded(config: RunConfig) -> Dataset | None:
    """Read the data that a run learns from; None if there are none.

    Raises:
        UsageError: if the data are missing, inconsistent, or from another environment.
    """
    if not config.data:
        return None
    from hunch.rl import dataset

    if Path(config.data).is_file():
        from hunch.runs.answers import read_data

        return read_data(Path(config.data), config.env, config.env_options)
    data = dataset.load(config.data)
    dataset.same_environment(data, config.env)
    return data


def tasks(config: RunConfig, data: Dataset | None) -> dict[str, Any]:
    """Return the options of the environments of a run.

    These are the run's own, and for other options those under which its data were recorded.
    """
    return {**(data.env_options if data else {}), **config.env_options}


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
        lm: Another model for the method's role. Default: the run's own.
        options: Changed options of the method, among its ``changeable`` ones.
        checkpoint: The last checkpoint, that of the best evaluation, or that of a kept step.
        agent: An agent like the run's, into which the checkpoint is loaded. Needed only if the run was made
            in Python with an agent that cannot be rebuilt from settings.
        env: An environment like the run's; needed in the same case.
        loaded: See :class:`hunch.runs.models.Models`.

    Returns:
        The agent and its settings.

    Raises:
        UsageError: if the folder holds no run, the method has no such option or role, the model cannot fill
            it, the checkpoint does not fit, or a needed object is missing.
        HunchError: if there is no such checkpoint.
    """
    config = RunConfig.read(folder)
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
        agent, _ = build(config, loaded=loaded)
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
    """Return the settings of a run with another model in its role, or other settings of the role.

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
            has = hasattr(own, name) and name not in method.agent_class.fixed
            why = f"{name} affected what was learnt" if has else f"{method.name} has no {name}"
            raise UsageError(
                f"{why}; an evaluation of {method.name} can change {', '.join(free) or 'nothing'}."
            )
    return replace(config, lm=lm or config.lm, options=replace(own, **options))


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
    """Return the agent of a run with calibrated values, tested in an environment like the run's."""
    from hunch.roles.planner.skills import Trained

    agent, config = load_agent(folder)
    digest = hashlib.sha256((Path(folder) / CHECKPOINT).read_bytes()).hexdigest()[:16]
    return Trained.of(agent, environments(config, 1)[0], digest)


def _subtasks(folder: str | Path) -> Sequence[Any]:
    config = RunConfig.read(folder)
    (env,) = environments(config, 1)
    found: Sequence[Any] = getattr(env.unwrapped, "subtasks", ())
    if not found:
        raise UsageError(
            f"{folder} is a run in {config.env}, which has no subtasks, so it has no skills for a planner."
        )
    return found
