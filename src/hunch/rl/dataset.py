"""Offline data: recorded episodes of a text environment, stored as Minari data sets.

A data set is a folder that Minari can read. Each observation comes with the admissible actions as a JSON
list, and pictures and raw numbers if there are any; each step with its event; and each episode with its task,
seed, success, player, lifetime and group, and the policy that acted.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import re
import shutil
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

from hunch.core import Episode, HunchError, HunchWarning, Transition, UsageError
from hunch.extras import library
from hunch.rl.recording import Recording, problems
from hunch.text_files import read_lines

FORMAT = 2
MARK = "hunch"
"""Key of this library's entry in the metadata of Minari."""


@dataclass(frozen=True)
class Dataset:
    """Recorded episodes of one environment.

    Attributes:
        env: Id of the environment.
        env_options: Options with which the environment was made.
        episodes: The episodes in the order of recording.
        provenance: Notes on how the data were made; anything that JSON can hold.
    """

    env: str
    env_options: Mapping[str, Any]
    episodes: tuple[Recording, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.episodes))


Recorded: TypeAlias = Dataset | Sequence[Sequence[Transition]]
"""Recorded episodes as an argument: a data set, or whole episodes as sequences of transitions."""


def as_episodes(data: Recorded | None) -> tuple[Episode, ...]:
    """Return recorded episodes in the form that agents receive, after checking that each has an end.

    Raises:
        UsageError: if an episode is empty, has no end, or continues after its end.
    """
    given: Sequence[Sequence[Transition]] = ()
    if isinstance(data, Dataset):
        given = [recording.episode() for recording in data.episodes]
    elif data is not None:
        given = data
    for number, episode in enumerate(given):
        ends = [t.done for t in episode]
        if sum(ends) != 1 or not ends[-1]:
            raise UsageError(
                f"Recorded episode {number} has no end or continues after it: the last transition, and no "
                "other, must be terminated or truncated."
            )
    return tuple(_ended(e if isinstance(e, Episode) else Episode(tuple(e))) for e in given)


def _ended(episode: Episode) -> Episode:
    """Return an episode whose last state lists no action where the environment left its actions out.

    Nothing can follow such a state, so that an episode which a limit ended there counts as terminated.
    """
    last: Transition = episode[-1]
    if last.state.actions is None or last.next_state.actions:
        return episode
    end = replace(last, next_state=replace(last.next_state, actions=()), terminated=True, truncated=False)
    return episode if end == last else episode.with_steps((*episode.transitions[:-1], end))


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
        UsageError: if they are not; the message names episode and step, counted from 0, and the problem.
    """
    if not len(dataset):
        raise UsageError("The data set is empty.")
    for number, episode in enumerate(dataset.episodes):
        for step, problem in problems(episode):
            raise UsageError(f"The data are inconsistent in episode {number}, step {step}: {problem}.")


def same_environment(dataset: Dataset, env: str) -> None:
    """Check that data are from the environment with this id.

    Raises:
        UsageError: if the ids differ; another version of an environment also counts as different.
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

    _remove_halves(folder)
    half = folder.absolute().with_name(f"{folder.name}{_HALF}{os.getpid()}")
    try:
        half.mkdir(parents=True)
        space = Text(max_length=100_000, min_length=0)
        storage = minari.MinariStorage.new(half, space, space, data_format="hdf5")
        _write(minari, storage, dataset)
        os.replace(half, folder)  # so that a data set is never there in part
    except BaseException as error:  # Ctrl-C, too
        shutil.rmtree(half, ignore_errors=True)
        if isinstance(error, OSError):
            raise HunchError(f"Cannot write {folder}: {error.strerror or error}.") from error
        raise


_HALF = f".half-{re.sub(r'[^A-Za-z0-9]', '_', platform.node())}-"
"""What the name of an unfinished data set has after its own, before the number of the writing process."""


def _remove_halves(folder: Path) -> None:
    """Remove what processes of this machine left unfinished that were killed."""
    for half in folder.absolute().parent.glob(f"{glob.escape(folder.name + _HALF)}*"):
        number = half.name.rpartition("-")[2]
        if number.isdecimal() and os.name == "posix":
            try:
                os.kill(int(number), 0)
            except (ProcessLookupError, OverflowError):
                shutil.rmtree(half, ignore_errors=True)
            except PermissionError:
                continue  # it runs, for another user


