"""What one client can do to a served environment, and to the others: hanging steps, long texts, web pages."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.ext.test_serving import Running

openenv = pytest.importorskip("openenv", reason="needs the extra 'openenv'")
ext = pytest.importorskip("hunch.ext.openenv", reason="needs the extra 'openenv'")

from websockets.exceptions import WebSocketException  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from hunch.envs.invalid import INVALID  # noqa: E402
from hunch.ext.turns import LONGEST, Turns  # noqa: E402

HANGING = "tests.ext.hanging:Hanging"


@pytest.fixture(scope="module")
def served():
    running = Running(Turns(HANGING), seconds=1.0, idle=3.0, origins=("http://good.example",))
    yield running
    running.stop()


def client(served):
    return openenv.GenericEnvClient(served.url).sync()


def told(socket, **message):
    socket.send(json.dumps(message))
    return json.loads(socket.recv(timeout=20))


def opened(served, **named):
    return connect(served.url.replace("http", "ws") + "/ws", **named)


@pytest.mark.parametrize("action", ["wait", "lock"])
def test_a_hanging_step_ends_at_its_limit_and_stops_nobody_else(served, action):
    with client(served) as hanging, client(served) as other:
        hanging.reset(seed=0)
        other.reset(seed=0)
        with opened(served) as socket:
            told(socket, type="reset", data={})
            start = time.monotonic()
            socket.send(json.dumps({"type": "step", "data": {"text": action}}))
            assert other.step({"text": "go"}).observation["text"] == "2 characters."
            assert time.monotonic() - start < 1.0
            answer = json.loads(socket.recv(timeout=20))
            assert "did not answer within 1 seconds" in answer["data"]["message"]
            assert time.monotonic() - start < 3.0
            assert (
                "call reset before step" in told(socket, type="step", data={"text": "go"})["data"]["message"]
            )
            assert told(socket, type="reset", data={})["data"]["observation"]["text"] == "Begin."


def test_errors_of_an_environment_leave_the_session(served):
    with client(served) as one:
        one.reset(seed=0)
        with pytest.raises(RuntimeError, match="ZeroDivisionError: by zero"):
            one.step({"text": "fail"})
        assert one.step({"text": "go"}).observation["text"] == "2 characters."


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("interrupt", "KeyboardInterrupt"),
        ("mute", "MuteError"),
        ("long", f"ValueError: {'x' * 988}..."),
        ("number", "The environment's observation is no text: 42."),
    ],
)
def test_whatever_an_environment_raises_or_shows_leaves_the_session(served, action, message):
    with client(served) as one:
        one.reset(seed=0)
        with pytest.raises(RuntimeError) as raised:
            one.step({"text": action})
        assert message in str(raised.value)
        assert one.step({"text": "go"}).observation["text"] == "2 characters."


def test_half_of_a_character_is_a_question_mark(served):
    with client(served) as one:
        one.reset(seed=0)
        assert one.step({"text": "half"}).observation["text"] == "a ? b"


def test_a_long_text_is_an_invalid_action(served):
    with client(served) as one:
        one.reset(seed=0)
        observation = one.step({"text": "[" * (LONGEST + 1)}).observation
        assert (observation["text"], observation["event"]) == ("0 characters.", INVALID)
        assert one.step({"text": "[" * LONGEST}).observation["event"] == ""


def test_a_message_of_more_than_a_megabyte_closes_the_connection(served):
    with opened(served) as socket, pytest.raises(WebSocketException):
        told(socket, type="step", data={"text": "a" * 1_100_000})


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "[" * 100_000, "null", "3", '"text"', "[]", "{}", '{"type": 3}', '{"type": []}'),
        *('{"type": "mcp", "data": {}}', '{"type": "step"}', '{"type": "step", "data": null}'),
        *('{"type": "step", "data": {"text": 3}}', '{"type": "step", "data": {"text": "\\ud800"}}'),
        *('{"type": "step", "data": {"words": "go"}}', '{"type": "reset", "data": {"episode_id": []}}'),
        *('{"type": "reset", "data": {"seed": -1}}', '{"type": "reset", "data": {"seed": "one"}}'),
        *('{"type": "reset", "data": {"task_seed": 1.5}}', '{"type": "reset", "data": []}'),
        *('{"type": "reset", "data": {"self": 3}}', '{"type": "step", "data": {"text": NaN}}'),
    ],
)
def test_any_message_is_answered_and_the_session_goes_on(served, text):
    with opened(served) as socket:
        socket.send(text)
        assert json.loads(socket.recv(timeout=20))["type"] == "error"
        assert told(socket, type="reset", data={"seed": 0})["type"] == "observation"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/schema", {}, 200),
        ("GET", "/schema", {"Host": "LOCALHOST:80"}, 200),
        ("GET", "/schema", {"Host": "[::1]:80"}, 200),
        ("GET", "/schema", {"Host": "evil.example"}, 403),
        ("GET", "/schema", {"Host": "127.0.0.1.evil.example"}, 403),
        ("GET", "/schema", {"Host": ""}, 403),
        ("GET", "/schema", {"Origin": "http://evil.example"}, 403),
        ("GET", "/schema", {"Origin": "null"}, 403),
        ("GET", "/schema", {"Origin": "http://good.example"}, 200),
        ("POST", "/mcp", {}, 404),
        ("POST", "/reset", {}, 404),
        ("POST", "/schema", {}, 405),
        ("GET", "/schema", {"Content-Length": "400000000"}, 413),
        ("GET", "/schema", {"Content-Length": "-1"}, 400),
    ],
)
def test_foreign_names_pages_and_paths_are_refused(served, method, path, headers, status):
    host, port = served.url.removeprefix("http://").split(":")
    asked = http.client.HTTPConnection(host, int(port), timeout=10)
    asked.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        asked.putheader(name, value)
    asked.endheaders()
    assert asked.getresponse().status == status
    asked.close()


def test_a_large_body_in_parts_is_refused(served):
    host, port = served.url.removeprefix("http://").split(":")
    sent = 0
    with socket.create_connection((host, int(port)), timeout=10) as asking:
        asking.sendall(b"GET /schema HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(OSError):  # the server closes the connection
            while sent < 400_000_000:
                asking.sendall(b"186a0\r\n" + b"a" * 100_000 + b"\r\n")
                sent += 100_000
    assert sent < 20_000_000


def test_a_page_opens_no_session(served):
    for named in ({"origin": "http://evil.example"}, {"additional_headers": {"Origin": "null"}}):
        with pytest.raises(WebSocketException, match="403"):
            opened(served, **named)
    with opened(served, origin="http://good.example") as socket:
        assert told(socket, type="reset", data={})["type"] == "observation"


def test_a_silent_session_is_closed(served):
    with opened(served) as socket:
        told(socket, type="reset", data={})
        start = time.monotonic()
        with pytest.raises(WebSocketException):
            socket.recv(timeout=20)
        assert 2.0 < time.monotonic() - start < 10.0


@pytest.mark.parametrize("signals", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_ctrl_c_ends_a_server_whose_steps_hang(signals):
    code = "from hunch.cli.main import main; main()"
    arguments = ["serve", HANGING, "--port", "0", "--seconds", "600"]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    program = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        url = program.stdout.readline().split("openenv:")[1].split(")")[0]
        with (
            connect(url.replace("http", "ws") + "/ws") as one,
            connect(url.replace("http", "ws") + "/ws") as two,
        ):
            for socket in (one, two):
                told(socket, type="reset", data={})
                socket.send(json.dumps({"type": "step", "data": {"text": "lock"}}))
            time.sleep(0.3)
            start = time.monotonic()
            for _ in range(signals):
                program.send_signal(signal.SIGINT)
                time.sleep(0.05)
            assert program.wait(timeout=20) == 130
            assert time.monotonic() - start < 10.0
    finally:
        program.kill()
        program.communicate()
