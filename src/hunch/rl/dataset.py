"""Offline data: recorded episodes of a text environment, stored as Minari data sets.

A data set is a folder that Minari can read. With each observation it stores the admissible actions as a JSON
list, and pictures and raw numbers if there are any; with each step its event; and with each episode its task,
seed, success, player, lifetime and group, and the policy that acted.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from hunch.core import Episode, HunchError, Picture, State, Transition, UsageError, is_plain
from hunch.plugins import library

FORMAT = 2
MARK = "hunch"
"""Key of our entry in Minari's metadata."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded episode of n steps of one player.

    Attributes:
        observations: n + 1 texts, the last one after the last action.
        admissible: The admissible actions at each observation, None where any text is an action; may be empty
            after the end of the task.
        actions: The n actions taken.
        rewards: The n rewards.
        terminated: True if the last step ended the task.
        truncated: True if the episode was cut off there.
        task: The task in one sentence.
        success: True if it was solved.
        behaviour: Name of the policy that acted.
        seed: Seed of the environment's reset; -1 if unknown.
        history: Number of earlier observation-action pairs that an agent is shown.
        events: What happened in each of the n steps, in words; empty if nothing ever did.
        tasks: The task at each observation; empty if it is always the first.
        raw: The environment's numbers at each observation, where they are plain; empty if there are none.
        pictures: The pictures at each observation, as PNG bytes; empty if there are none.
        seat: The player who acted, in environments of several players.
        lifetime: Number of its lifetime, whose episodes share one task.
        number: Number of the episode in its environment.
        group: Number of the prompt that it answers, if several episodes answer the same one.
    """

    observations: tuple[str, ...]
    admissible: tuple[tuple[str, ...] | None, ...]
    actions: tuple[str, ...]
    rewards: tuple[float, ...]
    terminated: bool
    truncated: bool
    task: str = ""
    success: bool = False
    behaviour: str = "unknown"
    seed: int = -1
    history: int = 0
    events: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    raw: tuple[Any, ...] = ()
    pictures: tuple[tuple[bytes, ...], ...] = ()
    seat: int = 0
    lifetime: int = 0
    number: int = 0
    group: int | None = None

    @classmethod
    def of(cls, episode: Episode, behaviour: str = "unknown", seed: int = -1, history: int = 0) -> Recording:
        """Make a recording of an episode of one player."""
        states = [episode[0].state, *(t.next_state for t in episode)]
        tasks, pictures = tuple(s.task for s in states), tuple(s.pictures for s in states)
        raw = tuple(s.raw if is_plain(s.raw) else None for s in states)
        events = tuple(t.event for t in episode)
        return cls(
            observations=tuple(s.observation for s in states),
            admissible=tuple(s.actions for s in states),
            actions=tuple(t.action for t in episode),
            rewards=tuple(t.reward for t in episode),
            terminated=episode[-1].terminated,
            truncated=episode[-1].truncated,
            task=tasks[0],
            success=episode[-1].success,
            behaviour=behaviour,
            seed=seed,
            history=history,
            events=events if any(events) else (),
            tasks=tasks if len(set(tasks)) > 1 else (),
            raw=raw if any(item is not None for item in raw) else (),
            pictures=tuple(tuple(p.data for p in own) for own in pictures) if any(pictures) else (),
            seat=states[0].seat,
            lifetime=episode.lifetime,
            number=episode.number,
            group=episode.group,
        )

    def __len__(self) -> int:
        return len(self.actions)

    def episode(self) -> Episode:
        """Return the episode as transitions, in the form that agents receive."""
        return Episode(tuple(self.transitions()), self.lifetime, self.number, self.group)

    def transitions(self) -> Iterator[Transition]:
        """Yield the episode step by step."""
        states = [self._state(i) for i in range(len(self) + 1)]
        for i, (action, reward) in enumerate(zip(self.actions, self.rewards, strict=True)):
            last = i == len(self) - 1
            ends = last and self.terminated, last and self.truncated
            event = self.events[i] if self.events else ""
            yield Transition(states[i], action, reward, states[i + 1], *ends, last and self.success, event)

    def _state(self, i: int) -> State:
        first = max(0, i - self.history)
        return State(
            self.observations[i],
            self.tasks[i] if self.tasks else self.task,
            self.admissible[i],
            tuple(zip(self.observations[first:i], self.actions[first:i], strict=True)),
            pictures=tuple(map(Picture.read, self.pictures[i])) if self.pictures else (),
            raw=self.raw[i] if self.raw else None,
            seat=self.seat,
        )

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
            events=self.events[:steps],
            tasks=self.tasks[: steps + 1],
            raw=self.raw[: steps + 1],
            pictures=self.pictures[: steps + 1],
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


Recorded: TypeAlias = Dataset | Sequence[Sequence[Transition]]
"""Recorded episodes as an argument: a data set, or sequences of transitions, each a whole episode."""


def as_episodes(data: Recorded | None) -> tuple[Episode, ...]:
    """Return recorded episodes in the form that agents receive, after a check of their ends.

    Raises:
        UsageError: if an episode is empty, has no end, or continues after its end.
    """
    if isinstance(data, Dataset):
        return tuple(recording.episode() for recording in data.episodes)
    for number, episode in enumerate(data or ()):
        ends = [t.done for t in episode]
        if sum(ends) != 1 or not ends[-1]:
            raise UsageError(
                f"Recorded episode {number} has no end or continues after it: the last transition, and no "
                "other, must be terminated or truncated."
            )
    return tuple(e if isinstance(e, Episode) else Episode(tuple(e)) for e in data or ())


def without_raw(episodes: Sequence[Episode]) -> tuple[Episode, ...]:
    """Return recorded episodes whose states have no ``raw``."""

    def hidden(t: Transition) -> Transition:
        return replace(t, state=replace(t.state, raw=None), next_state=replace(t.next_state, raw=None))

    return tuple(episode.with_steps(map(hidden, episode)) for episode in episodes)


def digest(episodes: Sequence[Episode]) -> str:
    """Return a hash of the contents of recorded episodes."""
    content = hashlib.sha256()
    for episode in episodes:
        content.update(json.dumps([t.plain() for t in episode], sort_keys=True).encode())
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
    sizes = {"observations": n + 1, "admissible": n + 1, "rewards": n}
    more = {"events": n, "tasks": n + 1, "raw": n + 1, "pictures": n + 1}
    sizes |= {name: size for name, size in more.items() if getattr(episode, name)}
    for name, wanted in sizes.items():
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
        if offered is not None and action not in offered:
            yield step, f"the action {action!r} was not admissible"
        if offered is not None and len(set(offered)) < len(offered):
            yield step, "an action is listed as admissible twice"
        if not math.isfinite(reward):
            yield step, f"the reward is {reward}"
    if episode.admissible[-1] == () and not episode.terminated:
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
    if about[MARK]["format"] > FORMAT:
        raise UsageError(f"A newer version of Hunch wrote the data set in {folder}: update this one.")
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


_ABOUT = ("task", "success", "behaviour", "seed", "history", "seat", "lifetime", "number", "group")
"""Fields of a recording that hold for the whole episode."""
_BESIDE = ("events", "tasks", "raw", "pictures")
"""Columns that may be empty."""


def _buffer(minari: Any, episode: Recording) -> Any:
    n, plain = len(episode), _plain(episode)
    beside = {name: plain[name] for name in _BESIDE if plain[name]}
    about = {name: plain[name] for name in _ABOUT}
    return minari.EpisodeBuffer(
        observations=list(episode.observations),
        actions=list(episode.actions),
        rewards=list(episode.rewards),
        terminations=[False] * (n - 1) + [episode.terminated],
        truncations=[False] * (n - 1) + [episode.truncated],
        infos={
            "actions": [json.dumps(a) for a in episode.admissible],
            "about": [json.dumps(about)],
            **{name: [json.dumps(item) for item in column] for name, column in beside.items()},
        },
    )


def _recording(record: Mapping[str, Any]) -> Recording:
    infos = record["infos"]
    return _from_plain(
        {
            "observations": record["observations"],
            "admissible": [json.loads(text) for text in infos["actions"]],
            "actions": record["actions"],
            "rewards": record["rewards"],
            "terminated": bool(record["terminations"][-1]),
            "truncated": bool(record["truncations"][-1]),
            **json.loads(infos["about"][0]),
            **{name: list(map(json.loads, infos[name])) for name in _BESIDE if name in infos},
        }
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
            lines.write(json.dumps(_plain(episode)) + "\n")


def _plain(episode: Recording) -> dict[str, Any]:
    """Return a recording as JSON values."""
    pictures = [[b64encode(data).decode() for data in own] for own in episode.pictures]
    return {**asdict(episode), "pictures": pictures}


def _from_plain(plain: Mapping[str, Any]) -> Recording:
    values = dict(plain)
    for name in ("observations", "actions", *(values.keys() & {"events", "tasks", "raw"})):
        values[name] = tuple(values[name])
        if name != "raw" and not all(isinstance(text, str) for text in values[name]):
            raise TypeError(f"{name} must be texts")
    for name in ("terminated", "truncated", "success"):
        if not isinstance(values.get(name, False), bool):
            raise TypeError(f"{name} must be true or false")
    values["admissible"] = tuple(None if own is None else tuple(own) for own in values["admissible"])
    values["rewards"] = tuple(map(float, values["rewards"]))
    values["pictures"] = tuple(tuple(map(b64decode, own)) for own in values.get("pictures", ()))
    return Recording(**values)


def _library() -> Any:
    minari = library("minari", "Data sets need Minari", "data")
    from types import SimpleNamespace

    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    return SimpleNamespace(
        EpisodeBuffer=EpisodeBuffer, MinariStorage=MinariStorage, version=minari.__version__
    )
