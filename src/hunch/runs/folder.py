"""The folder of a run, written so that a kill at any moment loses nothing that was saved.

======================= =====================================================================================
``config.json``         everything needed to repeat the run, with format, versions and evidence level
``metrics.jsonl``       one JSON object per line, with ``step``
``episodes.jsonl``      one finished episode per line
``records.jsonl``       the agent's records; ``programs.jsonl`` if it writes programs
``first_answers.json``  how models are asked, and their first answers as they were read
``summary.json``        final results, steps to thresholds, usage, wall time
``checkpoint/``         the last complete state, replaced atomically, and the agent of the best evaluation
``checkpoints/STEP/``   the agents that are kept
======================= =====================================================================================

Lines are appended as they come. A checkpoint records the length of these files, and resuming cuts them back
to it, so that nothing is duplicated or missing. The files only grow. So a copy of the checkpoint, followed by
a copy of the lines, can be resumed at any moment. Every file and every line carries its checksum.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from hunch.core import HunchError, UsageError
from hunch.plugins import version_of
from hunch.runs.checkpoints import BEST, CHECKPOINT, KEPT_AT, write_checkpoint
from hunch.runs.config import RunConfig
from hunch.runs.differences import decisive, differences, leaves
from hunch.runs.earlier import completed, current_if_known
from hunch.runs.files import read_json, reading, sync_entries, write_json, writing
from hunch.runs.models import Asked
from hunch.seal import sealed_json

FORMAT = 2
"""Version of a run's folder, in its ``config.json``. Folders without one are from before: they can be read,
but their runs cannot go on."""
PACKAGES = ("hunch-rl", "numpy", "scipy", "gymnasium", "torch", "transformers", "tokenizers")
"""Packages whose versions ``config.json`` states."""

PATIENCE = 1.0
"""Maximum seconds to wait for a folder, which a killed process takes some time to release."""
KEPT = ("records.jsonl", "programs.jsonl")
"""Names of files that may hold an agent's records."""
JOURNAL = "asked.json"
"""Name of the journal of requests that a run with a budget makes."""
FAILURE = "failure.txt"
"""Name of the file that says why a run of a comparison failed, until it goes on."""
STREAMS = ("metrics.jsonl", "episodes.jsonl", *KEPT)
OURS = frozenset(("config.json", "summary.json", FAILURE, "checkpoint", *STREAMS))
"""Files of a run; a folder with other files and none of these does not belong to a run."""


class RunFolder:
    """The folder of one run, used by one process at a time.

    Args:
        path: The folder; created if it does not exist.
        saved: Called after every checkpoint.
        lines: Create files for lines of metrics and episodes.

    Raises:
        HunchError: if it cannot be created or written, or another process uses it.
    """

    def __init__(
        self, path: str | Path, saved: Callable[[], None] = lambda: None, *, lines: bool = True
    ) -> None:
        self.path = Path(path)
        self.saved = saved
        self._made = missing(self.path)
        self._files: dict[str, BinaryIO] = {}
        with writing(self.path):
            (self.path / "checkpoint").mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.path / ".lock", timeout=PATIENCE)  # released if this process dies
            try:
                self._lock.acquire()
            except Timeout as error:
                raise HunchError(f"Another process is writing to {self.path}: stop it first.") from error
            try:
                for name in STREAMS[:2] if lines else ():
                    self.lines(name)
                sync_entries(self.path)
            except OSError:
                self.close()
                raise

    def close(self) -> None:
        """Release the folder; a process that dies also releases it."""
        for file in self._files.values():
            with suppress(OSError):  # a full disk has been reported before
                file.close()
        self._lock.release()

    def remove_unused(self) -> None:
        """Remove the folder of a refused run, if this object created it and it has no saved data."""
        if self._made and not self.begun:
            shutil.rmtree(self.path, ignore_errors=True)
            made = [folder for folder in self.path.parents if folder.is_relative_to(self._made)]
            with suppress(OSError):  # another run may be at work beside this one
                for folder in made:
                    folder.rmdir()

    @property
    def begun(self) -> bool:
        """Whether an earlier session left a checkpoint, recorded lines or kept checkpoints here."""
        if any((self.path / place).exists() for place in (CHECKPOINT, KEPT_AT)):
            return True
        files = [self.path / name for name in STREAMS]
        return any(file.exists() and file.stat().st_size for file in files)

    def begin(self, config: dict[str, Any]) -> None:
        """Write ``config.json``, or check that the existing one belongs to the same run, which then goes on.

        Raises:
            UsageError: if the folder holds another run; the message names the settings that differ.
            HunchError: if it is unclear which run it holds.
        """
        if held(self.path, config["run"]) != config["run"]:
            write_json(self.path / "config.json", config)
        (self.path / FAILURE).unlink(missing_ok=True)

    def append(self, name: str, record: dict[str, Any]) -> None:
        """Append one line to one of ``STREAMS``."""
        with writing(self.path / name):
            file = self.lines(name)
            file.write(sealed_json(record))
            file.flush()

    def lines(self, name: str) -> BinaryIO:
        """Return the open file of one of ``STREAMS``, at its end."""
        if name not in self._files:
            self._files[name] = open(self.path / name, "ab", opener=_not_through_links)  # noqa: SIM115
        return self._files[name]

    def journal(self) -> Path:
        """Return the journal in which a run with a budget records its requests; new for a new run."""
        path = self.path / JOURNAL
        if not (self.path / CHECKPOINT).exists():
            path.unlink(missing_ok=True)
        return path

    def save(self, state: dict[str, Any]) -> None:
        """Write a checkpoint of the whole run, with the current length of the files."""
        offsets = {}
        for name, file in self._files.items():
            with writing(self.path / name):
                file.flush()
                os.fsync(file.fileno())
            offsets[name] = file.tell()
        write_checkpoint(self.path / CHECKPOINT, {**state, "offsets": offsets})
        self.saved()

    def save_best(self, state: dict[str, Any]) -> None:
        """Write the agent of the best evaluation so far."""
        write_checkpoint(self.path / BEST, state)


