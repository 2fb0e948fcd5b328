"""``hunch.train`` and ``hunch.evaluate``, the Python forms of ``hunch run`` and ``hunch evaluate``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from hunch import methods
from hunch.core import Agent, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.base import threads as limited
from hunch.lm.budget import Budget
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeInt, PositiveInt, check_settings, check_value
from hunch.rl import episodes as whole
from hunch.rl.dataset import Dataset, Recorded, load
from hunch.rl.rollout import Finished, TextEnvironment
from hunch.runs.callbacks import Watch
from hunch.runs.config import RunConfig, Saving, Streams, Threads, group_of
from hunch.runs.describe import can_be_loaded, describe
from hunch.runs.environments import Place, identify, places
from hunch.runs.evaluations import Evaluation
from hunch.runs.execute import execute
from hunch.runs.places import Given
from hunch.runs.resolve import Resolved, resolve
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
    budget: Budget | None = None,
    streams: Streams = Streams(),
    evaluation: Evaluation = Evaluation(),
    saving: Saving = Saving(),
    watch: Watch = Watch(),
    threads: int = 1,
    **options: Any,
) -> Result:
    """Train an agent in an environment, on recorded data, or on both; the Python form of ``hunch run``.

        hunch.train("dqn-prior", "hunch/FrozenLake-v0", steps=2_000, lm="minilm", k=3, out="runs/lake")
        hunch.train(agent, env, steps=2_000, evaluation=hunch.Evaluation(every=500))

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
        budget: Limits on the use of language models, over all sessions of the run. When one is reached, the
            run stops and ``result.stopped`` says why; a larger budget continues it from its last checkpoint.
        streams: How many environments run side by side, with which options, and how tasks repeat.
        evaluation: When and in which environments to evaluate. Default: never; on recorded data only, ten
            times.
        saving: Which checkpoints are kept, for ``hunch.load(out, step=...)``. Default: only the last and the
            best.
        watch: What sees the run while it goes on: callbacks, boards, a progress bar.
        threads: Torch threads during the run; small networks are fastest with one.
        **options: Options of a method given by name; nested ones as a dictionary,
            ``prior={"way": "structured"}``.

    Returns:
        The result of the run. ``result.agent`` is the trained agent; see :class:`hunch.Trained`.

    Raises:
        UsageError: if a name does not exist or a setting is invalid (found before a model is loaded), if the
            folder holds another run, if a model was trained on the games to play, or if the agent or an
            environment breaks its contract.
        HunchError: if the agent fails, the folder cannot be written, or its checkpoint is damaged.
    """
    _refuse_former(agent, options)
    _require_group("streams", streams, Streams)
    _require_group("evaluation", evaluation, Evaluation)
    _require_group("saving", saving, Saving)
    _require_group("watch", watch, Watch)
    check_settings(streams)
    check_settings(saving)
    if budget is not None:
        _require_group("budget", budget, Budget)
    if watch.boards and out is None:
        raise UsageError("A board shows the run in a folder: set it with out=...")
    if saving.every is not None and out is None:
        raise UsageError("Checkpoints are kept in a folder: set it with out=...")
    recorded, data_folder = _read(data)
    config = _config(agent, lm, options)
    envs = places(env, _number_of(streams, config, env), streams.options)
    config = _placed(config, envs, recorded)
    if recorded is not None and not data_folder:
        config = replace(config, objects=(*config.objects, "data"))
    config = replace(
        config,
        data=data_folder,
        online=recorded is not None and env is not None,
        steps=steps,
        seed=seed,
        envs=max(1, len(envs)),
        processes=streams.processes,
        task_seed=streams.task_seed,
        lifetime=streams.lifetime,
        eval_every=evaluation.every,
        eval_episodes=evaluation.episodes,
        episodes_per_player=evaluation.episodes_per_player,
        keep_every=saving.every,
        keep_last=saving.last,
        threads=threads,
    )
    resolved = resolve(config, watch.boards, recorded)
    given = Given(
        agent=None if isinstance(agent, str) else _agent(agent),
        lm=None if isinstance(lm, str) else lm,
        envs=envs,
        data=recorded,
        evaluation=evaluation,
        trained=True,
    )
    with _progress(resolved, watch) as shown:
        return execute(resolved, out, given, budget=budget, watch=shown)


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
    check_value("episodes", episodes, PositiveInt)
    check_value("seed", seed, NonNegativeInt)
    check_value("episodes_per_player", episodes_per_player, PositiveInt | None)
    check_value("threads", threads, Threads)
    trained = _agent(agent)
    with limited(threads), begun(trained):
        return whole.evaluate(
            trained.player,
            places(env),
            episodes,
            seed,
            episodes_per_player=episodes_per_player,
            raw=methods.reads_raw(trained),
        )


# ---- what the arguments mean -----------------------------------------------------------------------------


FORMER = {
    "envs": "streams=hunch.Streams(envs=...)",
    "env_options": "streams=hunch.Streams(options=...)",
    "processes": "streams=hunch.Streams(processes=...)",
    "task_seed": "streams=hunch.Streams(task_seed=...)",
    "lifetime": "streams=hunch.Streams(lifetime=...)",
    "eval_every": "evaluation=hunch.Evaluation(every=...)",
    "eval_episodes": "evaluation=hunch.Evaluation(episodes=...)",
    "episodes_per_player": "evaluation=hunch.Evaluation(episodes_per_player=...)",
    "keep_every": "saving=hunch.Saving(every=...)",
    "keep_last": "saving=hunch.Saving(last=...)",
    "boards": "watch=hunch.Watch(boards=[...])",
    "callbacks": "watch=hunch.Watch(callbacks=[...])",
    "progress": "watch=hunch.Watch(progress=...)",
    "stop": "watch=hunch.Watch(stop=...)",
    "report": "watch=hunch.Watch(report=...)",
    "models": "the attribute models of the agent or of the environment",
}
"""Former arguments of :func:`train`, with what replaces each."""


def _refuse_former(agent: str | Agent | Trained, options: Mapping[str, Any]) -> None:
    """Refuse the former name of an argument, and say the new one; a method's option may have that name."""
    for name in options:
        if name not in FORMER:
            continue
        entries = fields(methods.find(agent).config_class) if isinstance(agent, str) else ()
        if name not in {entry.name for entry in entries}:
            raise UsageError(f"hunch.train has no argument {name} any more: use {FORMER[name]}.")


