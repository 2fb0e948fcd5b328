"""Hostile servers of OpenEnv, by a seed: each reply is usable or one clear error, in time and memory."""

import json
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from base64 import b64encode
from contextlib import suppress
from functools import cache
from hashlib import sha1

import pytest
from tests.damaged import changed, deep, generator

import hunch
from hunch.core import HunchError

pytest.importorskip("openenv", reason="needs the extra 'openenv'")

SECONDS = 1.0
LATE = 3.5
"""Seconds that a call may take at a limit of one: connecting, the answer, and closing."""
MEMORY = 300
"""Megabytes by which all replies together may make this process grow."""
RAW = re.compile(
    r"Traceback|\b[A-Z]\w*(Exception|Warning)\b|object at 0x|"
    r"\b(Type|Key|Index|Attribute|Assertion|Name)Error\b"
)
SCHEMA = {
    "action": {
        "required": ["text"],
        "properties": {"text": {"type": "string"}, "metadata": {"type": "object"}},
    },
    "observation": {
        "properties": {name: {} for name in ("text", "actions", "task", "success", "event", "truncated")}
    },
}
OBSERVATION = {
    "text": "You see.",
    "task": "Go.",
    "actions": ["look", "go"],
    "success": False,
    "event": "",
    "truncated": False,
}
ANSWER = {"type": "observation", "data": {"observation": OBSERVATION, "reward": 0.5, "done": False}}
HANDSHAKE = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Server:
    """Bytes after bytes, without a library that would keep to a protocol.

    Args:
        page: What the schema is answered with: bytes, or a function of the connection.
        greeting: What a handshake is answered with in place of the right answer, if anything.
        answers: What each message in turn is answered with; the last one again and again.
    """

    def __init__(self, page, greeting, answers):
        self.page, self.greeting, self.answers = page, greeting, answers
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.ended = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while not self.ended:
            with suppress(OSError):
                connection, _ = self.listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, suppress(OSError, struct.error):
            connection.settimeout(20)
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(65536)
            if not (key := re.search(rb"Sec-WebSocket-Key: (\S+)", asked)):
                self._send(connection, self.page)
                return
            accepted = b64encode(sha1(key[1] + HANDSHAKE).digest())
            right = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            right += b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"
            self._send(connection, self.greeting or right)
            number = 0
            while self._receive(connection):
                self._send(connection, self.answers[min(number, len(self.answers) - 1)])
                number += 1

    def _receive(self, connection):
        head = connection.recv(2)
        if len(head) < 2 or head[0] & 15 == 8:
            return False
        size = head[1] & 127
        if size > 125:
            (size,) = struct.unpack(">H" if size == 126 else ">Q", connection.recv(2 if size == 126 else 8))
        left = size + 4
        while left:
            left -= len(connection.recv(left))
        return True

    def _send(self, connection, what):
        if callable(what):
            what(connection)
        else:
            connection.sendall(what)

    def stop(self):
        """Accept no more."""
        self.ended = True
        self.listening.close()


def page(body, status="200 OK", more=""):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def frame(data, kind=1, first=None):
    head = bytes([first if first is not None else 0x80 | kind])
    if len(data) < 126:
        return head + bytes([len(data)]) + data
    if len(data) < 1 << 16:
        return head + b"\x7e" + struct.pack(">H", len(data)) + data
    return head + b"\x7f" + struct.pack(">Q", len(data)) + data


