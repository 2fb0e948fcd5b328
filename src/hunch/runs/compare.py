"""Compares methods: same environments, same steps, paired seeds, one process per run.

A comparison of a method with a language model can include controls: the same method with an uninformed model;
where a model proposes actions, with a model that only compares words; and on request with the same model
after the blank prompt. Controls show whether the *model* helped, and not only the loop or the rule around it.
"""

from __future__ import annotations

import multiprocessing as mp
import re
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from hunch import lm, methods
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.lm.backends.secret import without_keys
from hunch.lm.budget import Budget
from hunch.methods import Method
from hunch.printable import printable
from hunch.rl.workers import without_main
from hunch.runs.callbacks import NOBODY, Watch
from hunch.runs.config import prior_of, way_of, with_blank_prompt, with_words
from hunch.runs.differences import leaves
from hunch.runs.execute import RunConfig, execute, interruptible
from hunch.runs.files import last_line, read_json, write_atomically
from hunch.runs.folder import FAILURE, JOURNAL, RunFolder, held, require_folder
from hunch.runs.processes import (
    end_with_parent,
    environment,
    leave_signals_to_parent,
    processors,
    thread_limits,
)
from hunch.runs.resolve import Resolved, resolve
from hunch.runs.result import Result
from hunch.runs.stored import finished
from hunch.warned import warn

LEXICAL = ("words", "tfidf", "random-words", "bag-of-words")
"""Models that only compare words; the first one is the lexical control of comparisons."""
BLANK = ", blank prompt"
"""How the label of a model's arm with the blank prompt ends."""
RULES = ("uniform", "scripted")
"""Models that are no language models; the first one is the uninformed control."""
SEED = "seed"
"""Value of an environment option that stands for the run's seed, as in ``--env.pool_seed seed``."""
PRELOADED = ("hunch.runs.execute", "torch")
"""Modules that are imported once for all runs."""


