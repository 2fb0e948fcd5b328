"""A study: a claim, runs that test it, and a page with published and measured results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from itertools import starmap
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeAlias

from hunch.core import HunchError, UsageError
from hunch.lm import Cached, load
from hunch.lm.shelf import SHELF
from hunch.report.curves import draw_curves
from hunch.report.lead import leads
from hunch.report.table import Row, rows, verdict, write
from hunch.runs.compare import Arm, Job, Outcome, compare, jobs, refuse_others
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_json, read_lines, write_atomically
from hunch.runs.processes import end_with_parent, environment, thread_limits
from hunch.runs.stored import finished
from hunch.seal import sealed_json
from hunch_studies.transfer import Transfer, run_evaluations


@dataclass(frozen=True)
class Scale:
    """The size of a study, and additional models.

    Attributes:
        seeds: Runs per arm.
        share: Share of the full number of steps.
        lms: Additional models, for studies that accept them.
        data: Folder of recorded answers, for studies that read them.
        parts: Only parts whose title contains one of these texts; all if there is none.
        arms: Only arms whose label contains one of these texts, and no results that come from no runs; all if
            there is none.
    """

    seeds: int
    share: float
    lms: tuple[str, ...] = ()
    data: str = ""
    parts: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()

    @property
    def smoke(self) -> bool:
        """True if it is too small for a result."""
        return self.share < 1

    def steps(self, full: int) -> int:
        """Return the number of steps at this scale, given the full number."""
        return max(200, round(full * self.share))

    def episodes(self, full: int) -> int:
        """Return the number of evaluation episodes at this scale, given the full number."""
        return max(2, round(full * self.share))


FULL = Scale(seeds=3, share=1.0)
SMOKE = Scale(seeds=1, share=0.05)


@dataclass(frozen=True, eq=False)
class Seeded(Arm):
    """Runs that differ by more than their seed.

    Attributes:
        settings_by_seed: Called with a seed; returns the settings that replace those of the arm, by name.
    """

    settings_by_seed: Callable[[int], Mapping[str, Any]] = lambda seed: {}

    def at(self, seed: int) -> RunConfig:
        """Return the settings of the run of a seed."""
        return replace(super().at(seed), **self.settings_by_seed(seed))


Key: TypeAlias = tuple[Any, ...]


def model_of(spec: str) -> str:
    """Return the name of a model in a table: of its spec, or of the one whose answers a file holds.

    A file of the shelf has the shelf's name, however it is loaded.
    """
    source = spec.rpartition("model=")[2].partition("?")[0]
    files = {shelved.file: name for name, shelved in SHELF.items()}
    return files.get(Path(source).name, source)


@cache
def loaded(spec: str) -> Cached:
    """Return the model of a spec, and keep it: real weights take half a minute to load."""
    return load(spec)


def by_name(specs: Sequence[str], controls: Iterable[str] = ()) -> dict[str, str]:
    """Return the specs of models by their names in a table.

    Args:
        specs: The models.
        controls: Names that controls of the study have.

    Raises:
        UsageError: if two have one name, or one has that of a control, so that their rows could not be told
            apart.
    """
    named = {model_of(spec): spec for spec in specs}
    if len(named) < len(specs):
        raise UsageError(
            f"Two of these models have one name, so their rows could not be told apart: {specs}."
        )
    if taken := sorted(named.keys() & set(controls)):
        raise UsageError(f"{taken[0]} is a control of this study already: leave it out of --lm.")
    return named


def rows_beside(file: Path, labels: Iterable[str], seeds: int) -> list[dict[str, Any]]:
    """Return the rows of other arms and seeds in a file, which an earlier command may have left there."""
    asked = {(label, seed) for label in labels for seed in range(seeds)}
    return [row for row in read_lines(file) if (row["arm"], row["seed"]) not in asked]


def kept(
    path: Path, keys: Iterable[Key], measure: Callable[..., dict[str, Any]], *, workers: int = 1
) -> list[dict[str, Any]]:
    """Return a row for each key: from a file, or measured now and written there at once.

    Args:
        path: JSON lines, each a row with its ``key``.
        keys: Plain values, such as an arm and a seed.
        measure: Called with the values of a key that has no row yet; returns the rest of its row.
        workers: Processes that measure side by side; with more than one, ``measure`` is a function of a
            module.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    asked, known = list(keys), {tuple(row["key"]): row for row in read_lines(path)}
    todo = [key for key in dict.fromkeys(asked) if key not in known]
    with ExitStack() as stack:
        found: Iterable[dict[str, Any]] = starmap(measure, todo)
        if workers > 1 and todo:
            stack.enter_context(environment(thread_limits(1)))
            pool = stack.enter_context(ProcessPoolExecutor(workers, get_context("spawn"), end_with_parent))
            found = pool.map(measure, *zip(*todo, strict=True))
        for key, row in zip(todo, found, strict=True):
            known[key] = {"key": list(key), **row}
            write_atomically(path, b"".join(map(sealed_json, known.values())))
    return [known[key] for key in asked]


