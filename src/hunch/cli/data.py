"""``hunch data``: records, imports and shows offline data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from hunch import methods
from hunch.cli.environment import split_environment
from hunch.cli.options import options_of, parse, read, run_config
from hunch.core import UsageError
from hunch.envs import History, make
from hunch.ranges import PositiveInt
from hunch.rl import dataset
from hunch.runs.config import Setting
from hunch.runs.histories import Lives, histories
from hunch.runs.processes import processors, stoppable
from hunch.runs.record import collect, parse_mix

NOT_WRITTEN = (
    "stopped before all was recorded, so {} was not written; the same command records the same from the "
    "beginning."
)
NOT_IMPORTED = "stopped before all was read, so {} was not written; the same command begins again."


@dataclass(frozen=True, kw_only=True)
class CollectOptions:
    """Record episodes with a mix of behaviours."""

    env: str
    """Environment id; its options are given as --env.NAME VALUE."""
    out: Path
    """New folder for the data set."""
    steps: int = 1_000
    """Number of steps in the data set."""
    mix: str = "oracle=0.5,random=0.5"
    """Behaviours and their shares of the steps: oracle, noisy:E (random with probability E), random,
    agent:DIR, run:DIR, examples (the environment's demonstrations), write:SPEC (a language model's texts)."""
    group: PositiveInt = 1
    """Number of successive episodes with the same first state, such as answers to one prompt."""
    max_tokens: PositiveInt = 32
    """Maximum number of tokens of a text that write:SPEC writes."""
    good: float | None = None
    """Share of the steps (0 to 1) that comes from successful episodes. Default: not controlled."""
    seed: int = 0
    """Seed of all episodes and of the behaviours."""


@dataclass(frozen=True, kw_only=True)
class HistoriesOptions(Lives):
    """Record learning histories: the episodes of many learners, each on one task."""

    env: str
    """Environment id; its options are given as --env.NAME VALUE."""
    out: Path
    """New folder for the data set."""
    lm: str = ""
    """Language model of the method. Default: the method's default model."""
    seed: int = 0
    """Seed of the tasks, the learners and all episodes."""
    workers: PositiveInt | None = None
    """Number of parallel processes. Default: the number of processors."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Import recorded episodes from a file."""

    file: Annotated[Path, tyro.conf.Positional]
    """JSON lines, one episode per line, with observations, admissible, actions, rewards, terminated ..."""
    env: str
    """Id of the environment of the data."""
    out: Path
    """New folder for the data set."""


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Show the contents of a data set."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder of the data set."""


def data(arguments: Sequence[str]) -> None:
    """Record, import or show offline data."""
    if arguments and arguments[0] in ("-h", "--help"):
        rows = (
            "collect     record steps of an environment",
            "histories   record whole lives of a learner: hunch data histories METHOD --env ID --out DIR",
            "import      import your own data",
            "show        show what a data set contains",
        )
        lines = "\n  ".join(rows)
        print(f"usage: hunch data COMMAND [options]\n\n  {lines}\n\n'hunch data COMMAND --help' says more.")
        return
    verbs = {"collect": _collect, "histories": _histories, "import": _import, "show": _show}
    if not arguments or arguments[0] not in verbs:
        raise UsageError(f"Name a command, as in 'hunch data collect'; there are {', '.join(verbs)}.")
    verbs[arguments[0]](arguments[1:])


def _collect(arguments: Sequence[str]) -> None:
    """Record steps of an environment."""
    rest, env_options = split_environment(arguments)
    options = read(CollectOptions, prog="hunch data collect", args=rest)
    dataset.refuse_existing(options.out)
    mix = parse_mix(options.mix)
    with stoppable(NOT_WRITTEN.format(options.out)):
        recorded = collect(
            options.env,
            env_options,
            mix,
            options.steps,
            good=options.good,
            seed=options.seed,
            group=options.group,
            max_tokens=options.max_tokens,
        )
        dataset.save(recorded, options.out)
    describe(recorded, Console())


def _histories(arguments: Sequence[str]) -> None:
    """Record whole lives of a learner, the same in all of its tasks."""
    if not arguments or arguments[0].startswith("-"):
        read(HistoriesOptions, prog="hunch data histories METHOD", args=arguments)
        raise UsageError("Name a method first, as in 'hunch data histories q-learning'.")
    method = methods.find(arguments[0])
    rest, env_options = split_environment(arguments[1:])
    parts = {"where_": HistoriesOptions, "method_": options_of(method, rest)}
    parsed = parse(f"data histories {method.name}", method.summary, parts, rest)
    where = parsed.where_
    dataset.refuse_existing(where.out)
    setting = Setting(env=where.env, lm=where.lm)
    config = run_config(method.name, setting, env_options, parsed.method_, seed=where.seed)
    lives = Lives(**{entry.name: getattr(where, entry.name) for entry in fields(Lives)})
    with stoppable(NOT_WRITTEN.format(where.out)):
        recorded = histories(config, lives, where.workers or processors())
        dataset.save(recorded, where.out)
    describe(recorded, Console())


def _import(arguments: Sequence[str]) -> None:
    """Import data from a file, if they are consistent."""
    rest, env_options = split_environment(arguments)
    options = read(ImportOptions, prog="hunch data import", args=rest)
    env = make(options.env, **env_options)
    shown = env.n if isinstance(env, History) else 0  # length of the history that agents are shown
    with stoppable(NOT_IMPORTED.format(options.out)):
        recorded = dataset.read_json_lines(options.file, options.env, env_options, history=shown)
        dataset.save(recorded, options.out)
    describe(recorded, Console())


def _show(arguments: Sequence[str]) -> None:
    """Show what a data set contains."""
    options = read(ShowOptions, prog="hunch data show", args=list(arguments))
    describe(dataset.load(options.folder), Console())


def describe(recorded: dataset.Dataset, console: Console) -> None:
    """Print the numbers of steps and episodes and the success rate of each behaviour."""
    steps, episodes, successes = Counter[str](), Counter[str](), Counter[str]()
    for episode in recorded.episodes:
        steps[episode.behaviour] += len(episode)
        episodes[episode.behaviour] += 1
        successes[episode.behaviour] += episode.success
    grid = Table(title=f"{recorded.env}, {len(recorded):,} steps", title_justify="left")
    for heading in ("behaviour", "steps", "episodes", "that succeed", "mean return"):
        grid.add_column(heading, justify="left" if heading == "behaviour" else "right")
    for name in steps:
        returns = [sum(e.rewards) for e in recorded.episodes if e.behaviour == name]
        mean = f"{sum(returns) / len(returns):.3f}"
        grid.add_row(name, f"{steps[name]:,}", f"{episodes[name]:,}", f"{successes[name]:,}", mean)
    console.print(grid)
