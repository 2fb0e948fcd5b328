"""A small HTTP server with the protocols of OpenAI and Anthropic over real models; it fails on demand.

Standard library, torch and transformers only: nothing of the library under test. Answers are a function of
the request (sampling follows ``seed``), so a run with faults can be compared with one without.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FAULTS = ("429", "429-after", "429-date", "500", "reset", "drop", "truncated", "malformed", "empty", "count")
SLOW_FAULTS = ("hang", "drip")
CONTEXT = 128


class Network:
    """A causal model or an encoder, and what the endpoints need of it."""

    def __init__(self, folder: Path) -> None:
        import torch
        import transformers

        self.torch = torch
        kind = transformers.AutoModel if "bert" in folder.name else transformers.AutoModelForCausalLM
        self.model = kind.from_pretrained(folder).eval()
        self.writes = "bert" not in folder.name
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text)["input_ids"] or [self.tokenizer.bos_token_id]

    def logprobs(self, ids: list[int]) -> Any:
        with self.torch.inference_mode():
            logits = self.model(input_ids=self.torch.tensor([ids])).logits[0]
        return self.torch.log_softmax(logits.float(), dim=-1)

    def token(self, number: int) -> str:
        """One token as text; a leading space is kept for tokenizers that strip it."""
        piece = self.tokenizer.convert_ids_to_tokens(number) or ""
        return piece.replace("▁", " ") if "▁" in piece else self.tokenizer.decode([number])

    def write(self, prompt: str, body: dict[str, Any]) -> tuple[str, list[Any], int, int]:
        """Text, the likeliest tokens at each place, tokens read, tokens written."""
        ids = self.ids(prompt)[-CONTEXT + 33 :]
        chance = self.torch.Generator().manual_seed(int(body.get("seed", 0)))
        top, tops, text, start = body.get("top_logprobs") or body.get("logprobs") or 0, [], "", len(ids)
        for _ in range(min(32, body.get("max_tokens") or body.get("max_completion_tokens"))):
            after = self.logprobs(ids)[-1]
            if top:
                values, numbers = after.topk(int(top))
                tops.append([(self.token(int(n)), float(v)) for v, n in zip(values, numbers, strict=True)])
            heat = body.get("temperature", 1.0)
            shares = (after / heat).softmax(-1) if heat else (after == after.max()).float()
            ids.append(int(self.torch.multinomial(shares, 1, generator=chance)))
            before = self.tokenizer.decode(ids[start - 1 : start])
            text = self.tokenizer.decode(ids[start - 1 :])[len(before) :]
            if any(mark in text for mark in body.get("stop", [])):
                break
        for mark in body.get("stop", []):
            text = text.split(mark)[0]
        return text, tops, start, len(ids) - start

    def echo(self, text: str) -> dict[str, Any]:
        """Tokens of a text with their log-probabilities, the first without."""
        ids = self.ids(text)
        table = self.logprobs(ids)
        each = [float(table[place, number]) for place, number in enumerate(ids[1:])]
        tokens = [self.token(number) for number in ids]
        offsets = [sum(map(len, tokens[:place])) for place in range(len(tokens))]
        return {"tokens": tokens, "token_logprobs": [None, *each], "text_offset": offsets}

    def embed(self, text: str) -> list[float]:
        ids = self.ids(text)[:CONTEXT]
        with self.torch.inference_mode():
            states = self.model.base_model(input_ids=self.torch.tensor([ids])).last_hidden_state
        return states[0].mean(dim=0).tolist()


def said(content: Any) -> str:
    """A message as text, pictures by their lengths."""
    if isinstance(content, str):
        return content
    return " ".join(part.get("text") or f"[picture {len(json.dumps(part))}]" for part in content)


class Server(ThreadingHTTPServer):
    """The server.

    Attributes:
        share: Share of the requests that meet a fault.
        most: The most faults; none once they are used up.
        poison: A text whose requests always meet HTTP 500.
        enough: After so many answers, every request hangs.
        faults: The faults to draw from.
        lacks: Paths that it answers with 404.
        refuses: Fields of a body that it answers with 400.
        rejects: What it says against a body with 400; empty if it takes it.
        ignores: Fields of a body that it does as if they were not there.
        hides: Fields that it leaves out of every answer.
        lists: What it says of each model besides its name.
        key: The key that it wants, if any.
        written: How it writes a wrong key into its refusal.
        hold: Seconds that a slow fault takes.
        delay: Seconds that every answer takes.
        together: No answer before so many requests have been under way at once, or after ``hold`` seconds.
        wrote: Bytes that the fault ``endless`` wrote.
        answered: How often each request (path and body) was answered without a fault.
        met: How often each fault was met.
        busiest: The most requests under way at once.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, folders: dict[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.networks = {name: Network(folder) for name, folder in folders.items()}
        self.known: dict[str, Any] = {}
        self.computing, self.counting = threading.Lock(), threading.Condition()
        self.stopping = threading.Event()
        self.restore()

    def restore(self) -> None:
        """Be a server without faults that has everything."""
        self.share, self.faults, self.hold, self.delay = 0.0, FAULTS, 5.0, 0.0
        self.most, self.poison, self.enough = sys.maxsize, "", sys.maxsize
        self.lacks, self.refuses, self.ignores = set[str](), set[str](), set[str]()
        self.rejects: Callable[[dict[str, Any]], str] = lambda body: ""
        self.hides, self.lists = set[str](), dict[str, Any](max_model_len=CONTEXT)
        self.key, self.written = "", str
        self.chance = random.Random(0)
        self.answered, self.met = Counter[str](), Counter[str]()
        self.seen: list[tuple[float, str, dict[str, Any]]] = []
        self.busy = self.busiest = self.wrote = self.together = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news; anything else is a fault of this server."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def fault(self, body: dict[str, Any]) -> str:
        with self.counting:
            drawn = self.chance.random() < self.share and self.most > 0
            kind = self.chance.choice(self.faults) if drawn else ""
            self.most -= drawn
            if self.poison and self.poison in json.dumps(body):
                kind = "500"
            if self.enough <= 0:
                kind = "hang"
            self.enough -= not kind
            self.met[kind] += 1
        return kind

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps([path, body], sort_keys=True)
        with self.computing:
            if text not in self.known:
                self.known[text] = self.compute(path, body)
            return self.known[text]

    def compute(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        network = self.networks[body["model"]]
        marks = {"model": f"{body['model']}-2026", "system_fingerprint": "fp_test"}
        if path == "/v1/embeddings":
            vector = {"index": 0, "embedding": network.embed(body["input"])}
            return marks | {"data": [vector], "usage": {"prompt_tokens": len(network.ids(body["input"]))}}
        if path == "/v1/messages":
            text, _, read, wrote = network.write(said(body["messages"][0]["content"]), body)
            content = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
            return marks | content | {"usage": {"input_tokens": read, "output_tokens": wrote}}
        if body.get("echo"):
            rows = [network.echo(text) for text in body["prompt"]]
            picks = [
                {"index": i, "text": text, "logprobs": row, "finish_reason": "length"}
                for i, (text, row) in enumerate(zip(body["prompt"], rows, strict=True))
            ]
            if not body.get("logprobs"):
                return marks | {"choices": [pick | {"logprobs": None} for pick in picks]}
            read = sum(len(row["tokens"]) for row in rows)
            for pick in picks[: len(picks) * body["max_tokens"]]:
                pick["text"] += "x"
                pick["logprobs"]["tokens"].append("x")
                pick["logprobs"]["token_logprobs"].append(-1.0)
            wrote = len(rows) * body["max_tokens"]
            return marks | {"choices": picks, "usage": {"prompt_tokens": read, "completion_tokens": wrote}}
        chat = path == "/v1/chat/completions"
        prompt = "\n".join(said(m["content"]) for m in body["messages"]) + "\n" if chat else body["prompt"]
        text, tops, read, wrote = network.write(prompt, body)
        pick: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if chat:
            pick["message"] = {"role": "assistant", "content": text}
            likely = [[{"token": token, "logprob": p} for token, p in own] for own in tops]
            pick["logprobs"] = {"content": [{"top_logprobs": own} for own in likely]} if tops else None
        else:
            pick |= {
                "text": text,
                "logprobs": {"top_logprobs": [dict(own) for own in tops]} if tops else None,
            }
        return marks | {"choices": [pick], "usage": {"prompt_tokens": read, "completion_tokens": wrote}}


class Handler(BaseHTTPRequestHandler):
    wbufsize = -1  # headers and body in one packet: the second would wait 40 ms for the first
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.handle_one(None)

    def do_POST(self) -> None:
        self.handle_one(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def handle_one(self, body: dict[str, Any] | None) -> None:
        server = self.server
        with server.counting:
            server.seen.append((time.monotonic(), self.path, body or {}))
            server.busy += 1
            self.is_busy = True
            server.busiest = max(server.busiest, server.busy)
            server.counting.notify_all()
            server.counting.wait_for(lambda: server.busiest >= server.together, server.hold)
        try:
            fault = server.fault(body or {})
            if server.delay:
                server.stopping.wait(server.delay)
            refusal = self.refused(body)
            if fault and not refusal:
                self.fail(fault, body)
            else:
                self.reply(*(refusal or (200, self.answer(body))))
        finally:
            self.end_request()

    def end_request(self) -> None:
        """End the request, before its reply is sent: a client that has the reply may send the next one."""
        with self.server.counting:
            self.server.busy -= self.is_busy
            self.is_busy = False

    def answer(self, body: dict[str, Any] | None, count: bool = True) -> dict[str, Any]:
        if body is None:
            return {"data": [{"id": name} | self.server.lists for name in self.server.networks]}
        body = {name: value for name, value in body.items() if name not in self.server.ignores}
        answer = self.server.answer(self.path, body)
        if count:
            with self.server.counting:
                self.server.answered[json.dumps([self.path, body], sort_keys=True)] += 1
        return {name: value for name, value in answer.items() if name not in self.server.hides}

    def refused(self, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]] | None:
        server = self.server
        key = self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
        if server.key and key != server.key:
            return 401, {"error": {"message": f"Incorrect API key provided: {server.written(key)}."}}
        if self.path in server.lacks:
            return 404, {"error": {"message": "Not Found"}}
        if body is None:
            return None
        if body["model"] not in server.networks:
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        if self.path != "/v1/embeddings" and not server.networks[body["model"]].writes:
            return 400, {"error": {"message": "This model does not write."}}
        if why := server.rejects(body):
            return 400, {"error": {"message": why}}
        wrong = sorted(server.refuses & {f"{name}={value}" for name, value in body.items()})
        wrong += sorted(server.refuses & set(body))
        if wrong:
            advice = " Use 'max_completion_tokens'." if wrong == ["max_tokens"] else ""
            return 400, {"error": {"message": f"Unsupported parameter: {wrong[0]}.{advice}"}}
        return None

    def reply(self, status: int, answer: Any, **headers: str) -> None:
        text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.end_request()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text)

    def fail(self, fault: str, body: dict[str, Any] | None) -> None:
        busy = {"error": {"message": "busy"}}
        if fault == "429-after":
            self.reply(429, busy, retry_after="0.2")
        elif fault == "429-date":
            self.reply(429, busy, retry_after=formatdate(time.time() + 1, usegmt=True))
        elif fault == "429-hour":
            self.reply(429, busy, retry_after="3600")
        elif fault.isdigit():
            self.reply(int(fault), busy)
        elif fault == "hang":
            self.server.stopping.wait(self.server.hold)
            self.hang_up()
        elif fault == "reset":
            self.hang_up()
        elif fault == "429-past":
            self.reply(429, busy, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")
        elif fault == "deep":
            self.reply(200, "[" * 100_000)
        elif fault == "infinite":
            self.reply(200, '{"choices": [{"index": Infinity, "text": ""}]}')
        elif fault == "long":
            self.reply(200, "x" * 200_000)
        elif fault == "endless":
            self.pour()
        elif fault == "malformed":
            self.reply(200, "<html>busy</html>")
        else:
            self.spoil(fault, self.answer(body, count=False))

    def spoil(self, fault: str, answer: dict[str, Any]) -> None:
        """Answer, but not as it should be."""
        items = next((name for name in ("choices", "data", "content") if name in answer), "choices")
        text = json.dumps(answer)
        if fault == "truncated":
            self.reply(200, text[: len(text) // 2])
        elif fault == "empty":
            self.reply(200, answer | {items: []} | ({"stop_reason": None} if items == "content" else {}))
        elif fault == "count":
            self.reply(200, "[1, 2]" if items == "content" else answer | {items: answer[items] * 2})
        else:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            if fault == "drop":
                self.wfile.write(text[: len(text) // 2].encode())
            else:
                for letter in text:
                    self.wfile.write(letter.encode())
                    if self.server.stopping.wait(self.server.hold / len(text)):
                        break
            self.hang_up()

    def pour(self) -> None:
        """Answer without end."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(10_000):
                self.wfile.write(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
                self.server.wrote += 10_000
        self.hang_up()

    def hang_up(self) -> None:
        """Close without a word, as a crashed server does."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
