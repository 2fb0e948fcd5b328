"""A server of OpenEnv that speaks HTTP and WebSocket wrongly on purpose: one clear error each, in time.

Its bytes are written here, as no library of servers sends them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import socket
import struct
import threading
import time
import zlib
from contextlib import closing, suppress

import pytest

import hunch
from hunch.core import HunchError

pytest.importorskip("openenv", reason="needs the extra 'openenv'")

SECONDS = 1.0
TEXT = {"required": ["text"], "properties": {"text": {"type": "string"}}}
FIELDS = ("text", "actions", "task", "success", "event", "truncated")
SCHEMA = json.dumps({"action": TEXT}).encode()
LISTING = json.dumps({"action": TEXT, "observation": {"properties": {key: {} for key in FIELDS}}}).encode()
GOOD = {"observation": {"text": "You see."}, "reward": 0.5, "done": False}
UPGRADE = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What RFC 6455 appends to the key of a handshake."""


def frame(data, kind=1, *, final=True, reserved=0, length=None):
    """A frame of RFC 6455 from a server; ``length`` is what it claims to be."""
    data = data.encode() if isinstance(data, str) else data
    n = len(data) if length is None else length
    if n < 126:
        size = bytes([n])
    else:
        size = b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
    return bytes([0x80 * final | reserved | kind]) + size + data


def closed(code, reason=b""):
    return frame(struct.pack(">H", code) + reason, 8)


def message(kind="observation", **data):
    return json.dumps({"type": kind, "data": {**GOOD, **data}})


def page(body=b"", status="200 OK", *headers):
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(body)}"))
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def deflated(data):
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (packed.compress(data) + packed.flush(zlib.Z_SYNC_FLUSH))[:-4]


class Endless:
    """Bytes that are sent again and again, after others that are sent once."""

    def __init__(self, begin, again, every=0.0):
        self.begin, self.again, self.every = begin, again, every


class Raw:
    """A server whose page of the schema, handshake and answers are bytes."""

    def __init__(self, *, schema=None, handshake=None, opening=b"", answers=()):
        self.schema, self.handshake, self.opening = schema or page(SCHEMA), handshake, opening
        self.answers = list(answers)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with suppress(OSError), closing(connection):
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536) or b"\r\n\r\n"
            if not head.startswith(b"GET /ws"):
                return self.send(connection, self.schema)
            lines = head.decode().split("\r\n")
            key = next(line.split(": ")[1] for line in lines if line.lower().startswith("sec-websocket-key"))
            accepted = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
            if isinstance(self.handshake, str):
                connection.sendall(self.handshake.replace("ACCEPTED", accepted).encode())
            elif self.handshake is not None:
                return self.send(connection, self.handshake)
            else:
                connection.sendall(f"{UPGRADE}Sec-WebSocket-Accept: {accepted}\r\n\r\n".encode())
            connection.sendall(self.opening)
            asked = 0
            while self.received(connection):
                default = frame(message())
                self.send(connection, self.answers[asked] if asked < len(self.answers) else default)
                asked += 1
            connection.sendall(closed(1000))

    def received(self, connection):
        """Read a frame of the client, and nothing of the next one; return whether it is no end."""
        head = connection.recv(2, socket.MSG_WAITALL)
        if len(head) < 2 or head[0] & 15 == 8:
            return False
        length = head[1] & 127
        if length > 125:
            size = 2 if length == 126 else 8
            length = int.from_bytes(connection.recv(size, socket.MSG_WAITALL))
        connection.recv(4 + length, socket.MSG_WAITALL)  # the mask and the contents
        return True

    def send(self, connection, answer):
        if isinstance(answer, bytes):
            return connection.sendall(answer)
        connection.sendall(answer.begin)
        while True:
            connection.sendall(answer.again)
            time.sleep(answer.every)


