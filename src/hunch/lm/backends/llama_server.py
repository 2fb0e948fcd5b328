"""The one llama.cpp server of a machine: a process of its own that all of a user's processes share.

Two llama.cpp servers on the same cores slow each other down many times over. So there is one, in a process of
its own, which also keeps an abort of llama.cpp away from a run. Locks of the operating system say who uses
it; they vanish with their process, so nothing hangs after a crash:

``alive``   held by the server as long as it runs
``users``   shared by all that use it; when nobody holds it for :data:`GRACE` seconds, the server takes it
            for itself alone and ends
``start``   held while a server is looked for and started

Two files beside the locks say how the server is reached:

``server.json``   its settings and its address
``key``           the key that it asks for, new at each start; only the user can read it

Any program on the machine can reach the port: those of other users, and a browser with any web page. So the
server answers only requests that have the key, and tells browsers that no page may read its answers. The key
is made by the server itself and stands in its memory and in this file, never on a command line, in an
environment or in a log.

The module is run as ``python -m hunch.lm.backends.llama_server SETTINGS``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO, Any, Final, NoReturn
from urllib.parse import urlsplit

from hunch.core import HunchError, UsageError
from hunch.extras import library
from hunch.lm import shelf
from hunch.lm.backends.gguf_header import Header, header_of

try:
    import fcntl
except ImportError:  # Windows, where this module is read when models are listed
    fcntl = None  # type: ignore[assignment]

GRACE: Final = 10.0
"""Seconds that a server without users waits for the next one."""
LONGEST_START: Final = 600.0
"""Seconds after which a server that does not answer is given up; a large model takes long to read."""

LONGEST_SILENCE: Final = 30.0
"""Seconds after which a server that has an address and does not answer there is given up."""
PROBES: Final = 0.5
"""Seconds for which a lock is asked for again. Whoever probes a lock holds it for a moment."""

PROMPTS: Final = 2**30
"""Maximum number of bytes for prompts that llama.cpp keeps besides those of its slots, if so much is free.

By its default of 8 GB a model of 0.1 GB took 6.9 GB within half an hour.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is served.

    Attributes:
        file: The GGUF file.
        context: Tokens that the model reads and writes per text.
        slots: Texts at once.
        threads: Threads; 0 for the cores of the machine.
        gpu_layers: Layers on an accelerator.
        lora: File of an adapter; empty for none.
        port: Port of the address; 0 for a free one.
        stays: True if the server does not end without users.
        keyless: True if the server asks for no key.
    """

    file: str
    context: int = 4096
    slots: int = 4
    threads: int = 0
    gpu_layers: int = 0
    lora: str = ""
    port: int = 0
    stays: bool = False
    keyless: bool = False

    def answers_for(self, asked: Settings) -> bool:
        """Return whether a server with these settings serves what another one asks for."""
        same = ("file", "context", "slots", "gpu_layers", "lora")
        return all(getattr(self, name) == getattr(asked, name) for name in same)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs.

    Attributes:
        settings: How it serves.
        address: Address of its routes, up to ``/v1``.
        process: Its process.
        chat_template: True if the model's file has a chat template.
        trained_context: Tokens that the model was trained to read; 0 if its file does not say.
    """

    settings: Settings
    address: str
    process: int
    chat_template: bool
    trained_context: int


def place() -> Path:
    """Return the folder of the locks, which is made: one per user and machine.

    Raises:
        UsageError: on a system without locks of files.
        HunchError: if the folder belongs to another user.
    """
    if fcntl is None:
        raise UsageError(
            "llama.cpp is shared by locks of files, which this system lacks: use openai: instead."
        )
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
            raise HunchError(
                f"{folder} belongs to another user or is no folder, so no llama.cpp server can be shared "
                "there: set XDG_RUNTIME_DIR to a folder of yours."
            )
        if status.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise HunchError(
            f"The folder {folder}, by which processes share llama.cpp, cannot be made ({error.strerror}): "
            "set XDG_RUNTIME_DIR to a folder of yours."
        ) from error
    return folder


