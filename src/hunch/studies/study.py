"""What a study is: a claim, runs that test it, and a page with what was published and what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hunch.core import HunchError
from hunch.report.curves import draw_curves
from hunch.report.table import Row, rows, write
from hunch.runs.compare import Arm, Job, Outcome, compare, jobs, refuse_others
from hunch.runs.folder import write_atomically


@dataclass(frozen=True)
class Scale:
    """How large a study is run.

    Attributes:
        seeds: Runs an arm.
        share: Of the full number of steps.
    """

    seeds: int
    share: float

    def steps(self, full: int) -> int:
        """The steps at this scale, of so many in full."""
        return max(200, round(full * self.share))


FULL = Scale(seeds=3, share=1.0)
SMOKE = Scale(seeds=1, share=0.05)


@dataclass(frozen=True)
class Part:
    """Runs that are compared with each other, in one environment.

    Attributes:
        title: What is compared.
        arms: Label and settings of each line.
    """

    title: str
    arms: tuple[Arm, ...]

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
    """

    name: str
    question: str
    published: str
    deviations: str
    parts: Callable[[Scale, Path], Sequence[Part]]


Watch: TypeAlias = Callable[[dict[Job, dict[str, Any]]], None]


def conduct(
    study: Study,
    out: Path,
    scale: Scale,
    *,
    workers: int | None = None,
    watch: Callable[[Part, Sequence[Job]], Watch],
) -> Path:
    """Do what is left of a study's runs, and write its tables, pictures and page.

    Args:
        study: The study.
        out: Its folder; what was done there before is not done again.
        scale: How large.
        workers: Processes at a time. Default: the processors at hand.
        watch: Given a part and its jobs, what shows their progress.

    Returns:
        The page.

    Raises:
        HunchError: if runs failed; the same call tries them again.
    """
    out.mkdir(parents=True, exist_ok=True)
    sections, failed = [], []
    for part in study.parts(scale, out / "data"):
        folder = out / part.folder
        todo = jobs(part.arms, scale.seeds, folder)
        refuse_others(todo)
        outcomes = compare(todo, workers=workers, watch=watch(part, todo))
        failed += [outcome for outcome in outcomes if outcome.result is None]
        sections.append(_section(part, outcomes, folder))
    page = out / "page.md"
    write_atomically(page, _page(study, scale, sections).encode())
    if failed:
        first = failed[0]
        raise HunchError(
            f"{len(failed)} runs of the study failed, such as {first.job.arm.label}, seed {first.job.seed}: "
            f"{first.reason}; the same command tries them again."
        )
    return page


def _section(part: Part, outcomes: Sequence[Outcome], folder: Path) -> str:
    """Write a part's table and picture, and return its section of the page."""
    table = rows(outcomes)
    write(table, folder)
    draw_curves([o.job for o in outcomes if o.result], folder / "curves.png", part.title)
    return f"### {part.title}\n\n{markdown(table)}\n\n![{part.title}]({folder.name}/curves.png)\n"


def markdown(table: Sequence[Row]) -> str:
    """A table as Markdown: what was found, on which evidence, and what it cost."""
    lines = [
        "| line | model | evidence | success | return | steps to half | model calls | minutes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table:
        half = "never" if row.steps_to_half is None else f"{row.steps_to_half:,}"
        cells = (row.label, f"`{row.model}`", row.evidence, row.success, row.returns, half)
        cost = (f"{row.calls:,}", f"{row.seconds / 60:.1f}")
        lines.append("| " + " | ".join(map(str, (*cells, *cost))) + " |")
    return "\n".join(lines)


def _page(study: Study, scale: Scale, sections: Sequence[str]) -> str:
    smoke = "\n**This was the smoke run: too short to tell anything.**\n" if scale == SMOKE else ""
    return f"""# {study.name}

{study.question}
{smoke}
## Published

{study.published}

## Obtained

Success and return are of the episodes of the last quarter of the steps: interquartile mean over seeds, of
which there are {scale.seeds} (the mean where there are fewer than four), and its 95 % bootstrap interval.
Calls are those that the cache did not answer; they and the minutes are of all seeds together.

{chr(10).join(sections)}
## Deviations

{study.deviations}

## Command

```bash
hunch study {study.name}{" --smoke" if scale == SMOKE else ""}
```
"""