def problem(server, **options):
    """Make, reset and step; return the error, or "" if all that came is usable."""
    start = time.monotonic()
    env = None
    try:
        env = hunch.make(f"openenv:{server.url}", seconds=SECONDS, info="task,success,event", **options)
        _, info = env.reset(seed=0)
        observation, reward, terminated, truncated, info = env.step((info.get("actions") or ["look"])[0])
    except HunchError as error:
        said = str(error)
    else:
        observation.encode()
        assert type(reward) is float
        assert math.isfinite(reward)
        assert [type(value) for value in (terminated, truncated, info["success"])] == [bool, bool, bool]
        said = ""
    finally:
        if env is not None:
            env.close()
        server.listening.close()
    assert "\n" not in said
    assert time.monotonic() - start < 2 * SECONDS + 3
    return said


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PAGES = {
    "gzip bomb": page(gzip.compress(b" " * 50_000_000), "200 OK", "Content-Encoding: gzip"),
    "deflate": page(zlib.compress(SCHEMA), "200 OK", "Content-Encoding: deflate"),
    "chunks without end": Endless(CHUNKED, b"5\r\n     \r\n", 0.01),
    "a flood of chunks": Endless(CHUNKED, b"10000\r\n" + b" " * 0x10000 + b"\r\n"),
    "a chunk of negative length": CHUNKED + b"-5\r\nabc\r\n0\r\n\r\n",
    "a chunk without a length": CHUNKED + b"xyz\r\nabc\r\n0\r\n\r\n",
    "trailers without end": Endless(CHUNKED + b"0\r\n", b"X: y\r\n" * 100),
    "a loop of redirections": page(b"", "302 Found", "Location: /schema"),
    "a redirection to a file": page(b"", "301 Moved", "Location: file:///etc/passwd"),
    "a redirection elsewhere": page(b"", "307 Elsewhere", "Location: http://192.0.2.1/"),
    "a redirection to nowhere": page(b"", "308 Elsewhere"),
    "204": page(b"", "204 No Content"),
    "304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "a part": page(SCHEMA[:20], "206 Partial Content"),
    "HTML": page(b"<!doctype html><title>Sign in</title>", "200 OK", "Content-Type: text/html"),
    "a bad gateway": page(b"<html>", "502 \x1b[2J"),
    "a password asked for": page(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"'),
    "100 without end": Endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01),
    "a status without a number": b"HTTP/1.1 abc\r\n\r\n" + SCHEMA,
    "a long status": b"HTTP/1.1 200 " + b"O" * 200_000 + b"\r\n\r\n" + SCHEMA,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "headers without end": Endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100),
    "a long header": page(SCHEMA, "200 OK", "X: " + "a" * 100_000),
    "a length without end": Endless(
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n", b" ", 0.1
    ),
    "an alert of TLS": b"\x15\x03\x03\x00\x02\x02\x28",
    "two values": page(SCHEMA + SCHEMA),
    "a required null": page(b'{"action": {"required": null, "properties": {}}}'),
    "fields of observations in a list": page(b'{"action": {}, "observation": {"properties": []}}'),
}
HANDSHAKES = {
    "200": page(),
    "204": page(b"", "204 No Content"),
    "a redirection": page(b"", "302 Found", "Location: /ws"),
    "a body without end": Endless(b"HTTP/1.1 503 Busy\r\n\r\n", b"x" * 65536),
    "a wrong key": f"{UPGRADE}Sec-WebSocket-Accept: AAAA\r\n\r\n",
    "no key": f"{UPGRADE}\r\n",
    "an unknown extension": f"{UPGRADE}Sec-WebSocket-Accept: ACCEPTED\r\nSec-WebSocket-Extensions: x\r\n\r\n",
    "an unknown protocol": f"{UPGRADE}Sec-WebSocket-Accept: ACCEPTED\r\nSec-WebSocket-Protocol: x\r\n\r\n",
    "headers without end": Endless(UPGRADE.encode(), b"X: y\r\n", 0.01),
    "garbage": b"\xff" * 5000,
}
PACKED = f"{UPGRADE}Sec-WebSocket-Accept: ACCEPTED\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
FRAMES = {
    **{f"closed with {code}": closed(code, b"\x1b[2J") for code in (1000, 1006, 1009, 1013, 1015, 0, 999)},
    **{f"closed with {code}": closed(code, b"why") for code in (2999, 4999, 5000, 65535)},
    "closed in one byte": frame(b"\x03", 8),
    "closed for a reason of no characters": closed(1000, b"\xff\xfe"),
    "closed, then an answer": closed(1000) + frame(message()),
    "pings without end": Endless(b"", frame(b"p", 9) * 100, 0.01),
    "a long ping": frame(b"p" * 200, 9),
    "half a ping": frame(b"p", 9, final=False),
    "a reserved bit": frame(message(), reserved=0x20),
    "an unknown kind": frame(b"x", 3),
    "an end without a beginning": frame(b"x", 0),
    "fragments without end": Endless(frame(b"{", final=False), frame(b" " * 1000, 0, final=False), 0.01),
    "an answer in another": frame(b"{", final=False) + frame(message()),
    "a length of 2**63": frame(b"x", length=2**63 - 1),
    "a length of 2**64": b"\x81\x7f" + b"\xff" * 8,
    "compressed without agreement": frame(deflated(message().encode()), reserved=0x40),
    "no UTF-8": frame(b"\xff\xfe{}"),
    "an answer of another type": frame(message("state")),
    "an error in capitals": frame(json.dumps({"type": "ERROR", "data": {"message": "no"}})),
    "a type that is a list": frame(json.dumps({"type": ["observation"], "data": GOOD})),
    "no observation": frame(json.dumps({"type": "observation", "data": {"reward": 1.0}})),
    "an answer in a text": frame(json.dumps(message())),
    "a reward of 1e309": frame('{"data": {"observation": {"text": "a"}, "reward": 1e309}}'),
    "a reward of 10**308": frame(message(reward=10**308)),
    "a reward in an object": frame(message(reward={"value": 0.5})),
    "a success that is 1": frame(message(observation={"text": "a", "success": 1}, done=True)),
    "a success that is nan": frame('{"data": {"observation": {"success": NaN}, "done": true}}'),
    "done as a number": frame(message(done=1)),
}
LISTED = {
    "a text": "ab",
    "a number": 0,
    "an object": {"a": 1},
    "lists": [["a"]],
    "a null among them": ["a", None],
    "twins when printed": ["\ud800", "\ud801"],
    "none any more": None,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_no_form_is_an_error(name):
    assert problem(Raw(schema=PAGES[name])).startswith("No OpenEnv server answers at ")


def test_a_status_is_named():
    assert problem(Raw(schema=PAGES["a loop of redirections"])).endswith("it answers with the status 302.")


@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshake_of_no_form_is_an_error(name):
    assert "failed: " in problem(Raw(handshake=HANDSHAKES[name]))


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_of_no_form_is_an_error(name):
    assert "failed: " in problem(Raw(answers=[frame(message()), FRAMES[name]]))


@pytest.mark.parametrize(
    "packed",
    [deflated(b" " * 100_000_000), b"\xff\xfe\xfd" * 50, deflated(message().encode())[:10]],
    ids=["a bomb", "garbage", "half"],
)
def test_a_compressed_answer_of_no_form_is_an_error(packed):
    answers = [frame(message()), frame(packed, reserved=0x40)]
    assert "failed: " in problem(Raw(handshake=PACKED, answers=answers))


@pytest.mark.parametrize("listed", LISTED.values(), ids=list(LISTED))
def test_actions_of_no_form_are_an_error(listed):
    shown = {"text": "a", "actions": ["a"], "task": "", "success": False, "event": "", "truncated": False}
    good, bad = (frame(message(observation={**shown, "actions": actions})) for actions in (["a"], listed))
    assert "failed: " in problem(Raw(schema=page(LISTING), answers=[good, bad]))


@pytest.mark.parametrize("answers", [[frame(message()) * 2], [frame(message()), frame(message()) * 2]])
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(answers):
    env = hunch.make(f"openenv:{Raw(answers=answers).url}", seconds=SECONDS)
    env.reset(seed=0)

    def play():
        for _ in range(3):
            time.sleep(0.05)  # what was not asked for has arrived
            env.step("look")

    with pytest.raises(HunchError, match="nobody asked for"):
        play()


def test_what_is_odd_and_whole_is_usable():
    odd = (
        frame(message(), 2),
        frame(message(observation={"\ud800": 1})),
        frame(message(reward=True)),
        frame('{"data": {"observation": {"value": [NaN, 1e400]}, "done": false}}'),
        frame(message(), final=False) + frame(b"", 0),
    )
    for answer in odd:
        assert problem(Raw(answers=[frame(message()), answer])) == ""
