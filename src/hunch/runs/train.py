"""``hunch.train`` and ``hunch.evaluate``, the Python forms of ``hunch run`` and ``hunch evaluate``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from hunch import methods
from hunch.core import Agent, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.base import threads as limited
from hunch.lm.budget import Budget
from hunch.methods.settings import configure
from hunch.rl import episodes as whole
from hunch.rl.dataset import Dataset, Recorded, load
from hunch.rl.rollout import Finished, TextEnvironment
from hunch.runs.callbacks import Callback
from hunch.runs.config import RunConfig, group_of, loading
from hunch.runs.describe import can_be_loaded, describe
from hunch.runs.evaluations import Evaluation
from hunch.runs.execute import Given, execute
from hunch.runs.places import Place, identify, places
from hunch.runs.result import Result
from hunch.runs.settings_file import changed
from hunch.runs.trained import Trained, begun, require_agent

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
    env_options: Mapping[str, Any] | None = None,
    envs: int = 1,
    processes: int = 0,
    task_seed: int | None = None,
    lifetime: int = 1,
    evaluation: Evaluation | None = None,
    eval_every: int = 0,
    eval_episodes: int = 20,
    episodes_per_player: int | None = None,
    models: Mapping[str, LanguageModel] | None = None,
    budget: Budget | None = None,
    keep_every: int | None = None,
    keep_last: int | None = None,
    threads: int = 1,
    boards: str | Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[dict[str, Any]], None] = lambda line: None,
    **options: Any,
) -> Result:
    """Train an agent in an environment, on recorded data, or on both; the Python form of ``hunch run``.

        hunch.train("dqn-prior", "hunch/FrozenLake-v0", steps=2_000, lm="minilm", k=3, out="runs/lake")
        hunch.train(agent, env, steps=2_000)

    Args:
        agent: Name of a method, or any :class:`hunch.core.Agent`, which begins again with ``seed``.
        env: An environment id, one or several environments, or a Gymnasium vector environment; None to learn
            from data only.
        steps: Environment steps in total, over all environments; updates if there are only data.
        lm: Language model or its spec, for an agent given by name. Default: the method's default model.
        data: Recorded episodes to learn from: the folder of a data set, a data set, or sequences of
            transitions. A method given by name uses the data set's environment if ``env`` is None.
        seed: Seed of the agent and of all episodes. The same seed gives the same run.
        out: Folder of the run, in the format of the command. If it already holds this run, the run continues;
            with more ``steps`` than before it is extended.
        env_options: Options of the environment, if ``env`` is an id.
        envs: Number of parallel environments, if ``env`` is an id.
        processes: Worker processes for the environments, useful if a step is slow; 0 uses this process.
        task_seed: Fixes the task of all episodes, including evaluations, in environments with drawn tasks.
        lifetime: Successive episodes with the same drawn task; a player keeps its memory throughout.
        evaluation: When and in which environments to evaluate, if they differ from those of the run.
        eval_every: Steps between evaluations in environments like those of the run; 0 for no evaluation.
        eval_episodes: Episodes per evaluation.
        episodes_per_player: Episodes of an evaluation after which the player's memory is cleared. Default:
            never.
        models: Further models whose use is counted, by name; those in ``models`` of the agent and
            of the environments are always counted.
        budget: Limits on the use of language models, over all sessions of the run. When one is reached, the
            run stops and ``result.stopped`` says why; a larger budget continues it from its last checkpoint.
        keep_every: Steps between checkpoints that are kept, for ``hunch.load(out, step=...)``; None for none.
        keep_last: With ``keep_every``: number of latest checkpoints that are not deleted. Default: all.
        threads: Torch threads during the run; small networks are fastest with one.
        boards: Boards for metrics besides TensorBoard, as ``"wandb:PROJECT"``, ``"mlflow:EXPERIMENT"``,
            ``"trackio:PROJECT"``, or ``"MODULE:Class"`` for a :class:`hunch.runs.packages.Board` subclass.
        callbacks: Called after every step, episode and evaluation; each may end the run.
        progress: Show a progress bar. Default: only in a terminal or a notebook.
        stop: Called regularly; when it returns True, the run is saved and ended.
        report: Called with each line of metrics.
        **options: Options of a method given by name; nested ones as a dictionary,
            ``prior={"kind": "mapped"}``.

    Returns:
        The result of the run. ``result.agent`` is the trained agent; see :class:`hunch.Trained`.

    Raises:
        UsageError: if a name does not exist or a setting is invalid (found before a model is loaded), if the
            folder holds another run, if a model was trained on the games to play, or if the agent or an
            environment breaks its contract.
        HunchError: if the agent fails, the folder cannot be written, or its checkpoint is damaged.
    """
    recorded, data_folder = _read(data)
    own = None if isinstance(agent, str) else _agent(agent)
    config = _config(agent, lm, options)
    where = places(env, group_of(config.options) if envs == 1 and isinstance(env, str) else envs, env_options)
    config = _placed(config, where, recorded)
    config = replace(
        config,
        data=data_folder,
        online=recorded is not None and env is not None,
        steps=steps,
        seed=seed,
        envs=max(1, len(where)),
        processes=processes,
        task_seed=task_seed,
        lifetime=lifetime,
        eval_every=evaluation.every if evaluation else eval_every,
        eval_episodes=evaluation.episodes if evaluation else eval_episodes,
        episodes_per_player=evaluation.episodes_per_player if evaluation else episodes_per_player,
        keep_every=keep_every,
        keep_last=keep_last,
        threads=threads,
        objects=(*config.objects, *(("data",) if recorded is not None and not data_folder else ())),
    )
    boards = (boards,) if isinstance(boards, str) else boards
    if boards and out is None:
        raise UsageError("A board shows the run in a folder: set it with out=...")
    if budget is not None and not isinstance(budget, Budget):
        raise UsageError(f"A budget is a hunch.lm.Budget, not {budget!r}.")
    given = Given(
        agent=own,
        lm=None if isinstance(lm, str) else lm,
        envs=where,
        data=recorded,
        evaluation=evaluation,
        models=models,
        trained=True,
    )
    with _shown(config, progress, report) as told:
        return execute(
            config, out, given, budget=budget, boards=boards, callbacks=callbacks, stop=stop, report=told
        )


def evaluate(
    agent: Agent | Trained,
    env: Place,
    episodes: int = 100,
    *,
    seed: int = 0,
    episodes_per_player: int | None = None,
    threads: int = 1,
) -> list[Finished]:
    """Play whole episodes with an agent, without changing it.

    Args:
        agent: The agent, trained or not.
        env: An environment id, one or several environments, or a Gymnasium vector environment.
        episodes: Number of episodes.
        seed: Seed of the episodes and of the agent.
        episodes_per_player: Episodes after which the player's memory is cleared. Default: never.
        threads: Number of torch threads.

    Returns:
        The episodes, in the order of their seeds.

    Raises:
        UsageError: if the environment does not exist, a number is out of range, or the agent was never
            trained.
    """
    who = _agent(agent)
    with limited(threads), begun(who):
        return whole.evaluate(
            who.player,
            places(env),
            episodes,
            seed,
            episodes_per_player=episodes_per_player,
            raw=methods.reads_raw(who),
        )


# ---- what the arguments mean ------------------------------------------------------------------------------


def _read(data: Data) -> tuple[Recorded | None, str]:
    """Return the recorded data, and their folder if they were given as a folder."""
    if isinstance(data, (str, Path)):
        return load(data), str(data)
    episodes = isinstance(data, Sequence) and data and all(isinstance(each, Sequence) for each in data)
    if not (data is None or isinstance(data, Dataset) or episodes):
        raise UsageError(f"data is a data set, its folder, or a list of episodes, not {data!r}.")
    return data, ""


def _agent(agent: Any) -> Agent:
    """Return the agent behind the argument ``agent``."""
    return agent.agent if isinstance(agent, Trained) else require_agent(agent)


def _config(agent: str | Agent | Trained, lm: str | LanguageModel, options: Mapping[str, Any]) -> RunConfig:
    """Return settings with the agent's part filled in."""
    if isinstance(agent, str):
        method = methods.find(agent)
        config = RunConfig(env="", method=agent, lm=_name(method, lm), options=_options(method, options))
        own = not isinstance(lm, str) and not can_be_loaded({"lm": lm})
        return replace(config, objects=("agent",)) if own else config
    found = _agent(agent)
    if options or lm:
        name = next(iter(options), "lm")
        raise UsageError(
            f"{name} is only for a method given by name; this {type(found).__name__} already has its own."
        )
    known = describe(found)
    objects = () if known.again else ("agent",)
    return RunConfig(env="", method=known.method, lm=known.lm, options=known.options, objects=objects)