@cache
def packed(data, megabytes):
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(data) + b"".join(packer.compress(b"a" * 10**6) for _ in range(megabytes))
    return (body + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


def endless(data, pause=0.0):
    def send(connection):
        until = time.monotonic() + 15
        while time.monotonic() < until:
            connection.sendall(data)
            time.sleep(pause)

    return send


def draw(rng):
    """Return a server, what it does, and the text of its marker if it sends clients elsewhere."""
    what = rng.choice(("answer", "answer", "answer", "observation", "observation", "schema", "schema"))
    what = rng.choice((what, "page", "greeting", "frames", "frames", "bytes"))
    schema, greeting, answers, done = (
        page(json.dumps(SCHEMA).encode()),
        b"",
        [frame(json.dumps(ANSWER).encode())],
        what,
    )
    if what == "answer":
        value, done = changed(ANSWER, rng)
        answers = [*answers * rng.randint(0, 2), frame(json.dumps(value).encode())]
    elif what == "observation":
        value, done = changed(OBSERVATION, rng)
        answer = {
            "type": "observation",
            "data": {**ANSWER["data"], "observation": value, "done": rng.random() < 0.3},
        }
        answers = [*answers * rng.randint(0, 2), frame(json.dumps(answer).encode())]
    elif what == "schema":
        value, done = changed(SCHEMA, rng)
        schema = page(json.dumps(value).encode())
    elif what == "bytes":
        done = rng.choice(("noise", "brackets", "deep", "digits", "half", "flip", "error"))
        good = json.dumps(ANSWER).encode()
        data = {
            "noise": rng.randbytes(900),
            "brackets": b"[" * rng.choice((10, 100_000)),
            "deep": json.dumps({"data": {"observation": {"text": "a", "more": deep(900)}}}).encode(),
            "digits": b'{"data": {"observation": {"text": ' + b"9" * rng.choice((30, 5000, 10**6)) + b"}}}",
            "half": good[: rng.randrange(len(good))],
            "flip": bytes(byte ^ (rng.random() < 0.02) for byte in good),
            "error": json.dumps(
                {
                    "type": "error",
                    "data": {"message": rng.choice(("\x1b]0;t\x07" * 90, None, [1], "a\nb" * 9**5))},
                }
            ).encode(),
        }[done]
        answers = [*answers * rng.randint(0, 2), frame(data, rng.choice((1, 2)))]
    elif what == "frames":
        kinds = {
            "half": b"\x81\x7e\x10",
            "masked": b"\x81\x82aaaaaa",
            "reserved": frame(b"{}", rng.choice((3, 7, 11, 15))),
            "huge": b"\x81\x7f" + struct.pack(">Q", 2 ** rng.choice((24, 40, 62))),
            "pings": endless(frame(b"a", 9)),
            "slow": endless(b"\x01\x01a", 0.05),
            "no end": endless(b"\x00\x7e\x03\xe8" + b"a" * 1000),
            "close": frame(struct.pack(">H", rng.choice((0, 1000, 1005, 4999))) + b"\x1b[2J\xff", 8),
            "two": frame(json.dumps(ANSWER).encode()) * 3,
            "many": endless(frame(json.dumps(ANSWER).encode())),
            "large": frame(b'{"data": {"observation": {"text": "' + b"a" * 9_000_000 + b'"}}}'),
            "bomb": frame(packed(b'{"data": {"observation": {"text": "', 200), first=0xC1),
            "nothing": b"",
        }
        done = rng.choice(sorted(kinds))
        answers = [*answers * rng.randint(0, 2), kinds[done]]
    else:
        elsewhere = f"Location: http://127.0.0.1:9/{rng.random()}\r\n"
        kinds = {
            "redirect": page(
                b"", rng.choice(("301 Moved", "302 Found", "307 Temporary", "308 Permanent")), elsewhere
            ),
            "loop": page(b"", "302 Found", "Location: /schema\r\n"),
            "file": page(b"", "302 Found", "Location: file:///etc/passwd\r\n"),
            "status": page(
                b"\x1b[2J" * 99, rng.choice(("404 \x1b[2J", "500 Error", "200", "999 What", "-1 a", "401 No"))
            ),
            "no http": rng.randbytes(900),
            "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
            "headers": b"HTTP/1.1 200 OK\r\n" + b"X-a: b\r\n" * rng.choice((90, 200, 100_000)) + b"\r\n{}",
            "long header": b"HTTP/1.1 200 OK\r\nX-a: " + b"a" * 10**6 + b"\r\n\r\n{}",
            "length": b"HTTP/1.1 200 OK\r\nContent-Length: "
            + rng.choice((b"-1", b"9" * 30, b"a"))
            + b"\r\n\r\n{}",
            "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + rng.choice((b"g\r\n", b"-5\r\na", b"f" * 30)),
            "continue": endless(b"HTTP/1.1 100 Continue\r\n\r\n"),
            "slow": endless(b"H", 0.1),
            "endless": endless(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 10**6),
            "gzip": page(zlib.compress(b"{}"), more="Content-Encoding: gzip\r\n"),
            "empty": b"",
            "login": page(b"", "401 No", 'WWW-Authenticate: Basic realm="a"\r\n'),
        }
        done = rng.choice(sorted(kinds))
        schema, greeting = (kinds[done], b"") if what == "page" else (schema, kinds[done])
    return Server(schema, greeting, answers), f"{what}: {done}"


def play(url, options):
    """Reset and step as a run does; yield the seconds and the error of each call that failed."""
    start = time.monotonic()
    try:
        env = hunch.make(f"openenv:{url}", seconds=SECONDS, **options)
    except HunchError as error:
        yield time.monotonic() - start, str(error)
        return
    yield time.monotonic() - start, ""
    for call in (
        lambda: env.reset(seed=0),
        *[lambda: env.step("look")] * 3,
        lambda: env.reset(seed=1),
        env.close,
    ):
        start = time.monotonic()
        try:
            result = call()
        except HunchError as error:
            yield time.monotonic() - start, str(error)
            continue
        yield time.monotonic() - start, ""
        if result is None:
            return
        observation, info = result[0], result[-1]
        observation.encode()  # no half characters
        assert isinstance(info["success"], bool)
        assert isinstance(info["event"] + info["task"], str)
        if len(result) == 5 and (result[2] or result[3]):
            return


def meet(number):
    """Return what is wrong with how one hostile server is met."""
    rng = generator("server", number)
    server, what = draw(rng)
    options = rng.choice(
        (
            {},
            {},
            {"info": "task,success,event,truncated"},
            {"listed": False},
            {"action": "text", "text": "text"},
        )
    )
    wrong = []
    try:
        for seconds, problem in play(server.url, options):
            if seconds > LATE:
                wrong.append(f"took {seconds:.1f} s: {problem}")
            if problem and (RAW.search(problem) or len(problem) > 3000):
                wrong.append(problem[:400])
    except Exception as error:  # a raw one
        wrong.append(f"{type(error).__name__}: {error}"[:400])
    finally:
        server.stop()
    return [f"{number}, {what}, {options}: {each}" for each in wrong]


def many(numbers):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wrong = [each for number in numbers for each in meet(number)]
    assert not wrong, "\n".join(wrong)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY * 1024


@pytest.mark.slow
def test_hostile_servers():
    many(range(30))


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(4))
def test_a_hundred_hostile_servers(part):
    many(range(100 + 25 * part, 125 + 25 * part))


def test_a_server_that_sends_elsewhere_is_not_followed():
    """The other server would get the actions, though nobody named it."""
    asked = []
    other = Server(asked.append, asked.append, [b""])
    for schema, greeting in ((True, False), (False, True)):
        sent = page(b"", "307 Temporary Redirect", f"Location: {other.url}/ws\r\n")
        server = Server(
            sent if schema else page(json.dumps(SCHEMA).encode()), sent if greeting else b"", [b""]
        )
        with pytest.raises(HunchError, match=r"307|Redirect"):
            hunch.make(f"openenv:{server.url}", seconds=SECONDS).reset(seed=0)
        server.stop()
    other.stop()
    assert not asked


def test_the_command_prints_no_control_character_of_a_server(tmp_path):
    error = json.dumps({"type": "error", "data": {"message": "\x1b]0;title\x07\x1b[2J\x9b"}}).encode()
    server = Server(page(json.dumps(SCHEMA).encode()), b"", [frame(error)])
    line = [sys.executable, "-c", "from hunch.cli.main import main; main()", "play", f"openenv:{server.url}"]
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, input="look\n"
    )
    server.stop()
    assert done.returncode == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr)
