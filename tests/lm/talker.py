"""A small server that answers as a test says; standard library only."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]]]


class Talker(ThreadingHTTPServer):
    """A server that answers as ``answer`` says, and keeps the paths and bodies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: Answer = lambda path, body: chat("go north")
        self.asked: list[tuple[str, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


class Handler(BaseHTTPRequestHandler):
    wbufsize = -1  # headers and body in one packet: the second would wait 40 ms for the first
    protocol_version = "HTTP/1.1"
    server: Talker

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.reply({})

    def do_POST(self) -> None:
        self.reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def reply(self, body: dict[str, Any]) -> None:
        self.server.asked.append((self.path, body))
        status, said = self.server.answer(self.path, body)
        text = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def chat(text: str, read: int = 40, **more: Any) -> tuple[int, dict[str, Any]]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}} | more
    usage = {"prompt_tokens": read, "completion_tokens": 5}
    return 200, {"id": str(time.time_ns()), "model": "m", "choices": [choice], "usage": usage}


def only_chat(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    if path.endswith("/models"):
        return 200, {"data": [{"id": "m"}]}
    return chat("go north") if "chat" in path else (404, {"error": {"message": "no such route"}})
