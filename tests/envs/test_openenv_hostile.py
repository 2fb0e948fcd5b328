"""A server of OpenEnv that answers anything: each answer is usable or gives one clear error, in time."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

import hunch
from hunch.core import HunchError, UsageError

pytest.importorskip("openenv", reason="needs the extra 'openenv'")

from websockets.datastructures import Headers
from websockets.http11 import Response
from websockets.sync.server import serve

SCHEMA = json.dumps({"action": {"required": ["text"], "properties": {"text": {"type": "string"}}}}).encode()
GOOD = {"type": "observation", "data": {"observation": {"text": "You see."}, "reward": 0.5, "done": False}}


class Hostile:
    """A server that sends a schema and one answer to every message; a callable answers as it likes."""

    def __init__(self):
        self.schema, self.answer = SCHEMA, json.dumps(GOOD)
        self.server = serve(self.session, "127.0.0.1", 0, process_request=self.page, max_size=None)
        self.url = f"http://127.0.0.1:{self.server.socket.getsockname()[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def page(self, _connection, request):
        if request.path == "/schema":
            return Response(200, "OK", Headers({"Content-Length": str(len(self.schema))}), self.schema)
        return None

    def session(self, connection):
        for _ in connection:
            if callable(self.answer):
                self.answer(connection)
            else:
                connection.send(self.answer)


@pytest.fixture
def hostile():
    server = Hostile()
    yield server
    server.server.shutdown()


VALUES = (
    *("no", "true", "", 0, 1, -1, 2.5, [], [True], {}, {"a": 1}, None, True, False),
    *("\ud800", "\x1b[2J", "a" * 1000, 10**400, 1e308, -(10**400)),
)


@pytest.mark.parametrize("field", ["reward", "done", "observation"])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:12])
def test_any_value_of_an_answer_is_usable_or_an_error(hostile, field, value):
    env = hunch.make(f"openenv:{hostile.url}", seconds=5.0)
    hostile.answer = json.dumps({"type": "observation", "data": {**GOOD["data"], field: value}})
    _usable_or_error(env)


@pytest.mark.parametrize("field", ["text", "task", "success", "event", "truncated", "actions"])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:12])
def test_any_value_of_an_observation_is_usable_or_an_error(hostile, field, value):
    env = hunch.make(f"openenv:{hostile.url}", info="task,success,event,truncated", seconds=5.0)
    shown = {"text": "You see.", field: value}
    hostile.answer = json.dumps({"type": "observation", "data": {"observation": shown, "done": True}})
    kinds = {"success": bool, "truncated": bool, "task": str | int | float, "event": str | int | float}
    fits = value is None or isinstance(value, kinds.get(field, object))
    assert _usable_or_error(env) == fits


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            "{",
            "null",
            "3",
            "[]",
            '"text"',
            "{}",
            '{"data": 3}',
            '{"data": null}',
            "[" * 100_000,
            b"\xff\xfe",
        ),
        *('{"data": {"reward": NaN}}', '{"data": {"reward": Infinity}}', '{"data": {"reward": -Infinity}}'),
        *('{"type": "error"}', '{"type": "error", "data": []}', '{"type": "error", "data": {"message": {}}}'),
        *(
            '{"data": {"reward": ' + "9" * 5000 + "}}",
            '{"data": {"observation": {"text": "' + "a" * 9_000_000 + '"}}}',
        ),
        *(lambda c: c.close(), lambda c: c.socket.close(), lambda c: c.close(4000, "\x1b[2J")),
        *(lambda c: c.send(b"x" for _ in range(20_000)), lambda c: c.socket.sendall(b"\xff" * 1000)),
    ],
    ids=range(24),
)
def test_an_answer_of_no_form_is_an_error(hostile, answer):
    env = hunch.make(f"openenv:{hostile.url}", seconds=5.0)
    env.reset(seed=0)
    hostile.answer = answer
    with pytest.raises(HunchError, match=r"The OpenEnv server at .* failed: "):
        env.step("look")
    hostile.answer = json.dumps(GOOD)
    assert env.reset(seed=0)[0] == "You see."  # a new session begins


@pytest.mark.parametrize(
    "schema",
    [
        *(
            b"",
            b"{",
            b"null",
            b"3",
            b"[]",
            b"{}",
            b"[" * 100_000,
            b"\xff",
            b'{"action": 3}',
            b'{"action": {}}',
        ),
        *(
            b'{"action": {"required": 3}}',
            b'{"action": {"required": [3]}}',
            b'{"action": {"required": ["a"]}}',
        ),
        *(b'{"action": {"required": ["a"], "properties": {"a": 3}}}', b'{"action": {"properties": []}}'),
        *(b'{"action": {"required": ["a"], "properties": []}}', b'{"action": {}, "observation": 3}'),
        *(b" " * 9_000_000, b'{"action": {"required": [[]], "properties": {}}}'),
    ],
    ids=range(19),
)
def test_a_schema_of_no_form_is_an_error(hostile, schema):
    hostile.schema = schema
    with pytest.raises(HunchError, match=r"No OpenEnv server answers|is not a single text"):
        hunch.make(f"openenv:{hostile.url}", seconds=5.0)


def test_no_step_is_made_in_a_session_without_a_reset(hostile):
    """After a failure the next step would go to a new session, in which no episode has begun."""
    env = hunch.make(f"openenv:{hostile.url}", seconds=5.0)
    env.reset(seed=0)
    sound = hostile.answer
    hostile.answer = "{"
    with pytest.raises(HunchError, match="failed: "):
        env.step("look")
    hostile.answer = sound
    with pytest.raises(UsageError, match="call reset before step"):
        env.step("look")
    env.reset(seed=0)
    assert env.step("look")[0] == "You see."


def test_a_silent_server_is_late_in_time(hostile):
    env = hunch.make(f"openenv:{hostile.url}", seconds=1.0)
    hostile.answer = lambda connection: time.sleep(0)
    start = time.monotonic()
    with pytest.raises(HunchError, match="no answer within 1 seconds"):
        env.reset(seed=0)
    assert time.monotonic() - start < 1.0 + 2.5


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"]
)
def test_a_server_that_sends_byte_after_byte_is_late_in_time(said):
    """A time limit that begins anew with each byte would never end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle():
            connection, _ = listening.accept()
            with connection:
                try:
                    connection.sendall(said)
                    while True:
                        connection.sendall(b"x")
                        time.sleep(0.1)
                except OSError:
                    return

        threading.Thread(target=trickle, daemon=True).start()
        start = time.monotonic()
        with pytest.raises(HunchError, match="timed out"):
            hunch.make(f"openenv:http://127.0.0.1:{listening.getsockname()[1]}", seconds=0.5)
        assert time.monotonic() - start < 2.5


def _usable_or_error(env):
    """Return whether a reset gives what the contract says; else it raises one clear error."""
    try:
        observation, info = env.reset(seed=0)
    except HunchError as error:
        problem = str(error)
    else:
        observation.encode()
        assert [type(info[name]) for name in ("task", "event", "success")] == [str, str, bool]
        return True
    assert "failed: " in problem
    return False