def _not_through_links(path: str, flags: int) -> int:
    """Open a file of a run; in a shared folder a link in its place would lead to another's file."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def refuse_foreign(folder: Path) -> None:
    """Check that a folder is not the current one, and holds no other files than a run's.

    Raises:
        UsageError: if it does; the message names one of the files.
        HunchError: if the folder is impossible.
    """
    if folder == Path():
        raise UsageError("A run needs its own folder, not the current one: set it with --out.")
    require_folder(folder)
    parents = Path(os.path.abspath(folder)).parents
    around = next((path for path in parents if (path / "config.json").exists()), None)
    if around is not None and (around / CHECKPOINT).parent.exists():
        around = around if folder.is_absolute() else Path(os.path.relpath(around))
        raise UsageError(f"{folder} is inside the folder of a run, {around}: choose another --out.")
    with suppress(OSError):  # no folder, or an unreadable one; reported when it is written
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if names and not OURS & set(names):
            raise UsageError(
                f"{folder} holds files that are not a run's, such as {names[0]}: choose another --out."
            )


def missing(folder: Path) -> Path | None:
    """Return the outermost folder of a path that does not exist yet; None if the whole path exists."""
    return next((path for path in (*reversed(folder.parents), folder) if not path.exists()), None)


def require_folder(folder: Path) -> None:
    """Refuse a path that is a file, or lies below one or in a folder that cannot be written.

    Raises:
        HunchError: naming the file or the folder.
    """
    with reading(folder):
        there = next((path for path in (folder, *folder.parents) if path.exists()), Path())
    if not there.is_dir():
        raise HunchError(f"Cannot write {folder}: {there} is not a folder.")
    if there != folder and not os.access(there, os.W_OK | os.X_OK):
        raise HunchError(f"Cannot write {folder}: there is no permission to write in {there}.")


def require_writable(folder: Path) -> None:
    """Refuse a folder in which nothing can be written, before the work whose results it is to hold.

    Raises:
        HunchError: naming the folder that cannot be written.
    """
    require_folder(folder)
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        raise HunchError(f"Cannot write {folder}: there is no permission to write in it.")


def description(config: RunConfig, asked: Asked) -> dict[str, Any]:
    """Return the contents of ``config.json``: settings, models, versions and evidence level."""
    models = {}
    for name, model in asked:
        revision = getattr(model, "revision", None)  # one that is trained may have none
        models[name] = {"name": model.name, "revision": revision, "evidence": model.evidence}
    versions = {name: version_of(name) for name in PACKAGES}
    return {
        "format": FORMAT,
        "run": config.settings(),
        "evidence": asked.evidence,
        "models": models,
        "versions": {"python": platform.python_version(), **versions},
    }


def held(folder: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Return the settings of the run that a folder holds; None if it holds none.

    The folder of a run without a checkpoint counts as free, because there is nothing to lose.

    Raises:
        UsageError: if it holds another run than one with these settings; the message names the settings that
            differ. Those that change memory and speed alone may. The run in the folder may be shorter: then
            it can be extended, unless it is of an earlier format or its checkpoint is gone.
        HunchError: if it holds a run whose ``config.json`` is missing or damaged.
    """
    if not any((folder / name).exists() for name in (CHECKPOINT, "summary.json")):
        return None
    record = read_json(folder / "config.json") or {}
    there = record.get("run")
    if not isinstance(there, dict):
        raise HunchError(
            f"{folder} holds a run whose config.json is missing or damaged: restore it, or choose "
            "another --out."
        )
    steps_done = (read_json(folder / "summary.json") or {}).get("steps", 0)
    goes_on = steps_done < settings["steps"]
    if record.get("format") != FORMAT and goes_on:
        raise UsageError(
            f"{folder} holds a run of {_version_of(record)}, which this version can report but not continue: "
            f"continue it with that version, or choose another --out."
        )
    there = current_if_known(there)
    longer = {**there, "steps": max(there.get("steps", 0), settings["steps"])}
    if decisive(longer, settings) != decisive(settings, settings):
        raise _other_run(folder, longer, settings)
    if goes_on and not (folder / CHECKPOINT).exists():
        raise UsageError(
            f"{folder} holds the results of {steps_done:,} steps, but its checkpoint is gone, so the run "
            "cannot go on: choose another --out."
        )
    return there


def _version_of(record: dict[str, Any]) -> str:
    """Name the version of Hunch that wrote a folder of another format."""
    number = record.get("format")
    later = isinstance(number, int) and number > FORMAT
    return "a later version of Hunch" if later else "an earlier version of Hunch"


def _other_run(folder: Path, there: dict[str, Any], settings: dict[str, Any]) -> UsageError:
    """Return the error for a folder with another run: of other settings, or of a version with fewer."""
    same_method = there.get("method") == settings["method"]
    if same_method:
        there, settings = completed(there, settings), completed(settings, there)
        there, settings = decisive(there, settings), decisive(settings, settings)
    pairs = [(there, settings), (there.get("options"), settings["options"])]
    lacking: set[str] = set()
    for stored, asked in pairs:
        if isinstance(stored, dict) and isinstance(asked, dict):
            lacking |= asked.keys() - stored.keys() - {"objects"}
    if lacking and same_method:
        what = f"a run of another version of Hunch, without {', '.join(sorted(lacking))}"
    else:
        what = f"another run ({differences(leaves(there), leaves(settings))})"
    return UsageError(f"{folder} holds {what}: choose another --out.")
