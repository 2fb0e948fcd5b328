"""The ladder: which model, asked in which way, is good for which role?

Every role of the audition is asked of every model (a *rung*), in every way that the model has, with its usual
prompt and with the blank prompt, which leaves out objective, task and manual. A *cell* is one such
combination. A pilot asks each cell a few questions; the two best ways of a role and model are asked many
others, which no choice was made on. An uninformed stand-in and one that knows words only answer the same
questions.

    hunch study ladder                                    # all cells that are missing, then table and picture
    hunch study ladder --rung smollm2="hf:FILE.gguf?chat=true&batch=64" --workers 8 --no-table
    hunch study ladder --repeat                           # reads the recorded answers again, without a model
    hunch study ladder --repeat --renew                   # and keeps what today's code makes of them

A cell is a file of its own, written once it is complete, and a file of the answers beside it. So cells can be
made by several processes and on several machines, and put together by copying the files. How answers are read
is the audition's code, and ``--repeat`` applies it to the recorded answers.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tarfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import islice
from lzma import LZMAError
from math import isnan, nan
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.audition import submission
from hunch.audition.hearing import UNINFORMED, put
from hunch.audition.placing import placed_in
from hunch.audition.question import Bed, Manner, Role, Scores, resampled, totals
from hunch.audition.roles import ROLES, role_named
from hunch.audition.submission import Submission
from hunch.cli.options import read
from hunch.core import FloatArray, HunchError, UsageError
from hunch.lm.answers.cache import Cached
from hunch.lm.answers.question import Answering, Question
from hunch.lm.answers.store import Store
from hunch.lm.answers.stored import decode, encode
from hunch.lm.base import Backend, LanguageModel, Model
from hunch.lm.registry import answers as stored_answers
from hunch.lm.registry import build, check_spec, load
from hunch.lm.ways import WAYS, Way
from hunch.ranges import NonNegativeInt, PositiveInt, check_settings
from hunch.rl.calibration import calibration_error, error_by_chance, reliability
from hunch.runs.files import write_atomically
from hunch.runs.processes import end_with_parent, environment, stoppable, thread_limits
from hunch_studies.study import Study

RUNGS: Final[Mapping[str, str]] = {
    "minilm": "minilm",
    "mpnet": "mpnet",
    "smollm2": "smollm2",
    "qwen-coder-0.5b": "qwen-coder-0.5b",
    "qwen-coder-1.5b": "qwen-coder-1.5b",
}
"""The models, from small to large, and their specs. ``gemma3-270m`` may be added with ``--rung``; its answers
are not published."""
WORDS: Final = "words"
STAND_INS: Final = (UNINFORMED, WORDS)
ARCHIVE_OF_STAND_INS: Final = "stand-ins"
"""Ends the name of the archive of both."""
ASKED: Final = tuple(role for role in ROLES if role.name != "policy")
"""A policy is asked what a prior is asked, and has the same answers."""
TOKENS: Final[Mapping[str, int]] = {
    "prior": 48,
    "judge": 48,
    "preference": 48,
    "goal": 64,
    "planner": 32,
    "world-model": 100,
    "writer": 512,
    "formaliser": 96,
    "text-judge": 48,
}
"""Maximum tokens of a written answer, by role: small models come to no end by themselves (ours)."""
PILOT: Final = 20
FULL: Final = 100
BEST: Final = 2
"""Ways of a role and model that are asked the full number of questions."""
SEEDS: Final[Mapping[str, int]] = {"pilot": 0, "full": 1}
"""Of the questions. Those of the full number are others, so that the choice of a way does not flatter it."""
CELLS: Final = "cells"
ANSWERS: Final = "answers"


class Cell(NamedTuple):
    """A role, a model and a manner of asking.

    Attributes:
        stage: ``pilot`` or ``full``.
        role: Name of the role.
        rung: Name of the model; one of :data:`STAND_INS` for a stand-in.
        way: The way of asking; empty for a stand-in.
        blank: True for the blank prompt.
    """

    stage: str
    role: str
    rung: str
    way: str = ""
    blank: bool = False

    @property
    def file(self) -> str:
        """Name of the cell's files, without ending."""
        parts = (self.stage, self.role, self.rung, self.way, "blank" if self.blank else "")
        return "--".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class LadderOptions:
    """Options of ``hunch study ladder``."""

    out: Path = Path("runs/study-ladder")
    """Folder of the cells; cells that are there are not asked again."""
    rung: tuple[str, ...] = ()
    """Models, as NAME or NAME=SPEC. Default: minilm, mpnet, smollm2, qwen-coder-0.5b and qwen-coder-1.5b."""
    roles: tuple[str, ...] = ()
    """Only these roles."""
    ways: tuple[Way, ...] = ()
    """Only these ways of asking."""
    pilot: PositiveInt = PILOT
    """Questions of each cell."""
    full: NonNegativeInt = FULL
    """Questions of the two best ways of each role and model; 0 for none."""
    workers: PositiveInt = 1
    """Processes that ask side by side, each with a model of its own."""
    cache: bool = True
    """Look answers up in the user's cache, and keep them there: an interrupted cell goes on."""
    table: bool = True
    """Write the table and the picture."""
    repeat: bool = False
    """Read the recorded answers again, without a model, and compare the scores."""
    renew: bool = False
    """With --repeat: store the scores of today's code."""
    pack: Path | None = None
    """Folder in which to write an archive of the cells and answers of each model."""
    unpack: tuple[Path, ...] = ()
    """Archives whose cells to add first."""
    add: tuple[Path, ...] = ()
    """Files of 'hunch audition --submit', whose rows to show in a table of their own."""


