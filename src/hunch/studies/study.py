"""What a study is: a claim, runs that test it, and a page with what was published and what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from hunch.core import HunchError
from hunch.report.curves import draw_curves
from hunch.report.table import Row, rows, verdict, write
from hunch.runs.compare import Arm, Job, Outcome, compare, jobs, refuse_others
from hunch.runs.files import write_atomically
from hunch.studies.transfer import Transfer, carry_out


@dataclass(frozen=True)
class Scale:
    """How large a study is run, and with which further models.

    Attributes:
        seeds: Runs an arm.
        share: Of the full number of steps.
        lms: Models of the user's, for which the studies that take any add lines.
        data: Folder of recorded answers, for the studies that are made of some.
    """

    seeds: int
    share: float
    lms: tuple[str, ...] = ()
    data: str = ""

    @property
    def smoke(self) -> bool:
        """True if it is too small to tell anything."""
        return self.share < 1

    def steps(self, full: int) -> int:
        """The steps at this scale, of so many in full."""
        return max(200, round(full * self.share))

    def episodes(self, full: int) -> int:
        """The episodes of an evaluation at this scale, of so many in full."""
        return max(2, round(full * self.share))


FULL = Scale(seeds=3, share=1.0)
SMOKE = Scale(seeds=1, share=0.05)


@dataclass(frozen=True)
class Part:
    """Runs that are compared with each other, in one environment.

    Attributes:
        title: What is compared.
        arms: Label and settings of each line; none if only ``beside`` is told.
        transfer: What the trained agents of the first arm are tried with, if anything.
        beside: Given the part's folder, what is to be told besides the runs, in Markdown; called after them.
    """

    title: str
    arms: tuple[Arm, ...]
    transfer: Transfer | None = None
    beside: Callable[[Path], str] | None = None

    @property
    def folder(self) -> str:
        """Name of the part's folder."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())


@dataclass(frozen=True)
class Study:
    """A claim of a paper, and the runs that test it.

    Attributes:
        name: As typed on the command line.
        question: What is asked, in one sentence.
        published: What the paper reports, in Markdown, with its place.
        deviations: What differs from the paper's setting, in Markdown.
        parts: Given the scale and a folder for data, the runs.
        lm_for: The method that further models are put into; empty if none are taken.
        seeds: Runs an arm, unless said otherwise.
        recorded: Which recorded answers it reads, as its user has to fetch them; empty if it reads none.
    """

    name: str
    question: str
    published: str
    deviations: str
    parts: Callable[[Scale, Path], Sequence[Part]]
    lm_for: str = ""
    seeds: int = 3
    recorded: str = ""


AVERAGED: Final = """\
Success and return are of the episodes of the last quarter of the steps: interquartile mean over seeds, of
which there are {seeds} (the mean where there are fewer than four), and its 95 % bootstrap interval; below
five seeds it is their range, and called so. Area: mean of the success rates of the ten tenths of the steps.
Half: median step after which half of 50 episodes succeeded, and half of the 50 after them. Beats: one-sided
rank-sum test over seeds, p <= 0.05; a no says that it was not shown.
Requests are what the agent asked, by role, from the cache or not; calls are those that it did not answer.
They and the minutes are of all seeds together."""

Watch: TypeAlias = Callable[[dict[Job, dict[str, Any]]], None]


def conduct(
    study: Study,
    out: Path,
    scale: Scale,
    *,
    workers: int | None = None,
    watch: Callable[[Part, Sequence[Job]], Watch],
    report: Callable[[str], None] = lambda line: None,
) -> Path:
    """Do what is left of a study's runs, and write its tables, pictures and page.

    Args:
        study: The study.
        out: Its folder; what was done there before is not done again.
        scale: How large.
        workers: Processes at a time. Default: the processors at hand.
        watch: Given a part and its jobs, what shows their progress.
        report: Called with a line on each evaluation of a trained agent.

    Returns:
        The page.

    Raises:
        HunchError: if runs failed; the same call tries them again.
    """
    out.mkdir(parents=True, exist_ok=True)
    sections: list[str] = []
    failed: list[str] = []
    parts = study.parts(scale, out / "data")
    for part in parts:
        folder = out / part.folder
        todo = jobs(part.arms, scale.seeds, folder)
        refuse_others(todo)
        outcomes = compare(todo, workers=workers, watch=watch(part, todo)) if todo else []
        failed += [f"{o.job.arm.label}, seed {o.job.seed}: {o.reason}" for o in outcomes if o.result is None]
        sections.append(_section(part, outcomes, folder))
        if part.transfer:
            trained = [o.job for o in outcomes if o.result and o.job.arm is part.arms[0]]
            section, failures = carry_out(part.transfer, trained, folder, workers, report)
            sections.append(section)
            failed += failures
    page = out / "page.md"
    write_atomically(page, _page(study, scale, sections, any(part.arms for part in parts)).encode())
    if failed:
        raise HunchError(
            f"{len(failed)} runs of the study failed, such as {failed[0]}; the same command tries them again."
        )
    return page


def _section(part: Part, outcomes: Sequence[Outcome], folder: Path) -> str:
    """Write a part's table and picture, and return its section of the page."""
    if not part.arms:
        return f"### {part.title}\n\n{part.beside(folder) if part.beside else ''}\n"
    table = rows(outcomes)
    write(table, folder)
    draw_curves([o.job for o in outcomes if o.result], folder / "curves.png", part.title)
    beside = f"{part.beside(folder)}\n\n" if part.beside else ""
    return f"### {part.title}\n\n{markdown(table)}\n\n{beside}![{part.title}]({folder.name}/curves.png)\n"


def markdown(table: Sequence[Row]) -> str:
    """A table as Markdown: what was found, on which evidence, and what it cost."""
    names = ["arm", "model", "evidence", "success", "return", "area", "steps to half"]
    names += ["requests", "model calls", "tokens", "minutes"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for row in table:
        half = "never" if row.steps_to_half is None else f"{row.steps_to_half:,}"
        cells = (row.label, f"`{row.model}`", row.evidence, row.success, row.returns, row.area, half)
        asked = ", ".join(f"{role} {n:,}" for role, n in row.requests.items()) or "-"
        cost = (asked, f"{row.calls:,}", f"{row.tokens:,}", f"{row.seconds / 60:.1f}")
        lines.append("| " + " | ".join(map(str, (*cells, *cost))) + " |")
    return "\n".join([*lines, "", *(f"- {line}." for line in verdict(table))])


def _page(study: Study, scale: Scale, sections: Sequence[str], runs: bool) -> str:
    """The page; ``runs`` says whether it tells of any, rather than of something else."""
    averaged = f"{AVERAGED.format(seeds=scale.seeds)}\n\n" if runs else ""
    smoke = "\n**This was the smoke run: too short to tell anything.**\n" if scale.smoke else ""
    specs = "".join(f" '{spec}'" for spec in scale.lms)
    options = (
        (" --smoke" if scale.smoke else "")
        + (" --data FOLDER" if scale.data else "")
        + (f" --lm{specs}" if specs else "")
    )
    return f"""# {study.name}

{study.question}
{smoke}
## Published

{study.published}

## Obtained

{averaged}{chr(10).join(sections)}
## Deviations

{study.deviations}

## Command

```bash
hunch study {study.name}{options}
```
"""
