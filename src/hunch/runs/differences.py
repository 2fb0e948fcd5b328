"""Describes how two runs differ, setting by setting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hunch import methods
from hunch.core import HunchError

_OF_METHOD = ("options", "settings")
"""What in a record of a run or of its agent holds settings of the method."""


def differences(there: dict[str, Any], asked: dict[str, Any]) -> str:
    """Describe the differences between two flat dictionaries of settings, in one line."""
    names = [*there, *(name for name in asked if name not in there)]
    keys = [key for key in names if there.get(key) != asked.get(key)]
    return "; ".join(f"{key}: {_short(there.get(key))} there, {_short(asked.get(key))} asked" for key in keys)


def leaves(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as flat ones with dotted names."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def decisive(record: Mapping[str, Any], run: Any) -> dict[str, Any]:
    """Return a record of a run or its agent without the method's settings that change memory and speed alone.

    Args:
        record: Settings of a run, with the method's ``options``, or the identity in a checkpoint, with the
            agent's ``settings`` and those of its ``run``.
        run: The settings of the run, which name the method.
    """
    free = _free(run)
    kept = {name: _without(value, free) if name in _OF_METHOD else value for name, value in record.items()}
    if isinstance(kept.get("run"), Mapping):
        kept["run"] = decisive(kept["run"], run)
    return kept


def _free(run: Any) -> set[str]:
    """Return the names of a method's settings that change memory and speed alone."""
    try:
        settings = fields(methods.find(str(run["method"])).config_class)
    except (HunchError, TypeError, KeyError):  # an agent from Python, or a damaged record
        return set()
    return {entry.name for entry in settings if "memory" in entry.metadata}


def _without(settings: Any, names: set[str]) -> Any:
    """Return settings without those of some names; a wrapper's hold those of its agent."""
    if not isinstance(settings, Mapping):
        return settings
    return {name: _without(value, names) for name, value in settings.items() if name not in names}


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
