"""Executes a run: the only path from settings and Python objects to a result.

``hunch run``, ``hunch compare`` (here and on a cluster), ``hunch.train`` and ``--dry-run`` all call it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hunch import methods
from hunch.core import Agent, UsageError
from hunch.lm import stopping
from hunch.lm.backends.folders import MODEL
from hunch.lm.base import LanguageModel, threads
from hunch.lm.budget import Budget, Ledger
from hunch.lm.tally import Tally
from hunch.rl.dataset import without_raw
from hunch.rl.rollout import Rollout, StoppedError
from hunch.runs import loop
from hunch.runs.boards import Boards
from hunch.runs.callbacks import NOBODY, Watch
from hunch.runs.checkpoints import CHECKPOINT
from hunch.runs.config import RunConfig as RunConfig
from hunch.runs.environments import examine
from hunch.runs.files import write_json
from hunch.runs.folder import RunFolder, description, held, refuse_foreign
from hunch.runs.idle import too_short
from hunch.runs.loading import parts_of
from hunch.runs.models import Asked, Loaded, light, refuse_known_games
from hunch.runs.places import NOTHING, Given, Places, places_of
from hunch.runs.processes import stop_signals
from hunch.runs.resolve import Resolved, resolve
from hunch.runs.result import Result
from hunch.runs.resume import resume
from hunch.runs.stored import finished
from hunch.runs.training import Training

WORD_AFTER: Final = 2.0
"""Seconds after a request to stop from which on the user is told what the run waits for."""


def execute(
    config: RunConfig | Resolved,
    out: str | Path | RunFolder | None = None,
    given: Given = NOTHING,
    *,
    budget: Budget | None = None,
    watch: Watch = NOBODY,
) -> Result:
    """Execute a run, or resume it.

    Args:
        config: All settings, or what :func:`hunch.runs.resolve.resolve` made of them. For an existing run,
            ``steps`` may be larger, which extends it.
        out: Its folder; if it is open already, it is closed at the end. None keeps nothing.
        given: Python objects that replace parts of the settings.
        budget: Limits on model calls; not part of the settings, so that it can be raised.
        watch: What sees the run while it goes on.

    Raises:
        UsageError: if a setting is invalid or the folder holds another run, before anything is loaded; if an
            environment breaks its contract, a model was trained on the games to play, or has no price for a
            budget of money, before anything is written.
        HunchError: if the run fails.
    """
    resolved = config if isinstance(config, Resolved) else resolve(config, watch.boards, given.data)
    if out is not None:
        done = _stored_result(resolved.config, out, given)
        if done:
            return done
    # Environments are made and compared with the method before torch is loaded: this may refuse the run.
    places = places_of(resolved, given)
    examine(places.all)
    loaded = _light_models(resolved, given)
    with threads(resolved.config.threads):
        agent, models = _agent(resolved, given, loaded)
        asked = Asked(agent, models, places.all)
        refuse_known_games(asked)
        if budget is not None:
            budget.check_prices([model for _, model in asked])
        folder = RunFolder(out) if isinstance(out, (str, Path)) else out
        return _run(resolved, asked, places, folder, budget, watch)


def _stored_result(config: RunConfig, out: str | Path | RunFolder, given: Given) -> Result | None:
    """Return the result that a folder already holds; None if the run has to begin or go on.

    Raises:
        UsageError: if the folder holds something else.
    """
    if not isinstance(out, str | Path | RunFolder):
        raise UsageError(f"out is the path of a folder, not {out!r}.")
    path = out.path if isinstance(out, RunFolder) else Path(out)
    refuse_foreign(path)
    held(path, config.settings())
    if given.trained and (path / CHECKPOINT).exists():
        return None  # the trained agent is wanted, too, and comes from the checkpoint
    result = finished(path)
    if result is None or result.requested < config.steps:
        return None
    return result


def _light_models(resolved: Resolved, given: Given) -> Loaded:
    """Load the models that need no heavy library, so that what is wrong with them is found early."""
    if given.agent is not None:
        return Loaded()
    return light(spec for name, spec in resolved.specs.items() if given.lm is None or name != "lm")


def _agent(resolved: Resolved, given: Given, loaded: Loaded) -> tuple[Agent, Mapping[str, LanguageModel]]:
    """Return the agent and the models to be metered besides its own."""
    if given.agent is not None:
        return given.agent, given.models or {}
    agent, models = resolved.build(lm=given.lm, loaded=loaded, parts=parts_of(resolved.config))
    return agent, models if given.models is None else given.models


def _run(
    resolved: Resolved,
    asked: Asked,
    places: Places,
    folder: RunFolder | None,
    budget: Budget | None,
    watch: Watch,
) -> Result:
    """Begin the run, or go on from its last checkpoint, and go through the loop."""
    config, agent = resolved.config, asked.agent
    rollout = None
    try:
        if folder:
            folder.begin(description(config, asked))
        tally = Tally(asked)
        if budget:
            tally = Ledger(asked, budget, folder.journal() if folder else None)
        reads_raw = methods.reads_raw(agent)
        if places.envs:
            with tally.enforced():  # the first reset may ask a model
                rollout = Rollout(
                    places.envs,
                    config.seed,
                    raw=reads_raw,
                    group=agent.group,
                    task_seed=config.task_seed,
                    lifetime=config.lifetime,
                    processes=config.processes,
                )
        data = places.data
        if data and not reads_raw:
            data = without_raw(data)
        env = next(iter(places.all), None)
        training = Training(agent, rollout, env, data, config, tally, folder, asked)
        tally.add(asked)  # a model that is trained may be new after begin
        sentence = too_short(agent, config)
        if sentence:
            watch.say(sentence)
        if folder and folder.begun:
            resume(training, folder)
            if 0 < training.steps < config.steps:
                watch.say(f"The run goes on from step {training.steps:,} of {config.steps:,}.")
        if folder:
            training.boards = Boards(folder.path, training.steps, resolved.boards)
        try:
            stopped = loop.run(training, places.evaluation, watch)
        except StoppedError:
            if folder:  # the loop has saved the agent, which is sound
                agent.export(folder.path / MODEL)
            raise
        result = training.result(stopped)
        if folder:
            agent.export(folder.path / MODEL)
            write_json(folder.path / "summary.json", {**result.summary(), "records": training.recorded})
        return result
    except UsageError:
        if folder:
            folder.remove_unused()
        raise
    finally:
        if rollout:
            rollout.close()
        if folder:
            folder.close()


@contextmanager
def interruptible(signals: Sequence[int] | None = None) -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C, termination and a closed terminal into a request to save and stop; a second stops at once.

    From the first one on, no model behind a server is asked anything new. A step that needs more answers is
    given up: the run goes on from its last checkpoint, with the answers that arrived. After two seconds of
    waiting for the end of a step, or for a model to load, a sentence says so.
    """
    asked: list[int] = []
    word = threading.Timer(WORD_AFTER, _say_that_it_stops)
    word.daemon = True

    def ask(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        stopping.stop()  # what a model is asked by now may end
        if signals is None:  # else the process is a worker, and its parent speaks to the user
            word.start()

    before = {
        number: signal.signal(number, ask) for number in (stop_signals() if signals is None else signals)
    }
    try:
        yield lambda: bool(asked)
    finally:
        word.cancel()
        stopping.go_on()
        for number, handler in before.items():
            signal.signal(number, handler)


def _say_that_it_stops() -> None:
    with suppress(OSError):  # the terminal may be closed
        sys.stderr.write(
            "hunch: stopping at the end of this step, and saving; a second Ctrl-C stops at once\n"
        )
        sys.stderr.flush()
