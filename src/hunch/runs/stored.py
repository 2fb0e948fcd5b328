"""Reads a run from its folder: the settings, and the result if it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from hunch import methods
from hunch.core import HunchError, UsageError
from hunch.extras import NotInstalledError
from hunch.runs.config import RunConfig
from hunch.runs.environments import refuse_installed_function
from hunch.runs.files import read_json, read_lines
from hunch.runs.folder import FORMAT
from hunch.runs.result import Episodes, Result, late_success, read_episode
from hunch.runs.settings_file import current_settings


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
        raise UsageError(f"{folder} holds no run: there is no config.json.")
    number = record.get("format", 0)
    if not isinstance(number, int) or number > FORMAT:
        raise HunchError(f"{folder} is of a later version of Hunch (format {number}): install that version.")
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


def finished(folder: Path) -> Result | None:
    """Read the result of a complete run from its folder; None if it is not complete.

    Raises:
        HunchError: if a file is damaged or cut short.
    """
    summary, config = read_json(folder / "summary.json"), read_json(folder / "config.json")
    records = read_lines(folder / "episodes.jsonl")
    try:
        if summary is None or config is None or summary["steps"] < config["run"]["steps"]:
            return None
        return _result(folder, summary, config["run"]["steps"], records)
    except (KeyError, TypeError) as error:  # only files without checksums get here
        raise HunchError(f"{folder} holds a damaged file: {error} is missing or wrong.") from error


def _result(folder: Path, summary: dict[str, Any], asked: int, records: Sequence[dict[str, Any]]) -> Result:
    episodes = Episodes(read_episode(r) for r in records if not r["evaluation"])
    evaluations = Episodes(read_episode(r) for r in records if r["evaluation"])
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