def folder_name(label: str) -> str:
    """Return a label as a valid name of a folder."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


@dataclass(frozen=True, eq=False)
class Arm:
    """One method or control of a comparison: a label, and settings of a run without the seed."""

    label: str
    config: RunConfig

    @property
    def folder(self) -> str:
        """Name of the folder with the runs of this method or control."""
        return folder_name(self.label)

    @property
    def method(self) -> Method | None:
        """The method; None if the agent was made in Python."""
        return None if "agent" in self.config.objects else methods.find(self.config.method)

    @property
    def model(self) -> str:
        """Name of the model that fills the role, for tables."""
        if self.config.lm or self.method is None:
            return self.config.lm or "none"
        return self.method.lm or ("its own" if self.method.takes_lm else "none")

    @property
    def backends(self) -> list[lm.Backend]:
        """The kinds of the models that a run uses, as far as they are known."""
        if self.method is None:
            return []
        specs = self.method.specs(self.config.options or self.method.config_class(), self.config.lm)
        heads = [spec.partition("?")[0].partition(":")[0] for spec in specs.values()]
        return [lm.kinds()[head] for head in heads if head in lm.kinds()]

    @property
    def similar(self) -> bool:
        """True if the prior uses the similarity of a model that is not in :data:`LEXICAL`.

        This is decided without loading the model: ``auto`` means similarity for models that can only embed.
        """
        way = way_of(self.config.options)
        known = lm.kinds().get(self._head)
        embeds = way == "similarity" or (way == "auto" and known is not None and known.verbs == {"embed"})
        return embeds and self._head not in LEXICAL

    @property
    def proposes(self) -> bool:
        """True if a model is asked as the action prior that is neither a rule nor one of :data:`LEXICAL`."""
        prior = prior_of(self.config.options)
        return prior is not None and prior.asks_model and not self.rules and self._head not in LEXICAL

    @property
    def rules(self) -> bool:
        """True if the model is one of :data:`RULES`."""
        return self._head in RULES

    @property
    def _head(self) -> str:
        """The kind of model, or its name, without its options."""
        spec = self.config.lm or (self.method.lm if self.method else "")
        return spec.partition("?")[0].partition(":")[0]

    def at(self, seed: int) -> RunConfig:
        """Return the settings of the run with a seed, also in environment options that name :data:`SEED`."""
        options = self.config.env_options
        with_seed = {name: seed if value == SEED else value for name, value in options.items()}
        return replace(self.config, seed=seed, env_options=with_seed)


@dataclass(frozen=True, eq=False)
class Job:
    """One run of a comparison.

    Attributes:
        arm: The method or control.
        seed: The seed of the run.
        folder: The folder of the run.
        boards: Specs of boards for its metrics.
    """

    arm: Arm
    seed: int
    folder: Path
    boards: tuple[str, ...] = ()

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self.arm.at(self.seed)

    @cached_property
    def resolved(self) -> Resolved:
        """The settings with what they stand for; a process that gets the job does not look it up again.

        Raises:
            UsageError: if a setting is wrong.
        """
        return resolve(self.config, self.boards)


@dataclass(frozen=True)
class Outcome:
    """The end of a job: a result, or the reason why there is none, such as a reached budget."""

    job: Job
    result: Result | None
    reason: str = ""
    stopped: bool = False


def by_arm(outcomes: Iterable[Outcome]) -> dict[Arm, dict[int, Result]]:
    """Return the results by arm and seed, in the order of the comparison, without arms that have none."""
    results: dict[Arm, dict[int, Result]] = {}
    for outcome in outcomes:
        if outcome.result:
            results.setdefault(outcome.job.arm, {})[outcome.job.seed] = outcome.result
    return results


def arms(configs: Sequence[RunConfig], *, control: bool = True, blank: bool = False) -> list[Arm]:
    """Label the runs to compare, and add the control of each method that has one.

    A method with several models is labelled by its name for the first one, and by both names for the others.

    Args:
        configs: The settings of each method with each of its models.
        control: Add each method with an uninformed model, and an action prior with one that knows words only.
        blank: Add each method and model with the blank prompt.

    Raises:
        UsageError: if a method or a model is named twice, or no method has a blank prompt.
    """
    pairs = [(config.method, config.lm) for config in configs]
    if len(set(pairs)) < len(pairs):
        raise UsageError("A method, or a model, can be named only once in a comparison.")
    by_method: dict[str, list[Arm]] = {}
    for config in configs:
        alike = by_method.setdefault(config.method, [])
        alike.append(Arm(f"{config.method}, {config.lm}" if alike else config.method, config))
    listed = [arm for alike in by_method.values() for arm in alike]
    if blank:
        blanks = [_blank(arm) for arm in listed]
        if not any(blanks):
            raise UsageError(
                "No method here has a blank prompt beside the usual one: leave --blank-control out."
            )
        listed += [arm for arm in blanks if arm is not None]
    return listed + [arm for alike in by_method.values() if control for arm in _controls(alike)]


def _controls(alike: Sequence[Arm]) -> Iterator[Arm]:
    """Yield the controls of a method that fills a role with the models of these arms."""
    first = alike[0]
    models = {arm.config.lm for arm in alike}
    label = first.method.control if first.method else ""
    if not label or models == {"uniform"}:
        return
    if "uniform" not in models:
        yield Arm(f"{first.config.method}, {label}", replace(first.config, lm="uniform"))
    if LEXICAL[0] not in models and any(arm.similar or arm.proposes for arm in alike):
        similar = any(arm.similar for arm in alike)
        options = first.config.options if similar else with_words(first.config.options)
        words = replace(first.config, lm=LEXICAL[0], options=options)
        yield Arm(f"{first.config.method}, {LEXICAL[0]}", words)


def _blank(arm: Arm) -> Arm | None:
    """Return an arm with the blank prompt; None if it asks no model or has it already."""
    options = with_blank_prompt(arm.config.options)
    if options is None or arm.model == "none" or arm.rules:
        return None
    return Arm(f"{arm.label}{BLANK}", replace(arm.config, options=options))


def jobs(listed: Sequence[Arm], seeds: int, out: Path, boards: tuple[str, ...] = ()) -> list[Job]:
    """Return all runs of a comparison, seed by seed, so that early results are paired.

    Raises:
        UsageError: if two labels give the same folder.
    """
    label_of: dict[str, str] = {}
    for arm in listed:
        other = label_of.setdefault(arm.folder, arm.label)
        if other != arm.label:
            raise UsageError(
                f"{other!r} and {arm.label!r} would share the folder {arm.folder}, whose name has only "
                "letters and digits: compare them in two commands, each with its own --out."
            )
    todo: list[Job] = []
    for seed in range(seeds):
        todo += [Job(arm, seed, out / arm.folder / f"seed-{seed}", boards) for arm in listed]
    return todo


def compare(
    todo: Sequence[Job],
    *,
    workers: int | None = None,
    budget: Budget | None = None,
    watch: Callable[[dict[Job, dict[str, Any]]], None] = lambda lines: None,
) -> list[Outcome]:
    """Execute all runs, several in parallel; the failure of one run does not stop the others.

    Args:
        todo: The runs.
        workers: Number of parallel processes. Default: the number of processors.
        budget: Limits on model calls of all runs together. A run that reaches one is saved and stopped; runs
            that need no more calls continue.
        watch: Called several times per second, and when a run ends, with the latest line of metrics of each
            run; for a run without metrics yet, the line is empty.

    Raises:
        KeyboardInterrupt: on Ctrl-C, after every run in progress was saved.
    """
    workers = processors() if workers is None else max(1, workers)
    waiting = missing(todo)
    begun: dict[Job, BaseProcess] = {}
    context = prepared(waiting) if waiting else None
    budget_of: dict[Job, Budget] = {}
    if budget and waiting:
        budget_of = dict(zip(todo, shares(budget, [job.folder for job in todo], context), strict=True))
    running: list[BaseProcess] = []
    ending: set[BaseProcess] = set()
    with interruptible() as stop:
        while (waiting and not stop()) or running:
            if stop():
                _end(running, ending)
            while waiting and len(running) < workers and not stop():
                job = waiting.pop(0)
                begun[job] = _start(context, job, budget_of.get(job))
                running.append(begun[job])
            running = [process for process in running if process.is_alive()]
            watch({job: {} for job in begun} | progress(todo))
            if running:
                wait([process.sentinel for process in running], timeout=0.3)
        if stop():
            raise KeyboardInterrupt
    return [outcome(job, begun[job].exitcode if job in begun else None) for job in todo]


def prepared(todo: Sequence[Job]) -> Any:
    """Start the process that imports the libraries for all runs, unless it exists; do not wait for it.

    On systems without fork, each run imports its libraries itself.
    """
    if "forkserver" not in mp.get_all_start_methods():
        return mp.get_context("spawn")
    context = mp.get_context("forkserver")
    imports = [module for job in todo for module in _imports(job.arm)]
    context.set_forkserver_preload(list(dict.fromkeys([*PRELOADED, *imports])))
    with environment(thread_limits(max(job.config.threads for job in todo))), without_main():
        forkserver.ensure_running()
    return context


def _imports(arm: Arm) -> list[str]:
    """Return what takes a run seconds to import: what its models need, and torch's optimizers."""
    learns = any(name.endswith("learning_rate") for name in leaves(arm.config.settings()))
    optimizers = ["torch._dynamo"] if learns else []
    return [*optimizers, *(module for backend in arm.backends for module in backend.imports)]


