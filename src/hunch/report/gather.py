"""Finds the runs in folders, and sorts them into comparisons; damaged runs are left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import commonpath
from pathlib import Path
from typing import Any

from hunch import methods
from hunch.core import HunchError, UsageError
from hunch.report.curves import Points, course
from hunch.report.table import place
from hunch.runs.checkpoints import CHECKPOINT
from hunch.runs.compare import SEED, Arm, Job, Outcome, folder_name
from hunch.runs.differences import leaves
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_json, read_lines
from hunch.runs.first_answers import kept_in
from hunch.runs.folder import FAILURE, KEPT, STREAMS
from hunch.runs.result import Result
from hunch.runs.stored import finished, read_run

FILES = ("config.json", "summary.json", FAILURE, *STREAMS, str(CHECKPOINT))
"""Files that identify the folder of a run, even if it is incomplete."""


@dataclass(frozen=True, eq=False)
class Run:
    """A complete run.

    Attributes:
        name: Folder of the run, relative to the common parent of all folders.
        arm: The settings without the seed; an environment option that equals the run's seed
            in all of several otherwise equal runs becomes "seed".
        record: Contents of ``config.json``.
        points: Points of the run's learning curves.
        records: The records of the run's agent.
        first_answers: How models were asked, and what they said first, in words.
    """

    folder: Path
    name: str
    config: RunConfig
    arm: RunConfig
    record: dict[str, Any]
    result: Result
    points: Points
    records: list[dict[str, Any]]
    first_answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A folder that the report leaves out, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs in the same environment with the same steps, by arm; runs of an arm differ only in the seed."""

    place: str
    steps: int
    arms: dict[Arm, list[Run]]

    @property
    def title(self) -> str:
        """Title of the comparison: environment and steps."""
        return f"{self.place.removeprefix('hunch/')}, {self.steps:,} steps"

    @property
    def outcomes(self) -> list[Outcome]:
        """The runs as outcomes of a comparison."""
        return [
            Outcome(Job(arm, run.config.seed, run.folder), run.result)
            for arm, runs in self.arms.items()
            for run in runs
        ]


def collect(folders: Sequence[Path]) -> tuple[list[Comparison], list[LeftOut]]:
    """Read all runs in or below the folders.

    Returns:
        The comparisons, and the folders that were left out.

    Raises:
        UsageError: if a folder does not exist, or there is no complete run.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"There is no folder {folder}: name the one that --out named before.")
    run_folders = list(dict.fromkeys(path for folder in folders for path in _run_folders(folder.resolve())))
    root = Path(commonpath([path.parent for path in run_folders])) if run_folders else Path()
    runs, left_out = list[Run](), list[LeftOut]()
    for path in run_folders:
        name = path.relative_to(root).as_posix()
        try:
            runs.append(_once(_read(path, name), runs))
        except HunchError as error:
            left_out.append(LeftOut(name, str(error).replace(f"{root}/", "").rstrip(".")))
    if not runs:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in left_out)
        looked = ", ".join(map(str, folders))
        raise UsageError(f"There is nothing to report in {looked}: {reasons or 'it holds no run'}.")
    return _comparisons(runs), left_out


def _run_folders(folder: Path) -> list[Path]:
    if any((folder / name).exists() for name in FILES):
        return [folder]
    below = {path.parent for name in FILES[:-1] for path in folder.rglob(name)}
    below |= {path.parent.parent for path in folder.rglob(str(CHECKPOINT))}
    return sorted(below)


def _once(run: Run, earlier: Iterable[Run]) -> Run:
    """Check that a run is not counted twice, which would make results look more certain than they are."""
    for other in earlier:
        if other.config == run.config:
            raise HunchError(f"it has the same settings and seed as {other.name}.")
    return run


def _read(folder: Path, name: str) -> Run:
    try:
        return _complete(folder, name)
    except HunchError:
        raise
    except KeyError as error:
        raise HunchError(f"a file is damaged: {error} is missing.") from error
    except (ValueError, TypeError, AttributeError, OSError) as error:
        raise HunchError(f"a file is damaged: {error}.") from error


def _complete(folder: Path, name: str) -> Run:
    """Read a run.

    Raises:
        HunchError: if it failed, is not complete, or one of its files is missing, damaged or cut short.
    """
    if (folder / FAILURE).exists():
        raise HunchError(f"it failed: {(folder / FAILURE).read_text(encoding='utf-8', errors='replace')}")
    for file in ("config.json", "metrics.jsonl", "episodes.jsonl"):
        if not (folder / file).exists():
            raise HunchError(f"{file} is missing.")
    config, record = read_run(folder), read_json(folder / "config.json") or {}
    summary = read_json(folder / "summary.json")
    result = finished(folder)
    if summary is None or result is None:
        steps = f"{summary['steps']:,} of " if summary else ""
        raise HunchError(f"it is not complete: {steps}{config.steps:,} steps were requested.")
    drawn = course(folder, result.steps)
    for known in ("evidence", "models", "versions"):
        record[known]
    records = [line for name in KEPT for line in read_lines(folder / name)]
    if len(records) != summary.get("records", len(records)):
        raise HunchError(f"of its {summary['records']:,} records, {len(records):,} are there.")
    said = tuple(map(str, kept_in(folder)))
    return Run(folder, name, config, config, record, result, drawn, records, said)


def _comparisons(runs: Sequence[Run]) -> list[Comparison]:
    places: dict[tuple[str, int], list[Run]] = {}
    for run in _varied(runs):
        places.setdefault((place(run.arm), run.config.steps), []).append(run)
    return [Comparison(where, steps, _arms(members)) for (where, steps), members in sorted(places.items())]


def _varied(runs: Sequence[Run]) -> Iterator[Run]:
    """Yield the runs with the settings of their arms."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        fixed = {name: value for name, value in run.config.env_options.items() if not name.endswith("seed")}
        alike.setdefault(repr(replace(run.config, seed=0, env_options=fixed)), []).append(run)
    for group in alike.values():
        several = len({run.config.seed for run in group}) > 1
        for run in group:
            options = run.config.env_options
            seeded = {
                name: SEED for name in options if several and all(_is_seed(each, name) for each in group)
            }
            yield replace(run, arm=replace(run.config, env_options={**options, **seeded}))


