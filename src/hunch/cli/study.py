"""``hunch study``: reproduces a published table or figure."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from hunch import lm, methods, studies
from hunch.cli.options import read
from hunch.core import UsageError
from hunch.runs.compare import Job
from hunch.runs.folder import missing, require_folder
from hunch.runs.progress import JobBars
from hunch.studies.study import FULL, SMOKE, Part, Study, Watch, conduct


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Size of a study, and its folder."""

    smoke: bool = False
    """Make a short run to test that the study works; its results mean nothing."""
    seeds: int | None = None
    """Runs per method. Default: 3 (icpi: 8), with --smoke 1."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-NAME."""
    workers: int | None = None
    """Runs at a time. Default: the number of processors."""
    data: str = ""
    """Folder of recorded answers, for studies that read them."""
    lm: tuple[str, ...] = ()
    """Additional language models, for studies that accept them."""
    part: tuple[str, ...] = ()
    """Only the part of this title, or else the parts whose title contains one of these texts."""
    arm: tuple[str, ...] = ()
    """Only the arm of this label, or else those whose label contains one of these texts. Further tables of
    the parts are left out."""


def study(arguments: Sequence[str]) -> None:
    """Run a study, or the rest of it, and print the path of its page."""
    if not arguments or arguments[0] in ("-h", "--help"):
        lines = [f"  {name}\n      {studies.find(name).question}" for name in studies.names()]
        usage = "usage: hunch study NAME [--smoke] [--seeds K] [--part TEXT ...] [--out DIR]"
        print(f"{usage}\n\n" + "\n".join(lines))
        sys.exit(0 if arguments else 2)
    found = studies.find(arguments[0])
    options = read(StudyOptions, prog=f"hunch study {found.name}", args=list(arguments[1:]))
    scale = SMOKE if options.smoke else replace(FULL, seeds=found.seeds)
    for name in ("seeds", "workers"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}.")
    if options.seeds is not None:
        scale = replace(scale, seeds=options.seeds)
    if options.lm:
        _check(found, options.lm)
        scale = replace(scale, lms=options.lm)
    if bool(options.data) != bool(found.recorded):
        needs = (
            f"reads {found.recorded}: give their folder with --data" if found.recorded else "reads no data"
        )
        raise UsageError(f"{found.name} {needs}.")
    if options.data and not Path(options.data).is_dir():
        raise UsageError(f"There is no folder {options.data!r}.")
    scale = replace(scale, data=options.data, parts=options.part, arms=options.arm)
    out = options.out or Path("runs") / f"study-{found.name}{'-smoke' if options.smoke else ''}"
    require_folder(out)
    made = missing(out)
    with ExitStack() as stack:

        def watch(part: Part, todo: Sequence[Job]) -> Watch:
            stack.close()  # the bars of the previous part
            print(part.title)
            return stack.enter_context(JobBars(todo)).follow

        try:
            page = conduct(found, out, scale, workers=options.workers, watch=watch, report=print)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped; the runs are saved in {out}, and the same command continues them."
            ) from None
        except UsageError:
            if made and not any(path.is_file() for path in made.rglob("*")):
                shutil.rmtree(made, ignore_errors=True)
            raise
    print(f"Page: {page}")


def _check(found: Study, specs: Sequence[str]) -> None:
    """Check that the study can use the additional models, before the first run starts."""
    if not found.lm_for:
        able = ", ".join(name for name in studies.names() if studies.find(name).lm_for)
        raise UsageError(f"{found.name} accepts no additional model; --lm is for {able}.")
    needed = methods.find(found.lm_for).models.get("lm")
    for spec in specs:
        if needed is None:  # the model is trained
            lm.trainable(spec)
            continue
        model = lm.load(spec)
        if not set(needed) & model.verbs:
            raise UsageError(f"{found.name} needs a model that can {' or '.join(needed)}; {spec} cannot.")
