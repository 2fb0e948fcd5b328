"""Hostile clients of ``hunch serve``, by a seed: no raw error, no hang over a limit, and others play on."""

import base64
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.damaged import changed, deep, generator

pytest.importorskip("openenv", reason="needs the extra 'openenv'")

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

SECONDS, IDLE, SESSIONS = 1.0, 4.0, 8
LATE = 8.0
"""Seconds after which another client counts as held up: the limit of a step, and a new process."""
CLOSED = 30.0
"""Seconds after which nothing of a client may be left: headers, bodies and silence have limits."""
LARGEST_ANSWER = 200_000
RAW = re.compile(r"Traceback|\b[A-Z]\w*(Error|Exception|Warning)\b|object at 0x")
"""What only a programmer understands."""
MEMORY = 400
"""Megabytes by which the server and its processes together may grow."""


class Served:
    """``hunch serve`` in a process of its own."""

    def __init__(self):
        code = "from hunch.cli.main import main; main()"
        limits = ("--seconds", str(SECONDS), "--idle", str(IDLE), "--sessions", str(SESSIONS))
        self.program = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "tests.ext.hanging:Hanging", "--port", "0", *limits],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.program.stdout.readline())[1])

    def stop(self):
        """End the server by Ctrl-C; return its exit code, the seconds and what it printed."""
        start = time.monotonic()
        self.program.send_signal(signal.SIGINT)
        try:
            _, errors = self.program.communicate(timeout=20)
        finally:
            self.program.kill()
        return self.program.returncode, time.monotonic() - start, errors

    def raw(self):
        """Open a bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LATE)

    def session(self, **named):
        """Open a session."""
        return connect(f"ws://127.0.0.1:{self.port}/ws", open_timeout=LATE, max_size=LARGEST_ANSWER, **named)

    def megabytes(self):
        """Return the resident memory of the server without its children, which end with their sessions."""
        pages = int(Path(f"/proc/{self.program.pid}/statm").read_text().split()[1])
        return pages * 4096 / 2**20


@pytest.fixture(scope="module")
def served():
    running = Served()
    yield running
    code, seconds, errors = running.stop()
    assert (code, "Traceback" in errors) == (130, False), errors[-2000:]
    assert seconds < 20.0  # 11 were seen on two cores with a load of 7


# ---- what a client does: each takes the server and a generator, and yields what is wrong ------------------


def messages(served, rng):
    """Messages of wrong types, and the actions of others in between."""
    with served.session() as session:
        for _ in range(rng.randint(1, 6)):
            kind, name = rng.choice(
                (("step", "text"), ("reset", "seed"), ("reset", "episode"), ("state", "x"))
            )
            good = {"type": kind, "data": {name: rng.choice((0, "go", 1))}}
            message, _ = changed(good, rng)
            yield from answered(session, json.dumps(message))


def numbers(served, rng):
    """Numbers that no float, no integer of 64 bits and no reader of decimals holds."""
    number = rng.choice(
        ("9" * rng.choice((20, 400, 4999, 90_000)), "-1e999", "1e308", "NaN", "-Infinity", "0.5")
    )
    number = rng.choice(("", "-")) + number.removeprefix("-")
    field = rng.choice(("seed", "episode", "task_seed", "episode_id", "timeout_s", "text"))
    kind = "step" if field in ("text", "timeout_s") else "reset"
    with served.session() as session:
        yield from answered(session, f'{{"type": "{kind}", "data": {{"{field}": {number}}}}}')
        yield from answered(session, json.dumps({"type": "reset", "data": {}}), "observation")


def brackets(served, rng):
    """Brackets as a message, in a message and as an action."""
    many = rng.choice((100, 5_000, 50_000, 400_000))
    sign = rng.choice(("[", "{", '{"a":', "(", "[[1],", "\\"))
    text = sign * many
    with served.session() as session:
        yield from answered(session, json.dumps({"type": "reset", "data": {}}), "observation")
        form = rng.choice(
            ("{}", '{{"type": "step", "data": {}}}', '{{"type": "reset", "data": {{"seed": {}}}}}')
        )
        yield from answered(session, form.format(text[:900_000]))
        yield from answered(session, json.dumps({"type": "step", "data": {"text": text[:400_000]}}))
        nested = {"type": "step", "data": {"text": "go", "more": deep(rng.choice((10, 400, 900)))}}
        yield from answered(session, json.dumps(nested))


def no_json(served, rng):
    """Bytes that are no JSON, as text or in binary."""
    data = rng.choice(
        (rng.randbytes(rng.randint(1, 5000)), b"", b"\0" * 900, b'{"type": "reset"', b"\xef\xbb\xbf{}")
    )
    with served.session() as session:
        if rng.random() < 0.5:
            yield from answered(session, data)
        else:
            yield from answered(session, data.decode("latin-1"))
        yield from answered(session, json.dumps({"type": "reset", "data": {"seed": 3}}), "observation")


def large(served, rng):
    """Messages of up to 16 MB, also in many parts, and compressed from 200 MB."""
    size = rng.choice((999_000, 1_000_001, 4_000_000, 16_000_000))
    kind = rng.choice(("whole", "parts", "bomb"))
    with served.session(compression="deflate" if kind == "bomb" else None) as session:
        text = json.dumps({"type": "step", "data": {"text": "a" * size}})
        with suppress(WebSocketException, OSError):
            if kind == "parts":
                session.send(text[i : i + 10_000] for i in range(0, len(text), 10_000))
            elif kind == "bomb":
                packer = zlib.compressobj(wbits=-15)
                packed = b"".join(packer.compress(b"a" * 10**6) for _ in range(200))
                packed += packer.flush(zlib.Z_SYNC_FLUSH)[:-4]
                session.socket.sendall(frame(1, packed, first=0xC1))
            else:
                session.send(text)
        try:
            reply = session.recv(timeout=LATE)
        except (WebSocketException, OSError):
            return
        if size > 1_000_000 or kind == "bomb":
            yield f"a message of {size:,} bytes was read: {reply[:100]}"


def frames(served, rng):
    """Frames that are half there, unmasked, of unknown kinds, or never end."""
    with upgraded(served) as bare:
        data = json.dumps({"type": "reset", "data": {}}).encode()
        kinds = {
            "half": frame(1, data)[: rng.randint(1, 20)],
            "unmasked": bytes([0x81, len(data)]) + data,
            "reserved": frame(rng.choice((3, 7, 11, 15)), data),
            "long control": frame(9, b"a" * 200),
            "huge length": bytes([0x81, 0xFF]) + struct.pack(">Q", 2 ** rng.choice((31, 62, 63))) + b"mask",
            "no beginning": frame(0, data),
            "no end": b"".join(frame(1 if i == 0 else 0, b"[" * 100, last=False) for i in range(1000)),
            "half a character": frame(1, b'{"type": "\xc3'),
            "close": frame(8, struct.pack(">H", rng.choice((0, 999, 1005, 5000))) + b"\xff"),
            "pings": frame(9, b"a") * 5_000,
            "noise": rng.randbytes(3000),
        }
        name = rng.choice(sorted(kinds))
        with suppress(OSError):
            bare.sendall(kinds[name])
        if rng.random() < 0.5:
            return  # the connection breaks off
        if not ends(bare):
            yield f"a session of {name} frames is still open"


def slow(served, rng):
    """Requests that come byte after byte, or stop in the middle, on one or on many connections."""
    starts = (
        b"",
        b"GET",
        b"GET /schema HTTP/1.1\r\nHost: localhost\r\nX-a: ",
        b"POST /schema HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n",
        b"GET /schema HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n",
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-a: ",
    )
    many = rng.choice((1, 1, 1, 150))
    start, drips = rng.choice(starts), rng.random() < 0.5 and many == 1
    with ExitStack() as stack:
        opened = []
        for _ in range(many):
            bare = stack.enter_context(served.raw())
            with suppress(OSError):
                bare.sendall(start)
            opened.append(bare)
        if many > 1:
            time.sleep(1)
            yield from plays(served, "beside many slow ones", patience=CLOSED)
        over = [ends(bare, drip=b"a" if drips else b"") for bare in opened[:1]]
        if not all(over):
            yield f"a request that began with {start[:30]!r} is still open"


def foreign(served, rng):
    """Names, pages, paths and methods that are none of the server's."""
    hosts = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "localhost@evil.example")
    hosts += (
        "localhost evil",
        "é.example",
        "[::1",
        "127.0.0.1:80:90",
        "localhost,evil.example",
        "0x7f.1",
        "a" * 9000,
    )
    origins = ("http://evil.example", "null", "", "file://", "http://localhost:1", "http://127.0.0.1", "*")
    paths = (
        "/mcp",
        "/reset",
        "/step",
        "/state",
        "/web",
        "/ws",
        "/",
        "//mcp",
        "/mcp/",
        "/%6dcp",
        "/ws/../mcp",
        "*",
    )
    paths += (
        "http://evil.example/schema",
        "/schema/../mcp",
        "/schema;mcp",
        "/" + "a" * 70_000,
        "/\x01",
        "/schema?a",
    )
    lines = []
    what = rng.choice(("host", "origin", "path", "two hosts", "no host", "method"))
    host, path, method = "localhost", "/schema", "GET"
    if what == "host":
        host = rng.choice(hosts)
    if what == "origin":
        lines.append(f"Origin: {rng.choice(origins)}")
    if what == "path":
        path, method = rng.choice(paths[:-1]), rng.choice(("GET", "POST", "OPTIONS"))
    if what == "method":
        method = rng.choice(("POST", "PUT", "DELETE", "TRACE", "CONNECT", "BREW", "get", "PRI"))
    lines += {"two hosts": ["Host: localhost", "Host: evil.example"], "no host": []}.get(
        what, [f"Host: {host}"]
    )
    if rng.random() < 0.5 and path == "/schema" and method == "GET":
        path = "/ws"
        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        lines.append(f"Sec-WebSocket-Key: {base64.b64encode(b'a' * 16).decode()}")
    with served.raw() as bare:
        text = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{line}\r\n" for line in lines) + "\r\n"
        with suppress(OSError):
            bare.sendall(text.encode())
        status = reply(bare)
        if status[:3] in (b"200", b"101"):
            yield f"{what}: {text[:200]!r} was answered with {status!r}"
        elif not status:
            yield f"{what}: {text[:200]!r} got no answer"
        elif status[:1] == b"5":
            yield f"{what}: {text[:200]!r} got {status!r}"


