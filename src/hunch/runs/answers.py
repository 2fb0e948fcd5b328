"""Answers to prompts in TRL's columns as recorded data: one JSON object a line.

Columns are ``prompt`` with ``chosen`` and ``rejected`` (a group of two, rewards 1 and 0), or with
``completion`` and ``label`` (reward 1 or 0), ``reward``, or neither (reward 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hunch.core import UsageError
from hunch.envs.prompts import read, shown
from hunch.rl.dataset import Dataset, check, read_json_lines
from hunch.rl.recording import Recording


def read_data(file: Path, env: str, env_options: Mapping[str, Any]) -> Dataset:
    """Read a file of answers, or of episodes as :func:`hunch.rl.dataset.read_json_lines` does.

    Raises:
        UsageError: if a line is neither; the message names it.
    """
    if '"prompt"' not in file.read_text(errors="replace").partition("\n")[0]:
        return read_json_lines(file, env, env_options)
    episodes = list[Recording]()
    for number, row in enumerate(read(str(file), "chosen", "completion"), 1):
        texts = _texts(row, f"Line {number} of {file}")
        group = number if len(texts) > 1 else None
        prompt = shown(row["prompt"])
        episodes += [
            Recording((prompt, prompt), (None, None), (text,), (reward,), True, False, group=group)
            for text, reward in texts
        ]
    dataset = Dataset(env, dict(env_options), tuple(episodes), {"imported_from": file.name})
    check(dataset)
    return dataset


def _texts(row: Mapping[str, Any], where: str) -> list[tuple[str, float]]:
    """Return the texts of a line with their rewards."""
    if "chosen" not in row:
        return [(row["completion"], float(row.get("label", row.get("reward", 0.0))))]
    both = row["chosen"], row.get("rejected")
    if not all(isinstance(text, str) for text in both) or both[0] == both[1]:
        raise UsageError(f"{where} needs chosen and rejected as two different texts.")
    return list(zip(both, (1.0, 0.0), strict=True))