def _folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    where = Path(runtime) if runtime and os.access(runtime, os.W_OK) else Path("/tmp")
    return where / f"hunch-llama-{os.getuid()}"


def _lock_file(folder: Path, name: str) -> IO[str]:
    """Open a lock, which is made if it is not there.

    Raises:
        HunchError: if it cannot be made.
    """
    try:
        return (folder / name).open("a")
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: OSError) -> HunchError:
    """Return the error that says what is wrong with the folder of the locks."""
    name = Path(os.fsdecode(error.filename)).name if error.filename else "a file"
    return HunchError(
        f"{folder}, by which processes share llama.cpp, cannot be used ({name}: {error.strerror}): make room "
        "there, remove the folder, or set XDG_RUNTIME_DIR to another folder of yours."
    )


def check_file(file: Path) -> Header:
    """Return the header of a GGUF file, and refuse what llama.cpp could not read.

    Raises:
        UsageError: if there is no such file, it may not be read, it is no GGUF file or only a part of one, or
            it is larger than the memory that is free.
    """
    try:
        if not file.is_file():
            what = f"{str(file)!r} is a folder" if file.is_dir() else f"There is no file {str(file)!r}"
            raise UsageError(f"{what}: gguf: takes the path of a GGUF file.")
        size, free = file.stat().st_size, free_memory()
        if free and size > free:
            raise UsageError(
                f"{file.name} needs {size / 1e9:.1f} GB of memory and more for its context, but "
                f"{free / 1e9:.1f} GB are free: take a smaller model, or end other programs."
            )
        return header_of(file)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read ({error.strerror}): change its permissions or those of its "
            "folder, or name another file."
        ) from error


def check_settings(settings: Settings) -> Header:
    """Return the header of a model's file, and refuse a context that it or the memory has no room for.

    Raises:
        UsageError: for the reasons of :func:`check_file`, or a context that is too long.
    """
    file = Path(settings.file)
    header = check_file(file)
    trained = header.trained_context
    if 0 < trained < settings.context:
        raise UsageError(
            f"{file.name} was trained to read {trained:,} tokens: context={settings.context} must be at most "
            "that."
        )
    context = header.bytes_per_token * settings.context * settings.slots
    needed, free = file.stat().st_size + context, free_memory()
    if free and needed > free:
        raise UsageError(
            f"{file.name} needs {needed / 1e9:.1f} GB of memory with context={settings.context} and "
            f"slots={settings.slots}, but {free / 1e9:.1f} GB are free: lower one of them, or take a smaller "
            "model."
        )
    return header


def free_memory() -> int:
    """Return the bytes of memory that are free, for the machine and the container; 0 if nobody says."""
    free = [_machine_memory(), _container_memory()]
    return min((some for some in free if some), default=0)


def _machine_memory() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    free = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "0")
    return int(free) * 1024


