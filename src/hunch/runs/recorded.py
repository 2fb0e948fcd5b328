"""Reads the recorded data of a run, and compares them with its environment and its method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hunch import methods
from hunch.core import Episode, Transition, UsageError
from hunch.rl import dataset
from hunch.rl.dataset import Dataset, Recorded
from hunch.runs.config import RunConfig
from hunch.runs.fit import READS


def recorded(config: RunConfig) -> Dataset | None:
    """Read the data that a run learns from; None if there are none.

    Raises:
        UsageError: if the data are missing, inconsistent, or from another environment.
    """
    if not config.data:
        return None
    if Path(config.data).is_file():
        from hunch.runs.answers import read_data

        return read_data(Path(config.data), config.env, config.env_options)
    data = dataset.load(config.data)
    dataset.same_environment(data, config.env)
    return data


def episodes_of(config: RunConfig, given: Recorded | None) -> tuple[Sequence[Episode], Dataset | None]:
    """Return the given episodes, or those that the settings name, and the data set that they come from."""
    found = recorded(config) if given is None else given
    if not isinstance(found, Dataset):
        return dataset.as_episodes(found), None
    if "env" not in config.objects:
        dataset.same_environment(found, config.env)
    return dataset.as_episodes(found), found


def tasks(config: RunConfig, data: Dataset | None = None) -> dict[str, Any]:
    """Return the options of the environments of a run.

    These are the run's options, and otherwise those with which its data were recorded. Without ``data``, the
    options are read from the folder that the settings name, without its episodes.

    Raises:
        UsageError: if there is no such folder, or its data are from another environment.
    """
    if data is None and config.data and not Path(config.data).is_file():
        data = dataset.describe(config.data)
        dataset.same_environment(data, config.env)
    return {**({} if data is None else data.env_options), **config.env_options}


def require_recorded(method: str, data: Sequence[Episode]) -> None:
    """Check that data hold the events, raw states or pictures that a method reads.

    Raises:
        UsageError: if something is missing; the message names it.
    """
    wants = methods.find(method)
    for what in sorted((wants.reads - wants.optional) & _SHOWN.keys()):
        if not any(_SHOWN[what](t) for episode in data for t in episode):
            raise UsageError(f"{method} reads {READS[what]}, and the recorded data hold none.")


_SHOWN: dict[str, Callable[[Transition], Any]] = {
    "events": lambda t: t.event,
    "raw": lambda t: t.next_state.raw is not None,
    "pictures": lambda t: t.next_state.pictures,
}