# ---- one cell ---------------------------------------------------------------------------------------------


def beds_of(role: Role) -> tuple[Bed, ...]:
    """Return the environments of a role whose questions are texts."""
    _, beds, _ = placed_in(role, None, {}, ())
    return tuple(bed for bed in beds if "see" not in bed.needs)


def questions(role: Role, n: int, stage: str) -> list[tuple[Bed, Any]]:
    """Draw n questions of a role, spread over its environments."""
    beds = beds_of(role)
    drawn = []
    for i, bed in enumerate(beds[:n]):
        share = n // len(beds) + (i < n % len(beds))
        drawn.append((bed, role.draw(bed, share, SEEDS[stage])))
    return drawn


class Recorder(Cached):
    """A model that remembers all of its answers, to be recorded with a cell."""

    def __init__(self, model: LanguageModel, store: Store | None) -> None:
        super().__init__(model, store)
        self.said: dict[Question, Any] = {}

    def _answers(self, asked: list[Question]) -> dict[Question, Any]:
        known = super()._answers(asked)
        self.said |= known
        return known


class Loaded(NamedTuple):
    """A model without cache and meter, and its kind."""

    backend: Backend
    model: LanguageModel


_loaded: dict[str, Loaded] = {}
"""The model of this process by its spec: one at a time, because each takes memory."""


def model_of(spec: str) -> Loaded:
    """Return a model, loaded once in a process as long as no other is asked for."""
    if spec not in _loaded:
        _loaded.clear()
        _loaded[spec] = Loaded(*build(spec, {}))
    return _loaded[spec]


def offered(spec: str) -> tuple[dict[str, tuple[Way, ...]], str]:
    """Return the ways in which each role can ask a model, and the model's revision."""
    model = model_of(spec).model
    ways = {role.name: role.ways_of(model) if set(role.verbs) & model.verbs else () for role in ASKED}
    return ways, model.revision


def read_cell(file: Path) -> dict[str, Any]:
    """Return the scores of a cell.

    Raises:
        HunchError: if the file is damaged.
    """
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        if not {*Cell._fields, "questions", "beds"} <= {*result}:
            raise ValueError("it does not hold what a cell holds")
    except (ValueError, TypeError) as error:
        raise HunchError(
            f"{file} cannot be read as a cell: {error}. Without this file, the same command asks it again."
        ) from error
    return dict(result)


def of_another_model(folder: Path, rung: str, revision: str) -> str:
    """Return a sentence if cells of a rung are of another model than its spec names; empty if none are."""
    others = [
        result
        for file in sorted((folder / CELLS).glob(f"*--{rung}--*.json"))
        if (result := read_cell(file))["rung"] == rung and result["model"]["revision"] != revision
    ]
    if not others:
        return ""
    return (
        f"{rung}: {len(others)} cells in {folder} are of another model, {others[0]['spec']} (revision "
        f"{others[0]['model']['revision']}), and are not asked again: another name keeps the two apart."
    )


def ask(cell: Cell, spec: str, n: int, folder: Path, cache: bool) -> str:
    """Ask the questions of a cell, and write its files; return a line about it.

    Args:
        cell: The cell.
        spec: The model's spec; empty for a stand-in.
        n: Number of questions.
        folder: Folder of the study.
        cache: Use the user's cache of answers.

    Raises:
        HunchError: if the model fails.
    """
    start = time.perf_counter()
    role = role_named(cell.role)
    drawn = questions(role, n, cell.stage)
    result: dict[str, Any] = {**cell._asdict(), "questions": n}
    if cell.rung in STAND_INS:
        result["beds"] = [stand_in(cell, role, bed, asked) for bed, asked in drawn]
    else:
        backend, bare = model_of(spec)
        model = Recorder(bare, stored_answers(backend) if cache else None)
        result |= {"spec": public(spec), "model": traits(model, cell.rung)}
        result["beds"] = [put_to(model, cell, role, bed, asked) for bed, asked in drawn]
        _record(folder / ANSWERS / f"{cell.file}.jsonl", cell.rung, model)
    result["seconds"] = round(time.perf_counter() - start, 2)
    write_atomically(folder / CELLS / f"{cell.file}.json", json.dumps(result).encode())
    scores = scores_of(result)
    said = "could not be asked" if scores is None else f"{scores.ability:.2f}"
    return f"{cell.file}: {said}, {result['seconds']:.0f} s"


def put_to(model: LanguageModel, cell: Cell, role: Role, bed: Bed, asked: Any) -> dict[str, Any]:
    """Put the questions of one environment to a model, and return the scores as plain values."""
    manner = Manner(way_named(cell.way), cell.blank, TOKENS.get(cell.role))
    answered = put(role, bed, model, asked, SEEDS[cell.stage], manner)
    told = {"why": answered.why, "unread": answered.unread, "usage": dict(answered.usage)}
    return {"env": bed.env, **told, **plain_scores(answered.scores)}


