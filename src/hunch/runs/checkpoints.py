"""The checkpoints in a run's folder: the last one, the best one, and those that are kept.

A checkpoint holds the agent's state and the *identity* of its run: what the loading run must share with it.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge

from hunch.core import HunchError, HunchWarning, UsageError
from hunch.runs.differences import decisive, differences, leaves
from hunch.runs.earlier import current_identity
from hunch.runs.files import reading, write_atomically, writing
from hunch.seal import checked, seal

CHECKPOINT = Path("checkpoint") / "state.pt"
"""File of the last complete state of a run."""
BEST = Path("checkpoint") / "best.pt"
"""File of the agent of the best evaluation so far."""
KEPT_AT = Path("checkpoints")
"""Folder of kept checkpoints, each in a folder named after its step."""

_SQLITE = b"SQLite format 3\0"
"""How every SQLite file begins."""

Checkpoint: TypeAlias = Literal["last", "best"] | Annotated[int, Ge(1)]
"""Which checkpoint: the last one, that of the best evaluation, or that of a step (a number)."""


def file_of(checkpoint: Checkpoint) -> Path:
    """Return the file of a checkpoint in a run's folder."""
    if checkpoint == "last":
        return CHECKPOINT
    if checkpoint == "best":
        return BEST
    return KEPT_AT / str(checkpoint) / "agent.pt"


def kept_steps(folder: Path) -> list[int]:
    """Return the steps whose checkpoints a run has kept, in ascending order."""
    names = (file.parent.name for file in (folder / KEPT_AT).glob("*/agent.pt"))
    return sorted(int(name) for name in names if name.isdecimal())


def keep(folder: Path, step: int, state: dict[str, Any], last: int | None) -> None:
    """Keep the agent of a step in a separate folder, and only the ``last`` latest of these."""
    file = folder / file_of(step)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_checkpoint(file, state)
    for earlier in kept_steps(folder)[:-last] if last else ():
        shutil.rmtree((folder / file_of(earlier)).parent)


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a state of tensors and plain values to a file, atomically."""
    import torch  # takes a second; the command refuses wrong settings before it

    buffer = io.BytesIO()
    torch.save(state, buffer)
    # Views, because copies of a large state would leave holes in memory with each checkpoint.
    with buffer.getbuffer() as written:
        checksum = seal(written)
    buffer.write(checksum)
    with buffer.getbuffer() as data:
        write_atomically(path, data)


def return_free_memory() -> None:
    """Return to the system what a checkpoint took for a moment, where the C library is glibc.

    A checkpoint is a copy of the agent's state in many pieces. glibc keeps most of that memory for later
    pieces, and they fit the gaps ever worse: without this call the resident set of DQN-Prior grows by 1.4 %
    per 100,000 steps, and with it by 0.8 % (``benchmarks/memory.py``).
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def read_checkpoint(folder: Path, which: Path = CHECKPOINT) -> dict[str, Any] | None:
    """Read a checkpoint of a run, by default the last one; None if there is none yet.

    Raises:
        HunchError: if the file is damaged or cannot be read.

    Warns:
        HunchWarning: if the file has no checksum.
    """
    path = folder / which
    with reading(path):
        if not path.exists():
            return None
        data = path.read_bytes()
    import torch  # takes a second; the command refuses wrong settings before it

    try:
        has_checksum = checked(data)
        device = None if torch.cuda.is_available() else "cpu"  # an accelerator may have written it
        state = torch.load(io.BytesIO(data), map_location=device, weights_only=True)
    except Exception as error:  # damaged bytes make the reader raise anything
        raise HunchError(f"The checkpoint {path} is damaged: remove it to start the run again.") from error
    if not isinstance(state, dict) or not isinstance(state.get("identity"), dict):
        raise HunchError(f"The checkpoint {path} is damaged: remove it to start the run again.")
    if not has_checksum:
        message = f"{path} is from a version without checksums, so damage in it would go unnoticed."
        warnings.warn(message, HunchWarning, stacklevel=2)
    return state


def settings_identity(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's identity that its settings make: all but the steps, which may grow."""
    return {name: value for name, value in settings.items() if name != "steps"}


def contents(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of each file that an option of the environment or the method names, by the option's name.

    Recorded data and models have digests of their own. SQLite files are left out: a run adds finished trials
    to them.
    """
    hashes = {}
    options = {part: settings.get(part) for part in ("env_options", "options")}
    for name, value in leaves(options).items():
        if not isinstance(value, str) or not os.path.isfile(value):  # False for texts that name no file
            continue
        with suppress(OSError), open(value, "rb") as file:  # whoever needs an unreadable file says so
            if file.read(len(_SQLITE)) != _SQLITE:
                file.seek(0)
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return hashes


def require_identity(folder: Path, state: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Check that a checkpoint belongs to the run that loads it; the one check of resuming and of loading.

    Args:
        folder: The run's folder.
        state: The checkpoint.
        identity: What the checkpoint must share with the run, as far as it is known before loading.

    Raises:
        UsageError: if the checkpoint is of another run; the message names what differs.

    Warns:
        HunchWarning: if a file that an option names has other contents than it had.
    """
    stored = current_identity(state["identity"], identity.get("settings", {}))
    run = identity.get("run")
    compared = decisive({name: value for name, value in identity.items() if name != "contents"}, run)
    there = decisive({name: stored.get(name) for name in compared}, run)
    if there != compared:
        what = differences(leaves(there), leaves(compared))
        if [name for name in compared if there[name] != compared[name]] == ["beginning"]:
            # A digest of the first states. The settings are the same, so something behind them is not.
            what = "the environment begins with other states: its code, or a file that it reads, has changed"
        raise UsageError(
            f"{folder} holds the checkpoint of another run ({what}): restore its own, or choose another "
            "folder."
        )

    # No error, because the file may be one that the environment writes itself. Earlier versions stored no
    # hashes, and a file may have appeared since the run began.
    now, before = identity.get("contents", {}), stored.get("contents", {})
    if changed := [name for name in now if name in before and now[name] != before[name]]:
        options = ", ".join(name.replace("env_options.", "env.").removeprefix("options.") for name in changed)
        warnings.warn(
            f"{folder} goes on with another content of the file that {options} names: what it learnt so far "
            "may not fit what it learns now.",
            HunchWarning,
            stacklevel=2,
        )


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Turn errors of whatever loads a checkpoint in this block into a UsageError of one sentence."""
    try:
        yield
    except HunchError:
        raise
    except Exception as error:  # the agent's own code, which may raise anything
        raise UsageError(
            f"The agent in {path} cannot be loaded: another version of Hunch, or of the agent, wrote it "
            f"({type(error).__name__}: {error})."
        ) from error
