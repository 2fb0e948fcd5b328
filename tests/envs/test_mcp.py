"""The tools of a real MCP server, started here, as a text environment."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.started import run

import hunch
from hunch import admitted
from hunch.core import HunchError, UsageError

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


def test_a_tool_that_hangs_is_one_sentence(program: str) -> None:
    env = hunch.make(f"mcp:{program}", task="Wait.", seconds=5.0)
    try:
        env.reset(seed=0)
        began = time.monotonic()
        assert "no result within 5 seconds" in env.step('{"name": "wait"}')[0]
        assert time.monotonic() - began < 20
    finally:
        env.close()


def test_a_server_that_hangs_from_the_start_is_one_sentence() -> None:
    place = f"{shlex.quote(sys.executable)} -c 'import time; time.sleep(60)'"
    began = time.monotonic()
    with pytest.raises(HunchError, match="did not answer within 2 seconds"):
        hunch.make(f"mcp:{place}", task="Do it.", seconds=2.0)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:9/mcp", "/no/such/program", f"{shlex.quote(sys.executable)} -c 'print(1)'"]
)
def test_what_is_no_server_is_one_sentence(place: str) -> None:
    with pytest.raises(HunchError, match="MCP server"):
        hunch.make(f"mcp:{place}", task="Do it.", seconds=10.0)


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
