"""What goes wrong with a real llama.cpp: one sentence with what to do, nothing lost, and a run goes on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hunch import lm
from hunch.core import HunchError, UsageError
from hunch.lm import Message, Sampling, shelf
from hunch.lm.backends import llama_server

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore:.*cut an answer")]

LONG = "You are in a kitchen. You see a fridge, a table and a mug."


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place of its own for the server of each test, which ends with it."""
    place = Path(tempfile.mkdtemp(prefix="hunch-test-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    yield place
    with contextlib.suppress(HunchError):  # the place itself is damaged
        running = llama_server.running_server()
        if running is not None:
            os.kill(running.process, signal.SIGKILL)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def file() -> Path:
    return shelf.file_of("smollm2")


# ---- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.5, 0.99])
def test_a_file_that_was_cut(file: Path, tmp_path: Path, share: float) -> None:
    cut = tmp_path / "cut.gguf"
    with file.open("rb") as whole:
        cut.write_bytes(whole.read(int(share * file.stat().st_size)))
    with pytest.raises(UsageError, match=r"cut\.gguf is .* GGUF file.*: fetch it again"):
        lm.load(f"gguf:{cut}?threads=1", cache=None)


def test_a_file_that_lacks_its_last_bytes(file: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    shutil.copy(file, cut)
    os.truncate(cut, file.stat().st_size - 10)
    with pytest.raises(HunchError, match=r"could not load cut\.gguf: its file is damaged or only a part"):
        lm.load(f"gguf:{cut}?threads=1", cache=None)


def test_another_file_in_the_place_of_a_model(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUNCH_MODELS", str(tmp_path))
    other = tmp_path / file.name
    shutil.copy(file, other)
    with other.open("r+b") as data:
        data.seek(50_000_000)
        data.write(b"other weights")
    with pytest.raises(HunchError, match=r"is not the model smollm2.*'hunch models get smollm2' fetches it"):
        lm.load("smollm2?threads=1", cache=None)


def test_an_adapter_that_is_none(file: Path, tmp_path: Path) -> None:
    junk = tmp_path / "adapter.gguf"
    junk.write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(UsageError, match=r"adapter\.gguf is damaged"):
        lm.load(f"smollm2?threads=1&lora={junk}", cache=None)
    with pytest.raises(HunchError, match=r"its adapter \(lora=\) is damaged or of another model"):
        lm.load(f"smollm2?threads=1&lora={file}", cache=None)  # a model is no adapter


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_folder_without_permission(file: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700)
    (locked / "model.gguf").symlink_to(file)
    os.seteuid(65534)
    try:
        with pytest.raises(UsageError, match=r"cannot be read \(Permission denied\): change its permissions"):
            lm.load(f"gguf:{locked}/model.gguf", cache=None)
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_where_processes_meet(servers: Path) -> None:
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(servers)], check=False
    ).returncode:
        pytest.skip("this system mounts no disk in memory")
    try:
        llama_server.place()
        with contextlib.suppress(OSError), (servers / "full").open("wb", buffering=0) as full:
            while True:
                full.write(bytes(4096))
        with pytest.raises(HunchError, match=r"is full: make room there"):
            lm.load("smollm2?threads=1", cache=None)
    finally:
        subprocess.run(["umount", "-l", str(servers)], check=True)


# ---- memory and context -----------------------------------------------------------------------------------


def test_more_context_than_there_is_memory_for() -> None:
    with pytest.raises(UsageError, match=r"GB are free: lower one of them, or take a smaller model"):
        lm.load("smollm2?threads=1&context=8192&slots=5000", cache=None)


def test_memory_that_the_system_refuses() -> None:
    program = (
        "import resource; from hunch import lm; from hunch.core import HunchError\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))\n"
        "try: lm.load('smollm2?threads=1&context=8192&slots=16', cache=None)\n"
        "except HunchError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "there is too little memory: set a smaller context= or fewer slots=" in ran.stdout


def test_more_context_than_the_model_reads() -> None:
    with pytest.raises(UsageError, match=r"was trained to read 8,192 tokens: context=10000 must be at most"):
        lm.load("smollm2?threads=1&context=10000", cache=None)


def test_a_history_that_is_too_long_loses_its_oldest_steps_and_is_counted() -> None:
    model = lm.load("smollm2?threads=1&context=512&slots=1", cache=None)
    assert model.revision.endswith("context=512")  # it decides what is left of a prompt
    steps = [f"You see thing {number}.\n> look at thing {number}" for number in range(200)]
    transcript = "\n".join([LONG, *steps, "You see a mug.\n>"])
    with pytest.warns(match="read only a part of a prompt that is longer than the model reads"):
        model.generate([transcript], 1, Sampling(max_tokens=8, stop=()))
    assert model.model.shortened == 1
    conversation = [Message("system", "You are brief.")]
    for number in range(100):
        conversation += [Message("user", f"This is room {number}. {LONG}"), Message("assistant", "look")]
    conversation.append(Message("user", "What do you do?"))
    model.generate([conversation], 1, Sampling(max_tokens=8, stop=()))
    assert model.model.shortened == 2
    (score,) = model.score([transcript], [("look at the mug", "take the mug")])
    assert (score.logprobs < 0).all()
    assert model.model.shortened == 3


def test_a_model_without_a_chat_template_reads_messages_as_text(file: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.gguf"
    data = file.read_bytes()
    assert data.count(b"tokenizer.chat_template") == 1
    plain.write_bytes(data.replace(b"tokenizer.chat_template", b"tokenizer.chat_absent__"))
    model = lm.load(f"gguf:{plain}?threads=1", cache=None)
    assert model.model.route == "text"
    assert model.answer_tokens == 0
    assert "messages joined to one text" in model.model.prompting
    said = [Message("system", "You are brief."), Message("user", "What is the capital of France?")]
    ((answer,),) = model.generate([said], 1, Sampling(max_tokens=16, choices=("Paris", "Rome")))
    assert answer in ("Paris", "Rome")


def test_a_model_whose_template_has_thoughts_gets_room_for_them(file: Path, tmp_path: Path) -> None:
    thinker = tmp_path / "thinker.gguf"
    data = file.read_bytes()
    assert data.count(b"You are a helpful") == 1
    thinker.write_bytes(data.replace(b"You are a helpful", b"<think> a helpful"))
    model = lm.load(f"gguf:{thinker}?threads=1", cache=None)
    assert model.thinks is True
    assert model.answer_tokens > 1000
    assert model.verbs == {"generate", "score"}


# ---- a server that dies -----------------------------------------------------------------------------------


def kill_server_when(is_time: object) -> threading.Thread:
    """Kill the server in the middle of its work, as soon as a condition holds."""

    def wait() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            running = llama_server.running_server()
            if running is not None and is_time():  # type: ignore[operator]
                os.kill(running.process, signal.SIGKILL)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_server_that_dies_mid_answer_loses_only_what_was_not_answered(tmp_path: Path) -> None:
    answers = tmp_path / "answers.sqlite"
    prompts = [f"{number}. {LONG} Name one thing." for number in range(6)]
    sampling = Sampling(max_tokens=24, choices=("the fridge", "the table", "the mug"))
    model = lm.load("smollm2?threads=1&slots=1", cache=answers)
    thread = kill_server_when(lambda: model.usage.calls >= 3)
    with pytest.raises(HunchError, match=r"llama\.cpp ended while it answered.*repeat the command"):
        model.generate(prompts, 4, sampling)
    thread.join()
    again = lm.load("smollm2?threads=1&slots=1", cache=answers)
    texts = again.generate(prompts, 4, sampling)
    assert all(set(row) <= {"the fridge", "the table", "the mug"} for row in texts)
    assert 0 < again.usage.calls < 24
    assert again.usage.cache_hits > 0


def test_a_run_goes_on_after_its_server_has_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    command = [
        sys.executable,
        "-m",
        "hunch",
        "run",
        "zero-shot",
        "--env",
        "hunch/FrozenLake-v0",
        "--seed",
        "1",
    ]
    command += ["--lm", "smollm2?threads=1", "--steps", "12", "--out", str(out)]

    def has_answers() -> bool:
        store = tmp_path / "answers.sqlite-wal"
        return store.exists() and store.stat().st_size > 100_000

    thread = kill_server_when(has_answers)
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    thread.join()
    assert first.returncode == 1, first.stderr
    assert "Traceback" not in first.stderr
    assert "llama.cpp ended while it answered" in first.stderr
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    assert (out / "summary.json").exists()


ENDING = """
import fcntl, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
locks = [(folder / name).open("a") for name in ("alive", "users")]
for lock in locks:
    fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(3)
"""
"""A server that has decided to end, and whose memory takes some seconds to be free."""


def test_nobody_joins_a_server_that_ends(file: Path) -> None:
    first = lm.load("smollm2?threads=1", cache=None)
    folder = llama_server.place()
    stored = (folder / "server.json").read_text()
    first.model._use.close()
    os.kill(llama_server.running_server().process, signal.SIGKILL)  # type: ignore[union-attr]
    while llama_server.running_server() is not None:
        time.sleep(0.05)
    (folder / "server.json").write_text(stored)
    with subprocess.Popen(
        [sys.executable, "-c", ENDING, str(folder)], stdout=subprocess.PIPE, text=True
    ) as ending:
        assert ending.stdout is not None
        assert ending.stdout.readline() == "held\n"
        assert llama_server.running_server() is not None  # it looks as if it could be joined
        second = lm.load("smollm2?threads=1", cache=None)
        assert ending.poll() is not None or ending.wait(1) is not None
    assert second.generate([LONG], sampling=Sampling(max_tokens=2))[0][0]


def test_a_server_ends_after_its_last_user_and_the_next_one_finds_another() -> None:
    """The second user comes when the first server is about to end: it joins it in time, or starts another."""
    first = lm.load("smollm2?threads=1", cache=None)
    for wait in (llama_server.GRACE, llama_server.GRACE + 0.3):
        first.model._use.close()
        time.sleep(wait)
        first = lm.load("smollm2?threads=1", cache=None)
        assert first.generate([f"{LONG} {wait}"], sampling=Sampling(max_tokens=2))[0][0]


# ---- processes that look for the server at the same moment ------------------------------------------------


def test_those_that_look_at_once_do_not_take_each_other_for_a_server() -> None:
    """A killed server has left its address. Each open file holds a lock, as if of a process of its own."""
    folder = llama_server.place()
    served = llama_server.Served(llama_server.Settings("a.gguf"), "http://127.0.0.1:1/v1", 1, True, 0)
    (folder / "server.json").write_text(json.dumps(asdict(served)))
    until = time.monotonic() + 1

    def look(_: int) -> int:
        seen = 0
        while time.monotonic() < until:
            seen += llama_server.running_server() is not None
        return seen

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(look, range(4))) == 0


def test_a_server_that_looks_for_users_is_no_user(file: Path) -> None:
    """The other model takes the place of the first one, which looks for its users at that very moment."""
    lm.load("smollm2?threads=1&slots=1", cache=None).model._use.close()
    with (llama_server.place() / "users").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        timer = threading.Timer(llama_server.PROBES / 2, fcntl.flock, (users, fcntl.LOCK_UN))
        timer.start()
        second = lm.load("smollm2?threads=1&slots=2", cache=None)
        timer.join()
    assert second.model._served.settings.slots == 2


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_nobody_joins_a_server_that_a_signal_ends(by: int) -> None:
    """Its lock is held until its memory is free, some milliseconds later."""
    for pause in (0.0, 0.002):
        first = lm.load("smollm2?threads=1&slots=1", cache=None)
        first.model._use.close()
        os.kill(first.model._served.process, by)
        # On a busy machine a server may answer for some time before it sees that it was asked to end.
        while by == signal.SIGTERM and (llama_server.place() / "server.json").exists():
            time.sleep(0.001)
        time.sleep(pause)
        second = lm.load("smollm2?threads=1&slots=1", cache=None)
        assert second.generate([LONG], sampling=Sampling(max_tokens=2))[0][0]


# ---- its files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alive", "users", "start", "server.log", "server.json", "key"])
def test_a_file_that_cannot_be_made(name: str) -> None:
    (llama_server.place() / name).mkdir()
    with pytest.raises(HunchError, match=rf"cannot be used \({name}: Is a directory\): make room there"):
        lm.load("smollm2?threads=1&slots=1", cache=None)


def test_a_folder_that_is_a_link_of_another_user(servers: Path, tmp_path: Path) -> None:
    (servers / f"hunch-llama-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(HunchError, match="belongs to another user or is no folder"):
        llama_server.place()


MEMORY = """\
0.00.803.373 W init: no adapter in the cache, out of memory is no error here
0.00.803.374 E ggml_aligned_malloc: insufficient memory (attempted to allocate 2880.00 MB)
0.00.803.800 E cmn  common_init_: failed to load lora adapter 'a.gguf'
"""


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (MEMORY, "there is too little memory"),
        (MEMORY.replace("insufficient memory", "no luck"), "its adapter"),
        ("0.01.692.272 I srv init: listening on http://127.0.0.1:41273\n", ""),
        ("0.01.692.272 I srv init: lora adapter a.gguf\n0.01.9", "0.01.9"),
        ("0.01.692.272 E srv init: no ears\nTraceback\nRuntimeError: Failed\n", "srv init: no ears"),
    ],
)
def test_the_first_error_of_a_log_is_the_reason(log: str, why: str) -> None:
    (llama_server.place() / "server.log").write_text(log)
    said = llama_server.why_it_ended()
    assert said.startswith(why)
    assert bool(said) == bool(why)


# ---- its key ----------------------------------------------------------------------------------------------


def asked(address: str, path: str, headers: dict[str, str]) -> tuple[int, str | None]:
    """Return the status of a request, and which pages a browser lets read the reply."""
    connection = HTTPConnection(address.split("/")[2], timeout=60)
    body = json.dumps({"prompt": "Hello", "max_tokens": 1})
    connection.request("POST" if path == "/v1/completions" else "GET", path, body, headers)
    reply = connection.getresponse()
    connection.close()
    return reply.status, reply.getheader("Access-Control-Allow-Origin")


def test_only_the_user_and_no_page_gets_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUNCH_API_KEY", "a-key-of-another-server-1234")
    model = lm.load("smollm2?threads=1&slots=1", cache=None)
    folder = llama_server.place()
    key = (folder / "key").read_text().strip()
    served = model.model._served
    page = {"Origin": "http://page.test", "Host": "page.test"}
    for path in ("/v1/completions", "/v1/models", "/props", "/slots"):
        for headers in ({}, page, {"Authorization": "Bearer a-key-of-another-server-1234"}):
            status, readers = asked(served.address, path, headers)
            assert status == 401
            assert not readers
    assert asked(served.address, "/v1/completions", {"Authorization": f"Bearer {key}"})[0] == 200
    # A spec with the address finds the key, too, and sends that of another server nowhere.
    same = lm.load(f"openai:{Path(served.settings.file).stem}?base_url={served.address}", cache=None)
    assert "generate" in same.verbs

    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    process = Path(f"/proc/{served.process}")
    stored = [process / "cmdline", process / "environ", folder / "server.log", folder / "server.json"]
    assert all(key.encode() not in file.read_bytes() for file in stored if file.exists())
    assert key.encode() not in pickle.dumps(model.model)
    assert key not in repr(vars(model.model)) + repr(vars(same.model)) + repr(vars(same.model.line))

    os.kill(served.process, signal.SIGTERM)
    other = lm.load("smollm2?threads=1&slots=1", cache=None)
    assert (folder / "key").read_text().strip() not in ("", key)
    (folder / "key").write_text("hunch-of-another-start-1\n")
    with pytest.raises(HunchError, match=r"HTTP 401 \(the key comes from .*/key\)") as refused:
        lm.load(f"openai:a?base_url={other.model._served.address}", cache=None)
    assert "another-start" not in str(refused.value)


def test_a_server_by_hand_says_where_its_key_is_and_can_do_without(file: Path) -> None:
    command = [sys.executable, "-m", "hunch", "models", "serve", str(file), "--port", "0", "--threads", "1"]
    for options, status in (([], 401), (["--keyless"], 200)):
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().split(" at ")[1].split()[0]
                assert asked(address, "/v1/models", {})[0] == status
                if not options:
                    where = server.stdout.readline().split("$(cat ")[1].split(")")[0]
                    key = Path(where).read_text().strip()
                    assert asked(address, "/v1/models", {"Authorization": f"Bearer {key}"})[0] == 200
                assert lm.load(f"openai:{file.stem}?base_url={address}", cache=None).verbs
            finally:
                server.send_signal(signal.SIGINT)
            assert server.wait(20) == 0
        assert not (llama_server.place() / "key").exists()