def _container_memory() -> int:
    """Return what a container's limit leaves, its cache of files counted as free; 0 without a limit."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):  # "max" stands for no limit
        return 0
    files = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
    return max(1, limit - used + files)


# ---- for those that use the server ------------------------------------------------------------------------


class Use:
    """The use of the server by this process; unless it is killed, the server lives at least as long.

    Attributes:
        served: The server.
    """

    def __init__(self, settings: Settings, say: Callable[[str], None] | None = None) -> None:
        """Find the server, or start it.

        Args:
            settings: What is to be served.
            say: Called with a line when a server is started, which takes seconds.

        Raises:
            HunchError: if it cannot be started, or another model is served and in use.
        """
        folder = place()
        self._users = _lock_file(folder, "users")
        with _lock_file(folder, "start") as start:
            fcntl.flock(start, fcntl.LOCK_EX)
            running = _settled(folder)
            if running is not None and not running.settings.answers_for(settings):
                _end_unused(running, folder)
            # A server that ends for lack of users holds "users" and "alive" until its memory is free, which
            # may take a second. So "users" is waited for, and what runs is looked for again.
            fcntl.flock(self._users, fcntl.LOCK_SH)
            running = _settled(folder)
            if running is not None and not running.settings.answers_for(settings):
                raise _is_used(running)
            if running is None:
                if say:
                    say(f"starting llama.cpp with {Path(settings.file).name}")
                running = _start(settings, folder)
        self.served = running

    def close(self) -> None:
        """End the use; the last one to do so lets the server end."""
        self._users.close()


def running_server() -> Served | None:
    """Return the server; None if there is none, and while it loads or ends."""
    folder = place()
    if not _is_alive(folder):
        return None
    try:
        stored = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        return Served(**{**stored, "settings": Settings(**stored["settings"])})
    except (OSError, ValueError, TypeError, LookupError):
        return None


def key_file(address: str) -> Path | None:
    """Return the file with the key of an address; None if it is not that of this user's server."""
    if fcntl is None or not _folder().is_dir():
        return None
    running = running_server()
    if running is None or running.settings.keyless or running.address.rstrip("/") != address.rstrip("/"):
        return None
    return place() / "key"


def _is_alive(folder: Path) -> bool:
    """Return whether a server runs, loads or ends.

    The lock is asked for as one of many. So those that look at the same moment do not take each other for
    the server, which holds it alone.
    """
    with _lock_file(folder, "alive") as alive:
        return not _take(alive, fcntl.LOCK_SH)


def _settled(folder: Path) -> Served | None:
    """Wait while a server loads or ends, and return the one that answers then; None if there is none.

    Raises:
        HunchError: if it does neither in time.
    """
    begin = time.monotonic()
    silent_since = None
    while _is_alive(folder):
        running = running_server()
        if running is None:
            silent_since = None
            if time.monotonic() - begin > LONGEST_START:
                raise HunchError(
                    f"A llama.cpp server has loaded for {LONGEST_START:.0f} seconds: end it, and repeat the "
                    "command."
                )
        elif _answers(running):
            return running
        else:
            silent_since = silent_since or time.monotonic()
            if time.monotonic() - silent_since > LONGEST_SILENCE:
                raise HunchError(
                    f"The llama.cpp server of process {running.process} does not answer: end it with "
                    f"'kill -9 {running.process}', and repeat the command."
                )
        time.sleep(0.05)
    return None


def _answers(served: Served) -> bool:
    """Return whether a server answers; one that was killed keeps its lock until its memory is free."""
    address = urlsplit(served.address)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


REMEDIES: Final = (
    ("lora adapter", "its adapter (lora=) is damaged or of another model: name another, or none"),
    ("within the file bounds|gguf_init_from", "its file is damaged or only a part: fetch it again"),
    (
        "insufficient memory|failed to allocate|out of memory|bad_alloc",
        "there is too little memory: set a smaller context= or fewer slots=, or take a smaller model",
    ),
    (
        "unknown model architecture",
        "this llama.cpp does not know its architecture: upgrade the package xllamacpp, or take another model",
    ),
)
"""What llama.cpp writes when it cannot load a model, and what a person can do."""


INFORMS: Final = re.compile(r"[\d.]+ [A-DF-Z] ")
"""Beginning of a line of llama.cpp's log that is no error: the time, and another letter than E."""


def why_it_ended() -> str:
    """Return why the server ended, for a message: what to do, or its own words; empty if it named none."""
    folder = place()
    try:
        text = (folder / "server.log").read_text(encoding="utf-8", errors="replace")
        is_full = not shutil.disk_usage(folder).free
    except OSError:
        return ""
    if is_full:  # so the log lacks lines, and those that are left may name a consequence as the reason
        return f"the disk of {folder} is full: make room there, or set XDG_RUNTIME_DIR to another folder"
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not INFORMS.match(line)]
    # The first error is the reason of the others, for which there may be a remedy as well.
    for line in lines:
        for says, remedy in REMEDIES:
            if re.search(says, line):
                return remedy
    errors = [line for line in lines if re.match(r"[\d.]+ E ", line)]
    said = re.sub(r"^[\d.]+ E +", "", errors[0]) if errors else lines[-1] if lines else ""
    return said[:200]


