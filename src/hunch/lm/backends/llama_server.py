"""The one llama.cpp server of a machine: a process of its own that all of a user's processes share.

Two llama.cpp servers on the same cores slow each other down many times over. So there is one, in a process of
its own, which also keeps an abort of llama.cpp away from a run. Locks of the operating system say who uses
it; they vanish with their process, so nothing hangs after a crash:

``alive``   held by the server as long as it runs
``users``   shared by all that use it; when nobody holds it for :data:`GRACE` seconds, the server ends
``start``   held while a server is looked for and started

The module is run as ``python -m hunch.lm.backends.llama_server SETTINGS``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from hunch.core import HunchError, UsageError
from hunch.lm import shelf

try:
    import fcntl
except ImportError:  # Windows, where this module is read when models are listed
    fcntl = None  # type: ignore[assignment]

GRACE: Final = 10.0
"""Seconds that a server without users waits for the next one."""
LONGEST_START: Final = 600.0
"""Seconds after which a server that does not answer is given up; a large model takes long to read."""
MAGIC: Final = b"GGUF"


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
    """

    file: str
    context: int = 4096
    slots: int = 4
    threads: int = 0
    gpu_layers: int = 0
    lora: str = ""
    port: int = 0
    stays: bool = False

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
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    where = Path(runtime) if runtime and os.access(runtime, os.W_OK) else Path("/tmp")
    found = where / f"hunch-llama-{os.getuid()}"
    found.mkdir(mode=0o700, exist_ok=True)
    if found.stat().st_uid != os.getuid():
        raise HunchError(f"{found} belongs to another user, so no llama.cpp server can be shared there.")
    return found


def check_file(file: Path) -> None:
    """Refuse what llama.cpp could not read.

    Raises:
        UsageError: if there is no such file, it is no GGUF file, or larger than the memory that is free.
    """
    if not file.is_file():
        raise UsageError(f"There is no file {str(file)!r}: gguf: takes the path of a GGUF file.")
    try:
        with file.open("rb") as data:
            begins = data.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error
    if begins != MAGIC:
        raise UsageError(f"{file} is not a GGUF file: it does not begin with 'GGUF'.")
    free = free_memory()
    if free and file.stat().st_size > free:
        raise UsageError(
            f"{file.name} needs {file.stat().st_size / 1e9:.1f} GB of memory and more for its context, but "
            f"{free / 1e9:.1f} GB are free: take a smaller model, or end other programs."
        )


def free_memory() -> int:
    """Return the bytes of memory that are free; 0 if the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    free = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "0")
    return int(free) * 1024


# ---- for those that use the server ------------------------------------------------------------------------


class Use:
    """The use of the machine's server by this process; the server lives at least as long.

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
        check_file(Path(settings.file))
        folder = place()
        self._users = (folder / "users").open("a")
        with (folder / "start").open("a") as start:
            fcntl.flock(start, fcntl.LOCK_EX)
            running = running_server()
            if running is not None and not running.settings.answers_for(settings):
                _end_unused(running, folder)
                running = None
            fcntl.flock(self._users, fcntl.LOCK_SH)
            if running is None:
                if say:
                    say(f"starting llama.cpp with {Path(settings.file).name}")
                running = _start(settings, folder)
        self.served = running

    def close(self) -> None:
        """End the use; the last one to do so lets the server end."""
        self._users.close()


def running_server() -> Served | None:
    """Return the machine's server; None if there is none."""
    folder = place()
    with (folder / "alive").open("a") as alive:
        if _free(alive):
            return None
    try:
        told = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        return Served(**{**told, "settings": Settings(**told["settings"])})
    except (OSError, ValueError, TypeError, LookupError):
        return None


def why_it_ended() -> str:
    """Return the last line that the server wrote, for a message; empty if it wrote nothing."""
    try:
        lines = (place() / "server.log").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:200] if said else ""