def stand_in(cell: Cell, role: Role, bed: Bed, asked: Any) -> dict[str, Any]:
    """Return the scores of a stand-in in one environment as plain values."""
    seed = SEEDS[cell.stage]
    scores: Scores | None
    if cell.rung == WORDS and not isinstance(role.lexical, str):
        scores, why = role.lexical(asked, seed), ""
    else:
        spec = UNINFORMED if cell.rung == UNINFORMED else str(role.lexical)
        answered = put(role, bed, load(spec, cache=None), asked, seed)
        scores, why = answered.scores, answered.why
    return {"env": bed.env, "why": why, "unread": 0.0, "usage": {}, **plain_scores(scores)}


def plain_scores(scores: Scores | None) -> dict[str, Any]:
    """Return scores as plain values; none where there are none."""
    if scores is None:
        return {"values": []}
    stated = {} if scores.stated is None else {"stated": _rounded(scores.stated)}
    came = {} if scores.came is None else {"came": _rounded(scores.came)}
    alike = {} if scores.alike is None else {"alike": [int(number) for number in scores.alike]}
    return {
        "values": _rounded(scores.values),
        "groups": [int(group) for group in scores.groups],
        "columns": {name: None if isnan(x) else round(float(x), 4) for name, x in scores.columns.items()},
        **stated,
        **came,
        **alike,
    }


def _rounded(values: FloatArray) -> list[float]:
    return [round(float(x), 6) for x in values]


def way_named(name: str) -> Way:
    """Return the way of this name."""
    for way in WAYS:
        if way == name:
            return way
    raise UsageError(f"There is no way of asking {name!r}; there are {', '.join(WAYS)}.")


def public(spec: str) -> str:
    """Return a spec without the folders of a file: what others can read and repeat."""
    head, mark, options = spec.partition("?")
    kind, colon, name = head.partition(":")
    known = name.rpartition("/")[2] if name.endswith(".gguf") or name.startswith(("/", ".", "~")) else name
    return f"{kind}{colon}{known}{mark}{options}"


TRAITS: Final = ("revision", "evidence", "dim", "context", "answer_tokens", "thinks", "best_way", "speaks")


def traits(model: LanguageModel, rung: str) -> dict[str, Any]:
    """Return what a recording must know of its model to be asked as the model was."""
    values = {name: getattr(model, name, None) for name in TRAITS}
    takes = sorted(getattr(model, "takes", ()))
    weights = getattr(getattr(model, "model", model), "parameters", 0)
    return {"name": rung, **values, "verbs": sorted(model.verbs), "takes": takes, "parameters": weights}


def _record(file: Path, rung: str, model: Recorder) -> None:
    """Write the answers as ``hunch cache export`` does; embeddings are left out, because they are large."""
    origin = {"model": rung, "revision": model.revision, "evidence": model.evidence}
    lines = [
        json.dumps(
            {
                **origin,
                "verb": question.verb,
                "request": question.request,
                "sample": question.sample,
                "value": json.loads(encode(question.verb, answer)),
            }
        )
        for question, answer in model.said.items()
        if question.verb != "embed" and answer is not None
    ]
    write_atomically(file, "".join(f"{line}\n" for line in lines).encode())


class Recording(Answering, Model):
    """The recorded answers of a cell in place of its model.

    Raises:
        HunchError: if the file of the answers is damaged.
    """

    def __init__(self, known: Mapping[str, Any], file: Path) -> None:
        for name, value in known.items():
            setattr(self, name, frozenset(value) if name in ("verbs", "takes") else value)
        self.evidence = min(self.evidence, "L2")
        try:
            self.values = {
                _key(line["verb"], line["request"], line["sample"]): json.dumps(line["value"])
                for line in map(json.loads, file.read_text(encoding="utf-8").splitlines())
            }
        except (ValueError, TypeError, KeyError) as error:
            raise HunchError(f"{file} cannot be read as answers of a cell: {error}.") from error

    def _answers(self, asked: list[Question]) -> dict[Question, Any]:
        """Look up answers.

        Raises:
            HunchError: if one was not recorded.
        """
        return {question: self._found(question) for question in asked}

    def _found(self, question: Question) -> Any:
        value = self.values.get(_key(*question))
        if value is None:
            raise HunchError(f"The answers of {self.name} hold none to a request of kind {question.verb}.")
        return decode(question.verb, value)


def _key(verb: str, request: Sequence[Any], sample: int) -> str:
    return json.dumps([verb, request, sample])


# ---- all cells --------------------------------------------------------------------------------------------


class Here(Executor):
    """An executor that does each task at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do a task, and return its finished future."""
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # as a pool does
            done.set_exception(error)
        return done


@contextmanager
def executor(workers: int) -> Iterator[Executor]:
    """Yield a pool of processes, or this process for one."""
    if workers == 1:
        yield Here()
        return
    spawn = multiprocessing.get_context("spawn")
    with environment(thread_limits(1)), ProcessPoolExecutor(workers, spawn, end_with_parent) as pool:
        yield pool


