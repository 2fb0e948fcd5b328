"""``hunch study``: reproduces a published table or figure."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import hunch_studies as studies
from hunch import lm, methods
from hunch.cli.arms import JobBars
from hunch.cli.options import read
from hunch.core import HunchError, UsageError
from hunch.runs.compare import Job
from hunch.runs.folder import missing, require_folder
from hunch.runs.models import Outlined, load_models
from hunch_studies import stale as freshness
from hunch_studies.archive import archived
from hunch_studies.study import FULL, SMOKE, Part, Scale, Study, Watch, conduct


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Size of a study, and its folder."""

    smoke: bool = False
    """Make a short run to test that the study works; its results mean nothing."""
    seeds: int | None = None
    """Runs per method. Default: that of the study, with --smoke 1."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-NAME."""
    archive: Path | None = None
    """File of results, NAME.tar.xz: runs that it holds are not repeated, and those that finish are added."""
    workers: int | None = None
    """Runs at a time. Default: the number of processors."""
    data: str = ""
    """Folder of recorded answers, for studies that read them."""
    lm: tuple[str, ...] = ()
    """Additional language models, for studies that accept them."""
    part: tuple[str, ...] = ()
    """Only the part of this title, or else the parts whose title contains one of these texts."""
    arm: tuple[str, ...] = ()
    """Only the arm of this label, or else those whose label contains one of these texts. Tables that come
    from no runs are left out."""


@dataclass(frozen=True, kw_only=True)
class StaleOptions:
    """Rows of docs/systems.md whose method no longer does in a short run what it did."""

    stale: tuple[str, ...] = ()
    """Only these rows. Default: all that have a short run."""
    store: bool = False
    """Store what the runs do now, after the studies of these rows were run again."""


def stale(arguments: Sequence[str]) -> None:
    """Name the rows of docs/systems.md that are stale, and those that have no short run.

    Raises:
        HunchError: if there are stale ones.
    """
    options = read(StaleOptions, prog="hunch study", args=list(arguments))
    chosen = freshness.named(options.stale)
    if options.store:
        return freshness.store(chosen)
    changed = list[str]()
    for row, differs in freshness.stale(chosen):
        print(f"{'stale' if differs else 'as stored'}: {row}", flush=True)
        changed += [row] if differs else []
    if not options.stale:
        print("".join(f"not checked: {row}: {why}\n" for row, why in freshness.APART.items()), end="")
    if changed:
        raise HunchError(f"{len(changed)} of {len(chosen)} rows are stale: run their studies again.")


def study(arguments: Sequence[str]) -> None:
    """Run a study, or the rest of it, and print the path of its page."""
    if arguments[:1] == ["--stale"]:
        return stale(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        lines = [f"  {name}\n      {studies.question(name)}" for name in studies.names()]
        usage = "usage: hunch study NAME [--smoke] [--seeds K] [--part TEXT ...] [--out DIR]"
        usage += "\n       hunch study --stale [ROW ...] [--store]"
        print(f"{usage}\n\n" + "\n".join(lines))
        sys.exit(0 if arguments else 2)
    found = studies.find(arguments[0])
    if found.command is not None:
        return found.command(arguments[1:])
    options = read(StudyOptions, prog=f"hunch study {found.name}", args=list(arguments[1:]))
    scale = _scale(found, options)
    out = options.out or Path("runs") / f"study-{found.name}{'-smoke' if options.smoke else ''}"
    require_folder(out)
    made = missing(out)
    try:
        page = _conduct(found, scale, out, options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; the runs are saved in {out}, and the same command continues them."
        ) from None
    except UsageError:
        if made and not any(path.is_file() for path in made.rglob("*")):
            shutil.rmtree(made, ignore_errors=True)
        raise
    print(f"Page: {page}")


def _scale(found: Study, options: StudyOptions) -> Scale:
    """Return the size of the study that the options ask for, if the study has these options."""
    for name in ("seeds", "workers"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}.")
    if options.lm:
        _check(found, options.lm)
    if bool(options.data) != bool(found.recorded):
        needs = (
            f"reads {found.recorded}: give their folder with --data" if found.recorded else "reads no data"
        )
        raise UsageError(f"{found.name} {needs}.")
    if options.data and not Path(options.data).is_dir():
        raise UsageError(f"There is no folder {options.data!r}.")
    full = SMOKE if options.smoke else replace(FULL, seeds=found.seeds)
    return replace(
        full,
        seeds=options.seeds or full.seeds,
        lms=options.lm,
        data=options.data,
        parts=options.part,
        arms=options.arm,
    )


def _conduct(found: Study, scale: Scale, out: Path, options: StudyOptions) -> Path:
    """Run the study, with bars of progress for one part at a time; return the path of its page."""
    with ExitStack() as stack, ExitStack() as bars:

        def watch(part: Part, todo: Sequence[Job]) -> Watch:
            bars.close()
            print(part.title)
            return bars.enter_context(JobBars(todo)).follow

        if options.archive:
            parts = [part.folder for part in found.parts(scale, out / "data")]
            restored = stack.enter_context(archived(options.archive, out, parts))
            print(f"Runs restored from {options.archive}: {restored:,}")
        return conduct(found, out, scale, workers=options.workers, watch=watch, report=print)


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
        model = load_models({"lm": spec}, Outlined())["lm"]
        if not set(needed) & model.verbs:
            raise UsageError(f"{found.name} needs a model that can {' or '.join(needed)}; {spec} cannot.")
