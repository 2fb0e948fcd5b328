"""``hunch cache``: shows, exports, imports and clears the answer cache."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hunch.cli.options import read
from hunch.core import UsageError
from hunch.lm.answers.archive import Archive
from hunch.lm.answers.recorded import add_to
from hunch.lm.answers.store import Store
from hunch.lm.registry import per_user
from hunch.runs.processes import stoppable
from hunch.suggest import suggest


@dataclass(frozen=True, kw_only=True)
class StatsOptions:
    """Show the contents of the answer cache."""

    file: Path | None = None
    """File of answers. Default: the file that the variable HUNCH_CACHE names, else the user's cache."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions(StatsOptions):
    """Export answers to a file."""

    to: tyro.conf.Positional[Path]
    """File to write (JSON lines); gzipped if its name ends in .gz."""
    model: str | None = None
    """Only answers of this model, given by its spec."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions(StatsOptions):
    """Add exported answers."""

    source: tyro.conf.Positional[Path]
    """File that 'hunch cache export' wrote, on this machine or on another."""


@dataclass(frozen=True, kw_only=True)
class ClearOptions(StatsOptions):
    """Delete answers from the cache."""

    model: str | None = None
    """Only answers of this model, given by its spec."""
    older_than: float | None = None
    """Only answers that are older than this many days."""
    yes: bool = False
    """Do not ask for confirmation."""


def cache(arguments: Sequence[str]) -> None:
    """Show, export, import or clear the answer cache.

    Raises:
        UsageError: if the first argument is no command, or the file is not an answer cache.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: hunch cache COMMAND [options]; COMMAND is one of {', '.join(COMMANDS)}")
        sys.exit(0 if arguments else 2)
    name = arguments[0]
    if name not in COMMANDS:
        raise UsageError(f"There is no 'hunch cache {name}'; {suggest(name, COMMANDS.keys())}")
    options, do = COMMANDS[name]
    do(read(options, prog=f"hunch cache {name}", description=do.__doc__, args=list(arguments[1:])))


def stats(options: StatsOptions) -> None:
    """Print the number of answers by model, revision and kind of request."""
    archive = _archive(options)
    holdings = archive.holdings()
    grid = Table(title=str(archive.path), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("model", "revision", "verb"):
        grid.add_column(heading, overflow="fold")
    for heading in ("answers", "size", "first", "last"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for h in holdings:
        revision = h.revision if len(h.revision) <= 20 else h.revision[:17] + "..."
        grid.add_row(h.model, revision, h.verb, f"{h.answers:,}", _size(h.size), h.first[:10], h.last[:10])
    answers = sum(h.answers for h in holdings)
    size = sum(h.size for h in holdings)
    grid.caption = f"{answers:,} answers, {_size(size)}; dates are UTC"
    grid.caption_justify = "left"
    Console().print(grid, markup=False)


def export(options: ExportOptions) -> None:
    """Write answers to a file for the model replay:FILE."""
    with stoppable(f"stopped; {options.to} was not written, and the same command begins again."):
        exported = _archive(options).export(options.to, options.model)
    print(f"{exported.written:,} answers written to {options.to}.")
    if exported.without_request:
        print(f"{exported.without_request:,} were left out: an earlier version did not store their requests.")
    if exported.damaged:
        print(f"{exported.damaged:,} were left out: they are damaged.")


def add(options: ImportOptions) -> None:
    """Add answers of a file that 'hunch cache export' wrote; those that are there stay."""
    store = Store(options.file if options.file is not None else per_user())
    with stoppable("stopped; the answers that were added stay, and the same command adds the rest."):
        added = add_to(store, options.source)
        store.close()
    print(f"{added:,} answers added to {store.path}.")


def clear(options: ClearOptions) -> None:
    """Delete all answers, or only those of one model or older than a number of days."""
    archive = _archive(options)
    n = archive.count(options.model, options.older_than)
    if n and not options.yes and not _agreed(f"Delete {n:,} answers from {archive.path}?"):
        print("Nothing was deleted.")
        return
    removed = archive.clear(options.model, options.older_than) if n else 0
    print(f"{removed:,} answers deleted from {archive.path}.")


COMMANDS: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "stats": (StatsOptions, stats),
    "export": (ExportOptions, export),
    "import": (ImportOptions, add),
    "clear": (ClearOptions, clear),
}


def _archive(options: StatsOptions) -> Archive:
    return Archive(options.file if options.file is not None else per_user())


def _agreed(question: str) -> bool:
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