def climb(options: LadderOptions) -> None:
    """Ask all cells that are missing: of the stand-ins, then model by model.

    Raises:
        UsageError: if the name of a model is unknown and has no spec, or the folder holds other numbers of
            questions; nothing was asked then.
        HunchError: if cells failed; the same call retries them.
    """
    rungs = rungs_of(options)
    roles = [role for role in ASKED if not options.roles or role.name in options.roles]
    check_sizes(options, [role.name for role in roles], [*STAND_INS, *rungs])
    failed: list[str] = []
    with executor(options.workers) as pool:
        stand_ins = [
            Cell(stage, role.name, rung)
            for stage in ("pilot", "full")
            for role in roles
            for rung in STAND_INS
            if beds_of(role)
        ]
        failed += _all(pool, stand_ins, "", options)
        for rung, spec in rungs.items():
            ways, revision = pool.submit(offered, spec).result()
            if note := of_another_model(options.out, rung, revision):
                print(note, flush=True)
            chosen = {
                role.name: [way for way in ways[role.name] if not options.ways or way in options.ways]
                for role in roles
                if beds_of(role)
            }
            pilot = [
                Cell("pilot", role.name, rung, way, blank)
                for role in sorted(roles, key=_slowest_first)
                for way in chosen.get(role.name, ())
                for blank in ((False, True) if role.blank else (False,))
            ]
            failed += _all(pool, pilot, spec, options)
            full = [
                cell._replace(stage="full", way=way)
                for cell in dict.fromkeys(own._replace(way="") for own in pilot)
                for way in best_ways(options.out, cell.role, rung)
                if way in chosen[cell.role]
            ]
            failed += _all(pool, full, spec, options)
    if failed:
        raise HunchError(
            f"{len(failed)} cells failed, such as {failed[0]}; the same command asks them again."
        )


def check_sizes(options: LadderOptions, roles: Collection[str], rungs: Collection[str]) -> None:
    """Check that the folder's cells of these roles and models have the numbers of questions of the options.

    Raises:
        UsageError: if they have others: what is asked now would be compared with none of them.
    """
    sizes = {"pilot": options.pilot, "full": options.full}
    for file in sorted((options.out / CELLS).glob("*.json")):
        cell = read_cell(file)
        stage, size = cell["stage"], cell["questions"]
        ours = cell["role"] in roles and cell["rung"] in rungs
        if ours and sizes[stage] and size != sizes[stage]:
            raise UsageError(
                f"{options.out} holds cells of {size} questions, such as {file.stem}, with which those of "
                f"--{stage} {sizes[stage]} could not be compared: take --{stage} {size}, or another --out."
            )


def _slowest_first(role: Role) -> int:
    return -TOKENS.get(role.name, 0)


def rungs_of(options: LadderOptions) -> dict[str, str]:
    """Return the models that the options name, by rung.

    Raises:
        UsageError: if a name is unknown and has no spec.
    """
    found: dict[str, str] = {}
    for text in options.rung or tuple(RUNGS):
        name, equals, spec = text.partition("=")
        if equals and not spec:
            raise UsageError(f"--rung {text} names no model after the =.")
        if not spec and name not in RUNGS:
            raise UsageError(f"There is no rung {name!r}; name its model, as in --rung {name}=SPEC.")
        if not name or not set(name) <= NAMES or "--" in f"-{name}-":
            raise UsageError(f"A rung is named by letters, digits, dots and hyphens, not {name!r}.")
        if name in (*STAND_INS, ARCHIVE_OF_STAND_INS):
            raise UsageError(f"{name!r} is the name of a stand-in: give the rung another one.")
        found[name] = spec or RUNGS[name]
        check_spec(found[name])
    return found


NAMES: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")


def _all(pool: Executor, cells: Sequence[Cell], spec: str, options: LadderOptions) -> list[str]:
    """Ask those cells of a model that have no file yet; return what failed."""
    sizes = {"pilot": options.pilot, "full": options.full}
    due = [
        cell
        for cell in cells
        if sizes[cell.stage] and not (options.out / CELLS / f"{cell.file}.json").is_file()
    ]
    (options.out / CELLS).mkdir(parents=True, exist_ok=True)
    (options.out / ANSWERS).mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    failed: list[str] = []
    done = 0
    waiting: set[Future[Any]] = set()
    names: dict[Future[Any], str] = {}
    queue = iter(due)
    while True:
        for cell in islice(queue, max(0, options.workers - len(waiting))):
            future = pool.submit(ask, cell, spec, sizes[cell.stage], options.out, options.cache)
            names[future] = cell.file
            waiting.add(future)
        if not waiting:
            return failed
        finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in finished:
            done += 1
            error = future.exception()
            if error is None:
                line = str(future.result())
            else:
                line = f"{names[future]} failed: {type(error).__name__}: {error}"
                failed.append(line)
            left = (time.perf_counter() - start) / done * (len(due) - done)
            print(f"[{done}/{len(due)}, {left / 60:.1f} min left] {line}", flush=True)


