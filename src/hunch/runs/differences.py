"""Describes how two runs differ, setting by setting."""

from __future__ import annotations

import json
from typing import Any


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


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
