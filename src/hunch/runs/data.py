"""The recorded data of a run: read from a folder or a file, and compared with environment and method.

A file holds JSON lines, one episode each, or answers to prompts in TRL's columns: ``prompt`` with ``chosen``
and ``rejected`` (a group of two, rewards 1 and 0), or with ``completion`` and ``label`` (reward 1 or 0),
``reward``, or neither in any line (reward 0). Recorded results of prompts have ``question``, ``prompt`` and
``right``; those of held-out questions are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hunch import methods
from hunch.core import Episode, HunchError, Transition, UsageError
from hunch.envs.prompts import numbered, results, state_of
from hunch.methods import Method
from hunch.numbers import number
from hunch.rl import dataset
from hunch.rl.dataset import Dataset, Recorded, read_json_lines
from hunch.rl.recording import Recording
from hunch.runs.config import RunConfig
from hunch.text_files import read_lines

READS = {
    "events": "events (what happened, in words)",
    "raw": "raw states (the environment's own)",
    "pictures": "pictures (--env.picture)",
    "wording": "how states and actions are written in prompts",
}
"""What a method may read besides observations, in words."""


def recorded(config: RunConfig) -> Dataset | None:
    """Read the data that a run learns from; None if there are none.

    Raises:
        UsageError: if the data are missing, inconsistent, or from another environment.
    """
    if not config.data:
        return None
    if Path(config.data).is_file():
        good_only = _imitates(config.method)
        return read_data(Path(config.data), config.env, config.env_options, good_only=good_only)
    data = dataset.load(config.data)
    dataset.same_environment(data, config.env)
    return data


def _imitates(method: str) -> bool:
    try:
        return methods.find(method).imitates
    except HunchError:  # an agent from Python, whose class is no method
        return False


def episodes_of(config: RunConfig, given: Recorded | None) -> tuple[Sequence[Episode], Dataset | None]:
    """Return the given episodes, or those that the settings name, and the data set that they come from."""
    if given is None:
        data = recorded(config)
        return dataset.as_episodes(data), data
    if not isinstance(given, Dataset):
        return dataset.as_episodes(given), None
    if "env" not in config.objects:
        dataset.same_environment(given, config.env)
    return dataset.as_episodes(given), given


def options_with_data(config: RunConfig, data: Dataset | None = None) -> dict[str, Any]:
    """Return the options of the environments of a run.

    These are the run's options, and otherwise those with which its data were recorded. Without ``data``, the
    options are read from the folder that the settings name, without its episodes.

    Raises:
        UsageError: if there is no such folder, or its data are from another environment.
    """
    if data is None and config.data and not Path(config.data).is_file():
        data = dataset.describe(config.data)
        dataset.same_environment(data, config.env)
    recorded_options = {} if data is None else data.env_options
    return {**recorded_options, **config.env_options}


def require_recorded(method: Method, data: Sequence[Episode]) -> None:
    """Check that data hold the events, raw states or pictures that a method reads.

    Raises:
        UsageError: if something is missing; the message names it.
    """
    for what in sorted((method.reads - method.optional) & _RECORDED.keys()):
        if not any(_RECORDED[what](t) for episode in data for t in episode):
            raise UsageError(f"{method.name} reads {READS[what]}, and the recorded data hold none.")


_RECORDED: dict[str, Callable[[Transition], Any]] = {
    "events": lambda t: t.event,
    "raw": lambda t: t.next_state.raw is not None,
    "pictures": lambda t: t.next_state.pictures,
}


# ---- answers to prompts ----------------------------------------------------------------------------------


def read_data(file: Path, env: str, env_options: Mapping[str, Any], *, good_only: bool = False) -> Dataset:
    """Read a file of answers, or of episodes as :func:`hunch.rl.dataset.read_json_lines` does.

    Args:
        file: The file.
        env: The environment's id.
        env_options: Its options.
        good_only: Leave out answers that are rejected, or have a label that says bad, for a method that
            imitates all that it is given.

    Raises:
        UsageError: if a line is neither an answer nor an episode (the message names the line), or no answer
            is left.
    """
    columns = _columns(file)
    if not columns & _WITH_PROMPT:
        if columns & _BESIDE_PROMPT:
            raise UsageError(
                f"{file} needs a prompt in each line, a text or a list of messages with role and content, "
                "and beside it a completion, or chosen and rejected."
            )
        return read_json_lines(file, env, env_options)
    if "right" in columns:
        return _dataset(file, env, env_options, _results(str(file)))
    episodes = list[Recording]()
    lines = list(numbered(str(file), "chosen", "completion"))
    _require_rewards(lines, file)
    for place, row in lines:
        texts = _texts(row, f"Line {place} of {file}")
        if good_only and ("chosen" in row or "label" in row):
            texts = [(text, reward) for text, reward in texts if reward > 0]
        group = place if len(texts) > 1 else None
        state = state_of(row["prompt"])
        for text, reward in texts:
            episode = Recording(
                observations=(state.observation, state.observation),
                admissible=(None, None),  # any text
                actions=(text,),
                rewards=(reward,),
                terminated=True,
                truncated=False,
                raw=() if state.raw is None else (state.raw, None),
                group=group,
            )
            episodes.append(episode)
    if lines and not episodes:
        raise UsageError(f"Every answer in {file} has a label that says bad: there is nothing to imitate.")
    return _dataset(file, env, env_options, episodes)


_WITH_PROMPT = {"prompt", "messages", "chosen"}
"""Columns that are a prompt, or conversations of which it may be a part."""
_BESIDE_PROMPT = {"rejected", "completion", "instruction"}
"""Columns of answers without their prompt."""


def _columns(file: Path) -> set[str]:
    """Return the names in the first line of a file; none if it is no JSON object."""
    first = next((line for line in read_lines(file) if line.strip()), "")
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):  # whoever reads the lines says so
        return set()
    return set(row) if isinstance(row, dict) else set()


def _dataset(file: Path, env: str, env_options: Mapping[str, Any], episodes: Sequence[Recording]) -> Dataset:
    data = Dataset(env, dict(env_options), tuple(episodes), {"imported_from": file.name})
    dataset.check(data)
    return data


def _results(file: str) -> list[Recording]:
    """Return the results of prompts for the questions of the training, each an episode of one step."""
    every = list(results(numbered(file, "right"), file).items())
    return [
        Recording((text, ""), (tuple(by_prompt), ()), (prompt,), (right,), True, False, success=right > 0.5)
        for text, by_prompt in every[::2]
        for prompt, right in by_prompt.items()
    ]


def _require_rewards(lines: Sequence[tuple[int, Mapping[str, Any]]], file: Path) -> None:
    """Refuse a file in which a completion lacks the label or reward that others have: it would count as bad.

    Raises:
        UsageError: if there is one; the message names its line.
    """
    completions = [(place, row) for place, row in lines if "chosen" not in row]
    lacking = [place for place, row in completions if not {"label", "reward"} & row.keys()]
    if lacking and len(lacking) < len(completions):
        raise UsageError(
            f"Line {lacking[0]} of {file} needs a label or reward, because other lines have one."
        )


def _texts(row: Mapping[str, Any], where: str) -> list[tuple[str, float]]:
    """Return the texts of a line with their rewards."""
    if "chosen" not in row:
        reward = number(row.get("label", row.get("reward", 0.0)))
        if reward is None:
            raise UsageError(f"{where} needs a number as label or reward, or true or false.")
        return [(row["completion"], reward)]
    pair = row["chosen"], row.get("rejected")
    if not all(isinstance(text, str) for text in pair) or pair[0] == pair[1]:
        raise UsageError(f"{where} needs chosen and rejected as two different texts.")
    return list(zip(pair, (1.0, 0.0), strict=True))