def _turn(job: Job) -> tuple[int, bool]:
    """Return the key by which runs begin: seed by seed, and those whose model writes first, the longest."""
    writes = any(backend.costly and "generate" in backend.verbs for backend in job.arm.backends)
    return job.seed, not writes


def refuse_run(out: Path) -> None:
    """Check that a folder is neither the folder of a run nor the current folder.

    Raises:
        UsageError: if it is one of these.
    """
    if out == Path():
        raise UsageError("A comparison needs its own folder, not the current one: set it with --out.")
    require_folder(out)
    if any((out / name).exists() for name in ("config.json", "checkpoint", "metadata.json")):
        raise UsageError(f"{out} is the folder of a run or a data set: choose another --out.")


def refuse_others(todo: Sequence[Job]) -> None:
    """Check that existing folders hold runs with the same settings; a damaged folder only fails its run.

    Raises:
        UsageError: if a folder holds another run.
    """
    for job in todo:
        try:
            held(job.folder, job.config.settings())
        except UsageError:
            raise
        except HunchError:  # reported when the run begins
            continue


def unfinished(todo: Iterable[Job]) -> list[Job]:
    """Return the unfinished runs, in the order in which they start."""
    return sorted((job for job in todo if outcome(job).result is None), key=_turn)


def missing(todo: Iterable[Job]) -> list[Job]:
    """Return the unfinished runs in the order in which they start, and delete reports of earlier failures."""
    left = unfinished(todo)
    for job in left:
        (job.folder / FAILURE).unlink(missing_ok=True)
    return left


def progress(todo: Sequence[Job]) -> dict[Job, dict[str, Any]]:
    """Return the latest line of metrics of each run that has one."""
    lines: dict[Job, dict[str, Any]] = {}
    for job in todo:
        line = last_line(job.folder / "metrics.jsonl")
        if line:
            lines[job] = line
    return lines


def _start(context: Any, job: Job, budget: Budget | None) -> BaseProcess:
    process: BaseProcess = context.Process(target=_work, args=(job, budget), daemon=False)
    limits = thread_limits(job.config.threads)
    with environment(limits), without_main():  # the fork server starts with the first process
        try:
            process.start()
        except (EOFError, OSError) as error:
            raise HunchError(
                "No process can be started for a run: there may be too little memory, or too many processes. "
                "The same command goes on."
            ) from error
    return process


