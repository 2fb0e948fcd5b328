"""Reads answers to prompts in TRL's columns as recorded data: JSON lines, one object per line.

Columns are ``prompt`` with ``chosen`` and ``rejected`` (a group of two, rewards 1 and 0), or with
``completion`` and ``label`` (reward 1 or 0), ``reward``, or neither (reward 0). Recorded results of prompts
have ``question``, ``prompt`` and ``right``; those of held-out questions are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hunch.core import UsageError
from hunch.envs.prompts import read, results, shown
from hunch.rl.dataset import Dataset, check, read_json_lines
from hunch.rl.recording import Recording


def read_data(file: Path, env: str, env_options: Mapping[str, Any]) -> Dataset:
    """Read a file of answers, or of episodes as :func:`hunch.rl.dataset.read_json_lines` does.

    Raises:
        UsageError: if a line is neither an answer nor an episode; the message names the line.
    """
    first = file.read_text(errors="replace").partition("\n")[0]
    if '"prompt"' not in first:
        return read_json_lines(file, env, env_options)
    if '"right"' in first:
        return _dataset(file, env, env_options, _results(str(file)))
    episodes = list[Recording]()
    for number, row in enumerate(read(str(file), "chosen", "completion"), 1):
        texts = _texts(row, f"Line {number} of {file}")
        group = number if len(texts) > 1 else None
        prompt = shown(row["prompt"])
        episodes += [
            Recording((prompt, prompt), (None, None), (text,), (reward,), True, False, group=group)
            for text, reward in texts
        ]
    return _dataset(file, env, env_options, episodes)


def _dataset(file: Path, env: str, env_options: Mapping[str, Any], episodes: Sequence[Recording]) -> Dataset:
    dataset = Dataset(env, dict(env_options), tuple(episodes), {"imported_from": file.name})
    check(dataset)
    return dataset


def _results(file: str) -> list[Recording]:
    """Return the results of prompts for the questions of the training, each an episode of one step."""
    every = list(results(list(read(file, "right")), file).items())
    return [
        Recording((text, ""), (tuple(own), ()), (prompt,), (right,), True, False, success=right > 0.5)
        for text, own in every[::2]
        for prompt, right in own.items()
    ]


def _texts(row: Mapping[str, Any], where: str) -> list[tuple[str, float]]:
    """Return the texts of a line with their rewards."""
    if "chosen" not in row:
        return [(row["completion"], float(row.get("label", row.get("reward", 0.0))))]
    both = row["chosen"], row.get("rejected")
    if not all(isinstance(text, str) for text in both) or both[0] == both[1]:
        raise UsageError(f"{where} needs chosen and rejected as two different texts.")
    return list(zip(both, (1.0, 0.0), strict=True))
