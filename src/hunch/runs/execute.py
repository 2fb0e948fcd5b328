"""Executes a run: the only path from settings and Python objects to a result.

``hunch run``, ``hunch compare`` (here and on a cluster), ``hunch.train`` and ``--dry-run`` all call it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hunch import methods
from hunch.core import Agent, Episode, UsageError
from hunch.lm import stopping
from hunch.lm.base import LanguageModel, threads
from hunch.lm.tally import Tally
from hunch.rl.rollout import Rollout, TextEnvironment
from hunch.runs import loop
from hunch.runs.board import Boards
from hunch.runs.build import build, environments
from hunch.runs.config import RunConfig as RunConfig
from hunch.runs.config import check
from hunch.runs.fit import require_fit
from hunch.runs.folder import RunFolder, held, refuse_foreign
from hunch.runs.loop import Watch
from hunch.runs.models import Asked, Loaded, asked_by, is_ours, light, refuse_known_games
from hunch.runs.result import Result
from hunch.runs.training import Training
from hunch.runs.writing import CHECKPOINT, write_json

if TYPE_CHECKING:
    from hunch.lm.budget import Budget
    from hunch.rl.dataset import Recorded
    from hunch.runs.callbacks import Callback
    from hunch.runs.evaluations import Evaluation


@dataclass(frozen=True)
class Given:
    """Python objects that replace what the settings would make.

    Attributes:
        agent: The agent. Default: the method's.
        lm: The model of the option ``lm``.
        envs: Environments for training.
        data: Recorded episodes.
        evaluation: When and where to evaluate.
        models: Models of a given agent to count, besides those in its ``models``.
        trained: Whether the agent is needed even if the folder already has the result.
    """

    agent: Agent | None = None
    lm: LanguageModel | None = None
    envs: Sequence[TextEnvironment] | None = None
    data: Recorded | None = None
    evaluation: Evaluation | None = None
    models: Mapping[str, LanguageModel] | None = None
    trained: bool = False


NOTHING = Given()


def execute(
    config: RunConfig,
    out: str | Path | RunFolder | None = None,
    given: Given = NOTHING,
    *,
    budget: Budget | None = None,
    boards: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[dict[str, Any]], None] = lambda line: None,
) -> Result:
    """Execute a run, or resume it.

    Args:
        config: All settings. For an existing run, ``steps`` may be larger, which extends it.
        out: Its folder; if it is open already, it is closed at the end. None keeps nothing.
        given: Python objects that replace parts of the settings.
        budget: Limits on model calls; not part of the settings, so that it can be raised.
        boards: See :func:`hunch.train`.
        callbacks: See :func:`hunch.train`.
        stop: See :func:`hunch.train`.
        report: See :func:`hunch.train`.

    Raises:
        UsageError: if a setting is invalid or the folder holds another run, before anything is loaded; if an
            environment breaks its contract, a model was trained on the games to play, or has no price for a
            budget of money, before anything is written.
        HunchError: if the run fails.
    """
    check(config)
    if callbacks:
        from hunch.runs.callbacks import require_callbacks

        require_callbacks(callbacks)
    if boards:
        from hunch.runs.packages import board_of

        for board in boards:
            board_of(board)
    if not isinstance(out, str | Path | RunFolder | None):
        raise UsageError(f"out is the path of a folder, not {out!r}.")
    if out is not None:
        path = out.path if isinstance(out, RunFolder) else Path(out)
        refuse_foreign(path)
        held(path, config.settings())
        if (path / "summary.json").exists():  # most runs are new
            from hunch.runs.stored import finished

            done, wanted = finished(path), given.trained and (path / CHECKPOINT).exists()
            if done and done.requested >= config.steps and not wanted:
                return done
    places = places_of(config, given)  # all this before torch is loaded, since it may refuse
    if foreign := [env for env in places.all if not is_ours(env)]:
        from hunch.runs.contract import examine

        examine(foreign)
    own = config.specs() if given.agent is None and "agent" not in config.objects else {}
    loaded = light(spec for name, spec in own.items() if given.lm is None or name != "lm")
    with threads(config.threads):
        agent, models = _made(config, given, loaded)
        asked = Asked(agent, models, places.all)
        refuse_known_games(asked)
        if budget is not None:
            budget.check_prices([model for _, model in asked])
        folder = RunFolder(out) if isinstance(out, (str, Path)) else out
        return _run(config, asked, places, folder, budget, Watch(callbacks, stop, report, boards))


@dataclass(frozen=True)
class Places:
    """The environments, recorded episodes and evaluation of a run."""

    envs: Sequence[TextEnvironment]
    data: Sequence[Episode]
    judge: Evaluation | None

    @property
    def all(self) -> list[TextEnvironment]:
        """All environments; those of evaluations come last."""
        return [*self.envs, *(self.judge.places if self.judge else ())]


def places_of(config: RunConfig, given: Given = NOTHING) -> Places:
    """Make environments and data that are not given, and check that the method can use them.

    Raises:
        UsageError: if the method cannot use them, or there is nothing to learn from.
    """
    data: Sequence[Episode] = ()
    stored = None
    if config.data or given.data is not None:
        from hunch.runs.recorded import episodes_of

        data, stored = episodes_of(config, given.data)
    envs = [] if config.offline else list(given.envs or ())
    if not envs and not config.offline and "env" not in config.objects:
        envs = environments(config, config.streams, stored)
    judge = given.evaluation
    # a method that only learns from a data set is always evaluated, because there is nothing else to see
    if not judge and (config.eval_every or (config.offline and given.agent is None and stored is not None)):
        from hunch.runs.evaluations import planned

        judge = planned(config, given.envs or (), stored)
    places = Places(envs, data, judge)
    if not envs and not data:
        raise UsageError("There is nothing to learn from: pass an environment, recorded data, or both.")
    if {id(env.unwrapped) for env in envs} & {id(env.unwrapped) for env in places.all[len(envs) :]}:
        raise UsageError("An evaluation needs environments of its own, not those of the training.")
    if config.processes and any(map(asked_by, envs)):
        counted = "The environment asks a model, which is counted in this process"
        raise UsageError(f"{counted}: leave processes out.")
    if given.agent is None or "agent" not in config.objects:
        for env in places.all[:1]:
            require_fit(config.method, env)
        if config.offline:
            from hunch.runs.recorded import require_recorded

            require_recorded(config.method, data)
    return places


def _made(config: RunConfig, given: Given, loaded: Loaded) -> tuple[Agent, Mapping[str, LanguageModel]]:
    """Return the agent and the models to be metered besides its own."""
    if given.agent is not None:
        return given.agent, given.models or {}
    parts = {}
    if getattr(config.options, "skills", ()):
        from hunch.runs.loading import parts_of

        parts = parts_of(config)
    agent, models = build(config, lm=given.lm, loaded=loaded, parts=parts)
    return agent, models if given.models is None else given.models


def _run(
    config: RunConfig,
    asked: Asked,
    places: Places,
    folder: RunFolder | None,
    budget: Budget | None,
    watch: Watch,
) -> Result:
    """Begin the run or its rest, and go through the loop."""
    agent, rollout = asked.agent, None
    raw = methods.reads_raw(agent)
    try:
        if folder:
            folder.begin(config.record(asked))
        tally = Tally(asked)
        if budget:
            from hunch.lm.budget import Ledger

            tally = Ledger(asked, budget, folder.journal() if folder else None)
        with tally.enforced():  # the first reset may ask a model
            if places.envs:
                how: dict[str, Any] = {"raw": raw, "group": getattr(agent, "group", 1)}
                how |= {name: getattr(config, name) for name in ("task_seed", "lifetime", "processes")}
                rollout = Rollout(places.envs, config.seed, **how)
        data, env = places.data, next(iter(places.all), None)
        if data and not raw:
            from hunch.rl.dataset import without_raw

            data = without_raw(data)
        training = Training(agent, rollout, env, data, config, tally, folder, asked)
        tally.add(asked)  # a model that is trained may be new after begin
        if folder and folder.begun:
            from hunch.runs.resume import resume

            resume(training, folder)
        if folder:
            training.boards = Boards(folder.path, training.steps, watch.boards)
        result = training.result(loop.run(training, places.judge, watch))
        if folder and hasattr(agent, "export"):
            from hunch.lm.backends.folders import MODEL

            agent.export(folder.path / MODEL)
        if folder:
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
def interruptible(signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM)) -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C and termination into a request to save and stop; a second one stops at once.

    From the first one on, no model behind a server is asked anything new. A step that needs more answers is
    given up: the run goes on from its last checkpoint, with the answers that arrived.
    """
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        stopping.stop()  # what a model is asked by now may end

    before = {number: signal.signal(number, ask) for number in signals}
    try:
        yield lambda: bool(asked)
    finally:
        stopping.go_on()
        for number, handler in before.items():
            signal.signal(number, handler)