def _end(processes: Iterable[BaseProcess], ending: set[BaseProcess]) -> None:
    """Ask running processes once to save and stop; ``ending`` holds those that were asked."""
    for process in processes:
        if process.is_alive() and process not in ending:
            ending.add(process)
            process.terminate()


def _work(job: Job, budget: Budget | None) -> None:
    """Execute a run in a separate process, which ends at once when the comparison has ended."""
    warnings.showwarning = warn
    leave_signals_to_parent()  # the comparison ends its workers by SIGTERM
    end_with_parent()
    with interruptible((signal.SIGTERM,)) as stop:
        attempt(job, job.folder, job.folder, budget, Watch(stop=stop))


def attempt(
    job: Job,
    path: Path,
    out: Path | RunFolder,
    budget: Budget | None = None,
    watch: Watch = NOBODY,
) -> None:
    """Execute one run; if it fails, write the reason to its folder as one sentence."""
    try:
        execute(job.resolved, out, budget=budget, watch=watch)
    except KeyboardInterrupt:
        return
    except Exception as error:  # any failure of a run is reported in its folder
        reason = str(error) if isinstance(error, HunchError) else f"{type(error).__name__}: {error}"
        reason = printable(without_keys(reason))
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_atomically(path / FAILURE, reason.encode())
        except (HunchError, OSError):  # the disk may be full
            warnings.warn(f"The run in {path} failed: {reason}", HunchWarning, stacklevel=2)


def outcome(job: Job, exitcode: int | None = None) -> Outcome:
    """Return how a job ended, as its folder shows; ``exitcode`` is negative for a signal."""
    failure = job.folder / FAILURE
    try:
        if failure.exists():
            return Outcome(job, None, failure.read_text(encoding="utf-8", errors="replace"))
        result, summary = finished(job.folder), read_json(job.folder / "summary.json")
    except HunchError as damage:
        return Outcome(job, None, str(damage))
    if result is not None and result.requested < job.config.steps:  # of a shorter run, which goes on
        result = summary = None
    if result is not None:
        return Outcome(job, result)
    if exitcode is not None and exitcode < 0:  # the summary is then that of an earlier session
        return Outcome(job, None, f"its process was killed by {signal.Signals(-exitcode).name}")
    if summary is not None and summary.get("stopped"):
        return Outcome(job, None, summary["stopped"], stopped=True)
    return Outcome(job, None, "its process ended before the run did")


# ---- one budget for all runs -----------------------------------------------------------------------------

SPENT = ("calls", "prompt_tokens", "completion_tokens", "cost", "seconds")
"""What counts towards a budget, by the names of :class:`hunch.lm.Usage`."""


@dataclass(frozen=True, kw_only=True)
class SharedBudget(Budget):
    """A budget that several processes share.

    Attributes:
        spent: What each process has spent, in shared memory: one row of ``SPENT`` per process.
        row: Index of this process's row.
    """

    spent: MutableSequence[float]
    row: int

    def check(self, usage: Mapping[str, float], requests: int) -> None:
        """Record the usage and the planned requests of this process, and check the sum over all processes.

        See :class:`hunch.lm.budget.Budget`.
        """
        self.settle({**usage, "calls": usage["calls"] + requests})
        rows = list(self.spent[:])
        total = {name: sum(rows[i :: len(SPENT)]) for i, name in enumerate(SPENT)}
        super().check({**total, "calls": total["calls"] - requests}, requests)

    def settle(self, usage: Mapping[str, float]) -> None:
        """Record the usage of this process."""
        start = self.row * len(SPENT)
        self.spent[start : start + len(SPENT)] = [float(usage[name]) for name in SPENT]

    def check_prices(self, models: Sequence[object]) -> None:
        """Do nothing: the parent process has checked the prices."""


def shares(budget: Budget, folders: Sequence[Path], context: Any) -> list[SharedBudget]:
    """Return a budget for each run, whose row starts with the usage of earlier sessions."""
    earlier = [_spent(folder) for folder in folders]
    spent = context.Array("d", [usage.get(name, 0.0) for usage in earlier for name in SPENT])
    return [SharedBudget(**asdict(budget), spent=spent, row=row) for row in range(len(folders))]


def _spent(folder: Path) -> dict[str, float]:
    """Return the usage of a run so far; one that was killed has no summary, but lines of metrics."""
    summary = journal = None
    with suppress(HunchError):  # damage is reported when the run begins
        summary = read_json(folder / "summary.json")
        journal = read_json(folder / JOURNAL)
    figures = summary or last_line(folder / "metrics.jsonl") or {}
    usage: dict[str, float] = figures.get("usage", {})
    noted = list((journal or {}).values())
    return {name: max(usage.get(name, 0.0), sum(row.get(name, 0.0) for row in noted)) for name in SPENT}