def _write(minari: Any, storage: Any, dataset: Dataset) -> None:
    """Write all episodes and the description.

    HDF5 ends the process if it cannot write to a full disk, so that it writes to memory.

    Raises:
        OSError: if the disk is full.
    """
    content = _hdf5(dataset.episodes)
    with open(storage._file_path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    about = {"format": FORMAT, "env": dataset.env, "env_options": dict(dataset.env_options)}
    storage.update_metadata(
        {
            "dataset_id": re.sub(r"[^\w/-]", "-", dataset.env),
            "minari_version": minari.version,
            MARK: about | {"provenance": dict(dataset.provenance), "checksum": _checksum(dataset)},
            "total_steps": len(dataset),
            "total_episodes": len(dataset.episodes),
            "dataset_size": storage.get_size(),
        }
    )


BLOCK = 2**22
"""Bytes by which the file in memory grows."""


def _hdf5(episodes: Sequence[Recording]) -> bytes:
    """Return episodes as a file of Minari's storage: a group for each, and in it a data set for each column.

    Minari's writer has h5py find out the type and the chunks of each column anew, which took two thirds of
    the time. All episodes have the same few types of columns, so that they are made once here.
    """
    import h5py  # extra data
    import numpy as np
    from h5py import h5d, h5p, h5s, h5t

    def write_column(path: str, values: Sequence[Any], dtype: np.dtype[Any]) -> None:
        space = h5s.create_simple((len(values),))
        column = h5d.create(file.id, path.encode(), types[dtype], space, stored_whole, with_groups)
        column.write(h5s.ALL, h5s.ALL, np.array(values, dtype))

    text, number, flag = h5py.string_dtype("utf-8"), np.dtype(float), np.dtype(bool)
    types = {dtype: h5t.py_create(dtype, logical=True) for dtype in (text, number, flag)}
    stored_whole = h5p.create(h5p.DATASET_CREATE)
    stored_whole.set_layout(h5d.CONTIGUOUS)
    with_groups = h5p.create(h5p.LINK_CREATE)
    with_groups.set_create_intermediate_group(True)
    in_memory = {"driver": "core", "backing_store": False, "block_size": BLOCK}
    with h5py.File("episodes", "w", track_order=True, **in_memory) as file:
        for index, episode in enumerate(episodes):
            name, n = f"episode_{index}", len(episode)
            write_column(f"{name}/observations", _storable(episode.observations), text)
            write_column(f"{name}/actions", _storable(episode.actions), text)
            write_column(f"{name}/rewards", episode.rewards, number)
            write_column(f"{name}/terminations", [False] * (n - 1) + [episode.terminated], flag)
            write_column(f"{name}/truncations", [False] * (n - 1) + [episode.truncated], flag)
            for key, column in _infos(episode).items():
                write_column(f"{name}/infos/{key}", column, text)
            attributes = file[name].attrs
            attributes["id"], attributes["total_steps"] = index, n
        file.flush()
        return bytes(file.id.get_file_image())


def refuse_existing(folder: Path) -> None:
    """Check that a folder is new or empty and can be written, before a data set is recorded into it.

    Raises:
        UsageError: if the folder is not empty, is a file, or cannot be replaced by a finished one.
        HunchError: if there is no permission to write it.
    """
    if (folder / "metadata.json").exists():
        raise UsageError(f"{folder} already holds a data set; choose another folder.")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UsageError(f"A data set needs a new folder, but {folder} already exists; choose another one.")
    # A data set is written beside its folder, and then takes the folder's place.
    if os.path.realpath(folder) == os.getcwd() or folder.is_symlink() or os.path.ismount(folder):
        raise UsageError(
            f"A data set needs a new folder, and {folder} is the current folder, a link or a mounted disk: "
            "name a folder inside."
        )
    there = next((path for path in (folder, *folder.parents) if path.exists()), Path())
    if not os.access(there, os.W_OK | os.X_OK):
        raise HunchError(f"Cannot write {folder}: there is no permission to write in {there}.")


def load(folder: str | Path) -> Dataset:
    """Read a data set that :func:`save` wrote, and check it.

    Raises:
        UsageError: if the folder holds no data set, or an inconsistent one.
        HunchError: if a file cannot be read.
    """
    folder = Path(folder)
    about = _about(folder)
    library = _library()
    try:
        storage = library.MinariStorage.read(folder)
        records = list(storage.get_episodes(range(about["total_episodes"])))
        episodes = tuple(map(_recording, records))
        ours = about[MARK]
        dataset = Dataset(ours["env"], ours["env_options"], episodes, ours["provenance"])
        if "checksum" in ours and ours["checksum"] != _checksum(dataset):
            raise ValueError("its checksum does not fit its contents")
    except PermissionError as error:
        raise HunchError(f"The data set in {folder} cannot be read: permission is denied.") from error
    except Exception as error:  # the readers of other libraries raise anything at a damaged file
        raise HunchError(f"The data set in {folder} is damaged: {' '.join(str(error).split())}.") from error
    check(dataset)
    if "checksum" not in ours:
        warnings.warn(
            f"The data set in {folder} was recorded without a checksum, so that damage may go unseen.",
            HunchWarning,
            stacklevel=2,
        )
    return dataset


def describe(folder: str | Path) -> Dataset:
    """Return the data set in a folder without reading its episodes.

    Raises:
        UsageError: if the folder holds no data set.
        HunchError: if the description is damaged.
    """
    ours = _about(Path(folder))[MARK]
    return Dataset(ours["env"], ours["env_options"], (), ours["provenance"])


def _about(folder: Path) -> Any:
    """Return the description of a data set, and check the part of it that is Hunch's."""
    try:
        about = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"There is no data set in {folder}.") from None
    except (ValueError, RecursionError) as error:
        raise HunchError(f"The data set in {folder} is damaged: {error}.") from error
    if not isinstance(about, dict):
        raise HunchError(f"The data set in {folder} is damaged: its metadata.json holds no object.")
    if MARK not in about:
        raise UsageError(f"The Minari data set in {folder} does not say which actions were admissible.")
    ours = about[MARK]
    types = {"env": str, "env_options": dict, "provenance": dict}
    fits = isinstance(ours, dict) and all(isinstance(ours.get(name), kind) for name, kind in types.items())
    if not fits or not isinstance(ours.get("format", 0), int):
        raise HunchError(f"The data set in {folder} is damaged: its metadata.json lacks what Hunch wrote.")
    if ours.get("format", 0) > FORMAT:
        raise UsageError(f"A newer version of Hunch wrote the data set in {folder}: update Hunch.")
    return about