def place_name(title: str) -> str:
    """Return a title as the name of a folder."""
    return "".join(c if c.isalnum() else "-" for c in title.lower())


@dataclass(frozen=True)
class Part:
    """Runs that are compared with each other, in one environment.

    Attributes:
        title: Title of the comparison.
        arms: Label and settings of each arm; empty if there is only ``beside``.
        transfer: Evaluations of the trained agents of the first arm, if any.
        measure: Called after the runs with the arms that have any, the number of seeds and the part's folder;
            returns further results of these runs in Markdown.
        beside: Called with the part's folder once all of its runs are finished; returns further results in
            Markdown.
        players: Labels of what ``beside`` measures, where single ones can be chosen; it is told of the choice
            by the scale.
        prepare: Called before the runs: it makes what they read, such as recorded data, unless it is there.
        most: Maximum number of seeds, for runs that take long; 0 for no maximum.
        apart: The runs are not compared with each other, because their environments or budgets differ; then
            only ``measure`` and ``beside`` tell of them.
    """

    title: str
    arms: tuple[Arm, ...]
    transfer: Transfer | None = None
    measure: Callable[[Sequence[Arm], int, Path], str] | None = None
    beside: Callable[[Path], str] | None = None
    players: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    most: int = 0
    apart: bool = False

    def seeds(self, scale: Scale) -> int:
        """Return the number of seeds at a scale."""
        return min(scale.seeds, self.most or scale.seeds)

    def only(self, labels: Collection[str]) -> Part:
        """The part with the arms of these labels, and without the results that none of the labels names."""
        arms = tuple(arm for arm in self.arms if arm.label in labels)
        trained = self.transfer if arms[:1] == self.arms[:1] else None
        players = tuple(player for player in self.players if player in labels)
        beside = self.beside if players else None
        return replace(self, arms=arms, transfer=trained, beside=beside, players=players)

    @property
    def folder(self) -> str:
        """Name of the part's folder."""
        return place_name(self.title)


def runs_of(arm: Arm, seeds: int, folder: Path) -> list[Path]:
    """Return the folders of an arm's runs, seed by seed.

    Raises:
        UsageError: if one is not finished: they belong to a part that comes first.
    """
    found = [job.folder for job in jobs([arm], seeds, folder)]
    for run in found:
        if finished(run) is None:
            raise UsageError(f"{run} holds no finished run: first run the part {folder.name}.")
    return found


def finished_runs(folder: Path) -> dict[int, Path]:
    """Return the finished runs in the folder of an arm, by seed."""
    seeds = {int(run.name.removeprefix("seed-")): run for run in folder.glob("seed-*")}
    return {seed: seeds[seed] for seed in sorted(seeds) if finished(seeds[seed]) is not None}


@dataclass(frozen=True)
class Study:
    """A claim of a paper, and the runs that test it.

    Attributes:
        name: Name on the command line.
        question: The question of the study, in one sentence.
        published: The paper's results with their place, in Markdown.
        deviations: Differences from the paper's setting, in Markdown.
        parts: Returns the runs, given the scale and a folder for data.
        lm_for: The method in which additional models are used; empty if none are accepted.
        seeds: Default number of runs per arm.
        recorded: The recorded answers that it reads, which the user must fetch; empty if there are none.
        command: Does the study, given its own options, if it has no runs.
    """

    name: str
    question: str
    published: str
    deviations: str
    parts: Callable[[Scale, Path], Sequence[Part]]
    lm_for: str = ""
    seeds: int = 3
    recorded: str = ""
    command: Callable[[Sequence[str]], None] | None = None


