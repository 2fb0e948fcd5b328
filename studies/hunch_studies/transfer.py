"""Trained agents with other models in their role: the evaluations of a study, without learning."""

from __future__ import annotations

import json
import multiprocessing as mp
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hunch.core import HunchError
from hunch.rl.statistics import Estimate, over_seeds
from hunch.runs.compare import Job, folder_name
from hunch.runs.evaluate import Score, Trial, evaluate_run
from hunch.runs.files import write_atomically
from hunch.runs.processes import end_with_parent, environment, processors, thread_limits


@dataclass(frozen=True, eq=False)
class Filling:
    """A model in the role of a trained agent.

    Attributes:
        label: Label in the table.
        lm: The model.
        k: Proposals per state; with 1 only the model chooses.
        options: Other changed options of the method.
    """

    label: str
    lm: str
    k: int
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Transfer:
    """Evaluations of the trained agents of a part.

    Attributes:
        fillings: The rows of the table.
        episodes: Episodes per evaluation.
        unseen: Options of the environment for other tasks than those of the training; None if there are none.
    """

    fillings: tuple[Filling, ...]
    episodes: int
    unseen: dict[str, Any] | None = None

    def tries(self, runs: Sequence[Job], folder: Path) -> list[Try]:
        """Return all evaluations, seed by seed."""
        places = {"seen": {}, "unseen": self.unseen}
        return [
            Try(filling, place, run, self._trial(filling, env_options, run), folder)
            for run in runs
            for filling in self.fillings
            for place, env_options in places.items()
            if env_options is not None
        ]

    def _trial(self, filling: Filling, env_options: dict[str, Any], run: Job) -> Trial:
        return Trial(
            run=run.folder,
            lm=filling.lm,
            options={"k": filling.k, **filling.options},
            env_options=env_options,
            episodes=self.episodes,
        )


@dataclass(frozen=True, eq=False)
class Try:
    """One evaluation of one run."""

    filling: Filling
    place: str
    run: Job
    trial: Trial
    folder: Path

    @property
    def out(self) -> Path:
        """Folder of the evaluation."""
        line = folder_name(f"{self.filling.label} k {self.filling.k}")
        return self.folder / "evaluations" / line / self.place / f"seed-{self.run.seed}"

    def __str__(self) -> str:
        return f"{self.filling.label}, k = {self.filling.k}, {self.place} tasks, seed {self.run.seed}"


@dataclass(frozen=True)
class Line:
    """One model over its seeds: interquartile mean of the success rates, and 95 % bootstrap interval."""

    prior: str
    k: int
    model: str
    evidence: str
    seeds: int
    seen: Estimate
    unseen: Estimate | None
    calls: int
    hits: int
    tokens: int
    seconds: float


def run_evaluations(
    transfer: Transfer,
    runs: Sequence[Job],
    folder: Path,
    workers: int | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> tuple[str, list[str]]:
    """Execute the evaluations that are not on disk yet, and write their table.

    Args:
        transfer: The evaluations.
        runs: Finished runs whose agents are evaluated.
        folder: Folder of the part; evaluations are kept below it.
        workers: Processes at a time. Default: the number of processors.
        report: Called with a line on each evaluation.

    Returns:
        The table's section of the page, and a sentence on each evaluation that failed.

    Raises:
        KeyboardInterrupt: on Ctrl-C, once the evaluations in progress have ended.
    """
    scores: dict[Try, Score] = {}
    failures = []
    for tried, score in _played(transfer.tries(runs, folder), workers or processors()):
        if isinstance(score, Score):
            scores[tried] = score
        else:
            failures.append(f"{tried}: {score}")
        report(f"{tried}: {score if isinstance(score, str) else f'success {score.success}'}")
    return section(transfer, lines(transfer, scores), folder), failures


def _played(tries: Sequence[Try], workers: int) -> Iterator[tuple[Try, Score | str]]:
    """Evaluate side by side; yield each score, or the reason why there is none, as soon as it is known."""
    context = mp.get_context("forkserver")
    with environment(thread_limits(1)), ProcessPoolExecutor(workers, context, _begin) as pool:
        waiting = {pool.submit(evaluate_run, tried.trial, tried.out): tried for tried in tries}
        try:
            for future in as_completed(waiting):
                error = future.exception()
                yield waiting[future], future.result() if error is None else _sentence(error)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _begin() -> None:
    """Prepare a worker: Ctrl-C reaches all processes, and only the parent acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _sentence(error: BaseException) -> str:
    return str(error) if isinstance(error, HunchError) else f"{type(error).__name__}: {error}"


def lines(transfer: Transfer, scores: dict[Try, Score]) -> list[Line]:
    """Return one row per model, in the order of the study; models without evaluations are left out."""
    found = []
    for filling in transfer.fillings:
        own = {tried: score for tried, score in scores.items() if tried.filling is filling}
        if own:
            found.append(_line(filling, own))
    return found


def _line(filling: Filling, scores: dict[Try, Score]) -> Line:
    def rate(place: str) -> Estimate | None:
        rates = [score.success.value for tried, score in scores.items() if tried.place == place]
        return over_seeds(rates) if rates else None

    def total(*names: str) -> int:
        return int(sum(score.usage.get(name, 0) for score in scores.values() for name in names))

    nowhere = Estimate(float("nan"), float("nan"), float("nan"))
    return Line(
        prior=filling.label,
        k=filling.k,
        model=filling.lm,
        evidence=next(iter(scores.values())).evidence or "-",
        seeds=len({tried.run.seed for tried in scores}),
        seen=rate("seen") or nowhere,
        unseen=rate("unseen"),
        calls=total("calls"),
        hits=total("cache_hits"),
        tokens=total("prompt_tokens", "completion_tokens"),
        seconds=round(sum(score.seconds for score in scores.values()), 3),
    )


def section(transfer: Transfer, table: Sequence[Line], folder: Path) -> str:
    """Write the table as JSON, and return its section of the page."""
    plain = [asdict(line) for line in table]
    write_atomically(folder / "transfer.json", (json.dumps(plain, indent=2) + "\n").encode())
    head = "| prior | k | model | evidence | seen | unseen | model calls | tokens | minutes |"
    rows = [
        f"| {x.prior} | {x.k} | `{x.model}` | {x.evidence} | {x.seen} | {x.unseen or '-'} | {x.calls:,} "
        f"| {x.tokens:,} | {x.seconds / 60:.1f} |"
        for x in table
    ]
    return (
        f"The trained Q with others in the prior's role, {transfer.episodes} episodes per evaluation, from "
        "which nothing is learnt, and all proposals drawn anew: success over the same seeds, on the tasks "
        "trained on and on others. k = 1 is the prior alone.\n\n"
        + "\n".join([head, "|---" * 9 + "|", *rows, ""])
    )