def _is_seed(run: Run, name: str) -> bool:
    return name.endswith("seed") and run.config.env_options.get(name) == run.config.seed


def _arms(runs: Sequence[Run]) -> dict[Arm, list[Run]]:
    """Sort runs by their settings without the seed; methods are in the order of the table of methods."""
    order = {name: number for number, name in enumerate(methods.names())}
    alike: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (_label(run.config), run.config.seed)):
        alike.setdefault(repr(replace(run.arm, seed=0)), []).append(run)
    groups = sorted(alike.values(), key=lambda group: order.get(group[0].config.method, len(order)))
    stated = _stated(runs)
    known = [{stated.get(run.folder.parent) for run in group} for group in groups]
    named = [next(iter(names)) for names in known if len(names) == 1]
    places = [each for each in named if each is not None]
    if len({label for _, label in places}) == len(groups):
        # Each arm has the name, the place and so the colour of its comparison. Two comparisons may give arms
        # with different settings one name: those are named by what differs, below.
        both = sorted(zip(places, groups, strict=True), key=lambda each: each[0])
        return {Arm(label, group[0].arm): group for (_, label), group in both}
    configs = [group[0].arm for group in groups]
    return {
        Arm(_told_apart(config, configs), config): group
        for config, group in zip(configs, groups, strict=True)
    }


def _stated(runs: Sequence[Run]) -> dict[Path, tuple[int, str]]:
    """Return place and label of each arm by its folder, from the tables that ``hunch compare`` wrote."""
    stated: dict[Path, tuple[int, str]] = {}
    for folder in dict.fromkeys(run.folder.parent.parent for run in runs):
        try:
            rows = json.loads((folder / "table.json").read_text(encoding="utf-8"))
            labels = [str(row["label"]) for row in rows]
        except (OSError, ValueError, TypeError, LookupError, RecursionError):  # no comparison, or damaged
            continue
        stated |= {folder / folder_name(label): (place, label) for place, label in enumerate(labels)}
    return stated


def _label(config: RunConfig) -> str:
    control = "" if "agent" in config.objects else methods.find(config.method).control
    return f"{config.method}, {control}" if control and config.lm == "uniform" else config.method


def _told_apart(config: RunConfig, others: Sequence[RunConfig]) -> str:
    """Return the label, with the settings that distinguish it from others with the same label."""
    label = _label(config)
    flat = [leaves({**other.settings(), "seed": 0}) for other in others if _label(other) == label]
    settings = leaves({**config.settings(), "seed": 0})
    differing = [key for key in settings if any(other.get(key) != settings[key] for other in flat)]
    differences = ", ".join(f"{re.sub(r'^options[.]', '', key)}={settings[key]}" for key in differing)
    return f"{label} ({differences})" if differences else label
