"""Executes a run given by its settings, as ``hunch run`` does, and loads its agent for other commands."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hunch.core import HunchError
from hunch.lm.budget import Budget
from hunch.runs.build import build, environments, limit_threads, recorded
from hunch.runs.config import RunConfig as RunConfig
from hunch.runs.config import check
from hunch.runs.files import read_json, read_lines
from hunch.runs.folder import RunFolder, refuse_other
from hunch.runs.loop import Evaluation, train
from hunch.runs.models import Asked, refuse_known_games
from hunch.runs.result import Result, late_success, read_episode


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
        UsageError: if a setting is invalid or the folder holds another run, before anything is loaded; if a
            model was trained on the games to play, or has no price for a budget of money, before anything is
            written.
        HunchError: if the run fails.
    """
    check(config)
    refuse_other(out.path if isinstance(out, RunFolder) else Path(out), config.settings())
    data = recorded(config)
    envs = [] if data and not config.online else environments(config, config.envs)
    judge = evaluation(config)
    limit_threads(config.threads)
    agent, models = build(config)
    asked = Asked(agent, models, [*envs, *(judge.places if judge else ())])
    refuse_known_games(asked)
    if budget is not None:
        budget.check_prices([model for _, model in asked])
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    try:
        folder.begin(config.record(asked))
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
            lifetime=config.lifetime,
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
    every = config.eval_every or (max(1, config.steps // 10) if config.offline else 0)
    if not every:
        return None
    envs = environments(config, min(config.envs, config.eval_episodes))
    return Evaluation(envs, every, config.eval_episodes, config.episodes_per_player)


def finished(folder: Path) -> Result | None:
    """Read the result of a complete run from its folder; None if it is not complete.

    Raises:
        HunchError: if a file is damaged or cut short.
    """
    summary, config = read_json(folder / "summary.json"), read_json(folder / "config.json")
    records = read_lines(folder / "episodes.jsonl")
    try:
        if summary is None or config is None or summary["steps"] < config["run"]["steps"]:
            return None
        return _result(folder, summary, config["run"]["steps"], records)
    except (KeyError, TypeError) as error:  # only files without checksums get here
        raise HunchError(f"{folder} holds a damaged file: {error} is missing or wrong.") from error


def _result(folder: Path, summary: dict[str, Any], asked: int, records: Sequence[dict[str, Any]]) -> Result:
    episodes = [read_episode(r) for r in records if not r["evaluation"]]
    evaluations = [read_episode(r) for r in records if r["evaluation"]]
    for name, found in ("episodes", episodes), ("evaluations", evaluations):
        if len(found) != summary.get(name, len(found)):
            count = f"{len(found):,} of {summary[name]:,}"
            raise HunchError(f"{folder / 'episodes.jsonl'} holds {count} {name}.")
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
