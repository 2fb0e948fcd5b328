"""``hunch.train`` and ``hunch.evaluate``: names or objects in, a result and the command's folder out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from hunch import methods
from hunch.core import Agent, Transition, UsageError, suggest
from hunch.envs import make
from hunch.lm.base import LanguageModel
from hunch.lm.budget import Budget
from hunch.methods.settings import configure
from hunch.rl import dataset
from hunch.rl import episodes as whole
from hunch.rl.rollout import Episode, TextEnvironment
from hunch.runs import loop
from hunch.runs.build import build, parts_of
from hunch.runs.callbacks import Callback
from hunch.runs.config import RunConfig, check, loading
from hunch.runs.describe import can_be_loaded, describe
from hunch.runs.folder import RunFolder, refuse_other
from hunch.runs.models import Models
from hunch.runs.places import Place, identify, places
from hunch.runs.result import Result
from hunch.runs.trained import Trained, require_agent
from hunch.runs.training import Evaluation

Recorded: TypeAlias = dataset.Dataset | Sequence[Sequence[Transition]]
Data: TypeAlias = str | Path | Recorded | None


def train(
    agent: str | Agent | Trained,
    env: Place = None,
    steps: int = 10_000,
    *,
    lm: str | LanguageModel = "",
    data: Data = None,
    seed: int = 0,
    out: str | Path | None = None,
    envs: int = 1,
    processes: int = 0,
    task_seed: int | None = None,
    evaluation: Evaluation | None = None,
    eval_every: int = 0,
    eval_episodes: int = 20,
    episodes_per_player: int | None = None,
    models: Mapping[str, LanguageModel] | None = None,
    budget: Budget | None = None,
    threads: int = 1,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[dict[str, Any]], None] = lambda line: None,
    **options: Any,
) -> Result:
    """Train an agent in an environment, on recorded data, or both: what ``hunch run`` does, in Python.

        hunch.train("dqn-prior", "hunch/FrozenLake-v0", steps=2_000, lm="minilm", k=3, out="runs/lake")
        hunch.train(agent, env, steps=2_000)

    Args:
        agent: Name of a method, or any :class:`hunch.core.Agent`; it begins afresh with ``seed``.
        env: Id of an environment, an environment, several, or a vector environment of Gymnasium's; None to
            learn from data alone.
        steps: Environment steps, over all environments; updates where there are only data.
        lm: The language model of a method by name, or its spec. Default: the method's.
        data: Recorded episodes to learn from: the folder of a data set, a data set, or sequences of
            transitions. A method by name takes the environment of the data set, where none is given.
        seed: Of the agent and of every episode. The same seed gives the same run.
        out: Folder of the run, as the command writes it. Where it holds this run, the run goes on: with more
            ``steps`` than before it is prolonged.
        envs: Environments side by side, of an id.
        processes: Worker processes that step the environments, where a step is slow; 0 steps them here.
        task_seed: Fixes the task over all episodes, in environments that draw one.
        evaluation: When and in which environments to evaluate, where they are not like those of the run.
        eval_every: Steps between two evaluations in environments like those of the run; 0 for none.
        eval_episodes: Episodes per evaluation.
        episodes_per_player: Episodes of an evaluation after which a player's memory ends. Default: never.
        models: The language models that an agent asks, to be metered. Default: its attribute ``models``.
        budget: How much the run may ask of language models, earlier sittings included. Once it is reached the
            run ends with ``result.stopped``, and with a larger budget it goes on from its last checkpoint.
        threads: Threads of torch during the run: networks as small as these are faster with one.
        callbacks: Told of every step, episode and evaluation; each may end the run.
        progress: Show how far the run is. Default: in a terminal or a notebook only.
        stop: Asked now and then; once true, the run is saved and ended.
        report: Called with each line of metrics.
        **options: Options of a method by name; nested ones as a dictionary, ``prior={"kind": "mapped"}``.

    Returns:
        What it came to. ``result.agent`` is the trained agent; see :class:`hunch.Trained`.

    Raises:
        UsageError: if something named does not exist or a setting cannot be met, before a model is loaded;
            if the folder holds another run, or the agent or an environment breaks its contract.
        HunchError: if the agent fails, the folder cannot be written, or its checkpoint is damaged.
    """
    recorded, data_folder = _read(data)
    offline = recorded is not None and env is None
    where = places(env, envs)
    config = _config(agent, lm, options)
    config = _placed(config, where, recorded)
    given = ("data",) if recorded is not None and not data_folder else ()
    config = replace(
        config,
        data=data_folder,
        online=recorded is not None and not offline,
        steps=steps,
        seed=seed,
        envs=max(1, len(where)),
        processes=processes,
        task_seed=task_seed,
        eval_every=evaluation.every if evaluation else eval_every,
        eval_episodes=evaluation.episodes if evaluation else eval_episodes,
        episodes_per_player=evaluation.episodes_per_player if evaluation else episodes_per_player,
        threads=threads,
        objects=config.objects + given,
    )
    check(config)
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise UsageError(f"A callback is a hunch.Callback, not {callback!r}.")
    judge = evaluation or _evaluation(config, where, recorded, by_name=isinstance(agent, str))
    if out is not None:
        refuse_other(Path(out), config.settings())
    with _threads(threads), _shown(config, progress, report) as told:
        made, own = _made(agent, config, lm)
        asked = own if models is None else models
        if budget is not None:
            budget.check_prices(list(asked.values()))
        folder = RunFolder(out) if out is not None else None
        try:
            if folder:
                folder.begin(config.record(made.evidence, asked))
            return loop.train(
                made,
                [] if offline else where,
                steps,
                data=recorded,
                seed=seed,
                out=folder,
                evaluation=judge,
                models=asked,
                budget=budget,
                task_seed=task_seed,
                processes=processes,
                callbacks=callbacks,
                stop=stop,
                report=told,
            )
        finally:
            if folder:
                folder.close()


def evaluate(
    agent: Agent | Trained,
    env: Place,
    episodes: int = 100,
    *,
    seed: int = 0,
    episodes_per_player: int | None = None,
    threads: int = 1,
) -> list[Episode]:
    """Play whole episodes with a player of an agent, which leaves no trace in it.

    Args:
        agent: Trained, or not.
        env: Id of an environment, an environment, several to play in side by side, or a vector environment.
        episodes: How many.
        seed: Of the episodes and of the player.
        episodes_per_player: After how many episodes a player's memory ends. Default: never.
        threads: Threads of torch.

    Raises:
        UsageError: if there is no such environment, or a number is out of range.
    """
    who = _agent(agent)
    with _threads(threads):
        return whole.evaluate(
            who.player, places(env), episodes, seed, episodes_per_player=episodes_per_player
        )


# ---- what the arguments mean ------------------------------------------------------------------------------


def _read(data: Data) -> tuple[Recorded | None, str]:
    """Recorded data, and the folder that they are from where they were named by it."""
    if isinstance(data, (str, Path)):
        return dataset.load(data), str(data)
    return data, ""


def _agent(agent: Any) -> Agent:
    """The agent behind what a program gave as one."""
    return agent.agent if isinstance(agent, Trained) else require_agent(agent)


def _config(agent: str | Agent | Trained, lm: str | LanguageModel, options: Mapping[str, Any]) -> RunConfig:
    """Settings with what is known of the agent; the rest follows."""
    if isinstance(agent, str):
        method = methods.find(agent)
        config = RunConfig(env="", method=agent, lm=_name(method, lm), options=_options(method, options))
        own = not isinstance(lm, str) and not can_be_loaded({"lm": lm})
        return replace(config, objects=("agent",)) if own else config
    found = _agent(agent)
    if options or lm:
        name = next(iter(options), "lm")
        raise UsageError(
            f"{name} is an option of a method by name; {type(found).__name__} has its own already."
        )
    known = describe(found)
    objects = () if known.again else ("agent",)
    return RunConfig(env="", method=known.method, lm=known.lm, options=known.options, objects=objects)


def _name(method: methods.Method, lm: str | LanguageModel) -> str:
    """The spec of the method's model, or the name of a model that is an object."""
    if isinstance(lm, str):
        return lm
    if not hasattr(lm, "verbs"):
        raise UsageError(f"lm is a language model or its spec, as in lm='minilm', not {lm!r}.")
    if "lm" not in method.models:
        raise UsageError(f"{method.name} asks no language model; leave lm out.")
    return lm.name