def headers(served, rng):
    """Headers without end, in great numbers, of wrong form."""
    kinds = (
        b"X-a: " + b"a" * 3_000_000 + b"\r\n\r\n",
        b"".join(b"X-%d: a\r\n" % i for i in range(50_000)) + b"\r\n",
        b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"Expect: 100-continue\r\nContent-Length: 900000\r\n\r\n",
        b" folded: a\r\n\r\n",
        b"X\x00: a\r\n\r\n",
        b": a\r\n\r\n",
        b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\n\r\n",
        b"Accept-Encoding: " + b"gzip, " * 10_000 + b"\r\n\r\n",
    )
    start = rng.choice((b"GET /schema HTTP/1.1\r\n", b"GET /ws HTTP/1.1\r\n", b"GET /schema HTTP/9.9\r\n"))
    with served.raw() as bare:
        with suppress(OSError):
            bare.sendall(start + b"Host: localhost\r\n" + rng.choice(kinds))
            bare.sendall(b"GET /schema HTTP/1.1\r\nHost: localhost\r\n\r\n" * rng.choice((0, 1, 200)))
        if not ends(bare):
            yield "a connection with odd headers is still open"


def unending(served, rng):
    """More sessions than there may be, silent or busy; when they are silent, they end."""
    with ExitStack() as stack:
        opened = []
        for _ in range(SESSIONS + 4):
            with suppress(WebSocketException, OSError):
                session = stack.enter_context(served.session())
                session.send(json.dumps({"type": "reset", "data": {}}))
                opened.append(session)
        time.sleep(rng.uniform(0, 1))
        for session in opened:
            if not ends(session.socket):
                yield "a silent session is still open"


