"""A run given by its settings: what ``hunch run`` does, and what every other command is made of."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_type_hints

from hunch import lm, methods
from hunch.core import Agent, HunchError, UsageError
from hunch.envs import make
from hunch.lm.base import LanguageModel
from hunch.lm.budget import Budget
from hunch.rl import dataset
from hunch.runs.folder import RunFolder, read_checkpoint, read_json, read_lines
from hunch.runs.loop import Evaluation, train
from hunch.runs.result import Result, late_success, read_episode
from hunch.runs.rollout import TextEnvironment

ROLE = ("k", "proposals", "prior", "alpha")
"""Options of a method that an evaluation may change: what fills the role, and how far Q overrules it."""
_PACKAGES = ("hunch-rl", "numpy", "scipy", "gymnasium", "torch", "transformers", "tokenizers")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where a run takes place."""

    env: str
    """Environment id; its own options follow as --env.NAME VALUE."""
    lm: str = "minilm"
    """Language model that fills the method's role, e.g. minilm, uniform, hf:<name or folder>."""
    data: str = ""
    """Folder of a data set, for the methods that learn from recorded data."""
    steps: int = 10_000
    """Environment steps of a run, over all its environments; on recorded data updates."""
    envs: int = 1
    """Environments stepped side by side."""
    eval_every: int = 0
    """Environment steps between two evaluations; 0 for none."""
    eval_episodes: int = 20
    """Episodes an evaluation."""
    threads: int = 1
    """Threads of a run; results are repeatable at the same number only."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(Setting):
    """Everything needed to repeat a run."""

    method: str
    """Name of the method."""
    seed: int = 0
    """Of the agent and of every episode."""
    env_options: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment."""
    options: Any = None
    """The method's config dataclass."""

    @classmethod
    def read(cls, folder: str | Path) -> RunConfig:
        """Read the settings of the run in a folder.

        Raises:
            HunchError: if the folder holds no run, or its ``config.json`` is damaged.
        """
        stored = read_json(Path(folder) / "config.json")
        if stored is None:
            raise HunchError(f"{folder} holds no run: there is no config.json.")
        try:
            settings = stored["run"]
            method, options = methods.find(settings["method"]), settings["options"]
            if options is not None:
                options = _rebuild(method.config_class, options)
            return cls(**{**settings, "options": options})
        except (KeyError, TypeError) as error:
            raise HunchError(f"{folder}/config.json is damaged, or of another version: {error}.") from error

    def settings(self) -> dict[str, Any]:
        """All settings as JSON would give them back."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def record(self, evidence: str, model: LanguageModel) -> dict[str, Any]:
        """What ``config.json`` holds: the settings, the versions and the evidence level."""
        versions = {name: _version(name) for name in _PACKAGES}
        return {
            "run": self.settings(),
            "evidence": evidence,
            "model": {"name": model.name, "revision": model.revision},
            "versions": {"python": platform.python_version(), **versions},
        }


def build(config: RunConfig) -> tuple[Agent, LanguageModel]:
    """Load the language model and make the agent.

    Raises:
        UsageError: on an unknown method or model, or a model without the verb that the method needs.
    """
    method = methods.find(config.method)
    model = lm.load(config.lm if method.verbs else "uniform")
    method.check(model)
    return method.build(config.options or method.config_class(), model), model


def environments(config: RunConfig) -> list[TextEnvironment] | dataset.Dataset:
    """Set the number of threads and make the run's environments, or read the data it learns from.

    Raises:
        UsageError: on an unknown environment or option, if there is to be none of either, or if data are
            missing, inconsistent, of another environment, or given to a method that has no use for them.
    """
    if config.envs < 1 or config.threads < 1:
        raise UsageError(
            f"A run needs at least one environment and one thread, not {config.envs} and {config.threads}."
        )
    _limit_threads(config)
    if not methods.find(config.method).offline:
        if config.data:
            raise UsageError(f"{config.method} learns from its own steps; leave --data out.")
        return [make(config.env, **config.env_options) for _ in range(config.envs)]
    if not config.data:
        raise UsageError(f"{config.method} learns from recorded data: name a data set with --data FOLDER.")
    recorded = dataset.load(config.data)
    dataset.same_environment(recorded, config.env)
    return recorded


def _limit_threads(config: RunConfig) -> None:
    import torch

    torch.set_num_threads(config.threads)


def execute(
    config: RunConfig,
    out: str | Path | RunFolder,
    *,
    budget: Budget | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[dict[str, Any]], None] = lambda line: None,
) -> Result:
    """Do a run, or what is left of it, in its folder.

    Args:
        config: All settings.
        out: The folder; one that is held already is let go at the end.
        budget: How much it may ask of language models; no part of the settings, so that it may be raised.
        stop: See :func:`hunch.train`.
        report: See :func:`hunch.train`.

    Raises:
        UsageError: on settings that cannot be met, a folder that holds another run, or a budget of money
            for a model without a price.
        HunchError: if the run fails.
    """
    source = environments(config)
    agent, model = build(config)
    if budget is not None:
        budget.check_prices([model])
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    try:
        folder.begin(config.record(agent.evidence, model))
        done = finished(folder.path)
        return done or train(
            agent,
            source,
            config.steps,
            seed=config.seed,
            out=folder,
            evaluation=evaluation(config, source),
            budget=budget,
            stop=stop,
            report=report,
        )
    finally:
        folder.close()


def finished(folder: Path) -> Result | None:
    """Read the result of a complete run from its folder; None if it is not complete."""
    summary, config = read_json(folder / "summary.json"), read_json(folder / "config.json")
    if summary is None or config is None or not summary["complete"]:
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
        seconds=summary["seconds"],
        evidence=summary["evidence"],
    )


def load_agent(
    folder: str | Path, lm: str = "", options: Mapping[str, Any] | None = None
) -> tuple[Agent, RunConfig]:
    """Load the agent of a run as its last checkpoint has it, without touching the folder.

    It computes with the run's number of threads, as the run did. Proposals that were kept in training are
    those of the run's own prior and k, and are forgotten where either is another.

    Args:
        folder: The run's folder.
        lm: Another model for the method's role. Default: the run's own.
        options: Options of the method that differ from the run's, of :data:`ROLE`.

    Returns:
        The agent, and the settings that it has now.

    Raises:
        UsageError: if the method has no such option or role, the model cannot fill it, or the checkpoint's Q
            is of another encoder.
        HunchError: if the folder holds no run, or no checkpoint yet.
    """
    own = RunConfig.read(folder)
    config = refill(own, lm, options or {})
    state = read_checkpoint(Path(folder))
    if state is None:
        raise HunchError(f"The run in {folder} has no checkpoint yet.")
    _limit_threads(config)
    agent, _ = build(config)
    learnt = state["agent"]
    if "kept" in learnt and _proposer(config) != _proposer(own):
        learnt = {**learnt, "kept": []}
    agent.load_state_dict(learnt)
    return agent, config


def refill(config: RunConfig, lm: str, options: Mapping[str, Any]) -> RunConfig:
    """The settings of a run with another model in its role, or another way to ask it.

    Raises:
        UsageError: if the method asks no model, or an option is none of those in :data:`ROLE` that it has.
    """
    method = methods.find(config.method)
    if lm and not method.verbs:
        raise UsageError(f"{method.name} asks no language model: there is no role for {lm} to fill.")
    own = config.options or method.config_class()
    free = [name for name in ROLE if hasattr(own, name)]
    for name in options:
        if name not in free:
            why = f"{name} shaped what was learnt" if hasattr(own, name) else f"{method.name} has no {name}"
            raise UsageError(
                f"{why}; an evaluation of {method.name} can change {', '.join(free) or 'nothing'}."
            )
    return replace(config, lm=lm or config.lm, options=replace(own, **options))


def _proposer(config: RunConfig) -> tuple[Any, ...]:
    """What the proposals of a run depend on."""
    options = config.options or methods.find(config.method).config_class()
    return (config.lm, *(getattr(options, name, None) for name in ("k", "prior")))


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


def evaluation(config: RunConfig, source: list[TextEnvironment] | dataset.Dataset) -> Evaluation | None:
    """When and on what a run evaluates; None if it does not.

    On recorded data evaluation is all that there is to see, so it is never left out.
    """
    every = config.eval_every or (max(1, config.steps // 10) if config.data else 0)
    if not every:
        return None
    env = make(config.env, **tasks(config, source))
    return Evaluation(env, every, config.eval_episodes)


def tasks(config: RunConfig, source: list[TextEnvironment] | dataset.Dataset) -> dict[str, Any]:
    """Options of the environment in which a run evaluates.

    They are the run's own; on recorded data also those under which these were recorded, where the run's own
    do not say otherwise.
    """
    recorded = source.env_options if isinstance(source, dataset.Dataset) else {}
    return {**recorded, **config.env_options}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    """What JSON gives back: tuples become lists, so that a config equals itself read from disk."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _rebuild(cls: type[Any], values: dict[str, Any]) -> Any:
    """Make a config dataclass, nested ones included, from what JSON gave back."""
    hints = get_type_hints(cls)
    arguments = {}
    for entry in fields(cls):
        value = values[entry.name]
        if is_dataclass(hints[entry.name]):
            value = _rebuild(hints[entry.name], value)
        arguments[entry.name] = tuple(value) if isinstance(value, list) else value
    return cls(**arguments)
