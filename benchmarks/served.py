"""A run's proposals at a llama.cpp server, against the bare server with the same requests (extra gguf).

    python benchmarks/served.py                          # smollm2, four slots
    python benchmarks/served.py "smollm2?threads=1" --steps 32 --rounds 2

DQN-Prior in Household-Pick: several streams, five proposals for each state, each restricted to the actions
that are admissible there. The requests of the run are recorded, and a few lines of plain HTTP send them again
to a fresh server, as many at once as there are slots. The two sides alternate, each on a server that has just
been started, so that neither finds prompts that the other has left there. No other llama.cpp may run.

For each side: tokens written a second while requests are out. For the run also: the share of the time from
the first question to the last answer in which no request is out, so that the model waits for us.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hunch
from hunch import lm
from hunch.lm.backends import llama_server
from hunch.lm.backends.http import Line
from hunch.lm.backends.llama_cpp import LlamaModel
from hunch.runs.config import Streams

ENV = "hunch/Household-Pick-v0"


@dataclass
class Side:
    """What one side did.

    Attributes:
        requests: Path and body of each request.
        words: The texts that were written.
        spans: Beginning and end of each request.
    """

    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def busy(self) -> float:
        """Seconds in which at least one request is out."""
        total = until = 0.0
        for begin, end in sorted(self.spans):
            total += max(0.0, end - max(begin, until))
            until = max(until, end)
        return total

    @property
    def whole(self) -> float:
        """Seconds from the first request to the last answer."""
        return max(end for _, end in self.spans) - min(begin for begin, _ in self.spans)

    def read(self, reply: Any) -> None:
        """Keep the texts of a reply."""
        self.words += [choice["message"]["content"] for choice in reply["choices"]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="smollm2")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if llama_server.running_server() is not None:
        sys.exit("Another llama.cpp runs on this machine: wait until it ends.")
    with tempfile.TemporaryDirectory() as private:
        os.environ["XDG_RUNTIME_DIR"] = private  # the servers of this benchmark are nobody else's
        compare(options)
        end_server()


def compare(options: argparse.Namespace) -> None:
    """Run both sides in turn, and print their ratio."""
    ratios, waits = [], []
    for round_ in range(options.rounds):
        run = run_of(options.model, options.streams, options.steps, round_)
        bare = bare_of(options.model, run.requests)
        tokens, bare_tokens = (count(options.model, side.words) for side in (run, bare))
        ours, theirs = tokens / run.busy, bare_tokens / bare.busy
        ratios.append(ours / theirs)
        waits.append(1 - run.busy / run.whole)
        print(
            f"round {round_ + 1}: {len(run.requests)} requests, {len(run.words)} texts, {tokens:,} tokens in "
            f"{run.busy:.0f} s; run {ours:.1f} tokens/s, bare server {theirs:.1f}, ratio {ratios[-1]:.2f}; "
            f"the model waits {waits[-1]:.1%} of the run",
            flush=True,
        )
    print(
        f"{options.model}, {options.streams} streams: ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}), the model waits {statistics.median(waits):.1%} of the run"
    )


def run_of(spec: str, streams: int, steps: int, seed: int) -> Side:
    """Train on a fresh server, and return what was asked."""
    end_server()
    side = Side()
    send = Line.send

    async def recorded(line: Line, request: Any, *more: Any, **named: Any) -> Any:
        # Counted from the moment that the request is handed over; it may wait for a free slot.
        begin = time.perf_counter()
        read = request.read

        def reading(reply: Any) -> Any:
            side.read(reply)
            return read(reply)

        side.requests.append((request.path, request.body))
        try:
            return await send(line, request._replace(read=reading), *more, **named)
        finally:
            side.spans.append((begin, time.perf_counter()))

    model = lm.load(spec, cache=None)
    Line.send = recorded  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as out:
            hunch.train(
                "dqn-prior",
                ENV,
                steps=steps,
                lm=model,
                seed=seed,
                streams=Streams(envs=streams),
                out=Path(out) / "run",
                warmup=streams,
                **{"prior.way": "structured"},
            )
    finally:
        Line.send = send  # type: ignore[method-assign]
    return side


def bare_of(spec: str, requests: list[tuple[str, dict[str, Any]]]) -> Side:
    """Send requests to a fresh server, with nothing of ours in between."""
    end_server()
    model: LlamaModel = lm.load(spec, cache=None).model  # type: ignore[assignment]
    address = model.line.account.base_url
    side = Side()

    def post(asked: tuple[str, dict[str, Any]]) -> None:
        path, body = asked
        begin = time.perf_counter()
        request = urllib.request.Request(
            address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=3600) as reply:
            said = json.load(reply)
        side.spans.append((begin, time.perf_counter()))
        side.read(said)

    with ThreadPoolExecutor(model.settings.slots) as pool:
        list(pool.map(post, requests))
    return side


def count(spec: str, texts: list[str]) -> int:
    """Return the number of tokens of texts by the model's own tokenizer, with their ends."""
    model: LlamaModel = lm.load(spec, cache=None).model  # type: ignore[assignment]
    address = model.line.account.base_url.removesuffix("/v1") + "/tokenize"
    total = 0
    for text in texts:
        request = urllib.request.Request(
            address, json.dumps({"content": text}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=3600) as reply:
            total += len(json.load(reply)["tokens"]) + 1
    return total


def end_server() -> None:
    """End the server, if one runs, so that the next one starts without prompts."""
    running = llama_server.running_server()
    if running is None:
        return
    os.kill(running.process, signal.SIGTERM)
    while llama_server.running_server() is not None:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
