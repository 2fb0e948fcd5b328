"""Makes agents and environments from settings, or loads them from a run's checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import hunch.envs
from hunch import methods
from hunch.core import Agent, HunchError, Transition, UsageError
from hunch.envs.offers import acts, declared
from hunch.methods.settings import configure
from hunch.rl import dataset
from hunch.rl.episodes import name_of, world_of
from hunch.rl.rollout import TextEnvironment
from hunch.runs.config import RunConfig
from hunch.runs.files import BEST, CHECKPOINT, read_checkpoint
from hunch.runs.folder import differences, leaves
from hunch.runs.models import Join, Loaded, Models
from hunch.runs.training import plain, who

if TYPE_CHECKING:
    from hunch.roles.planner.skills import Skill, Trained

Checkpoint: TypeAlias = Literal["last", "best"]
"""The state of an agent: at the end, or at the best evaluation."""


def build(config: RunConfig, join: Join | None = None, loaded: Loaded | None = None) -> tuple[Agent, Models]:
    """Load the language models and make the agent.

    Args:
        config: All settings.
        join: See :class:`hunch.runs.models.Models`.
        loaded: See there.

    Raises:
        UsageError: on an unknown method or model, a model without the verb that the method needs, or a
            setting out of range.
    """
    method = methods.find(config.method)
    options = config.options or method.config_class()
    if "lm" in method.config_class.__dataclass_fields__:
        options = replace(options, lm=config.lm)
    options = configure(method.agent_class, options, {})
    parts = parts_of(options)
    models = Models(config.specs(), join, loaded)
    return method.build(options, models, **parts), models


def parts_of(options: Any) -> dict[str, Any]:
    """Load the parts of a method besides models: the skills from the runs in its option ``skills``.

    Raises:
        UsageError: if a folder holds no run of an environment of skills.
    """
    folders = getattr(options, "skills", ())
    return {"skills": [skill for folder in folders for skill in load_skills(folder)]} if folders else {}


def environments(config: RunConfig, n: int) -> list[TextEnvironment]:
    """Make n environments of a run; by default with the options of its data, if there are any.

    Raises:
        UsageError: on an unknown environment or option.
    """
    if "env" in config.objects:
        raise UsageError(f"The environment {config.env} was made in Python; settings cannot rebuild it.")
    options = tasks(config, recorded(config))
    envs = [hunch.envs.make(config.env, **options) for _ in range(n)]
    if "agent" not in config.objects:
        require_fit(config.method, envs[0])
    return envs


def require_fit(method: str, env: TextEnvironment) -> None:
    """Refuse an environment with other actions than a method takes, or without what the method reads.

    An environment that declares nothing is refused only if the method does not choose from listed actions.

    Raises:
        UsageError: naming both.
    """
    wants, offers, name = methods.find(method), declared(env), name_of(env)
    if wants.acts != (takes := acts(offers)):
        hint = ": use a design problem (hunch envs)" if wants.acts == "program" else ""
        raise UsageError(f"{method} {_ACTS[wants.acts]}, and {name} takes {_TAKES[takes]}{hint}.")
    lacking = sorted(wants.reads - wants.optional - (wants.reads if offers is None else offers))
    if lacking:
        raise UsageError(f"{method} reads {_READS[lacking[0]]}, and {name} offers none.")


def require_recorded(method: str, data: dataset.Dataset | Sequence[Sequence[Transition]]) -> None:
    """Refuse data that hold no events, raw states or pictures, if a method reads them.

    Raises:
        UsageError: naming what is missing.
    """
    wants = methods.find(method)
    for what in sorted((wants.reads - wants.optional) & _SHOWN.keys()):
        if not any(_SHOWN[what](t) for episode in dataset.as_episodes(data) for t in episode):
            raise UsageError(f"{method} reads {_READS[what]}, and the recorded data hold none.")


_ACTS = {"listed": "chooses from listed actions", "text": "writes any text", "program": "writes programs"}
_TAKES = {"listed": "listed actions", "text": "any text", "program": "programs"}
_READS = {
    "events": "events (what happened, in words)",
    "raw": "raw states (the environment's own)",
    "pictures": "pictures",
    "wording": "how states and actions are written in prompts",
}
_SHOWN: dict[str, Callable[[Transition], Any]] = {
    "events": lambda t: t.event,
    "raw": lambda t: t.next_state.raw is not None,
    "pictures": lambda t: t.next_state.pictures,
}


def recorded(config: RunConfig) -> dataset.Dataset | None:
    """Read the data that a run learns from; None if there are none.

    Raises:
        UsageError: if the data are missing, inconsistent, or from another environment.
    """
    if not config.data:
        return None
    data = dataset.load(config.data)
    dataset.same_environment(data, config.env)
    if config.offline and "agent" not in config.objects:
        require_recorded(config.method, data)
    return data


def tasks(config: RunConfig, data: dataset.Dataset | None) -> dict[str, Any]:
    """Return the options of the environments of a run.

    These are the run's own, and for other options those under which its data were recorded.
    """
    return {**(data.env_options if data else {}), **config.env_options}


def limit_threads(threads: int) -> None:
    """Set the number of torch threads."""
    import torch

    torch.set_num_threads(threads)


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
        checkpoint: The last checkpoint, or that of the best evaluation.
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
    state = read_checkpoint(Path(folder), BEST if checkpoint == "best" else CHECKPOINT)
    if state is None:
        needs = " of an evaluation" if checkpoint == "best" else ""
        raise HunchError(f"The run in {folder} has no checkpoint{needs} yet.")
    limit_threads(config.threads)
    if env is None and "env" not in config.objects:
        env = environments(config, 1)[0]
    if agent is None:
        _refuse_objects(config, folder)
        agent, _ = build(config, loaded=loaded)
    elif (told := {**plain(who(agent)), "evidence": None}) != {**_told(state), "evidence": None}:
        raise UsageError(f"{folder} holds another agent ({differences(leaves(_told(state)), leaves(told))}).")
    agent.begin(world_of(None, env, config.steps, ()), config.seed)
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
