"""The training loop, for an agent and environments given as objects. ``hunch.train`` calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from hunch.core import Agent, Transition, UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.budget import Budget, BudgetError, Ledger
from hunch.methods import reads_raw
from hunch.rl.dataset import Dataset, as_episodes, without_raw
from hunch.rl.rollout import Rollout, StoppedError, TextEnvironment
from hunch.runs.board import Boards
from hunch.runs.callbacks import Callback, tell
from hunch.runs.folder import RunFolder, kept
from hunch.runs.models import Asked, asked_by
from hunch.runs.result import Result
from hunch.runs.training import EVALUATION_SEED, Evaluation, Training

__all__ = ["EVALUATION_SEED", "Evaluation", "train"]

LINES = 200
"""Approximate number of lines of metrics that a run writes."""
CHECKPOINT_SECONDS = 10.0
"""Seconds between checkpoints, and the longest time until the run reacts to Ctrl-C."""
SAVING_SHARE = 0.05
"""Largest share of a run's time that saving may take."""


def train(
    agent: Agent,
    env: TextEnvironment | Sequence[TextEnvironment] | None = None,
    steps: int = 10_000,
    *,
    data: Dataset | Sequence[Sequence[Transition]] | None = None,
    seed: int = 0,
    out: str | Path | RunFolder | None = None,
    evaluation: Evaluation | None = None,
    models: Mapping[str, LanguageModel] | None = None,
    budget: Budget | None = None,
    task_seed: int | None = None,
    lifetime: int = 1,
    processes: int = 0,
    callbacks: Sequence[Callback] = (),
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[dict[str, Any]], None] = lambda line: None,
) -> Result:
    """Train an agent with the library's only loop.

    Args:
        agent: Any :class:`hunch.core.Agent`; it begins again with ``seed``.
        env: One text environment, or several to step side by side; None to learn from data only.
        steps: Environment steps in total, over all environments; updates if there are only data.
        data: Recorded episodes to learn from: a data set, or sequences of transitions, each a whole episode.
        seed: Seed of the agent and of all episodes. The same seed gives the same run.
        out: Folder to keep the run in. If it holds a checkpoint of this run, the run resumes from it.
        evaluation: When and in which environments to evaluate.
        models: Further models to be metered, by name; those in the attribute ``models`` of the agent and of
            the environments are metered anyway.
        budget: Limits on the use of language models, over all sessions of the run. Once one is reached, the
            run stops and ``result.stopped`` says why; a larger budget continues it from its last checkpoint.
        task_seed: Fixes the task over all episodes, in environments that draw per task.
        lifetime: Consecutive episodes of a stream that share one drawn task.
        processes: Worker processes for the environments, useful if a step is slow; 0 uses this process.
        callbacks: Called after every step, episode and evaluation; each may end the run.
        stop: Called regularly; once it returns True, the run is saved and ended.
        report: Called with each line of metrics.

    Returns:
        The result of the run.

    Raises:
        UsageError: if ``steps`` is not positive, there is neither an environment nor data, an environment or
            the agent breaks its contract, or an episode of the data has no end.
        HunchError: if the agent fails, the folder cannot be written, or the checkpoint is damaged.
    """
    if steps < 1:
        raise UsageError(f"A run needs at least one step, not {steps}.")
    if isinstance(env, Dataset):
        raise UsageError("A data set is not an environment: pass it as data=..., with or without an env.")
    envs = [env] if isinstance(env, gym.Env) else list(env or ())
    recorded, raw = as_episodes(data), reads_raw(agent)
    recorded = recorded if raw else without_raw(recorded)
    if not envs and not recorded:
        raise UsageError("There is nothing to learn from: pass an environment, recorded data, or both.")
    if evaluation and {id(e.unwrapped) for e in envs} & {id(e.unwrapped) for e in evaluation.places}:
        raise UsageError("An evaluation needs environments of its own, not those of the training.")
    folder = RunFolder(out) if isinstance(out, (str, Path)) else out
    rollout = training = None
    try:
        asked = Asked(agent, models or {}, [*envs, *(evaluation.places if evaluation else ())])
        if processes and any(map(asked_by, envs)):
            raise UsageError(
                "The environment asks a model, which is counted in this process: leave processes out."
            )
        ledger = Ledger(asked, budget, folder.journal() if folder and budget else None)
        with ledger.enforced():  # the first reset may ask a model
            how: dict[str, Any] = {"task_seed": task_seed, "lifetime": lifetime, "processes": processes}
            rollout = Rollout(envs, seed, **how, raw=raw) if envs else None
        env = asked.envs[0] if asked.envs else None
        training = Training(agent, rollout, env, recorded, seed, steps, ledger, folder, asked)
        ledger.add(asked)  # a model that is trained may be new after begin
        training.restore()
        if folder:
            training.boards = Boards(folder.path, training.steps)
        result = training.result(_within_budget(training, evaluation, callbacks, stop, report))
        if folder:
            folder.write_json("summary.json", {**result.summary(), "records": len(kept(folder.path))})
        return result
    except UsageError:
        if folder:
            folder.forsake()
        raise
    finally:
        if rollout:
            rollout.close()
        if folder and folder is not out:
            folder.close()


def _within_budget(
    training: Training,
    evaluation: Evaluation | None,
    callbacks: Sequence[Callback],
    stop: Callable[[], bool],
    report: Callable[[dict[str, Any]], None],
) -> str:
    """Run until the end, a stop or a limit; return the budget or callback that ended it early, or ""."""
    try:
        if training.ledger.budget:
            training.save()  # so that there is a checkpoint to resume from, whenever the budget is reached
        with training.ledger.enforced():
            return _loop(training, evaluation, callbacks, stop, report)
    except BudgetError as reached:
        training.account()
        return str(reached)
    finally:
        if training.boards:
            training.boards.close()  # also after an error: a writer left open fails once its folder is gone


def _loop(
    training: Training,
    evaluation: Evaluation | None,
    callbacks: Sequence[Callback],
    stop: Callable[[], bool],
    report: Callable[[dict[str, Any]], None],
) -> str:
    """Run until the end or a stop; return the callback that ended it, or "".

    The run is saved every ten seconds. A run with a budget may end in the middle of a step, so it is also
    saved with every line of metrics.
    """
    steps, every, ended = training.asked, max(1, training.asked // LINES), ""
    while training.steps < steps and not ended:
        before = training.steps
        try:
            transitions, episodes = training.step()
        except StoppedError:
            report(training.log())
            training.save()
            raise
        judged = evaluation and training.steps // evaluation.every > before // evaluation.every
        evaluated = training.evaluate(evaluation) if evaluation and judged else []
        ended = tell(callbacks, training, transitions, episodes, evaluated)
        logged = training.steps // every > before // every or training.steps >= steps or bool(ended)
        due = training.due(CHECKPOINT_SECONDS, SAVING_SHARE)
        if logged:
            report(training.log())
        if (logged or due) and stop():
            break
        if due or (logged and training.ledger.budget and training.due(0.0, SAVING_SHARE)):
            training.save()
    training.save()
    return f"{ended} ended the run after {training.steps:,} steps." if ended else ""