def _name(method: methods.Method, lm: str | LanguageModel) -> str:
    """Return the spec of the method's model, or the name of a model given as an object."""
    if isinstance(lm, str):
        return lm
    if not hasattr(lm, "verbs"):
        raise UsageError(f"lm must be a language model or its spec, as in lm='minilm', not {lm!r}.")
    if "lm" not in method.models:
        raise UsageError(f"{method.name} uses no language model; leave lm out.")
    return lm.name


def _options(method: methods.Method, options: Mapping[str, Any]) -> Any:
    """Return the method's options, with nested ones made from dictionaries."""
    default = method.config_class()
    nested = {name: value for name, value in options.items() if isinstance(value, Mapping)}
    known = {name: value for name, value in nested.items() if is_dataclass(getattr(default, name, None))}
    start = changed(default, known, method.name)
    return configure(method.agent_class, start, {n: v for n, v in options.items() if n not in known})


def _placed(config: RunConfig, where: Sequence[TextEnvironment], recorded: Recorded | None) -> RunConfig:
    """Add the environments to the settings, or those of the data set."""
    if where:
        env, options, again = identify(where)
        return replace(
            config, env=env, env_options=options, objects=config.objects + (() if again else ("env",))
        )
    if isinstance(recorded, Dataset):
        return replace(config, env=recorded.env, env_options=dict(recorded.env_options))
    return replace(config, objects=(*config.objects, "env"))


@contextmanager
def _shown(
    config: RunConfig, progress: bool | None, report: Callable[[dict[str, Any]], None]
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show a progress bar if there is a reader, and pass each line of metrics on."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules if progress is None else progress):
        yield report
        return
    from hunch.runs.progress import RunProgress

    with RunProgress(config.method, config.steps, loading(config)) as bar:

        def told(line: dict[str, Any]) -> None:
            bar.update(line)
            report(line)

        yield told
