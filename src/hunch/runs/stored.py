"""The settings of a run, read from its folder."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from hunch import methods
from hunch.core import HunchError, UsageError
from hunch.runs.config import RunConfig
from hunch.runs.files import read_json


def read_run(folder: str | Path) -> RunConfig:
    """Read the settings of the run in a folder.

    Raises:
        UsageError: if the folder holds no run.
        HunchError: if its ``config.json`` is damaged.
    """
    stored = read_json(Path(folder) / "config.json")
    if stored is None:
        raise UsageError(f"{folder} holds no run: there is no config.json.")
    try:
        settings = {**stored["run"], "objects": tuple(stored["run"].get("objects", ()))}
        options = settings["options"]
        if options is not None and "agent" not in settings["objects"]:
            options = _rebuild(methods.find(settings["method"]).config_class, options)
        config = RunConfig(**{**settings, "options": options})
        config.check_types()
    except (KeyError, TypeError, UsageError) as error:
        lacks = f"it has no {error}" if isinstance(error, KeyError) else error
        raise HunchError(f"{folder}/config.json is damaged or from another version: {lacks}.") from error
    return config


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
