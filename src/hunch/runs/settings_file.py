"""Reads settings of a run from a file: YAML, TOML or JSON, such as the ``config.json`` of a run.

The names are those of ``config.json``: ``method``, ``env``, ``lm``, ``steps`` and the other settings,
``env_options`` with the options of the environment, and ``options`` with those of the method.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from hunch import methods
from hunch.core import UsageError
from hunch.lm.budget import Budget
from hunch.lm.settings import Limits
from hunch.ranges import check_settings
from hunch.renamed import Renamed
from hunch.runs.config import Saving, Streams
from hunch.runs.earlier import current_settings
from hunch.runs.environments import refuse_installed_function
from hunch.runs.evaluations import Evaluation
from hunch.runs.folder import FORMAT
from hunch.suggest import suggest
from hunch.text_files import read_text

Config = TypeVar("Config")


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the settings in a file; a run's folder stands for its ``config.json``.

    Raises:
        UsageError: if the file does not exist or cannot be read, or its run can only be made in Python.
    """
    if not isinstance(path, str | Path):
        raise UsageError(f"Settings are read from a file, named by its path, not from {path!r}.")
    path = Path(path)
    file = path / "config.json" if path.is_dir() else path
    if file.suffix not in _READERS and file.exists():
        raise UsageError(f"{file} is not a settings file: its name must end in {', '.join(_READERS)}.")
    try:
        text = read_text(file)
        if not text.strip():
            raise UsageError(f"The settings file {file} is empty.")
        contents: Any = _READERS.get(file.suffix, _yaml)(text)
    except OSError as error:
        raise UsageError(f"The settings in {file} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise UsageError(f"The settings in {file} cannot be read: they are nested too deep.") from None
    except ValueError as error:
        reason = " ".join(str(error).replace('in "<unicode string>", ', "at ").split()).rstrip(" .:^")
        raise UsageError(f"The settings in {file} cannot be read: {reason}.") from None
    settings: Any = contents.get("run", contents) if isinstance(contents, dict) else contents
    if settings is not contents:  # a run's own record, perhaps of an earlier version
        settings = current_settings(settings)
    inner = [(f"{name} in ", settings.get(name, {})) for name in PARTS] if isinstance(settings, dict) else []
    for where, part in (("", settings), *inner):
        if not isinstance(part, dict) or not all(isinstance(name, str) for name in part):
            raise UsageError(f"{where}{file} must hold settings by name, as in 'steps: 2000'.")
    named = settings.get("method", "")
    if not all(isinstance(name, str) for name in (named if isinstance(named, list) else [named])):
        raise UsageError(f"method in {file} must be the name of a method, or a list of names.")
    if not isinstance(settings.get("out", ""), str):
        raise UsageError(f"out in {file} must be the name of a folder.")
    if objects := settings.pop("objects", ()):
        made = ", ".join(map(str, objects))
        raise UsageError(f"{file} is of a run made in Python with its own {made}, which no file can repeat.")
    refuse_installed_function(settings.get("env"))
    if settings is not contents and contents.get("format", 0) != FORMAT:
        settings = _without_removed_options(settings)
    return dict(settings)


def _without_removed_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Drop options that the method of a run of before does not have: they could not be changed there.

    Until format 2 methods also stored settings of other algorithms, with the values that they fixed.
    """
    options, name = settings.get("options"), settings.get("method")
    if not options or not name:
        return dict(settings)
    known = {entry.name for entry in fields(methods.find(name).config_class)}
    return {**settings, "options": {key: value for key, value in options.items() if key in known}}


def read_config(path: str | Path) -> dict[str, Any]:
    """Read settings from a file as arguments of :func:`hunch.train`, which can be changed first.

        hunch.train(**hunch.read_config("run.yaml") | {"steps": 2_000, "out": "runs/longer"})

    Args:
        path: A YAML, TOML or JSON file, the ``config.json`` of a run, or the folder of a run.

    Raises:
        UsageError: if the file cannot be read, or names no method.
    """
    settings = read_settings(path)
    if "method" not in settings:
        raise UsageError(f"{path} names no method.")
    name = settings.pop("method")
    options = {name: as_tuples(value) for name, value in settings.pop("options", {}).items() if name != "lm"}
    arguments: dict[str, Any] = {"agent": name}
    if not settings.setdefault("data", ""):
        del settings["data"]
    elif not settings.get("online"):
        settings |= {"env": None, "env_options": {}}
    settings.pop("online", None)
    if "budget" in settings:
        limits = changed(Limits(), settings["budget"], "The budget")
        check_settings(limits)
        settings["budget"] = Budget(**asdict(limits))
    for group, (kind, names) in GROUPS.items():
        values = {field_name: settings.pop(name) for name, field_name in names.items() if name in settings}
        if values:
            arguments[group] = kind(**values)
    return arguments | settings | options


GROUPS: dict[str, tuple[type[Any], dict[str, str]]] = {
    "streams": (
        Streams,
        {
            "envs": "envs",
            "env_options": "options",
            "processes": "processes",
            "task_seed": "task_seed",
            "lifetime": "lifetime",
        },
    ),
    "evaluation": (
        Evaluation,
        {"eval_every": "every", "eval_episodes": "episodes", "episodes_per_player": "episodes_per_player"},
    ),
    "saving": (Saving, {"keep_every": "every", "keep_last": "last"}),
}
"""The grouped arguments of :func:`hunch.train`, with their fields by the names of a settings file."""


def changed(config: Config, values: Mapping[str, Any], owner: str, prefix: str = "") -> Config:
    """Return settings with some values replaced; nested settings are dictionaries, and lists become tuples.

    Args:
        config: A dataclass of settings.
        values: The new values by name.
        owner: Name of the owner of the settings, for error messages.
        prefix: Prefix of names in error messages.

    Raises:
        UsageError: on an unknown name.
    """
    known = [entry.name for entry in fields(cast("Any", config))]
    new = {}
    for name, value in values.items():
        if isinstance(config, Renamed) and name in config.renamed:
            raise UsageError(f"{prefix}{name} is now {prefix}{config.renamed[name]}.")
        if name not in known:
            raise UsageError(f"{owner} has no option {prefix}{name}; {suggest(name, known)}")
        inner = getattr(config, name)
        nested = is_dataclass(inner) and isinstance(value, Mapping)
        new[name] = changed(inner, value, owner, f"{prefix}{name}.") if nested else as_tuples(value)
    return cast("Config", replace(cast("Any", config), **new))


def as_tuples(value: Any) -> Any:
    """Return a value from a file with its lists replaced by tuples."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def _yaml(text: str) -> Any:
    import yaml

    # 1e-4 is a number, as in YAML 1.2; the package follows YAML 1.1.
    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+e[-+]?\d+$", re.I), None)
    try:
        return yaml.load(text, loader)
    except yaml.YAMLError as error:
        raise ValueError(error) from error


def _json(text: str) -> Any:
    """Read JSON without its checksum, so that a ``config.json`` may be changed by hand."""
    contents = json.loads(text)
    return (
        {name: contents[name] for name in contents if name != "checksum"}
        if isinstance(contents, dict)
        else contents
    )


PARTS = ("env_options", "options")
_READERS: dict[str, Callable[[str], Any]] = {
    ".yaml": _yaml,
    ".yml": _yaml,
    ".toml": tomllib.loads,
    ".json": _json,
}
