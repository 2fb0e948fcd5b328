"""Reads settings that earlier versions stored, by today's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from hunch import methods
from hunch.core import UsageError
from hunch.renamed import Renamed
from hunch.runs.config import RunConfig


def current_settings(run: Any) -> Any:
    """Return the settings in a run's record with the options of its method by today's names.

    Raises:
        UsageError: if one has no equal today.
    """
    if not isinstance(run, dict) or not isinstance(run.get("options"), dict) or run.get("objects"):
        return run
    return {**run, "options": current(methods.find(str(run.get("method"))).config_class, run["options"])}


def current_identity(identity: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity in a checkpoint with the settings of its run and of its agent by today's names.

    Args:
        identity: The identity.
        asked: The settings that the agent has today; some agents have only a part of their method's.

    Raises:
        UsageError: if one has no equal today.
    """
    run = identity.get("run")
    # A run of objects from Python has no settings that could be read by name.
    if not isinstance(run, dict) or not isinstance(run.get("options"), dict) or run.get("objects"):
        return dict(identity)
    changed = {**identity, "run": current_settings(run)}
    if isinstance(identity.get("settings"), dict):
        cls = methods.find(str(run.get("method"))).config_class
        changed["settings"] = _with_later(cls, current(cls, identity["settings"]), asked)
    return changed


def current(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored settings of a dataclass by today's names, nested ones too."""
    settings = cls.current(values) if issubclass(cls, Renamed) else dict(values)
    hints = get_type_hints(cls)
    for name, value in settings.items():
        hint = hints.get(name)
        if isinstance(value, dict) and isinstance(hint, type) and is_dataclass(hint):
            settings[name] = current(hint, value)
    return settings


def _with_later(cls: type[Any], values: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored settings with the defaults of those asked for that did not exist yet, nested ones too."""
    settings = dict(values)
    hints = get_type_hints(cls)
    for entry in fields(cls):
        name, hint = entry.name, hints[entry.name]
        if name not in asked:
            continue
        if name not in settings and entry.metadata.get("later") and entry.default is not MISSING:
            settings[name] = entry.default
        elif isinstance(settings.get(name), dict) and isinstance(hint, type) and is_dataclass(hint):
            settings[name] = _with_later(hint, settings[name], asked[name])
    return settings


def completed(run: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a run's record with the defaults of those that only another run's record states.

    Settings that came later are not stored at their defaults, so a comparison would miss them.

    Args:
        run: The settings of a run of a known method.
        other: Those of another run of this method.
    """
    settings = _with_later(RunConfig, run, other)
    options, others = run.get("options"), other.get("options")
    if isinstance(options, dict) and isinstance(others, dict):
        cls = methods.find(str(run.get("method"))).config_class
        settings["options"] = _with_later(cls, options, others)
    return settings


def current_if_known(run: dict[str, Any]) -> dict[str, Any]:
    """Return the settings in a run's record by today's names; as they are if they have none today.

    For comparisons with the settings of another run, which then says what differs.
    """
    try:
        return dict(current_settings(run))
    except UsageError:
        return run