def _require_group(name: str, value: Any, kind: type[Any]) -> None:
    """Check that a grouped argument has its type."""
    if not isinstance(value, kind):
        home = "hunch.lm" if kind is Budget else "hunch"
        raise UsageError(f"{name} is a {home}.{kind.__name__}, not {value!r}.")


def _number_of(streams: Streams, config: RunConfig, env: Place) -> int:
    """Return how many environments to make of an id; at least one group if the method compares groups."""
    if streams.envs == 1 and isinstance(env, str):
        return group_of(config.options)
    return streams.envs


def _read(data: Any) -> tuple[Recorded | None, str]:
    """Return the recorded data, and their folder if they were given as a folder."""
    if isinstance(data, (str, Path)):
        if Path(data).is_file():
            raise UsageError(
                f"{data} is a file, which only the command reads, by --data: pass the folder of a data set. "
                "'hunch data import' makes one of a file of episodes."
            )
        return load(data), str(data)
    if data is None or isinstance(data, Dataset):
        return data, ""
    if not (isinstance(data, Sequence) and data and all(isinstance(each, Sequence) for each in data)):
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
        if not isinstance(lm, str) and not can_be_loaded({"lm": lm}):
            return replace(config, objects=("agent",))
        return config
    given = _agent(agent)
    if options or lm:
        name = next(iter(options), "lm")
        raise UsageError(
            f"{name} is only for a method given by name; this {type(given).__name__} already has its own."
        )
    known = describe(given)
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


def _placed(config: RunConfig, envs: Sequence[TextEnvironment], recorded: Recorded | None) -> RunConfig:
    """Add the environments to the settings, or those of the data set."""
    if envs:
        env, options, again = identify(envs)
        objects = config.objects if again else (*config.objects, "env")
        return replace(config, env=env, env_options=options, objects=objects)
    if isinstance(recorded, Dataset):
        return replace(config, env=recorded.env, env_options=dict(recorded.env_options))
    return replace(config, objects=(*config.objects, "env"))


@contextmanager
def _progress(resolved: Resolved, watch: Watch) -> Iterator[Watch]:
    """Show a progress bar if there is a reader; yield what sees the run, the bar included."""
    shows = watch.progress
    if shows is None:
        shows = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not shows:
        yield watch
        return
    from hunch.runs.progress import RunProgress  # rich takes time to load

    with RunProgress(resolved.config.method, resolved.config.steps, resolved.loading) as bar:

        def report(line: dict[str, Any]) -> None:
            bar.update(line)
            watch.report(line)

        def say(text: str) -> None:
            bar.say(text)
            watch.say(text)

        yield replace(watch, report=report, say=say)
