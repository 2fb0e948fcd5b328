"""``hunch audition``: asks models the questions of each role, and says which role they should play."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hunch.audition.answer import COSTS, MOST_ASKED, Audition, brief, costs, notes, plain, reasons
from hunch.audition.hearing import audition as heard
from hunch.audition.page import page
from hunch.audition.roles import role_named
from hunch.audition.submission import FEWEST, LARGEST, submission, write
from hunch.cli.environment import split_environment
from hunch.cli.options import budget_of, read
from hunch.core import UsageError
from hunch.lm.answers.rehearsal import CHARACTERS_PER_TOKEN, Rehearsal
from hunch.lm.budget import Budget
from hunch.lm.registry import load
from hunch.lm.settings import Limits
from hunch.lm.ways import Way
from hunch.ranges import NonNegativeInt, PositiveInt, Share, check_settings
from hunch.runs.files import write_atomically
from hunch.runs.folder import require_writable
from hunch.runs.processes import stoppable

DESCRIPTION = """Ask models the questions of each role, whose true answers are known, with the prompts of the
methods. The table compares each model with an uninformed and a lexical stand-in. It shows the gain that a
method would have from the model, and whether this is worth the cost. Options of the environment are given as
--env.NAME VALUE."""


STOPPED = "stopped before the end; the same command asks again only what is not in the cache of answers."


@dataclass(frozen=True, kw_only=True)
class AuditionOptions:
    """Options of ``hunch audition``: models, roles and questions."""

    lm: tuple[str, ...] = ()
    """Specs of the models to test."""
    roles: tuple[str, ...] = ()
    """Roles to test: prior, policy, judge, preference, goal, planner, world-model, writer, reader,
    formaliser, text-judge. Default: all."""
    env: str = ""
    """Environment in which to ask. Default: those of each role."""
    data: Path | None = None
    """Recorded episodes of --env; the actions of successful ones count as right."""
    questions: PositiveInt = 100
    """Questions per role, spread over its environments."""
    seed: NonNegativeInt = 0
    """Seed of the questions."""
    worth: Share = 0.05
    """Smallest gain in success rate (0 to 1) for which a model is recommended (ours)."""
    way: Way | Literal["auto"] = "auto"
    """Way of asking, in the roles that have it. Default: each role's own for the model."""
    until: Literal["asked", "decided"] = "asked"
    """End when all questions were asked, or ask the roles that may pay twice as many until it is decided."""
    most: PositiveInt | None = None
    """With --until decided: maximum questions per role. Default: 1,600, or as many as --questions."""
    blank: bool = False
    """Ask without objective, task and manual: the control that shows whether a model uses them."""
    budget: Limits = field(default_factory=Limits)
    """Limits on the use of the models, over all roles together."""
    table: bool = False
    """Print a table with a row per environment, the costs and the calibration, instead of a line per role."""
    out: Path | None = None
    """Folder for audition.html and audition.json, which hold the table. Default: only print."""
    submit: Path | None = None
    """File for rows that others can add to their ladder: one model, asked in the roles' own environments with
    the usual and with the blank prompt. Nothing is sent."""
    dry_run: bool = False
    """Only count the requests, tokens and cost; no model is asked."""


def audition(arguments: Sequence[str]) -> None:
    """Ask models the questions of each role, and print the table of results.

    Raises:
        UsageError: if no model is named, or an option has no use.
    """
    rest, env_options = split_environment(arguments)
    what = read(AuditionOptions, prog="hunch audition", description=DESCRIPTION, args=rest)
    check_settings(what)
    if not what.lm:
        raise UsageError("Name the models, as in 'hunch audition --lm minilm bag-of-words'.")
    if what.most is not None and what.until != "decided":
        raise UsageError("--most is for --until decided: without it, each role has --questions.")
    if what.out:
        require_writable(what.out)
    if what.submit:
        _check_submitting(what, what.submit)
    rehearsal = Rehearsal(brief=True)
    budget = None if what.dry_run else budget_of(what.budget)
    asking = partial(
        heard,
        env=what.env or None,
        env_options=env_options,
        data=what.data,
        questions=what.questions,
        seed=what.seed,
        worth=what.worth,
        way=what.way,
        most=_most(what) if what.until == "decided" else None,
        budget=budget,
        join=rehearsal if what.dry_run else None,
        progress=_show_progress,
    )
    with stoppable(STOPPED):
        result = asking(list(what.lm), what.roles, blank=what.blank)
        if what.dry_run:
            _estimate(result, rehearsal, "dry run")
            with_blank = _with_blank_prompt(result) if what.submit else []
            if with_blank:
                again = Rehearsal(brief=True)
                blank = asking(list(what.lm), with_blank, blank=True, join=again)
                _estimate(blank, again, "dry run, blank prompts of --submit")
            return
        if what.table:
            print(result)
        else:
            print("\n".join([*brief(result), "", *reasons(result), *notes(result)]))
        if what.out:
            what.out.mkdir(parents=True, exist_ok=True)
            write_atomically(what.out / "audition.html", page(result).encode())
            write_atomically(what.out / "audition.json", json.dumps(plain(result), indent=1).encode())
            print(f"Kept in {what.out}: audition.html, audition.json.")
        if what.submit:
            _submit(what.submit, what.lm[0], result, asking, budget)