def selected(names: Iterable[str], texts: Sequence[str]) -> set[str]:
    """The names that some texts choose, in upper or lower case: the one that equals it, else all that contain
    it; all names if there are no texts.
    """
    known = {name: name.lower() for name in names}
    found: set[str] = set() if texts else set(known)
    for text in map(str.lower, texts):
        exact = text in known.values()
        found |= {name for name, low in known.items() if (low == text if exact else text in low)}
    return found


def chosen(study: Study, scale: Scale, data: Path) -> list[Part]:
    """The parts of a study that the scale asks for.

    Raises:
        UsageError: if there are none; the message lists what there is to choose from.
    """
    every = list(study.parts(scale, data))
    titles = selected((part.title for part in every), scale.parts)
    parts = [part for part in every if part.title in titles]
    if not parts:
        raise UsageError(
            f"{study.name} has no part {scale.parts[0]!r}; it has {'; '.join(p.title for p in every)}."
        )
    if not scale.arms:
        return parts
    labels = dict.fromkeys(
        label for part in parts for label in (*(arm.label for arm in part.arms), *part.players)
    )
    wanted = selected(labels, scale.arms)
    narrowed = [part.only(wanted) for part in parts]
    if found := [part for part in narrowed if part.arms or part.players]:
        return found
    have = f"it has {'; '.join(labels)}" if labels else "its results come from no runs that could be chosen"
    raise UsageError(f"{study.name} has no arm {scale.arms[0]!r}; {have}.")


AVERAGED: Final = """\
Success and return are those of the episodes in the last quarter of the steps: interquartile mean over {seeds}
seeds (plain mean below four seeds) with its 95 % bootstrap interval, or, below five seeds, with their range.
Area: mean of the success rates in the ten tenths of the steps. Half: median over seeds of the steps until
half of 50 episodes, and half of the 50 after them, succeeded. Verdict: shown if Student's two-sided 95 %
interval of the lead, paired by seed, is above 0; not shown does not mean that the arms are equal; cannot be
shown here names what is missing. Lead and share: paired by seed, with Student's 95 % interval; a run that did
not get to half counts with all of its steps. Requests are counted by role. Cache hits are those that the
cache answered, calls the others. Requests, hits, calls and minutes are sums over all seeds."""

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
    """Execute the remaining runs of a study, and write its tables, pictures and page.

    Args:
        study: The study.
        out: Its folder; finished runs in it are not repeated.
        scale: Size of the study.
        workers: Processes at a time. Default: the number of processors.
        watch: Makes the progress display for a part and its jobs.
        report: Called with a line on each evaluation of a trained agent.

    Returns:
        The page.

    Raises:
        HunchError: if runs failed; the same call retries them.
        UsageError: if the scale asks for a part or an arm that there is not.
    """
    parts = chosen(study, scale, out / "data")
    out.mkdir(parents=True, exist_ok=True)
    sections: list[str] = []
    failed: list[str] = []
    for part in parts:
        folder = out / part.folder
        if part.prepare:
            report(f"{part.title}: making what its runs read, unless it is there")
            part.prepare()
        todo = jobs(part.arms, part.seeds(scale), folder)
        refuse_others(todo)
        outcomes = compare(todo, workers=workers, watch=watch(part, todo)) if todo else []
        failed += [f"{o.job.arm.label}, seed {o.job.seed}: {o.reason}" for o in outcomes if o.result is None]
        sections.append(_section(part, outcomes, part.seeds(scale), folder))
        if part.transfer:
            trained = [o.job for o in outcomes if o.result and o.job.arm is part.arms[0]]
            section, failures = run_evaluations(part.transfer, trained, folder, workers, report)
            sections.append(section)
            failed += failures
    page = out / "page.md"
    write_atomically(page, _page(study, scale, sections, any(part.arms for part in parts)).encode())
    if failed:
        raise HunchError(
            f"{len(failed)} runs of the study failed, such as {failed[0]}; the same command retries them."
        )
    return page


