"""Answers to prompts in TRL's columns, read as recordings: one JSON object a line.

Columns are ``prompt`` with ``chosen`` and ``rejected`` (a group of two, rewards 1 and 0), or with
``completion`` and ``label`` (reward 1 or 0), ``reward``, or neither (reward 0).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hunch.core import UsageError
from hunch.rl.dataset import Dataset, check
from hunch.rl.recording import Recording


def is_answers(file: Path) -> bool:
    """Return whether the first line of a file has the column ``prompt``."""
    try:
        with open(file) as lines:
            row = json.loads(next(lines, "null"))
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and "prompt" in row


def read_answers(file: Path, env: str, env_options: Mapping[str, Any]) -> Dataset:
    """Read answers as recordings of one step.

    Args:
        file: The file.
        env: Id of the environment whose prompts are answered.
        env_options: Its options.

    Raises:
        UsageError: if a line is not an answer; the message names it.
    """
    episodes = list[Recording]()
    for number, line in enumerate(file.read_text().splitlines(), 1):
        try:
            row = json.loads(line)
            texts = _texts(row)
        except (ValueError, KeyError, TypeError) as error:
            problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise UsageError(f"Line {number} of {file} is not an answer: {problem}.") from None
        grouped = number if len(texts) > 1 else None
        episodes += [_recording(row["prompt"], text, reward, grouped) for text, reward in texts]
    dataset = Dataset(env, dict(env_options), tuple(episodes), {"imported_from": file.name})
    check(dataset)
    return dataset


def _texts(row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the texts of a line with their rewards."""
    if "chosen" in row:
        found = [(row["chosen"], 1.0), (row["rejected"], 0.0)]
        if found[0][0] == found[1][0]:
            raise ValueError("both texts are equal")
    else:
        found = [(row["completion"], float(row.get("label", row.get("reward", 0.0))))]
    if not all(isinstance(text, str) for text in (row["prompt"], *(text for text, _ in found))):
        raise TypeError("prompt and texts must be texts")
    return found


def _recording(prompt: str, text: str, reward: float, group: int | None) -> Recording:
    return Recording((prompt, prompt), (None, None), (text,), (reward,), True, False, group=group)