def _end_unused(running: Served, folder: Path) -> None:
    """End a server with other settings, if nobody uses it.

    Raises:
        HunchError: if somebody does.
    """
    with _lock_file(folder, "users") as users:
        # The server looks now and then whether it has users, which takes the lock for a moment.
        if running.settings.stays or not _take(users, fcntl.LOCK_EX, patience=PROBES):
            raise _is_used(running)
    os.kill(running.process, signal.SIGTERM)
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        if not _is_alive(folder):
            return
        time.sleep(0.05)
    raise HunchError(f"The llama.cpp server of process {running.process} does not end: end it by hand.")


def _is_used(running: Served) -> HunchError:
    return HunchError(
        f"llama.cpp serves {Path(running.settings.file).name} on this machine (process {running.process}), "
        "and two servers would slow each other down: wait until it ends, end it with "
        f"'kill {running.process}', or ask it as openai: at {running.address}."
    )


def _start(settings: Settings, folder: Path) -> Served:
    name = Path(settings.file).name
    try:
        (folder / "server.json").unlink(missing_ok=True)
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps(asdict(settings))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=shelf.without_secrets(),
                # Ctrl-C in a terminal ends the run alone; without users the server ends later.
                start_new_session=True,
            )
    except OSError as error:
        raise _unusable(folder, error) from error
    until = time.monotonic() + LONGEST_START
    while time.monotonic() < until:
        ended = process.poll() is not None
        running = running_server()
        if running is not None and running.settings.answers_for(settings):
            return running
        if running is not None:  # a person has started another one in the meantime
            raise _is_used(running)
        if ended:
            raise HunchError(f"llama.cpp could not load {name}: {_how_it_ended(process.returncode)}.")
        time.sleep(0.05)
    process.kill()
    raise HunchError(f"llama.cpp did not load {name} in {LONGEST_START:.0f} seconds.")


def _how_it_ended(code: int) -> str:
    if code == -signal.SIGKILL:
        return "it was killed, perhaps for lack of memory: set a smaller context= or fewer slots="
    return why_it_ended().rstrip(".") or f"it ended with exit code {code} and said nothing"


# ---- the server -------------------------------------------------------------------------------------------


def lasting(settings: Settings, port: int, *, keyless: bool) -> Settings:
    """Return the settings of a server that a person starts: at a port, until a signal ends it."""
    return replace(settings, port=port, stays=True, keyless=keyless)


