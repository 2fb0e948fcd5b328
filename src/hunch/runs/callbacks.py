"""What sees a run while it goes on: callbacks, functions, boards and a progress bar; some can end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hunch.core import Transition, UsageError
from hunch.ranges import check_value
from hunch.rl.faults import Failing
from hunch.rl.rollout import Finished
from hunch.runs.training import Training


class Callback:
    """Base class of callbacks: override the methods you need. Returning True ends the run after the step.

    ``run.agent``, ``run.steps``, ``run.episodes`` and ``run.evaluations`` show the state of the run. A
    callback must not change the agent, or the run is no longer repeatable.
    """

    def on_step(self, run: Training, transitions: Sequence[Transition]) -> bool | None:
        """Called after each pass of the loop with its transitions; offline runs have none."""

    def on_episode(self, run: Training, episode: Finished) -> bool | None:
        """Called after each training episode."""

    def on_evaluation(self, run: Training, episodes: Sequence[Finished]) -> bool | None:
        """Called after each evaluation, with the episodes of the evaluation."""


class StopAt(Callback):
    """Ends a run once the success rate reaches a target, in an evaluation or over recent episodes.

    Args:
        success: Target success rate, from 0 to 1.
        episodes: Number of latest training episodes to average over; 0 uses evaluations only.

    Raises:
        UsageError: if a number is out of range.
    """

    def __init__(self, success: float, episodes: int = 0) -> None:
        check_value("success", success, float)
        check_value("episodes", episodes, int)
        if not 0 <= success <= 1 or episodes < 0:
            raise UsageError(
                f"StopAt takes a success rate from 0 to 1 and 0 or more episodes, not {success} "
                f"and {episodes}."
            )
        self.success, self.episodes = success, episodes

    def on_episode(self, run: Training, episode: Finished) -> bool:
        """Return whether the latest training episodes reach the target."""
        recent = run.episodes[-self.episodes :] if self.episodes else []
        return 0 < self.episodes == len(recent) and self._reached(recent)

    def on_evaluation(self, run: Training, episodes: Sequence[Finished]) -> bool:
        """Return whether the evaluation reaches the target."""
        return not self.episodes and self._reached(episodes)

    def _reached(self, episodes: Sequence[Finished]) -> bool:
        rate = sum(episode.success for episode in episodes) / len(episodes)
        return rate >= self.success  # not a count: 0.56 * 50 is rounded to more than 28


def require_callbacks(callbacks: Sequence[Callback]) -> None:
    """Check that the argument is a list of callbacks.

    Raises:
        UsageError: if it is not; the message says what it is.
    """
    if isinstance(callbacks, Callback):
        raise UsageError("callbacks is a list: write callbacks=[...].")
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise UsageError(f"A callback must be a hunch.Callback, not {callback!r}.")


@dataclass(frozen=True)
class Watch:
    """What sees a run while it goes on.

        hunch.train("dqn", env, watch=hunch.Watch(callbacks=[hunch.StopAt(0.9)]))

    Attributes:
        callbacks: Called after every step, episode and evaluation; each may end the run.
        stop: Called regularly; when it returns True, the run is saved and ended.
        report: Called with each line of metrics.
        boards: Boards for metrics besides TensorBoard, as ``"wandb:PROJECT"``, ``"mlflow:EXPERIMENT"``,
            ``"trackio:PROJECT"``, or ``"MODULE:Class"`` for a :class:`hunch.runs.boards.Board` subclass.
        say: Called with what the user should read, in words: that a run goes on from a checkpoint, or learns
            nothing; and once for each role of a model, how it is asked and what it said first.
        progress: Show a progress bar. Default: only in a terminal or a notebook.
    """

    callbacks: Sequence[Callback] = ()
    stop: Callable[[], bool] = lambda: False
    report: Callable[[dict[str, Any]], None] = lambda line: None
    boards: Sequence[str] = ()
    progress: bool | None = None
    say: Callable[[str], None] = lambda text: None

    def __post_init__(self) -> None:
        require_callbacks(self.callbacks)
        if isinstance(self.boards, str):
            raise UsageError(f"boards is a list: write boards=[{self.boards!r}].")


NOBODY = Watch(progress=False)
"""Nothing sees the run."""


def tell(
    callbacks: Sequence[Callback],
    run: Training,
    transitions: Sequence[Transition],
    episodes: Sequence[Finished],
    evaluated: Sequence[Finished],
) -> str:
    """Call the callbacks after a pass of the loop; return the name of the one that ends the run, or ""."""
    ended = ""
    for callback in callbacks:
        with Failing(f"The callback {type(callback).__name__} failed after {run.steps:,} steps"):
            answers = [callback.on_step(run, transitions)]
            answers += [callback.on_episode(run, episode) for episode in episodes]
            answers += [callback.on_evaluation(run, evaluated)] if evaluated else []
        if any(answers):
            ended = ended or type(callback).__name__
    return ended