def _options(method: methods.Method, options: Mapping[str, Any]) -> Any:
    """The method's options, with nested ones from dictionaries."""
    default = method.config_class()
    values = dict(options)
    for name, value in options.items():
        inner = getattr(default, name, None)
        if isinstance(value, Mapping) and is_dataclass(inner) and not isinstance(inner, type):
            known = [entry.name for entry in fields(inner)]
            for wrong in set(value) - set(known):
                raise UsageError(f"{method.name} has no option {name}.{wrong}; {suggest(wrong, known)}")
            values[name] = replace(inner, **value)
    return configure(method.agent_class, default, values)


def _placed(config: RunConfig, where: Sequence[TextEnvironment], recorded: Recorded | None) -> RunConfig:
    """Add the environments, or those that the data are from."""
    if where:
        env, options, again = identify(where)
        return replace(
            config, env=env, env_options=options, objects=config.objects + (() if again else ("env",))
        )
    if isinstance(recorded, dataset.Dataset):
        return replace(config, env=recorded.env, env_options=dict(recorded.env_options))
    return replace(config, objects=(*config.objects, "env"))


def _evaluation(
    config: RunConfig, where: Sequence[TextEnvironment], recorded: Recorded | None, *, by_name: bool
) -> Evaluation | None:
    """Evaluation in environments like those of the run; of a method by name as the command does it."""
    always = by_name and not where and isinstance(recorded, dataset.Dataset)
    every = config.eval_every or (max(1, config.steps // 10) if always else 0)
    if not every:
        return None
    if not where and "env" in config.objects:
        raise UsageError(
            "There is no environment to evaluate in: give evaluation=hunch.Evaluation(env, every)."
        )
    n = min(config.envs, config.eval_episodes)
    if "env" in config.objects:
        envs = [deepcopy(env) for env in where[:n]]
    else:
        envs = [make(config.env, **config.env_options) for _ in range(n)]
    return Evaluation(envs, every, config.eval_episodes, config.episodes_per_player)


def _made(
    agent: str | Agent | Trained, config: RunConfig, lm: str | LanguageModel
) -> tuple[Agent, Mapping[str, LanguageModel]]:
    """The agent, and the models that it asks."""
    if isinstance(agent, str) and isinstance(lm, str):
        return build(config)
    if isinstance(agent, str):
        others = {name: spec for name, spec in config.specs().items() if name != "lm"}
        models: dict[str, Any] = {**Models(others), "lm": lm}
        return methods.find(agent).build(config.options, models, **parts_of(config.options)), models
    found = _agent(agent)
    return found, getattr(found, "models", {})


# ---- around the run ---------------------------------------------------------------------------------------


@contextmanager
def _threads(n: int) -> Iterator[None]:
    """Let torch compute with so many threads for a while, where it is in use."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _shown(
    config: RunConfig, progress: bool | None, report: Callable[[dict[str, Any]], None]
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show lines of metrics as they come, where somebody looks, and pass them on."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules if progress is None else progress):
        yield report
        return
    from hunch.runs.progress import RunProgress

    with RunProgress(config.method, config.steps, loading(config)) as bar:

        def told(line: dict[str, Any]) -> None:
            bar.update(line)
            report(line)

        yield told