def best_ways(folder: Path, role: str, rung: str) -> list[Way]:
    """Return the two ways with the highest scores in the pilot, the best first.

    Ways that could be asked in more environments come before those of fewer: their scores are not of the same
    questions.
    """
    scores: dict[Way, tuple[int, float]] = {}
    for way in WAYS:
        result = _read(folder, Cell("pilot", role, rung, way))
        known = None if result is None else scores_of(result)
        if known is not None:
            scores[way] = len(known.values), known.ability
    return sorted(scores, key=lambda way: scores[way], reverse=True)[:BEST]


# ---- scores -----------------------------------------------------------------------------------------------


def _read(folder: Path, cell: Cell) -> dict[str, Any] | None:
    file = folder / CELLS / f"{cell.file}.json"
    return read_cell(file) if file.is_file() else None


def scores_of(result: Mapping[str, Any], envs: Collection[str] | None = None) -> Scores | None:
    """Return the scores of a cell over its environments; None if it could be asked in none.

    Args:
        result: The cell's file.
        envs: Only these environments.
    """
    values: list[float] = []
    groups: list[int] = []
    numbers: dict[tuple[str, int], int] = {}
    alike: list[int] = []
    requests: dict[tuple[str, int], int] = {}
    stated: list[float] = []
    came: list[float] = []
    beds = [bed for bed in result["beds"] if bed["values"] and (envs is None or bed["env"] in envs)]
    for bed in beds:
        values += bed["values"]
        groups += [numbers.setdefault((bed["env"], group), len(numbers)) for group in bed["groups"]]
        asked = bed.get("alike", range(len(bed["values"])))
        alike += [requests.setdefault((bed["env"], request), len(requests)) for request in asked]
        stated += bed.get("stated", [])
        came += bed.get("came", [])
    if not values:
        return None
    known = len(stated) > 0
    return Scores(
        np.array(values),
        groups,
        stated=np.array(stated) if known else None,
        came=np.array(came) if known else None,
        alike=alike if any("alike" in bed for bed in beds) else None,
    )


class Lead(NamedTuple):
    """The mean difference of two scores on the same questions, with its 95 % interval."""

    value: float
    low: float
    high: float


def lead(result: Mapping[str, Any], other: Mapping[str, Any] | None) -> Lead | None:
    """Return how much better the answers of a cell are than those of another, question by question.

    The interval is a bootstrap over episodes, or over questions if there is one episode. Where equal requests
    have the same drawn answers, it reaches as far as the same over different requests. None if they share
    no questions, or only one, which has no interval.
    """
    if other is None:
        return None
    theirs = {bed["env"]: bed["values"] for bed in other["beds"]}
    shared = [
        bed["env"]
        for bed in result["beds"]
        if bed["values"] and len(bed["values"]) == len(theirs.get(bed["env"], ()))
    ]
    mine, others = scores_of(result, shared), scores_of(other, shared)
    if mine is None or others is None:
        return None
    gap = mine.values - others.values  # (questions,)
    if len(gap) == 1:
        return None
    groupings = [numbers for numbers in (mine.groups, mine.alike, others.alike) if numbers is not None]
    lows, highs = zip(*(resampled(*totals(gap, numbers)) for numbers in groupings), strict=True)
    return Lead(float(gap.mean()), min(lows), max(highs))


@dataclass(frozen=True)
class Row:
    """A model in a role, asked in one way.

    Attributes:
        role: The role.
        rung: The model.
        way: The way of asking.
        stage: ``full``, or ``pilot`` if the way was not among the two best.
        chosen: True for the way that was best in the pilot.
        questions: Number of scores.
        ability: Mean score; nan if the model could not be asked.
        interval: Its 95 % interval.
        uninformed: Mean score of the uninformed stand-in.
        words: Mean score of the stand-in that knows words only.
        blank: Mean score with the blank prompt; nan if the role has none, or it could not be asked.
        over_words: Lead over words; None if there is none.
        over_blank: Lead over the blank prompt; None if there is none.
        calibration_error: Expected calibration error; nan if no probability is stated.
        by_chance: The error that a calibrated model stays below in 95 of 100 samples.
        unread: Share of the questions without a readable answer.
        tokens_read: Tokens read per question; nan if the model does not count.
        tokens_written: Tokens written per question.
        seconds: Seconds per question in the model.
        why: Why it could not be asked; empty if it could.
        evidence: The model's evidence level.
        model: What was asked: spec and revision.
    """

    role: str
    rung: str
    way: str
    stage: str
    chosen: bool
    questions: int
    ability: float
    interval: tuple[float, float]
    uninformed: float
    words: float
    blank: float
    over_words: Lead | None
    over_blank: Lead | None
    calibration_error: float
    by_chance: float
    unread: float
    tokens_read: float
    tokens_written: float
    seconds: float
    why: str
    evidence: str
    model: str

    @property
    def verdict(self) -> str:
        """What the answers show, in words."""
        if isnan(self.ability):
            return "could not be asked"
        leads = [self.over_words, *([self.over_blank] if role_named(self.role).blank else [])]
        if all(own is not None and own.low > 0 for own in leads):
            return "better"
        if any(own is not None and own.high < 0 for own in leads):
            return "worse"
        return "not shown"