def _checksum(dataset: Dataset) -> str:
    """Return a hash of all that a data set holds."""
    about = dataset.env, dict(dataset.env_options), dict(dataset.provenance)
    content = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for episode in dataset.episodes:
        content.update(json.dumps(_plain(episode), sort_keys=True).encode())
    return content.hexdigest()


_ABOUT = (
    *("task", "success", "behaviour", "seed", "history", "seat", "lifetime", "number", "group"),
    "unfinished",
)
"""Fields of a recording that hold for the whole episode."""
_BESIDE = ("events", "tasks", "raw", "pictures")
"""Columns that may be empty."""

NUL, SHOWN_NUL = "\0", "\u2400"
"""HDF5 has no character 0 in its texts: it is stored as its symbol, and the exact texts stand beside it."""


def _storable(texts: Sequence[str]) -> list[str]:
    """Return texts that HDF5 can hold."""
    return [text.replace(NUL, SHOWN_NUL) for text in texts]


def _infos(episode: Recording) -> dict[str, list[str]]:
    """Return what Minari has no column for, as JSON texts by name."""
    plain = _plain(episode)
    infos = {
        "actions": [json.dumps(listed) for listed in episode.admissible],
        "about": [json.dumps({name: plain[name] for name in _ABOUT if name in plain})],
    }
    if any(NUL in text for text in (*episode.observations, *episode.actions)):
        exact = {"observations": episode.observations, "actions": episode.actions}
        infos["exact"] = [json.dumps(exact)]
    for name in _BESIDE:
        if plain[name]:
            infos[name] = [json.dumps(item) for item in plain[name]]
    return infos


def _recording(record: Mapping[str, Any]) -> Recording:
    """Return an episode of Minari's storage as a recording: the inverse of what :func:`_hdf5` writes."""
    infos = record["infos"]
    plain = {
        "observations": record["observations"],
        "admissible": [json.loads(text) for text in infos["actions"]],
        "actions": record["actions"],
        "rewards": record["rewards"],
        "terminated": bool(record["terminations"][-1]),
        "truncated": bool(record["truncations"][-1]),
    }
    if "exact" in infos:  # texts that HDF5 could not hold replace those above
        plain |= json.loads(infos["exact"][0])
    plain |= json.loads(infos["about"][0])
    for name in _BESIDE:
        if name in infos:
            plain[name] = [json.loads(text) for text in infos[name]]
    return _from_plain(plain)