def _free(lock: IO[str]) -> bool:
    """Return whether nobody holds a lock; it is not kept."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    fcntl.flock(lock, fcntl.LOCK_UN)
    return True


def _end_unused(running: Served, folder: Path) -> None:
    """End a server with other settings, if nobody uses it.

    Raises:
        HunchError: if somebody does.
    """
    with (folder / "users").open("a") as users:
        if running.settings.stays or not _free(users):
            raise HunchError(
                f"llama.cpp serves {Path(running.settings.file).name} on this machine (process "
                f"{running.process}), and two servers would slow each other down: wait until it ends, end it "
                f"with 'kill {running.process}', or ask it as openai: at {running.address}."
            )
    os.kill(running.process, signal.SIGTERM)
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        if running_server() is None:
            return
        time.sleep(0.05)
    raise HunchError(f"The llama.cpp server of process {running.process} does not end: end it by hand.")


def _start(settings: Settings, folder: Path) -> Served:
    (folder / "server.json").unlink(missing_ok=True)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(asdict(settings))],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=shelf.without_secrets(),
            start_new_session=True,  # Ctrl-C in a terminal ends the run, which then ends the server
        )
    until = time.monotonic() + LONGEST_START
    while time.monotonic() < until:
        if process.poll() is not None:
            raise HunchError(
                f"llama.cpp could not load {Path(settings.file).name} (exit code {process.returncode}): "
                f"{why_it_ended() or 'it said nothing'}"
            )
        running = running_server()
        if running is not None:
            return running
        time.sleep(0.05)
    process.kill()
    raise HunchError(f"llama.cpp did not load {Path(settings.file).name} in {LONGEST_START:.0f} seconds.")


# ---- the server -------------------------------------------------------------------------------------------


def lasting(settings: Settings, port: int) -> Settings:
    """Return the settings of a server that a person starts: at a port, until a signal ends it."""
    return replace(settings, port=port, stays=True)


def serve(settings: Settings) -> None:
    """Serve until nobody uses the server, or a signal ends it.

    Raises:
        UsageError: if another server runs, or the package is not installed.
    """
    try:
        import xllamacpp
    except ImportError as error:
        raise UsageError("llama.cpp needs the extra gguf: pip install 'hunch-rl[gguf]'.") from error
    folder = place()
    alive = (folder / "alive").open("a")
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError("llama.cpp serves a model on this machine already; one server is enough.") from None
    (folder / "server.json").unlink(missing_ok=True)
    # A signal ends the process at once: llama.cpp's threads do not listen to Python's exceptions.
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, lambda *_: os._exit(0))

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
    parameters.model_alias = {Path(settings.file).stem}
    parameters.ui = False
    if settings.lora:
        parameters.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(settings.lora, 1.0)]
    server = xllamacpp.Server(parameters)

    template, trained = _about(Path(settings.file))
    address = f"{server.listening_address}/v1"
    served = Served(settings, address, os.getpid(), template, trained)
    new = folder / "server.json.new"
    new.write_text(json.dumps(asdict(served)), encoding="utf-8")
    new.replace(folder / "server.json")
    if settings.stays:
        print(f"serving {Path(settings.file).name} at {address} (Ctrl-C ends it)", flush=True)
    _wait(folder, stays=settings.stays)
    os._exit(0)


def _about(file: Path) -> tuple[bool, int]:
    """Return whether a GGUF file has a chat template, and the context that its model was trained with."""
    from gguf import GGUFReader

    fields = GGUFReader(file).fields
    contexts = [field.contents() for name, field in fields.items() if name.endswith(".context_length")]
    return "tokenizer.chat_template" in fields, int(contexts[0]) if contexts else 0


def _wait(folder: Path, *, stays: bool) -> None:
    """Return when nobody has used the server for a while; never if it stays."""
    unused_since = time.monotonic()
    with (folder / "users").open("a") as users:
        while stays or time.monotonic() - unused_since < GRACE:
            time.sleep(0.5)
            if stays or not _free(users):
                unused_since = time.monotonic()


if __name__ == "__main__":
    try:
        serve(Settings(**json.loads(sys.argv[1])))
    except HunchError as error:
        sys.exit(str(error))