VERDICTS: Final[Mapping[str, str]] = {
    "better": "better than words and than the blank prompt",
    "not shown": "not shown to be better than both",
    "worse": "worse than one of them",
    "could not be asked": "could not be asked",
    "not asked": "not asked, or the model lacks what the role needs",
}
NOT_ASKED: Final = "not asked"


def rows(folder: Path) -> list[Row]:
    """Return the rows of all cells in a folder, role by role."""
    known = [read_cell(file) for file in sorted((folder / CELLS).glob("*.json"))]
    cells = {Cell(*(result[name] for name in Cell._fields)): result for result in known}
    order = [role.name for role in ASKED]
    rungs = list(dict.fromkeys([*RUNGS, *(cell.rung for cell in cells)]))
    found = []
    for cell in sorted(cells, key=lambda own: (order.index(own.role), rungs.index(own.rung))):
        if cell.rung in STAND_INS or cell.blank:
            continue
        if cell.stage == "pilot" and cell._replace(stage="full") in cells:
            continue
        found.append(_row(cell, cells, best_ways(folder, cell.role, cell.rung)))
    return found


def _row(cell: Cell, cells: Mapping[Cell, Mapping[str, Any]], best: Sequence[Way]) -> Row:
    result = cells[cell]
    scores = scores_of(result)
    blank = cells.get(cell._replace(blank=True))
    stand_ins = {name: cells.get(Cell(cell.stage, cell.role, name)) for name in STAND_INS}
    stated = scores is not None and scores.stated is not None and scores.came is not None
    usage = [bed["usage"] for bed in result["beds"] if bed["usage"]]
    asked = [bed for bed in result["beds"] if bed["values"] or bed["usage"]]
    # The stand-ins are shown on the same questions; on all where the model could be asked none.
    answered = [bed["env"] for bed in result["beds"] if bed["values"]] or None
    n = len(scores.values) if scores else 0
    reasons = dict.fromkeys(bed["why"] for bed in result["beds"] if bed["why"])
    share = sum(bed["unread"] for bed in asked) / len(asked) if asked else 0.0
    per = max(1, result["questions"])
    return Row(
        role=cell.role,
        rung=cell.rung,
        way=cell.way,
        stage=cell.stage,
        chosen=list(best[:1]) == [cell.way],
        questions=n,
        ability=scores.ability if scores else nan,
        interval=scores.interval if scores else (nan, nan),
        uninformed=_ability(stand_ins[UNINFORMED], answered),
        words=_ability(stand_ins[WORDS], answered),
        blank=_ability(blank, answered),
        over_words=lead(result, stand_ins[WORDS]),
        over_blank=lead(result, blank),
        calibration_error=_calibration(scores)[0] if scores and stated else nan,
        by_chance=_calibration(scores)[1] if scores and stated else nan,
        unread=share,
        tokens_read=sum(own["prompt_tokens"] for own in usage) / per,
        tokens_written=sum(own["completion_tokens"] for own in usage) / per,
        seconds=sum(own["seconds"] for own in usage) / per,
        why="; ".join(reasons),
        evidence=result["model"]["evidence"],
        model=f"{result['spec']} {result['model']['revision']}",
    )


def _ability(result: Mapping[str, Any] | None, envs: Collection[str] | None = None) -> float:
    scores = None if result is None else scores_of(result, envs)
    return nan if scores is None else scores.ability


def _calibration(scores: Scores) -> tuple[float, float]:
    """Return the calibration error, and the one that a calibrated model would have by chance."""
    assert scores.stated is not None
    assert scores.came is not None
    curve = tuple(reliability(scores.stated, scores.came))
    return calibration_error(curve), error_by_chance(scores.stated)


# ---- table and picture ------------------------------------------------------------------------------------

HEADS: Final = (
    *("role", "model", "way", "questions", "ability", "uninformed", "words", "blank"),
    *("over words", "over blank", "calibration error (by chance)", "unread"),
    *("tokens read, written", "seconds", "verdict"),
)