def hanging(served, rng):
    """Steps that never end, on several sessions, left or waited for."""
    with ExitStack() as stack:
        opened = [stack.enter_context(served.session()) for _ in range(rng.randint(1, 3))]
        for session in opened:
            yield from answered(session, json.dumps({"type": "reset", "data": {}}), "observation")
        action = json.dumps({"type": "step", "data": {"text": rng.choice(("wait", "lock"))}})
        for session in opened:
            session.send(action)
            for _ in range(rng.choice((0, 0, 300))):  # and more, while nobody reads
                session.send(action)
        yield from plays(served, "beside hanging steps")
        if rng.random() < 0.3:
            return
        for session in opened[:1]:
            yield from read(session, action)


def storms(served, rng):
    """Many connections, requests or resets one after the other, each left at once."""
    for _ in range(rng.choice((30, 100))):
        with suppress(WebSocketException, OSError):
            if rng.random() < 0.5:
                with served.raw() as bare:
                    bare.sendall(
                        rng.choice((b"", b"\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n"))
                    )
            elif rng.random() < 0.1:
                with served.session(close_timeout=0) as session:
                    session.send(json.dumps({"type": "reset", "data": {"seed": 1}}))
                    session.socket.close()
    yield from plays(served, "after a storm", patience=CLOSED)


def deaf(served, rng):
    """A client that sends and never reads."""
    with upgraded(served) as bare:
        message = frame(1, json.dumps({"type": "reset", "data": {"episode_id": "a" * 90_000}}).encode())
        bare.settimeout(3)
        with suppress(OSError):
            for _ in range(rng.choice((3, 60))):
                bare.sendall(message)
        yield from plays(served, "beside a deaf one")