def read_json_lines(file: str | Path, env: str, env_options: Mapping[str, Any], history: int = 0) -> Dataset:
    """Read data from JSON lines: one episode per line, an object with the fields of :class:`Recording`.

    Args:
        file: The file.
        env: Id of the environment of the data.
        env_options: Options of the environment.
        history: History length of episodes without the field ``history``.

    Raises:
        UsageError: if there is no such file, a line is not a valid episode, or the data are inconsistent.
    """
    try:
        lines = read_lines(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    episodes = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise TypeError("it is no JSON object")
            episodes.append(_from_plain({"history": history, **row}))
        except RecursionError:
            raise UsageError(f"Line {number} of {file} is not an episode: it is nested too deep.") from None
        except KeyError as error:
            raise UsageError(f"Line {number} of {file} is not an episode: it has no {error}.") from None
        except (TypeError, ValueError) as error:
            raise UsageError(f"Line {number} of {file} is not an episode: {error}.") from None
    dataset = Dataset(env, env_options, tuple(episodes), {"imported_from": Path(file).name})
    check(dataset)
    return dataset


def _plain(episode: Recording) -> dict[str, Any]:
    """Return a recording as values of which JSON makes lists, numbers and texts."""
    plain = {entry.name: getattr(episode, entry.name) for entry in fields(episode)}
    plain["pictures"] = [[b64encode(data).decode() for data in step] for step in episode.pictures]
    if not episode.unfinished:
        del plain["unfinished"]  # so that data sets that have none keep their checksums
    return plain


_KINDS: dict[str, type] = {
    **dict.fromkeys(("task", "behaviour"), str),
    **dict.fromkeys(("seed", "history", "seat", "lifetime", "number"), int),
}
"""Types of a recording's single values."""


def _from_plain(plain: Mapping[str, Any]) -> Recording:
    """Return a recording from JSON values.

    Raises:
        KeyError: if a value is missing.
        TypeError: if a value has another type; the message names it.
        ValueError: if a picture is no base64.
    """
    values = dict(plain)
    for name in ("observations", "actions", "events", "tasks"):
        if name in ("observations", "actions") or name in values:
            values[name] = tuple(values[name])
            if not all(isinstance(text, str) for text in values[name]):
                raise TypeError(f"{name} must be texts")
    if "raw" in values:
        values["raw"] = tuple(values["raw"])
    for name, kind in _KINDS.items():
        if not isinstance(values.get(name, kind()), kind) or isinstance(values.get(name), bool):
            raise TypeError(f"{name} must be a {'text' if kind is str else 'whole number'}")
    if not isinstance(values.get("group", 0), int | None):
        raise TypeError("group must be a whole number or null")
    values["unfinished"] = tuple(values.get("unfinished", ()))
    if not all(type(step) is int for step in values["unfinished"]):
        raise TypeError("unfinished must be whole numbers")
    for name in ("terminated", "truncated", "success"):
        if not isinstance(values.get(name, False), bool):
            raise TypeError(f"{name} must be true or false")
    admissible: list[tuple[str, ...] | None] = []  # of each state; None where any text is admissible
    for listed in values["admissible"]:
        if listed is not None and not all(isinstance(text, str) for text in listed):
            raise TypeError("admissible must be lists of texts")
        admissible.append(None if listed is None else tuple(listed))
    values["admissible"] = tuple(admissible)
    values["rewards"] = tuple(_numbers(values["rewards"]))
    pictures = values.get("pictures", ())  # of each state, in base64
    values["pictures"] = tuple(tuple(b64decode(data) for data in of_state) for of_state in pictures)
    return Recording(**values)


def _numbers(values: Any) -> Iterator[float]:
    """Yield numbers as floats.

    Raises:
        TypeError: if a value is no number, such as a text that looks like one.
    """
    for value in values:
        if not isinstance(value, Real):
            raise TypeError("rewards must be numbers")
        try:
            yield float(value)
        except OverflowError:
            raise TypeError("rewards must be numbers that a float can hold") from None


def _library() -> Any:
    minari = library("minari", "Data sets need Minari", "data")
    from types import SimpleNamespace

    from minari.dataset.minari_storage import MinariStorage

    return SimpleNamespace(MinariStorage=MinariStorage, version=minari.__version__)