def table(found: Sequence[Row]) -> str:
    """Return rows as a table in Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{'---|' * len(HEADS)}"]
    for row in found:
        asked = (
            "" if isnan(row.ability) else f"{row.ability:.2f} [{row.interval[0]:.2f}, {row.interval[1]:.2f}]"
        )
        error = "" if isnan(row.calibration_error) else f"{row.calibration_error:.2f} ({row.by_chance:.2f})"
        cells = (
            *(row.role, row.rung, row.way, str(row.questions), asked),
            *(_figure(x) for x in (row.uninformed, row.words, row.blank)),
            *(_lead(own) for own in (row.over_words, row.over_blank)),
            *(error, f"{row.unread:.2f}", f"{row.tokens_read:,.0f}, {row.tokens_written:,.0f}"),
            *(f"{row.seconds:.2f}", f"{row.verdict}: {row.why}" if row.why else row.verdict),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _figure(x: float) -> str:
    return "" if isnan(x) else f"{x:.2f}"


def _lead(own: Lead | None) -> str:
    return "" if own is None else f"{own.value:+.2f} [{own.low:+.2f}, {own.high:+.2f}]"


COLOURS: Final[Mapping[str, str]] = {
    "better": "#8fce8f",
    "not shown": "#f3e3a1",
    "worse": "#eba89a",
    "could not be asked": "#b9b9b9",
    "not asked": "#e9e9e9",
}


def picture(found: Sequence[Row], file: Path) -> None:
    """Draw which model is good for which role: a square for each, with its best way and ability."""
    import matplotlib  # takes a second to import

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch, Rectangle

    best = {(row.role, row.rung): row for row in found if row.chosen}
    unasked = {(row.role, row.rung): row for row in found if isnan(row.ability)}
    roles = [role.name for role in ASKED if any(row.role == role.name for row in found)]
    rungs = list(dict.fromkeys(row.rung for row in sorted(found, key=lambda row: _height(row.rung))))
    figure, axes = pyplot.subplots(figsize=(2.0 + 1.9 * len(rungs), 1.4 + 0.75 * len(roles)))
    for y, role in enumerate(roles):
        for x, rung in enumerate(rungs):
            row = best.get((role, rung)) or unasked.get((role, rung))
            verdict = row.verdict if row else NOT_ASKED
            axes.add_patch(Rectangle((x, y), 0.96, 0.94, color=COLOURS[verdict]))
            if row and not isnan(row.ability):
                axes.text(x + 0.48, y + 0.26, f"{row.ability:.2f}", ha="center", va="center", weight="bold")
                controls = f"{row.way}\nwords {_figure(row.words)}"
                if not isnan(row.blank):
                    controls += f", blank {_figure(row.blank)}"
                axes.text(x + 0.48, y + 0.66, controls, ha="center", va="center", fontsize=6)
            else:
                axes.text(x + 0.48, y + 0.47, verdict, ha="center", va="center", fontsize=6)
    axes.set_xlim(0, len(rungs))
    axes.set_ylim(len(roles), 0)
    axes.set_xticks(np.arange(len(rungs)) + 0.48, rungs)
    axes.set_yticks(np.arange(len(roles)) + 0.47, roles)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    marks = [Patch(color=colour, label=VERDICTS[name]) for name, colour in COLOURS.items()]
    axes.legend(handles=marks, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=2, frameon=False, fontsize=7)
    figure.suptitle("Which model for which role?")
    figure.savefig(file, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


def _height(rung: str) -> int:
    """Return the place of a rung on the ladder; added ones stand above."""
    return list(RUNGS).index(rung) if rung in RUNGS else len(RUNGS)


def write(folder: Path, submissions: Sequence[Submission] = ()) -> str:
    """Write table, values and picture of the cells in a folder; return the page.

    Args:
        folder: Folder of the study.
        submissions: Rows of others, shown in a table of their own.

    Raises:
        HunchError: if there are no cells.
    """
    found = rows(folder)
    if not found:
        raise HunchError(
            f"{folder} holds no cells of a model yet: none of these models was asked in these roles and "
            "ways. Recorded ones are added with --unpack ARCHIVE."
        )
    plain = [_finite(asdict(row) | {"verdict": row.verdict}) for row in found]
    write_atomically(folder / "ladder.json", (json.dumps(plain, indent=1) + "\n").encode())
    picture(found, folder / "ladder.png")
    chosen = [row for row in found if row.chosen or isnan(row.ability)]
    page = f"# Which model for which role\n\n{table(chosen)}\n\n## All ways of asking\n\n{table(found)}\n"
    if submissions:
        page += f"\n## Submitted by others\n\n{added(submissions)}\n"
    write_atomically(folder / "page.md", page.encode())
    return page


def added(submissions: Iterable[Submission]) -> str:
    """Return the rows that others submitted as a table in Markdown.

    They have no answers, so the leads question by question are not known, and there is no verdict.
    """
    heads = ("role", "environment", "model", "way", "questions", "ability", "uninformed", "words", "blank")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for made in submissions:
        for row in made.rows:
            ability = f"{row.ability:.2f} [{row.low:.2f}, {row.high:.2f}]"
            controls = (_figure(nan if x is None else x) for x in (row.uninformed, row.words, row.blank))
            place = (row.role, row.env.removeprefix("hunch/"), made.model, row.way, str(row.questions))
            lines.append(f"| {' | '.join((*place, ability, *controls))} |")
    return "\n".join(lines)


def _finite(value: Any) -> Any:
    """Return plain values in which nan is None."""
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value


# ---- recorded answers -------------------------------------------------------------------------------------

PRIVATE: Final = ("gemma",)
"""Beginnings of the names of models whose answers are not published."""


def pack(folder: Path, target: Path) -> list[Path]:
    """Write an archive of the cells and answers of each model; return the archives."""
    target.mkdir(parents=True, exist_ok=True)
    names = sorted(file.stem for file in (folder / CELLS).glob("*.json"))
    by_rung: dict[str, list[str]] = {}
    for name in names:
        rung = name.split("--")[2]
        if not rung.startswith(PRIVATE):
            by_rung.setdefault(ARCHIVE_OF_STAND_INS if rung in STAND_INS else rung, []).append(name)
    found = []
    for rung, own in by_rung.items():
        archive = target / f"ladder-{rung}.tar.xz"
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            for name in own:
                for file in (folder / CELLS / f"{name}.json", folder / ANSWERS / f"{name}.jsonl"):
                    if file.is_file():
                        data = file.read_bytes()
                        entry = tarfile.TarInfo(f"{file.parent.name}/{file.name}")
                        entry.size = len(data)
                        tar.addfile(entry, BytesIO(data))
        found.append(archive)
    return found


def unpack(archives: Iterable[Path], folder: Path) -> int:
    """Add the cells of archives to a folder; return their number.

    Raises:
        UsageError: if a file is no such archive.
    """
    number = 0
    for archive in archives:
        try:
            with tarfile.open(archive, "r:xz") as tar:
                tar.extractall(folder, filter="data")
                number += sum(name.startswith(CELLS) for name in tar.getnames())
        except (OSError, EOFError, tarfile.TarError, LZMAError) as error:
            raise UsageError(f"{archive} is no archive of a ladder: {error}.") from error
    return number


def repeat(folder: Path, *, renew: bool = False) -> None:
    """Read all recorded answers again, and compare the scores with the stored ones.

    Args:
        folder: Folder of the cells.
        renew: Store the new scores where they differ: how a role is scored was changed on purpose.

    Raises:
        HunchError: if there are no cells, an answer is missing, or a score differs and is not renewed.
    """
    same = 0
    apart: list[str] = []
    of_embeddings = 0
    without_answers: list[str] = []
    drawn: dict[tuple[str, int, str], list[tuple[Bed, Any]]] = {}  # cells of a role are asked the same
    files = sorted((folder / CELLS).glob("*.json"))
    if not files:
        raise HunchError(f"{folder} holds no cells. Recorded ones are added with --unpack ARCHIVE.")
    for number, file in enumerate(files, 1):
        result = read_cell(file)
        cell = Cell(*(result[name] for name in Cell._fields))
        answers = folder / ANSWERS / f"{cell.file}.jsonl"
        if cell.rung not in STAND_INS and cell.way == "similarity":
            of_embeddings += 1
            continue
        if cell.rung not in STAND_INS and not answers.is_file():
            without_answers.append(cell.file)
            continue
        role = role_named(cell.role)
        again = []
        same_questions = (cell.role, result["questions"], cell.stage)
        if same_questions not in drawn:
            drawn[same_questions] = questions(role, result["questions"], cell.stage)
        for bed, asked in drawn[same_questions]:
            if cell.rung in STAND_INS:
                again.append(stand_in(cell, role, bed, asked))
            else:
                model = Cached(Recording(result["model"], answers))
                try:
                    again.append(put_to(model, cell, role, bed, asked))
                except HunchError as error:
                    raise HunchError(f"{cell.file}: {error}") from error
        is_same = _scored(again) == _scored(result["beds"])
        print(f"[{number}/{len(files)}] {cell.file}: {'the same' if is_same else 'other'} scores", flush=True)
        if is_same:
            same += 1
        else:
            apart.append(cell.file)
            if renew:
                # What the answers cost is known from when they were given.
                beds = [
                    {**bed, "usage": stored["usage"]}
                    for bed, stored in zip(again, result["beds"], strict=True)
                ]
                write_atomically(file, json.dumps({**result, "beds": beds}).encode())
    print(
        f"{same:,} cells have the scores that are stored; {of_embeddings:,} are of embeddings, which are not "
        "kept."
    )
    if without_answers:
        print(f"{len(without_answers)} cells have no file of answers, such as {without_answers[0]}.")
    if apart and renew:
        print(f"{len(apart)} cells have new scores: {', '.join(apart)}.")
    elif apart:
        raise HunchError(f"{len(apart)} cells have other scores than stored, such as {apart[0]}.")


def _scored(beds: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what the table reads of a cell's answers: the scores, and which of the requests were equal."""
    return [(bed["values"], bed.get("alike")) for bed in beds]