CLIENTS = (
    messages,
    numbers,
    brackets,
    no_json,
    large,
    frames,
    slow,
    foreign,
    headers,
    unending,
    hanging,
    storms,
    deaf,
)


# ---- how its server has to behave -------------------------------------------------------------------------


def answered(session, message, kind=""):
    """Send a message, and yield what is wrong with the answer."""
    session.send(message)
    yield from read(session, message, kind)


def read(session, message, kind=""):
    shown = str(message)[:150]
    try:
        text = session.recv(timeout=LATE)
    except TimeoutError:
        yield f"{shown!r} got no answer"
        return
    except (WebSocketException, OSError) as error:
        yield f"{shown!r} ended the session: {error}"
        return
    answer = json.loads(text)
    if answer["type"] not in ("error", "observation", "state"):
        yield f"{shown!r} got {text[:200]}"
    if kind and answer["type"] != kind:
        yield f"{shown!r} got {text[:300]}"
    if answer["type"] == "error" and RAW.search(str(answer["data"].get("message"))):
        yield f"{shown!r} got a raw error: {text[:300]}"


def plays(served, where, patience=LATE):
    """Play as an honest client does, and yield what is wrong."""
    start, problem = time.monotonic(), "no try"
    while problem and time.monotonic() - start < patience:
        try:
            with served.session() as session:
                session.send(json.dumps({"type": "reset", "data": {"seed": 0}}))
                first = json.loads(session.recv(timeout=LATE))
                session.send(json.dumps({"type": "step", "data": {"text": "go"}}))
                second = json.loads(session.recv(timeout=LATE))
            fits = second["data"].get("observation", {}).get("text") == "2 characters."
            problem = "" if first["type"] == "observation" and fits else f"{first} {second}"[:300]
        except (WebSocketException, OSError) as error:
            problem = f"{type(error).__name__} {error}"
            time.sleep(0.2)
    if problem:
        yield f"an honest client {where}: {problem}"


def ends(bare, drip=b""):
    """Whether the server closes a connection in time, whatever it sends before."""
    until = time.monotonic() + CLOSED
    while time.monotonic() < until:
        try:
            bare.settimeout(0.5)
            if drip:
                bare.sendall(drip)
            if not bare.recv(1 << 20):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def reply(bare):
    """Return status code and reason of a response; nothing if the connection is closed without one."""
    try:
        data = bare.recv(1 << 16)
    except OSError as error:
        return f"reset: {error}".encode()  # closed while it was written: refused as well
    return data.partition(b"\r\n")[0].partition(b" ")[2] if data.startswith(b"HTTP/1.") else b""


def frame(kind, data, *, last=True, first=None):
    """A masked frame; its mask is zero."""
    head = bytes([first if first is not None else (0x80 if last else 0) | kind])
    if len(data) < 126:
        size = bytes([0x80 | len(data)])
    elif len(data) < 1 << 16:
        size = bytes([0x80 | 126]) + struct.pack(">H", len(data))
    else:
        size = bytes([0x80 | 127]) + struct.pack(">Q", len(data))
    return head + size + b"\0\0\0\0" + data


@contextmanager
def upgraded(served):
    """A bare connection after the handshake."""
    with served.raw() as bare:
        key = base64.b64encode(b"a" * 16).decode()
        lines = ("GET /ws HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade")
        bare.sendall(
            "\r\n".join((*lines, f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "\r\n")).encode()
        )
        assert reply(bare).startswith(b"101")
        yield bare


def attack(served, number):
    """Return what is wrong after one hostile client, and beside it."""
    rng = generator("client", number)
    client = CLIENTS[number % len(CLIENTS)]
    beside, before = [], served.megabytes()
    other = threading.Thread(target=lambda: beside.extend(plays(served, "beside", patience=CLOSED)))
    if client is not unending:  # which takes all sessions
        other.start()
    try:
        wrong = list(client(served, rng))
    except (WebSocketException, OSError) as error:
        wrong = [f"{type(error).__name__}: {error}"]
    if client is not unending:
        other.join()
    wrong += beside
    wrong += plays(served, "afterwards", patience=CLOSED)
    if served.program.poll() is not None:
        wrong.append("the server has ended")
    elif served.megabytes() > before + MEMORY:
        wrong.append(f"memory: {before:.0f} to {served.megabytes():.0f} MB")
    return [f"{number}, {client.__name__}: {each}" for each in wrong]


@pytest.mark.slow
def test_hostile_clients(served):
    wrong = [each for number in range(len(CLIENTS)) for each in attack(served, number)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(10))
def test_two_hundred_hostile_clients(served, part):
    numbers = range(100 + 20 * part, 120 + 20 * part)
    wrong = [each for number in numbers for each in attack(served, number)]
    assert not wrong, "\n".join(wrong)