def serve(settings: Settings) -> None:
    """Serve until nobody uses the server, or a signal ends it.

    Raises:
        UsageError: if another server runs, or the package is not installed.
        HunchError: if the folder of the locks cannot be written.
    """
    xllamacpp = library("xllamacpp", "llama.cpp needs the package xllamacpp", "gguf")
    header = check_settings(settings)
    folder = place()
    alive = _lock_file(folder, "alive")
    until = time.monotonic() + GRACE  # for a server that ends
    while not _take(alive, fcntl.LOCK_EX, patience=PROBES):
        if running_server() is not None or time.monotonic() > until:
            raise UsageError("llama.cpp serves a model on this machine already; one server is enough.")
    key = "" if settings.keyless else _new_key()
    try:
        (folder / "server.json").unlink(missing_ok=True)
        if settings.stays:  # it writes to the terminal, so a log is that of another server
            (folder / "server.log").unlink(missing_ok=True)
        _write_key(folder, key)
    except OSError as error:
        raise _unusable(folder, error) from error

    # A signal ends the process at once: llama.cpp's threads do not listen to Python's exceptions. The lock is
    # free when the memory is, so the file goes first, and nobody joins.
    def end(*_: Any) -> NoReturn:
        with contextlib.suppress(OSError):
            (folder / "server.json").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (folder / "key").unlink(missing_ok=True)
        os._exit(0)

    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(name) is not signal.SIG_IGN:  # as nohup does, to outlive the terminal
            signal.signal(name, end)

    threads = settings.threads or len(os.sched_getaffinity(0))
    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = settings.file
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = settings.port
    parameters.n_ctx = settings.context * settings.slots
    parameters.n_parallel = settings.slots
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    # Threads that wait do not spin: on a busy machine spinning costs more than it saves.
    parameters.cpuparams.poll = 0
    parameters.cpuparams_batch.poll = 0
    parameters.n_gpu_layers = settings.gpu_layers
    free = free_memory()
    parameters.cache_ram_mib = (min(PROMPTS, free // 4) if free else PROMPTS) >> 20
    # We ask for a context that fits. To find one that fits, llama.cpp would load the model once more.
    parameters.fit_params = False
    parameters.model_alias = {Path(settings.file).stem}
    parameters.ui = False
    parameters.api_keys = [key] if key else []
    parameters.cors_origins = ""  # no page of another server may read answers
    parameters.cors_origins_explicit = True
    if settings.lora:
        parameters.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(settings.lora, 1.0)]
    server = xllamacpp.Server(parameters)

    address = f"{server.listening_address}/v1"
    served = Served(settings, address, os.getpid(), header.has_chat_template, header.trained_context)
    # From here on llama.cpp's threads run, and a process that ends as usual may wait for them for ever.
    # So it ends at once, also if a file cannot be written.
    try:
        new = folder / "server.json.new"
        new.write_text(json.dumps(asdict(served)), encoding="utf-8")
        new.replace(folder / "server.json")
        if settings.stays:
            print(f"serving {Path(settings.file).name} at {address} (Ctrl-C ends it)", flush=True)
            if key:
                sends = f'OPENAI_API_KEY="$(cat {shlex.quote(str(folder / "key"))})"'
                print(f"Hunch finds its key by itself; other programs send it: {sends}", flush=True)
        _users = _wait(folder, stays=settings.stays)  # open until the process is gone
        (folder / "server.json").unlink(missing_ok=True)
        (folder / "key").unlink(missing_ok=True)
    except OSError as error:
        with contextlib.suppress(OSError):  # the disk of the log may be the full one
            print(_unusable(folder, error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def _wait(folder: Path, *, stays: bool) -> IO[str]:
    """Return when nobody has used the server for a while; never if it stays.

    Returns:
        The lock of the users, which is this process's alone. While it is held nobody joins the server.
    """
    users = _lock_file(folder, "users")
    unused_since = time.monotonic()
    while True:
        time.sleep(0.5)
        is_unused = not stays and _take(users, fcntl.LOCK_EX)
        if not is_unused:
            unused_since = time.monotonic()
        elif time.monotonic() - unused_since >= GRACE:
            return users
        else:
            fcntl.flock(users, fcntl.LOCK_UN)


def _take(lock: IO[str], kind: int, *, patience: float = 0.0) -> bool:
    """Take a lock; return whether nobody held it in a way that excludes this.

    Args:
        lock: The file.
        kind: ``LOCK_EX`` for this process alone, ``LOCK_SH`` for one of many.
        patience: Seconds for which it is asked for again.
    """
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        else:
            return True


def _new_key() -> str:
    """Return a key of 128 bits."""
    return "hunch-" + secrets.token_hex(16)


def _write_key(folder: Path, key: str) -> None:
    """Write the key to a new file that only the user can read; without one, remove what is there."""
    (folder / "key").unlink(missing_ok=True)
    if key:
        new = os.open(folder / "key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(new, "w", encoding="ascii") as file:
            file.write(key + "\n")


if __name__ == "__main__":
    try:
        serve(Settings(**json.loads(sys.argv[1])))
    except (HunchError, OSError) as error:
        sys.exit(str(error))
