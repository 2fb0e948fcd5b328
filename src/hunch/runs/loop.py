"""The training loop; every run enters it through :func:`hunch.runs.execute.execute`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hunch.lm import stopping
from hunch.rl.rollout import Finished, StoppedError
from hunch.runs.training import Training

if TYPE_CHECKING:
    from hunch.runs.callbacks import Callback
    from hunch.runs.evaluations import Evaluation

LINES = 200
"""Approximate number of lines of metrics per run."""
CHECKPOINT_SECONDS = 10.0
"""Seconds between checkpoints; also the longest time until the run reacts to Ctrl-C."""
SAVING_SHARE = 0.05
"""Maximum share of a run's time that checkpoints may take."""


@dataclass(frozen=True)
class Watch:
    """The observers of a run: callbacks, functions and boards.

    Attributes:
        callbacks: Called after every step, episode and evaluation; each may end the run.
        stop: Called regularly; when it returns True, the run is saved and ended.
        report: Called with each line of metrics.
        boards: Specs of boards for metrics, besides TensorBoard.
    """

    callbacks: Sequence[Callback] = ()
    stop: Callable[[], bool] = lambda: False
    report: Callable[[dict[str, Any]], None] = lambda line: None
    boards: Sequence[str] = ()


def run(training: Training, evaluation: Evaluation | None, watch: Watch) -> str:
    """Train until the end, a stop or a limit; return the budget or callback that ended it early, or ""."""
    try:
        if not training.tally.limited:
            return _loop(training, evaluation, watch)
        from hunch.runs.resume import limited

        return limited(training, lambda: _loop(training, evaluation, watch))
    except KeyboardInterrupt:  # a step that waited for a model was given up
        from hunch.runs.resume import account

        account(training)
        raise
    finally:
        if training.boards:
            training.boards.close()  # also after an error: a writer left open fails once its folder is gone


def _loop(training: Training, evaluation: Evaluation | None, watch: Watch) -> str:
    """Run until the end or a stop; return the callback that ended it, or "".

    The run is saved every ten seconds. A run with a budget may end in the middle of a step, so it is also
    saved with every line of metrics.
    """
    steps, every, ended = training.config.steps, max(1, training.config.steps // LINES), ""
    while training.steps < steps and not ended:
        before = training.steps
        try:
            transitions, episodes = training.step()
        except StoppedError:
            watch.report(training.log())
            training.save()
            raise
        judged = evaluation and training.steps // evaluation.every > before // evaluation.every
        evaluated: list[Finished] = []
        if evaluation and judged:
            from hunch.runs.evaluations import evaluate

            evaluated = evaluate(training, evaluation)
        training.keep(before)
        if watch.callbacks:
            from hunch.runs.callbacks import tell

            ended = tell(watch.callbacks, training, transitions, episodes, evaluated)
        logged = training.steps // every > before // every or training.steps >= steps or bool(ended)
        due = training.due(CHECKPOINT_SECONDS, SAVING_SHARE)
        if logged:
            watch.report(training.log())
        if stopping.asked() or ((logged or due) and watch.stop()):
            break
        if due or (logged and training.tally.limited and training.due(0.0, SAVING_SHARE)):
            training.save()
    training.save()
    return f"{ended} ended the run after {training.steps:,} steps." if ended else ""
