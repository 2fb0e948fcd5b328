"""Reads a run from its folder: the settings, and the result if it is complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from hunch import methods
from hunch.core import EvidenceLevel, HunchError, UsageError
from hunch.extras import NotInstalledError
from hunch.ranges import NonNegativeInt, check_fields
from hunch.runs.config import RunConfig
from hunch.runs.earlier import current_settings
from hunch.runs.environments import refuse_installed_function
from hunch.runs.files import read_json, read_lines
from hunch.runs.folder import FORMAT
from hunch.runs.result import Episodes, Result, late_success, read_episode


def read_run(folder: str | Path) -> RunConfig:
    """Read the settings of the run in a folder.

    Raises:
        UsageError: if the folder holds no run, or the package of its method is not installed.
        HunchError: if its ``config.json`` is damaged.
    """
    record = read_record(folder)
    if isinstance(record.get("run"), dict):
        refuse_installed_function(record["run"].get("env"))
    try:
        settings = current_settings(record["run"])
        settings = {**settings, "objects": tuple(settings.get("objects", ()))}
        options = settings["options"]
        if options is not None and "agent" not in settings["objects"]:
            options = _rebuild(methods.find(settings["method"]).config_class, options)
        config = RunConfig(**{**settings, "options": options})
        config.check_types()
    except NotInstalledError as error:
        raise NotInstalledError(f"{folder} cannot be read: {error}") from error
    except (KeyError, TypeError, UsageError) as error:
        lacks = f"it has no {error}" if isinstance(error, KeyError) else error
        raise HunchError(f"{folder}/config.json is damaged or from another version: {lacks}.") from error
    return config


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read the ``config.json`` of a run: settings, models, versions and evidence level.

    Raises:
        UsageError: if the folder holds no run.
        HunchError: if the file is damaged, or a later version of Hunch wrote it.
    """
    record = read_json(Path(folder) / "config.json")
    if record is None:
        inside = sorted(Path(folder).glob("*/seed-*/config.json")) or sorted(
            Path(folder).glob("*/config.json")
        )
        if inside:
            raise UsageError(f"{folder} holds several runs: name one of them, such as {inside[0].parent}.")
        raise UsageError(f"{folder} holds no run: there is no config.json. Name the folder that --out named.")
    number = record.get("format", 0)
    if not isinstance(number, int) or number > FORMAT:
        raise HunchError(f"{folder} is of a later version of Hunch (format {number}): install that version.")
    try:
        check_fields(record, {name: hint for name, hint in RECORD.items() if name in record})
    except UsageError as error:
        raise HunchError(f"{folder}/config.json is damaged: {error}") from error
    return record


def _rebuild(cls: type[Any], values: dict[str, Any]) -> Any:
    """Rebuild a config dataclass, including nested ones, from parsed JSON."""
    hints = get_type_hints(cls)
    arguments = {}
    for entry in fields(cls):
        if entry.name not in values and "later" in entry.metadata:
            continue
        value = values[entry.name]
        if is_dataclass(hints[entry.name]):
            value = _rebuild(hints[entry.name], value)
        arguments[entry.name] = tuple(value) if isinstance(value, list) else value
    return cls(**arguments)


RECORD: Mapping[str, Any] = {
    "evidence": EvidenceLevel | None,
    "models": dict[str, dict[str, str | None]],
    "versions": dict[str, str | None],
}
"""Types of the parts of ``config.json`` besides the settings."""
SUMMARY: Mapping[str, Any] = {
    "steps": NonNegativeInt,
    "episodes": NonNegativeInt,
    "usage": dict[str, float],
    "models": dict[str, dict[str, float]],
    "seconds": float,
    "evidence": EvidenceLevel | None,
}
"""Types of the parts of ``summary.json`` that are read again."""
LATER: Mapping[str, Any] = {"evaluations": NonNegativeInt, "records": NonNegativeInt}
"""Types of parts that summaries of before do not have."""
_EPISODE: dict[str, type[int]] = {
    "seed": int,
    "step": int,
    "episode": int,
    "length": int,
    "success": bool,
    "evaluation": bool,
}
_LARGEST = 2**63


def finished(folder: Path) -> Result | None:
    """Read the result of a complete run from its folder; None if it is not complete.

    Raises:
        HunchError: if a file is damaged or cut short.
    """
    summary, config = read_json(folder / "summary.json"), read_json(folder / "config.json")
    records = read_lines(folder / "episodes.jsonl")
    try:
        if summary is None or config is None:
            return None
        check_fields(summary, SUMMARY)
        check_fields(summary, {name: hint for name, hint in LATER.items() if name in summary})
        if summary["steps"] < config["run"]["steps"]:
            return None
        return _result(folder, summary, config["run"]["steps"], records)
    except UsageError as error:  # here and below: written by hand, or by another program
        raise HunchError(f"{folder} holds a damaged file: {error}") from error
    except (KeyError, TypeError) as error:
        raise HunchError(f"{folder} holds a damaged file: {error} is missing or wrong.") from error


def read_episodes(records: Sequence[dict[str, Any]]) -> tuple[Episodes, Episodes]:
    """Read the lines of ``episodes.jsonl``; return those of the training, and those of evaluations.

    Raises:
        KeyError: if a value is missing or has another type; it names the value.
    """
    episodes, evaluations = Episodes(), Episodes()
    for record in records:
        for name, kind in _EPISODE.items():  # of many lines, so that each check has to be short
            value = record[name]
            if type(value) is not kind or not 0 <= value < _LARGEST:
                raise KeyError(name)
        value = record["return"]
        if not (value is None or (type(value) in (int, float) and abs(value) < _LARGEST)):
            raise KeyError("return")
        if type(record["actions"]) is not list or not all(type(text) is str for text in record["actions"]):
            raise KeyError("actions")
        value = record.get("task_seed")
        if not (value is None or (type(value) is int and 0 <= value < _LARGEST)):
            raise KeyError("task_seed")
        (evaluations if record["evaluation"] else episodes).append(read_episode(record))
    return episodes, evaluations


def _result(folder: Path, summary: dict[str, Any], asked: int, records: Sequence[dict[str, Any]]) -> Result:
    episodes, evaluations = read_episodes(records)
    counted = {"evaluations": len(evaluations), **summary}  # summaries of before do not count evaluations
    for name, read in ("episodes", episodes), ("evaluations", evaluations):
        if len(read) != counted[name]:
            count = f"{len(read):,} of {counted[name]:,}"
            raise HunchError(f"{folder / 'episodes.jsonl'} holds {count} {name}.")
    return Result(
        steps=summary["steps"],
        requested=asked,
        success=late_success(episodes, evaluations, asked),
        episodes=episodes,
        evaluations=evaluations,
        usage=summary["usage"],
        models=summary["models"],
        seconds=summary["seconds"],
        evidence=summary["evidence"],
    )