def command(arguments: Sequence[str]) -> None:
    """Ask what is missing, and write table and picture."""
    options = read(LadderOptions, prog="hunch study ladder", description=__doc__, args=list(arguments))
    check_settings(options)
    for name in options.roles:
        if role_named(name) not in ASKED:
            raise UsageError(f"A {name} is asked what a prior is asked: take --roles prior.")
    submissions = [submission.read(file) for file in options.add]
    if options.unpack:
        print(f"{unpack(options.unpack, options.out):,} cells added to {options.out}.")
    if options.repeat:
        return repeat(options.out, renew=options.renew)
    reads_only = (options.unpack or options.add) and not options.rung
    if options.pack is None and not reads_only:
        with stoppable(f"stopped; finished cells are kept in {options.out}, and the same command goes on."):
            climb(options)
    if options.pack is not None:
        for archive in pack(options.out, options.pack):
            print(f"Written: {archive}, {archive.stat().st_size / 2**20:.2f} MiB")
    if options.table:
        write(options.out, submissions)
        print(f"Written: page.md, ladder.json and ladder.png in {options.out}.")


STUDIES = {
    "ladder": Study(
        "ladder",
        "Which model, asked in which way, is good for which role?",
        "Nothing: the audition is ours.",
        "Every model is asked with the same questions, and with the same limits of tokens.",
        lambda scale, data: (),
        command=command,
    )
}

if __name__ == "__main__":
    command(sys.argv[1:])