def _section(part: Part, outcomes: Sequence[Outcome], seeds: int, folder: Path) -> str:
    """Write a part's table and picture, and return its section of the page."""
    complete = all(outcome.result for outcome in outcomes)
    beside = f"{part.beside(folder)}\n\n" if part.beside and complete else ""
    done = list(dict.fromkeys(outcome.job.arm for outcome in outcomes if outcome.result))
    measured = ""
    if part.measure and done and complete:
        measured = f"{part.measure(done, seeds, folder)}\n\n"
    elif part.measure:  # it may pair runs by their seeds
        measured = "What is measured of these runs waits until all runs have finished.\n\n"
    if part.apart and not measured and not beside:
        waits = "results that compare them need all arms" if complete else "other runs have not finished"
        return f"### {part.title}\n\nThe finished runs are in `{folder.name}`; {waits}.\n"
    if part.apart or not part.arms:
        return f"### {part.title}\n\n{measured}{beside}"
    if not any(outcome.result for outcome in outcomes):
        return f"### {part.title}\n\nNo run of this part finished.\n"
    table = rows(outcomes)
    write(table, folder)
    draw_curves([o.job for o in outcomes if o.result], folder / "curves.png", part.title)
    return (
        f"### {part.title}\n\n{markdown(table)}\n\n{_leads(outcomes)}{_models(outcomes)}{measured}{beside}"
        f"![{part.title}]({folder.name}/curves.png)\n"
    )


def _leads(outcomes: Sequence[Outcome]) -> str:
    """Return the table of what each model saves, paired by seed; empty if there is nothing to compare."""
    lines = ["| arm | beside | pairs | lead in area | share of its steps to half |", "|---|---|---|---|---|"]
    found = leads(outcomes)
    lines += [f"| {x.arm} | {x.baseline} | {x.seeds} | {x.area.short()} | {x.share.short()} |" for x in found]
    return "\n".join([*lines, "", ""]) if found else ""


def _models(outcomes: Sequence[Outcome]) -> str:
    """Name the revision of each language model: results of an archive may be those of an earlier one."""
    records = [read_json(o.job.folder / "config.json") or {} for o in outcomes if o.result]
    used = [model for record in records for model in record.get("models", {}).values()]
    known = [model for model in used if model["revision"]]  # a model that is trained has none
    names = sorted({f"`{model['name']}` {model['revision'].partition(':')[0]}" for model in known})
    return f"Revisions of the models: {', '.join(names)}.\n\n" if names else ""


def markdown(table: Sequence[Row]) -> str:
    """Return a table in Markdown, with results, evidence level and cost."""
    names = ["arm", "model", "evidence", "success", "return", "area", "steps to half"]
    names += ["requests", "model calls", "cache hits", "tokens", "minutes"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for row in table:
        half = "never" if row.steps_to_half is None else f"{row.steps_to_half:,}"
        cells = (row.label, f"`{row.model}`", row.evidence, row.success, row.returns, row.area, half)
        asked = ", ".join(f"{role} {n:,}" for role, n in row.requests.items()) or "-"
        cost = (asked, f"{row.calls:,}", f"{row.hits:,}", f"{row.tokens:,}", f"{row.seconds / 60:.1f}")
        lines.append("| " + " | ".join(map(str, (*cells, *cost))) + " |")
    return "\n".join([*lines, "", *(f"- {line}." for line in verdict(table))])


def _page(study: Study, scale: Scale, sections: Sequence[str], runs: bool) -> str:
    """Return the page; ``runs`` says whether it reports runs."""
    averaged = f"{AVERAGED.format(seeds=scale.seeds)}\n\n" if runs else ""
    smoke = "\n**This was the smoke run: too short to tell anything.**\n" if scale.smoke else ""
    options = (" --smoke" if scale.smoke else "") + (" --data FOLDER" if scale.data else "")
    for name, texts in (("lm", scale.lms), ("part", scale.parts), ("arm", scale.arms)):
        options += "".join([f" --{name}", *(f" '{text}'" for text in texts)]) if texts else ""
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
