"""A decision model on a real local server, whose answers are those of a rule and whose requests are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.started import answering

Rule = Callable[[str, str, dict[str, str | None]], dict[str, float] | float | None]
"""Called with state, instructions and the described options; for yes or no there are none, and the answer is
the probability of yes. None leaves the question out."""


class Replying(BaseHTTPRequestHandler):
    """Reads requests and writes replies in JSON, and logs nothing."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, body: dict[str, Any]) -> None:
        """Reply to a request."""
        raise NotImplementedError

    def reply(self, value: Any, status: int = 200) -> None:
        """Send a value as JSON; a text is sent as it is."""
        payload = (value if isinstance(value, str) else json.dumps(value)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


@contextmanager
def served(handler: type[Replying]) -> Iterator[str]:
    """Serve with a handler; give the address."""
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


@contextmanager
def deciding(rule: Rule) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve the route /systemone; give its address, and the list of the requests that came."""
    requests: list[dict[str, Any]] = []

    class Handler(Replying):
        def answer(self, body: dict[str, Any]) -> None:
            probe = body["state"] == "The sky is blue."  # that of loading
            if not probe:
                requests.append(body)
            answers: dict[str, Any] = {}
            said: dict[str, float] | float | None
            for name, asked in body["questions"].items():
                yes_no = asked["type"] == "noul"
                options = {} if yes_no else asked["criteria"]
                if probe:
                    said = 0.5 if yes_no else dict.fromkeys(options, 0.5)
                else:
                    said = rule(body["state"], asked["instructions"], options)
                if yes_no and said is not None:
                    answers[name] = {"type": "noul", "noul": said}
                elif isinstance(said, dict):
                    total = sum(said.values())
                    shares = {option: weight / total for option, weight in said.items()}
                    favourite = max(shares, key=shares.__getitem__)
                    answers[name] = {"type": "choice", "choice": favourite, "probabilities": shares}
            usage = {"input_tokens": 9, "output_tokens": 1}
            self.reply({"model": "m", "answers": answers, "usage": usage})

    with served(Handler) as url:
        yield url, requests
