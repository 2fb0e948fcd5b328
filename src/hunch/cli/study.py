"""``hunch study``: run a published table or figure again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from hunch import studies
from hunch.cli.progress import JobBars
from hunch.core import UsageError
from hunch.runs.compare import Job
from hunch.studies.study import FULL, SMOKE, Part, Watch, conduct


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How large a study is run, and where it is kept."""

    smoke: bool = False
    """A short run, to see that it works; it tells nothing."""
    seeds: int | None = None
    """Runs a line. Default: 3, with --smoke 1."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-NAME."""
    workers: int | None = None
    """Runs at a time. Default: the processors at hand."""


def study(arguments: Sequence[str]) -> None:
    """Run a study, or what is left of it, and name its page."""
    if not arguments or arguments[0] in ("-h", "--help"):
        lines = [f"  {name}\n      {studies.find(name).question}" for name in studies.names()]
        print("usage: hunch study NAME [--smoke] [--seeds K] [--out DIR]\n\n" + "\n".join(lines))
        return
    found = studies.find(arguments[0])
    options = tyro.cli(StudyOptions, prog=f"hunch study {found.name}", args=list(arguments[1:]))
    scale = SMOKE if options.smoke else FULL
    if options.seeds is not None:
        if options.seeds < 1:
            raise UsageError(f"A study needs at least one seed, not {options.seeds}.")
        scale = replace(scale, seeds=options.seeds)
    out = options.out or Path("runs") / f"study-{found.name}{'-smoke' if options.smoke else ''}"
    with ExitStack() as stack:

        def watch(part: Part, todo: Sequence[Job]) -> Watch:
            stack.close()  # the bars of the part before
            print(part.title)
            return stack.enter_context(JobBars(todo)).follow

        page = conduct(found, out, scale, workers=options.workers, watch=watch)
    print(f"Page: {page}")
