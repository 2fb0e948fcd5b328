"""The training loop; every run enters it through :func:`hunch.runs.execute.execute`."""

from __future__ import annotations

from hunch.lm import stopping
from hunch.rl.rollout import Finished, StoppedError
from hunch.runs.callbacks import Watch, tell
from hunch.runs.checkpoints import return_free_memory
from hunch.runs.evaluations import Evaluation, evaluate
from hunch.runs.idle import flat
from hunch.runs.resume import account, limited
from hunch.runs.training import Training

LINES = 200
"""Approximate number of lines of metrics per run."""
CHECKPOINT_SECONDS = 10.0
"""Seconds between checkpoints; also the longest time until the run reacts to Ctrl-C."""
SAVING_SHARE = 0.05
"""Maximum share of a run's time that checkpoints may take."""


def run(training: Training, evaluation: Evaluation | None, watch: Watch) -> str:
    """Train until the end, a stop or a limit; return the budget or callback that ended it early, or ""."""
    try:
        if not training.tally.limited:
            return _loop(training, evaluation, watch)
        return limited(training, lambda: _loop(training, evaluation, watch))
    except KeyboardInterrupt:  # a step that waited for a model was given up
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
    steps = training.config.steps
    steps_per_line = max(1, steps // LINES)
    ended = ""
    began = training.steps
    while training.steps < steps and not ended:
        before = training.steps
        try:
            transitions, episodes = training.step()
        except StoppedError:
            watch.report(training.log())
            training.save()
            raise
        for text in training.first_answers():
            watch.say(text)
        evaluated: list[Finished] = []
        if evaluation and training.steps // evaluation.every > before // evaluation.every:
            evaluated = evaluate(training, evaluation)
        training.keep(before)
        if watch.callbacks:
            ended = tell(watch.callbacks, training, transitions, episodes, evaluated)
        passed_line = training.steps // steps_per_line > before // steps_per_line
        logged = passed_line or training.steps >= steps or bool(ended)
        due = training.due(CHECKPOINT_SECONDS, SAVING_SHARE)
        if logged:
            watch.report(training.log())
        if stopping.asked() or ((logged or due) and watch.stop()):
            break
        if due or (logged and training.tally.limited and training.due(0.0, SAVING_SHARE)):
            training.save()
            return_free_memory()
    for text in training.first_answers(final=True):
        watch.say(text)
    sentence = flat(training.flat_shares, steps)
    if began < steps <= training.steps and sentence:
        watch.say(sentence)
    training.save()
    return f"{ended} ended the run after {training.steps:,} steps." if ended else ""