def _most(what: AuditionOptions) -> int:
    """Return the maximum questions per role of ``--until decided``."""
    return max(MOST_ASKED, what.questions) if what.most is None else what.most


def _check_submitting(what: AuditionOptions, file: Path) -> None:
    """Check before a question is asked that an audition can be submitted as a file.

    Raises:
        UsageError: if it cannot.
    """
    if len(what.lm) != 1:
        raise UsageError("--submit takes the rows of one model: name one with --lm.")
    if what.env or what.data or what.blank or what.until == "decided":
        raise UsageError(
            "--submit asks in the roles' own environments, so that rows can be compared, and asks the blank "
            "prompt by itself: leave out --env, --data, --blank and --until."
        )
    if what.questions < FEWEST:
        raise UsageError(f"--submit needs at least {FEWEST} questions per role, not {what.questions}.")
    if what.seed > LARGEST:
        raise UsageError(f"--submit takes a --seed of at most {LARGEST:.0e}.")
    require_writable(file.parent)
    if file.is_dir():
        raise UsageError(f"--submit takes a file, and {file} is a folder.")


def _submit(
    file: Path, spec: str, usual: Audition, asking: Callable[..., Audition], budget: Budget | None
) -> None:
    """Ask the blank prompts of the roles that were asked, with what is left of the budget; write the rows."""
    with_blank = _with_blank_prompt(usual)
    nothing = replace(usual, lines=(), stopped="")
    with_rest = partial(asking, budget=budget and budget.rest(usual.usage[spec]))
    blank = with_rest([spec], with_blank, blank=True) if with_blank and not usual.stopped else nothing
    made = submission(load(spec), usual, blank)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(made, file)
    few = [name for name in _asked(usual) if name not in {row.role for row in made.rows}]
    if few:
        print(f"Left out, because it was asked fewer than {FEWEST} questions: {', '.join(few)}.")
    print(f"Written: {file}, {len(made.rows)} rows of {made.model} to hand on. Nothing was sent.")


def _asked(usual: Audition) -> list[str]:
    """Return the roles with a score."""
    return list(dict.fromkeys(line.heard.role for line in usual.lines if line.heard.has_score))


def _with_blank_prompt(usual: Audition) -> list[str]:
    """Return the roles with a score that have a blank prompt."""
    return [name for name in _asked(usual) if role_named(name).blank]


def _show_progress(what: str) -> None:
    """Say on a terminal what is asked next."""
    if sys.stderr.isatty():
        print(f"hunch: {what}", file=sys.stderr)


def _estimate(result: Audition, rehearsal: Rehearsal, title: str) -> None:
    """Print what an audition would cost, role by role, and what a model that thinks first may add."""
    grid = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in COSTS[:-1]:
        grid.add_column(
            name,
            justify="left" if name in ("model", "role") else "right",
            overflow="fold",  # a long spec is broken, not cut
            no_wrap=name != "model",
        )
    for row in costs(result):
        grid.add_row(*row[:-1])
    Console().print(grid, markup=False, highlight=False)
    if any(row[COSTS.index("repeats")] != "0" for row in costs(result)):
        print("Repeats are requests that this audition makes again: a model answers them once.")
    print(f"No model was asked: a token is counted as {CHARACTERS_PER_TOKEN} characters.")
    print("Questions that follow from answers are not counted: up to two more per step of a world model.")
    for spec, model in zip(result.usage, rehearsal.stand_ins, strict=True):
        if more := result.usage[spec]["calls"] * model.answer_tokens:
            price = f", for {more * model.price_out / 1e6:,.4f}" if model.price_out else ""
            print(
                f"{spec}: counted with short answers. A model that thinks first may write {more:,.0f} tokens "
                f"more{price}."
            )
