"""Executes a run given by its settings, as ``hunch run`` does, and loads its agent for other commands."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hunch import methods
from hunch.core import Agent, HunchError, UsageError
from hunch.envs import make
from hunch.lm.budget import Budget
from hunch.methods.settings import configure
from hunch.rl import dataset
from hunch.rl.episodes import world_of
from hunch.rl.rollout import TextEnvironment
from hunch.roles.planner import Skill, Trained
from hunch.runs.config import RunConfig as RunConfig
from hunch.runs.config import check
from hunch.runs.files import BEST, CHECKPOINT, read_checkpoint, read_json, read_lines
from hunch.runs.folder import RunFolder, differences, leaves, refuse_other
from hunch.runs.loop import Evaluation, train
from hunch.runs.models import Join, Models
from hunch.runs.result import Result, late_success, read_episode
from hunch.runs.training import plain, who

Checkpoint: TypeAlias = Literal["last", "best"]
"""The state of an agent: at the end, or at the best evaluation."""


def build(config: RunConfig, join: Join | None = None) -> tuple[Agent, Models]:
    """Load the language models and make the agent.

    Args:
        config: All settings.
        join: See :class:`hunch.runs.models.Models`.

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
    models = Models(config.specs(), join)
    return method.build(options, models, **parts), models


def parts_of(options: Any) -> dict[str, Any]:
    """Load the parts of a method besides models: the skills from the runs in its option ``skills``.

    Raises:
        UsageError: if a folder holds no run of an environment of skills.
    """
    folders = getattr(options, "skills", ())
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
    """Return the agent of a run with calibrated values, tested in an environment like the run's."""
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


def environments(config: RunConfig, n: int) -> list[TextEnvironment]:
    """Make n environments of a run; by default with the options of its data, if there are any.

    Raises:
        UsageError: on an unknown environment or option.
    """
    if "env" in config.objects:
        raise UsageError(f"The environment {config.env} was made in Python; settings cannot rebuild it.")
    options = tasks(config, recorded(config))
    return [make(config.env, **options) for _ in range(n)]


def recorded(config: RunConfig) -> dataset.Dataset | None:
    """Read the data that a run learns from; None if there are none.

    Raises:
        UsageError: if the data are missing, inconsistent, or from another environment.
    """
    if not config.data:
        return None
    data = dataset.load(config.data)
    dataset.same_environment(data, config.env)
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


def execute(
    config: RunConfig,
    out: str | Path | RunFolder,
    *,
    budget: Budget | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[dict[str, Any]], None] = lambda line: None,
) -> Result:
    """Execute a run, or the rest of it, in its folder.

    Args:
        config: All settings. For an existing run, ``steps`` may be larger, which extends it.
        out: The folder; if it is open already, it is closed at the end.
        budget: Limits on model calls; not part of the settings, so that it can be raised.
        stop: See :func:`hunch.train`.
        report: See :func:`hunch.train`.

    Raises:
        UsageError: if a setting is invalid, the folder holds another run, or there is a budget of money for a
            model without a price. Except in the last case, nothing is loaded or written before.
        HunchError: if the run fails.
    """
    check(config)
    refuse_other(out.path if isinstance(out, RunFolder) else Path(out), config.settings())
    data = recorded(config)
    envs = [] if data and not config.online else environments(config, config.envs)
    judge = evaluation(config)
    limit_threads(config.threads)
    agent, models = build(config)
    if budget is not None:
        budget.check_prices(list(models.values()))
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    try:
        folder.begin(config.record(agent.evidence, models))
        done = finished(folder.path)
        return done or train(
            agent,
            envs,
            config.steps,
            data=data,
            seed=config.seed,
            out=folder,
            evaluation=judge,
            models=models,
            budget=budget,
            task_seed=config.task_seed,
            processes=config.processes,
            stop=stop,
            report=report,
        )
    finally:
        folder.close()


def evaluation(config: RunConfig) -> Evaluation | None:
    """Return when and where a run evaluates; None if it does not.

    With recorded data only, there are always evaluations, because there is nothing else to see.
    """
    offline = bool(config.data) and not config.online
    every = config.eval_every or (max(1, config.steps // 10) if offline else 0)
    if not every:
        return None
    envs = environments(config, min(config.envs, config.eval_episodes))
    return Evaluation(envs, every, config.eval_episodes, config.episodes_per_player)


def finished(folder: Path) -> Result | None:
    """Read the result of a complete run from its folder; None if it is not complete."""
    summary, config = read_json(folder / "summary.json"), read_json(folder / "config.json")
    if summary is None or config is None or summary["steps"] < config["run"]["steps"]:
        return None
    records = read_lines(folder / "episodes.jsonl")
    episodes = [read_episode(r) for r in records if not r["evaluation"]]
    evaluations = [read_episode(r) for r in records if r["evaluation"]]
    asked = config["run"]["steps"]
    return Result(
        steps=summary["steps"],
        asked=asked,
        success=late_success(episodes, evaluations, asked),
        episodes=episodes,
        evaluations=evaluations,
        usage=summary["usage"],
        models=summary["models"],
        seconds=summary["seconds"],
        evidence=summary["evidence"],
    )


def load_agent(
    folder: str | Path,
    lm: str = "",
    options: Mapping[str, Any] | None = None,
    *,
    checkpoint: Checkpoint = "last",
    agent: Agent | None = None,
    env: TextEnvironment | None = None,
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
        agent, _ = build(config)
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


@contextmanager
def interruptible(
    signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM),
) -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C and termination into a request to save and stop; a second one stops at once."""
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in signals}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
