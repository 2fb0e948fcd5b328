"""Finds how a run differs from the run in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hunch.core import HunchError, UsageError
from hunch.runs.files import read_json
from hunch.runs.writing import CHECKPOINT


def require_same(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the run in a folder, after comparing them with the given settings.

    Raises:
        UsageError: if they differ, except that the run in the folder may be shorter and can be extended.
        HunchError: if the folder's ``config.json`` is missing or damaged.
    """
    known = (read_json(folder / "config.json") or {}).get("run")
    if not isinstance(known, dict):
        raise HunchError(
            f"{folder} holds a run whose config.json is missing or damaged: restore it, or choose "
            "another --out."
        )
    longer = {**known, "steps": max(known.get("steps", 0), settings["steps"])}
    if longer != settings:
        raise _other_run(folder, known, settings)
    done = (read_json(folder / "summary.json") or {}).get("steps", 0)
    if done < settings["steps"] and not (folder / CHECKPOINT).exists():
        raise UsageError(
            f"{folder} holds the results of {done:,} steps, but its checkpoint is gone, so the run cannot go "
            "on: choose another --out."
        )
    return known


def _other_run(folder: Path, known: dict[str, Any], settings: dict[str, Any]) -> UsageError:
    """Return the error for a folder with another run: of other settings, or of a version with fewer."""
    parts = [(known, settings), (known.get("options"), settings["options"])]
    pairs = [(there, asked) for there, asked in parts if isinstance(there, dict) and isinstance(asked, dict)]
    lacking = sorted(name for there, asked in pairs for name in asked.keys() - there.keys() - {"objects"})
    if lacking and known.get("method") == settings["method"]:
        what = f"a run of another version of Hunch, without {', '.join(lacking)}"
    else:
        what = f"another run ({differences(leaves(known), leaves(settings))})"
    return UsageError(f"{folder} holds {what}: choose another --out.")


def differences(there: dict[str, Any], asked: dict[str, Any]) -> str:
    """Describe the differences between two flat dictionaries of settings, in one line."""
    keys = [key for key in {**there, **asked} if there.get(key) != asked.get(key)]
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
