"""``hunch study``: run a published table or figure again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from hunch import lm, methods, studies
from hunch.cli.options import read
from hunch.core import UsageError
from hunch.runs.compare import Job
from hunch.runs.folder import require_folder
from hunch.runs.progress import JobBars
from hunch.studies.study import FULL, SMOKE, Part, Study, Watch, conduct


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How large a study is run, and where it is kept."""

    smoke: bool = False
    """A short run, to see that it works; it tells nothing."""
    seeds: int | None = None
    """Runs per line. Default: 3 (icpi: 8), with --smoke 1."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-NAME."""
    workers: int | None = None
    """Runs at a time. Default: the processors at hand."""
    data: str = ""
    """Folder of recorded answers, for the studies that are made of some."""
    lm: tuple[str, ...] = ()
    """Language models of yours, for which the studies that take any add lines."""


def study(arguments: Sequence[str]) -> None:
    """Run a study, or what is left of it, and name its page."""
    if not arguments or arguments[0] in ("-h", "--help"):
        lines = [f"  {name}\n      {studies.find(name).question}" for name in studies.names()]
        usage = "usage: hunch study NAME [--smoke] [--seeds K] [--lm SPEC ...] [--out DIR]"
        print(f"{usage}\n\n" + "\n".join(lines))
        return
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
            f"reads {found.recorded}: name their folder with --data" if found.recorded else "reads no data"
        )
        raise UsageError(f"{found.name} {needs}.")
    if options.data and not Path(options.data).is_dir():
        raise UsageError(f"There is no folder {options.data!r}.")
    scale = replace(scale, data=options.data)
    out = options.out or Path("runs") / f"study-{found.name}{'-smoke' if options.smoke else ''}"
    require_folder(out)
    with ExitStack() as stack:

        def watch(part: Part, todo: Sequence[Job]) -> Watch:
            stack.close()  # the bars of the part before
            print(part.title)
            return stack.enter_context(JobBars(todo)).follow

        try:
            page = conduct(found, out, scale, workers=options.workers, watch=watch, report=print)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped; what was running is saved in {out}, and the same command goes on from there."
            ) from None
    print(f"Page: {page}")


def _check(found: Study, specs: Sequence[str]) -> None:
    """Refuse further models that the study could not use, before the first run starts."""
    if not found.lm_for:
        able = ", ".join(name for name in studies.names() if studies.find(name).lm_for)
        raise UsageError(f"{found.name} takes no further model; --lm is for {able}.")
    needed = methods.find(found.lm_for).models.get("lm")
    for spec in specs:
        if needed is None:  # a model that is trained
            lm.trainable(spec)
            continue
        model = lm.load(spec)
        if not set(needed) & model.verbs:
            raise UsageError(f"{found.name} needs a model that can {' or '.join(needed)}; {spec} cannot.")
