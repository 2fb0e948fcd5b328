"""Offline data: recorded episodes of a text environment, stored as Minari data sets.

A data set is a folder that Minari can read. With each observation it stores the admissible actions as a JSON
list, and with each episode its task, its seed, its success and the policy that acted.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from hunch.core import HunchError, State, Transition, UsageError

FORMAT = 1
MARK = "hunch"
"""Key of our entry in Minari's metadata."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded episode of n steps.

    Attributes:
        observations: n + 1 texts, the last one after the last action.
        admissible: The admissible actions at each observation; may be empty after the end of the task.
        actions: The n actions taken.
        rewards: The n rewards.
        terminated: True if the last step ended the task.
        truncated: True if the episode was cut off there.
        task: The task in one sentence.
        success: True if it was solved.
        behaviour: Name of the policy that acted.
        seed: Seed of the environment's reset; -1 if unknown.
        history: Number of earlier observation-action pairs that an agent is shown.
    """

    observations: tuple[str, ...]
    admissible: tuple[tuple[str, ...], ...]
    actions: tuple[str, ...]
    rewards: tuple[float, ...]
    terminated: bool
    truncated: bool
    task: str = ""
    success: bool = False
    behaviour: str = "unknown"
    seed: int = -1
    history: int = 0

    def __len__(self) -> int:
        return len(self.actions)

    def transitions(self) -> Iterator[Transition]:
        """Yield the episode step by step."""
        pairs = tuple(zip(self.observations, self.actions, strict=False))
        states = [
            State(observation, self.task, admissible, pairs[max(0, i - self.history) : i])
            for i, (observation, admissible) in enumerate(
                zip(self.observations, self.admissible, strict=True)
            )
        ]
        for i, (action, reward) in enumerate(zip(self.actions, self.rewards, strict=True)):
            last = i == len(self) - 1
            ends = last and self.terminated, last and self.truncated
            yield Transition(states[i], action, reward, states[i + 1], *ends, last and self.success)

    def cut(self, steps: int) -> Recording:
        """Return the first ``steps`` steps, as an episode that was cut off there."""
        if steps >= len(self):
            return self
        return replace(
            self,
            observations=self.observations[: steps + 1],
            admissible=self.admissible[: steps + 1],
            actions=self.actions[:steps],
            rewards=self.rewards[:steps],
            terminated=False,
            truncated=True,
            success=False,
        )


@dataclass(frozen=True)
class Dataset:
    """Recorded episodes of one environment.

    Attributes:
        env: Id of the environment.
        env_options: Options with which the environment was made.
        episodes: The episodes in the order of recording.
        provenance: Notes for people on how the data were made; anything that JSON can hold.
    """

    env: str
    env_options: Mapping[str, Any]
    episodes: tuple[Recording, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.episodes))


Episodes: TypeAlias = Sequence[Sequence[Transition]]
"""Recorded episodes in the form that agents receive."""


def as_episodes(data: Dataset | Episodes | None) -> Episodes:
    """Return recorded episodes as sequences of transitions, after a check of their ends.

    Raises:
        UsageError: if an episode is empty, has no end, or continues after its end.
    """
    if data is None:
        return ()
    if isinstance(data, Dataset):
        return tuple(tuple(episode.transitions()) for episode in data.episodes)
    for number, episode in enumerate(data):
        ends = [t.done for t in episode]
        if sum(ends) != 1 or not ends[-1]:
            raise UsageError(
                f"Recorded episode {number} has no end or continues after it: the last transition, and no "
                "other, must be terminated or truncated."
            )
    return tuple(map(tuple, data))


def digest(episodes: Episodes) -> str:
    """Return a hash of the contents of recorded episodes."""
    content = hashlib.sha256()
    for episode in episodes:
        content.update(repr(list(episode)).encode())
    return content.hexdigest()[:16]


def check(dataset: Dataset) -> None:
    """Check that data are consistent.

    Raises:
        UsageError: if they are not, with the episode and step (both counted from 0) and the problem.
    """
    if not len(dataset):
        raise UsageError("The data set is empty.")
    for number, episode in enumerate(dataset.episodes):
        for step, problem in problems(episode):
            raise UsageError(f"The data are inconsistent in episode {number}, step {step}: {problem}.")


def problems(episode: Recording) -> Iterator[tuple[int, str]]:
    """Yield each inconsistent step of an episode, with the problem."""
    n = len(episode)
    for name, wanted in (("observations", n + 1), ("admissible", n + 1), ("rewards", n)):
        found = len(getattr(episode, name))
        if found != wanted:
            yield min(found, wanted), f"{n} actions need {wanted} {name}, but there are {found}"
            return
    if n == 0:
        yield 0, "the episode has no step"
    if not (episode.terminated or episode.truncated):
        yield n - 1, "the episode has no end: neither terminated nor truncated"
    for step, (action, offered, reward) in enumerate(
        zip(episode.actions, episode.admissible, episode.rewards, strict=False)
    ):
        if action not in offered:
            yield step, f"the action {action!r} was not admissible"
        if len(set(offered)) < len(offered):
            yield step, "an action is listed as admissible twice"
        if not math.isfinite(reward):
            yield step, f"the reward is {reward}"
    if not episode.admissible[-1] and not episode.terminated:
        yield n - 1, "the next state lists no admissible action, although the task continues"


def same_environment(dataset: Dataset, env: str) -> None:
    """Check that data are from this environment.

    Raises:
        UsageError: if the ids differ; another version counts as another environment.
    """
    if dataset.env.rpartition(":")[2] != env.rpartition(":")[2]:
        raise UsageError(f"The data set was recorded in {dataset.env}, not in {env}.")


# ---- on disk ----------------------------------------------------------------------------------------


def save(dataset: Dataset, folder: str | Path) -> None:
    """Write a data set to a new folder.

    Raises:
        UsageError: if the data are inconsistent, or the folder already holds a data set.
    """
    check(dataset)
    folder = Path(folder)
    refuse_existing(folder)
    minari = _library()
    from gymnasium.spaces import Text

    half = folder.absolute().with_name(f"{folder.name}.half-{os.getpid()}")
    half.mkdir(parents=True)
    space = Text(max_length=100_000, min_length=0)
    storage = minari.MinariStorage.new(half, space, space, data_format="hdf5")
    storage.update_episodes([_buffer(minari, episode) for episode in dataset.episodes])
    about = {"format": FORMAT, "env": dataset.env, "env_options": dict(dataset.env_options)}
    storage.update_metadata(
        {
            "dataset_id": re.sub(r"[^\w/-]", "-", dataset.env),
            "minari_version": minari.version,
            MARK: about | {"provenance": dict(dataset.provenance)},
        }
    )
    os.replace(half, folder)  # so that a data set is never there in part


def refuse_existing(folder: Path) -> None:
    """Check that a folder is new or empty, before a data set is recorded for it.

    Raises:
        UsageError: if it is not empty, or is a file.
    """
    if (folder / "metadata.json").exists():
        raise UsageError(f"{folder} already holds a data set; choose another folder.")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UsageError(f"A data set needs a new folder, but {folder} already exists; choose another one.")


def load(folder: str | Path) -> Dataset:
    """Read a data set that :func:`save` wrote, and check it.

    Raises:
        UsageError: if the folder holds no data set, or an inconsistent one.
        HunchError: if it cannot be read.
    """
    folder = Path(folder)
    try:
        about = json.loads((folder / "metadata.json").read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"There is no data set in {folder}.") from None
    except ValueError as error:
        raise HunchError(f"The data set in {folder} is damaged: {error}.") from error
    if MARK not in about:
        raise UsageError(f"The Minari data set in {folder} does not say which actions were admissible.")
    library = _library()
    try:
        storage = library.MinariStorage.read(folder)
        records = list(storage.get_episodes(range(about["total_episodes"])))
        episodes = tuple(map(_recording, records))
    except (OSError, KeyError, ValueError) as error:
        raise HunchError(f"The data set in {folder} is damaged: {error}.") from error
    own = about[MARK]
    dataset = Dataset(own["env"], own["env_options"], episodes, own["provenance"])
    check(dataset)
    return dataset


def _buffer(minari: Any, episode: Recording) -> Any:
    n = len(episode)
    about = {name: getattr(episode, name) for name in ("task", "success", "behaviour", "seed", "history")}
    return minari.EpisodeBuffer(
        observations=list(episode.observations),
        actions=list(episode.actions),
        rewards=list(episode.rewards),
        terminations=[False] * (n - 1) + [episode.terminated],
        truncations=[False] * (n - 1) + [episode.truncated],
        infos={"actions": [json.dumps(a) for a in episode.admissible], "about": [json.dumps(about)]},
    )


def _recording(record: Mapping[str, Any]) -> Recording:
    infos = record["infos"]
    return Recording(
        observations=tuple(record["observations"]),
        admissible=tuple(tuple(json.loads(text)) for text in infos["actions"]),
        actions=tuple(record["actions"]),
        rewards=tuple(map(float, record["rewards"])),
        terminated=bool(record["terminations"][-1]),
        truncated=bool(record["truncations"][-1]),
        **json.loads(infos["about"][0]),
    )


def read_json_lines(file: str | Path, env: str, env_options: Mapping[str, Any], history: int = 0) -> Dataset:
    """Read data from JSON lines: one episode per line, an object with the fields of :class:`Recording`.

    Args:
        file: The file.
        env: Id of the environment of the data.
        env_options: Options of the environment.
        history: Value of ``history`` for episodes without this field.

    Raises:
        UsageError: if there is no such file, a line is not a valid episode, or the data are inconsistent.
    """
    try:
        lines = Path(file).read_text().splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"{file} is no text, so it holds no episodes.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    episodes = []
    for number, line in enumerate(lines, 1):
        try:
            episodes.append(_from_plain({"history": history, **json.loads(line)}))
        except KeyError as error:
            raise UsageError(f"Line {number} of {file} is not an episode: it has no {error}.") from None
        except (TypeError, ValueError) as error:
            raise UsageError(f"Line {number} of {file} is not an episode: {error}.") from None
    dataset = Dataset(env, env_options, tuple(episodes), {"imported_from": Path(file).name})
    check(dataset)
    return dataset


def write_json_lines(episodes: Sequence[Recording], file: str | Path) -> None:
    """Write episodes in the format of :func:`read_json_lines`."""
    with open(file, "w") as lines:
        for episode in episodes:
            lines.write(json.dumps(asdict(episode)) + "\n")


def _from_plain(plain: Mapping[str, Any]) -> Recording:
    values = dict(plain)
    for name in ("observations", "actions"):
        values[name] = tuple(values[name])
        if not all(isinstance(text, str) for text in values[name]):
            raise TypeError(f"{name} must be texts")
    for name in ("terminated", "truncated", "success"):
        if not isinstance(values.get(name, False), bool):
            raise TypeError(f"{name} must be true or false")
    values["admissible"] = tuple(map(tuple, values["admissible"]))
    values["rewards"] = tuple(map(float, values["rewards"]))
    return Recording(**values)


def _library() -> Any:
    try:
        import minari
        from minari.data_collector import EpisodeBuffer
        from minari.dataset.minari_storage import MinariStorage
    except ImportError as error:
        raise UsageError("Data sets need Minari: pip install 'hunch-rl[data]'.") from error
    from types import SimpleNamespace

    return SimpleNamespace(
        EpisodeBuffer=EpisodeBuffer, MinariStorage=MinariStorage, version=minari.__version__
    )
