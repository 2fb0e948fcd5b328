"""GGUF files of a hub: ``hunch models get OWNER/NAME`` at a small hub of this machine.

The hub is a web server with the three routes that ``huggingface_hub`` asks. It is named by ``HF_ENDPOINT``,
which that package reads when it is imported, so every test is a command of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from tests.started import answering

pytest.importorskip("huggingface_hub")

WHOLE = b"GGUF" + bytes(range(256)) * 120_000  # huggingface_hub writes ten megabytes at a time
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "someone/Small-GGUF"


class Hub(ThreadingHTTPServer):
    """A hub with one repository.

    Attributes:
        files: Its files by name.
        stated: The hash that it states of each; by default the true one.
        asked: Ranges of bytes that were asked for.
        half: Set when half of a file was sent.
        goes_on: Set to let it send the other half; it is set at first.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {"small-q4.gguf": WHOLE, "README.md": b"# Small"}
        self.stated: dict[str, str] = {}
        self.asked: list[str] = []
        self.half = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""

    def sha256(self, name: str) -> str:
        return self.stated.get(name) or hashlib.sha256(self.files[name]).hexdigest()


class Answer(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == f"/api/models/{REPOSITORY}":
            self.model()
        elif found := re.fullmatch(rf"/{REPOSITORY}/resolve/\w+/(.+)", path):
            self.file(found[1])
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("content-length", "0")
            self.end_headers()

    def model(self) -> None:
        files = [
            {
                "rfilename": name,
                "size": len(data),
                "blobId": "0" * 40,
                "lfs": {"size": len(data), "sha256": self.server.sha256(name), "pointerSize": 134},
            }
            for name, data in self.server.files.items()
        ]
        data = json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": files}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def file(self, name: str) -> None:
        data = self.server.files[name]
        asked = re.match(r"bytes=(\d+)-", self.headers.get("range", ""))
        first = int(asked[1]) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("etag", f'"{self.server.sha256(name)}"')
        self.send_header("x-repo-commit", COMMIT)
        self.send_header("content-length", str(len(data) - first))
        if asked:
            self.send_header("content-range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.server.asked.append(self.headers.get("range", ""))
        middle = max(first, len(data) // 2)
        self.wfile.write(data[first:middle])
        self.wfile.flush()
        self.server.half.set()
        self.server.goes_on.wait(30)
        self.wfile.write(data[middle:])


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with answering(Hub()) as running:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{running.server_port}")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        monkeypatch.setenv("HUNCH_MODELS", str(tmp_path / "models"))
        yield running
        running.goes_on.set()


COMMAND = (sys.executable, "-m", "hunch", "models", "get")
FOLDER = REPOSITORY.replace("/", "--")


def get(*arguments: str) -> tuple[int, str]:
    ran = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


def test_the_one_file_of_a_repository(hub: Hub, tmp_path: Path) -> None:
    code, said = get(REPOSITORY)
    assert code == 0, said
    file = tmp_path / "models" / FOLDER / "small-q4.gguf"
    assert f"--lm gguf:{file}" in said
    assert file.read_bytes() == WHOLE
    hub.asked.clear()
    assert get(REPOSITORY)[0] == 0  # what is here is not fetched again
    assert not hub.asked


def test_several_files_have_to_be_told_apart(hub: Hub, tmp_path: Path) -> None:
    hub.files["small-q8.gguf"] = b"GGUF other"
    code, said = get(REPOSITORY)
    assert (code, "it has small-q4.gguf, small-q8.gguf" in said) == (2, True)
    assert get(REPOSITORY, "small-q8.gguf")[0] == 0
    assert (tmp_path / "models" / FOLDER / "small-q8.gguf").read_bytes() == b"GGUF other"
    code, said = get(REPOSITORY, "small-q5.gguf")
    assert (code, "has no file 'small-q5.gguf'" in said) == (2, True)


def test_another_file_than_the_hub_says_is_removed(hub: Hub, tmp_path: Path) -> None:
    hub.stated["small-q4.gguf"] = "f" * 64
    code, said = get(REPOSITORY)
    assert code == 1
    assert "has another SHA-256 than the hub says, and was removed" in said
    assert not (tmp_path / "models" / FOLDER / "small-q4.gguf").exists()


@pytest.mark.parametrize(
    "name",
    [
        "someone/Other",
        "../models",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("a/b/c", "/etc", "someone/..")),
    ],
)
def test_no_such_repository(hub: Hub, name: str) -> None:
    code, said = get(name)
    assert code in (1, 2)
    assert "could not be fetched from the hub" in said or "named as OWNER/NAME" in said


def test_no_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    code, said = get(REPOSITORY)
    assert code == 1
    assert f"{REPOSITORY} could not be fetched from the hub" in said


def test_no_room(hub: Hub) -> None:
    program = (
        "import shutil, sys; from hunch.cli.main import main; "
        "shutil.disk_usage = lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 10**6, 10**6); "
        f"sys.argv = ['hunch', 'models', 'get', {REPOSITORY!r}]; sys.exit(main())"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "small-q4.gguf needs 31 MB in" in ran.stderr
    assert "but 1 MB are free: make room" in ran.stderr


def test_after_a_kill_midway_nothing_is_left(hub: Hub, tmp_path: Path) -> None:
    hub.goes_on.clear()
    with subprocess.Popen([*COMMAND, REPOSITORY], stdout=subprocess.DEVNULL) as process:
        assert hub.half.wait(60)
        begun = tmp_path / "models" / FOLDER
        for _ in range(300):  # until the first half is on the disk
            if sum(file.stat().st_size for file in begun.rglob("*.incomplete")) > 1_000_000:
                break
            threading.Event().wait(0.05)
        process.send_signal(signal.SIGKILL)
    hub.goes_on.set()
    assert get(REPOSITORY)[0] == 0
    assert (begun / "small-q4.gguf").read_bytes() == WHOLE
    assert not list(begun.rglob("*.incomplete"))


def test_a_second_one_waits_and_says_so(hub: Hub, tmp_path: Path) -> None:
    place = tmp_path / "models" / FOLDER
    place.mkdir(parents=True)
    lock = FileLock(place / "small-q4.gguf.lock")
    lock.acquire()
    with subprocess.Popen([*COMMAND, REPOSITORY], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "Another process is fetching small-q4.gguf" in process.stdout.readline()
        lock.release()
        assert "--lm gguf:" in process.stdout.read()
    assert process.returncode == 0
    assert (place / "small-q4.gguf").read_bytes() == WHOLE


def test_without_the_package_a_sentence_says_how_to_get_it(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError('not here')")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([*COMMAND, REPOSITORY], capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 2
    assert "'pip install huggingface_hub' and repeat the command" in ran.stderr
