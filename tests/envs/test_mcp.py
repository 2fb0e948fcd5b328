"""The tools of a real MCP server, started here, as a text environment."""

from __future__ import annotations

import copy
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from tests.started import answering, run

import hunch
from hunch import admitted
from hunch.core import HunchError, UsageError
from hunch.envs.mcp import MOST_TOOLS, Server

pytest.importorskip("mcp")

SERVER = '''
import sys, time

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

server = Server("tests")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("of all things")


@server.tool()
def wait() -> str:
    """Never return."""
    time.sleep(3600)
    return ""


if len(sys.argv) > 1:
    try:
        server.run("streamable-http", port=int(sys.argv[1]))
    except TypeError:
        server.settings.port = int(sys.argv[1])
        server.run("streamable-http")
else:
    server.run()
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("mcp") / "server.py"
    path.write_text(SERVER)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


@pytest.fixture(scope="module")
def address(program: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([*shlex.split(program), str(port)], stderr=subprocess.DEVNULL) as server:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        server.kill()


def played(place: str) -> None:
    env = hunch.make(f"mcp:{place}", task="What is 17 + 25?", answer="42", seconds=30.0)
    try:
        env.reset(seed=0)
        assert set(env.unwrapped.tools) == {"add", "fail", "wait"}
        call = json.dumps({"name": "add", "arguments": {"a": 17, "b": 25}})
        assert env.step(call)[0] == "add returned: 42"
        observation, *_, info = env.step('{"name": "fail", "arguments": {}}')
        assert observation.startswith("fail failed:")
        assert "Invalid move" in info["event"]
        assert env.step("It is 42.")[1] == 1.0
    finally:
        env.close()


def test_the_tools_of_a_program(program: str) -> None:
    played(program)


def test_the_tools_of_a_server(address: str) -> None:
    played(address)


def test_an_answer_in_digits_is_a_text_on_the_command_line(program: str) -> None:
    line = ["play", f"mcp:{program}", "--env.task", "What is 17 + 25?", "--env.answer", "42"]
    program_of = [sys.executable, "-m", "hunch", *line]
    done = subprocess.run(program_of, input="It is 42.\n", capture_output=True, text=True, timeout=120)
    assert "Solved" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"answer": 42}, "The option answer of .* must be text, not 42"),
        ({"max_steps": "x"}, "The option max_steps of .* must be a whole number, not 'x'"),
        ({"seconds": -1}, "The option seconds of .* must be above 0, not -1"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_before_a_server_starts(option: object, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        hunch.make("mcp:no-such-program", task="Wait.", **option)


def test_a_tool_that_hangs_is_one_sentence(program: str) -> None:
    env = hunch.make(f"mcp:{program}", task="Wait.", seconds=30.0)
    try:
        env.reset(seed=0)
        env.unwrapped.server.seconds = 0.5  # from here on: a busy machine takes its time to connect
        began = time.monotonic()
        assert "no result within 0.5 seconds" in env.step('{"name": "wait"}')[0]
        assert time.monotonic() - began < 20
    finally:
        env.close()


def test_a_copy_that_is_closed_leaves_the_connection(program: str) -> None:
    env = hunch.make(f"mcp:{program}", task="Add.")
    try:
        env.reset(seed=0)
        copy.deepcopy(env).close()
        assert env.step(json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}}))[0] == "add returned: 3"
    finally:
        env.close()


def test_no_program_is_left_by_an_environment_that_cannot_be_made(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers: list[Server] = []
    monkeypatch.setattr("hunch.envs.mcp.Server", lambda *given: servers.append(Server(*given)) or servers[0])
    with pytest.raises(UsageError, match="render_mode"):
        hunch.make(f"mcp:{program}", task="Add.", render_mode="human")
    with pytest.raises(HunchError, match="is gone"):
        servers[0].call("add", {"a": 1, "b": 2})


PAGED = """
import json, os, sys

TOOLS = ["price", "structured", "picture", "refuse", "die", "anything"]
print("Welcome to the shop!", flush=True)  # no message, as many servers print
for line in sys.stdin:
    message = json.loads(line)
    method, given = message.get("method"), message.get("params") or {}
    problem = None
    if method == "initialize":
        about = {"name": "shop", "version": "1"}
        version = given["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list" and "endless" in sys.argv:
        schema = {"type": "object"}
        number = int(given.get("cursor") or 0)
        result = {"tools": [{"name": f"tool{number}", "inputSchema": schema}], "nextCursor": str(number + 1)}
    elif method == "tools/list":
        number = int(given.get("cursor") or 0)
        schema = {"type": "object"} if number == 5 else {"type": "object", "properties": {}}
        result = {"tools": [{"name": TOOLS[number], "inputSchema": schema}]}
        if number < 5:
            result["nextCursor"] = str(number + 1)
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(given.get("arguments"))}]}
        if given["name"] == "structured":
            result = {"content": [], "structuredContent": {"cents": 42}}
        elif given["name"] == "picture":
            result = {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}
        elif given["name"] == "refuse":
            problem = {"code": -32000, "message": "out of stock"}
        elif given["name"] == "die":
            os._exit(3)
    else:
        result = {}
    if "id" in message:
        answer = {"error": problem} if problem else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
"""A server without the package: it lists one tool on each page."""


@pytest.fixture
def paged(tmp_path: Path) -> str:
    file = tmp_path / "paged.py"
    file.write_text(PAGED)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(file))}"


def test_tools_on_later_pages_are_offered_and_every_result_is_text(
    paged: str, capfd: pytest.CaptureFixture[str]
) -> None:
    env = hunch.make(f"mcp:{paged}", task="Shop.", seconds=20.0)
    try:
        assert list(env.get_wrapper_attr("tools")) == [
            "price", "structured", "picture", "refuse", "die", "anything",
        ]  # fmt: skip
        env.reset(seed=0)
        assert env.step('{"name": "structured"}')[0] == 'structured returned: {"cents": 42}'
        assert env.step('{"name": "picture"}')[0] == "picture returned: [image image/png]"
        assert "out of stock" in env.step('{"name": "refuse"}')[0]
        assert "no argument of" in env.step('{"name": "price", "arguments": {"of": "pen"}}')[0]
        assert env.step('{"name": "anything", "arguments": {"of": "pen"}}')[0] == (
            'anything returned: {"of": "pen"}'
        )
    finally:
        env.close()
    assert "Traceback" not in capfd.readouterr().err


def test_a_list_of_tools_without_end_is_cut(paged: str) -> None:
    env = hunch.make(f"mcp:{paged} endless", task="Shop.", seconds=20.0)
    assert len(env.get_wrapper_attr("tools")) == MOST_TOOLS
    env.close()


def test_a_server_that_ends_stops_the_run_in_a_sentence(paged: str) -> None:
    env = hunch.make(f"mcp:{paged}", task="Shop.", seconds=20.0)
    env.reset(seed=0)
    for _ in range(2):
        with pytest.raises(HunchError, match="is gone"):
            env.step('{"name": "die"}')
    env.close()


def test_a_server_that_hangs_from_the_start_is_one_sentence_and_is_ended(tmp_path: Path) -> None:
    """It was left to itself, after a wait of five seconds for its end."""
    mark = tmp_path / "pid"
    file = tmp_path / "hangs.py"
    file.write_text(f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n")
    place = f"{shlex.quote(sys.executable)} {shlex.quote(str(file))}"
    began = time.monotonic()
    with pytest.raises(HunchError, match="did not answer within 2 seconds"):
        hunch.make(f"mcp:{place}", task="Do it.", seconds=2.0)
    assert time.monotonic() - began < 20
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:9/mcp", "/no/such/program", f"{shlex.quote(sys.executable)} -c 'print(1)'"]
)
def test_what_is_no_server_is_one_sentence(place: str) -> None:
    with pytest.raises(HunchError, match="MCP server"):
        hunch.make(f"mcp:{place}", task="Do it.", seconds=10.0)


def test_a_program_that_gives_up_is_quoted() -> None:
    place = f"{shlex.quote(sys.executable)} -c 'raise SystemExit(\"I need a licence\")'"
    with pytest.raises(HunchError, match="I need a licence"):
        hunch.make(f"mcp:{place}", task="Do it.", seconds=10.0)


class Guarded(BaseHTTPRequestHandler):
    """Refuses everybody, and notes what was sent as the key."""

    keys: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.keys.append(self.headers["authorization"])
        self.send_response(401)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_server_that_asks_for_authorization_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "open-sesame-42")
    monkeypatch.setattr(Guarded, "keys", [])
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), Guarded)) as server:
        place = f"mcp:http://127.0.0.1:{server.server_port}/mcp"
        with pytest.raises(HunchError, match=r"asks for authorization .*by key_env"):
            hunch.make(place, task="Shop.", seconds=20.0)
        assert set(Guarded.keys) == {None}
        with pytest.raises(HunchError, match="refuses the key") as refused:
            hunch.make(place, task="Shop.", seconds=20.0, key_env="SHOP_KEY")
        assert Guarded.keys[-1] == "Bearer open-sesame-42"
        assert "open-sesame" not in str(refused.value)
        with pytest.raises(UsageError, match="NO_KEY, which holds no key"):
            hunch.make(place, task="Shop.", key_env="NO_KEY")


def test_a_task_is_needed(program: str) -> None:
    with pytest.raises(UsageError, match=r"--env\.task"):
        hunch.make(f"mcp:{program}")


def test_a_program_that_only_settings_name_is_not_started(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(admitted.PROGRAMS, "[]")
    admitted.admit(["another program"])
    with pytest.raises(UsageError, match="--program"):
        hunch.make(f"mcp:{program}", task="Do it.")
    admitted.admit([program])
    hunch.make(f"mcp:{program}", task="Do it.").close()


def test_the_command_starts_what_its_user_names_and_no_strangers_program(
    tmp_path: Path, program: str
) -> None:
    mark = tmp_path / "started"
    evil = f"{shlex.quote(sys.executable)} -c \"open('{mark}', 'w')\""
    (tmp_path / "run.yaml").write_text(json.dumps({"env": f"mcp:{evil}", "env_options": {"task": "x"}}))
    done = run(tmp_path, "-m", "hunch", "run", "zero-shot", "--config", "run.yaml", "--lm", "uniform")
    assert done.returncode == 2
    assert "--program" in done.stderr
    assert not mark.exists(), done.stderr
