"""A run's proposals at a llama.cpp server, against the bare server with the same requests (extra gguf).

    python benchmarks/served.py                          # smollm2 with four slots, Household-Pick
    python benchmarks/served.py "smollm2?threads=1" --env hunch/FrozenLake-v0 --steps 64
    python benchmarks/served.py "smollm2?threads=1" --ahead      # questions while Q learns, and without

DQN-Prior with several streams and five proposals for each state, each restricted to the actions that are
admissible there, while Q is learnt. Two servers hold the same model. Whenever the run has got its answers
from one of them, a few lines of plain HTTP send the same requests to the other, as many at once as there are
slots, and the run goes on when they are answered. So the sides alternate every few seconds, each finds in its
server the prompts that it has left there, and what else the machine does slows both alike.

For each side: tokens written a second while it asks. For the run also the share of its time in which it does
not ask, so that the model waits for us; the time of the other side does not count.

``--ahead`` measures that share alone, of a run that asks ahead (``dqn-prior --ahead``) and of one that does
not, in turns, with an update of 512 transitions per environment step. No other server runs meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hunch
from hunch import lm
from hunch.lm.backends import llama_server
from hunch.lm.backends.http import Line
from hunch.lm.backends.llama_cpp import LlamaModel
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.config import Streams


@dataclass
class Side:
    """What one side did.

    Attributes:
        words: The texts that were written.
        spans: Beginning and end of each time in which it asked.
        requests: Number of requests.
    """

    words: list[str] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)
    requests: int = 0

    @property
    def busy(self) -> float:
        """Seconds in which it asked."""
        return sum(end - begin for begin, end in self.spans)

    def read(self, reply: Any) -> None:
        """Keep the texts of a reply."""
        self.requests += 1
        self.words += [choice.get("text") or choice["message"]["content"] for choice in reply["choices"]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="smollm2")
    parser.add_argument("--env", default="hunch/Household-Pick-v0")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument(
        "--ahead", action="store_true", help="compare a run that asks ahead with one that does not"
    )
    parser.add_argument("--turns", type=int, default=2, help="with --ahead: runs of each kind")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if llama_server.running_server() is not None:
        sys.exit("Another llama.cpp runs on this machine: wait until it ends.")
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        os.environ["XDG_RUNTIME_DIR"] = ours  # the servers of this benchmark are nobody else's
        model = lm.load(options.model, cache=None)
        bare = model.model
        assert isinstance(bare, LlamaModel), f"{options.model} is not run by llama.cpp"
        if options.ahead:
            waits(options, model)
            return
        command = [sys.executable, "-m", "hunch", "models", "serve", bare.settings.file]
        command += ["--port", "0", "--keyless"]
        for name in ("context", "slots", "threads"):
            command += [f"--{name}", str(getattr(bare.settings, name))]
        environment = os.environ | {"XDG_RUNTIME_DIR": theirs}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, **pipes, text=True, env=environment) as other:
            try:
                assert other.stdout is not None
                address = other.stdout.readline().split(" at ")[1].split()[0]
                compare(options, model, address)
            finally:
                other.terminate()


def compare(options: argparse.Namespace, model: lm.Cached, address: str) -> None:
    """Train, send each batch of requests again to the bare server, and print the ratio."""
    run, bare = Side(), Side()
    asked: list[tuple[str, dict[str, Any]]] = []
    paused = 0.0
    stream, send = LlamaModel.stream, Line.send
    pool = ThreadPoolExecutor(model.model.settings.slots)

    async def recorded(line: Line, request: Any, *more: Any, **named: Any) -> Any:
        asked.append((request.path, request.body))
        read = request.read

        def reading(reply: Any) -> Any:
            run.read(reply)
            return read(reply)

        return await send(line, request._replace(read=reading), *more, **named)

    def alternating(llama: LlamaModel, *questions: Any) -> Iterator[Any]:
        nonlocal paused
        begin = time.perf_counter()
        yield from stream(llama, *questions)
        middle = time.perf_counter()
        run.spans.append((begin - paused, middle - paused))
        for reply in pool.map(lambda some: post(address, *some), asked):
            bare.read(reply)
        asked.clear()
        end = time.perf_counter()
        bare.spans.append((middle, end))
        paused += end - middle

    LlamaModel.stream, Line.send = alternating, recorded  # type: ignore[method-assign, assignment]
    try:
        with tempfile.TemporaryDirectory() as out:
            hunch.train(
                "dqn-prior",
                options.env,
                steps=options.steps,
                lm=model,
                streams=Streams(envs=options.streams),
                out=Path(out) / "run",
                warmup=options.streams,
                prior=PriorConfig(way="structured"),
            )
    finally:
        LlamaModel.stream, Line.send = stream, send  # type: ignore[method-assign]
        pool.shutdown()
    whole = run.spans[-1][1] - run.spans[0][0]
    rates = [count(address, side.words) / side.busy for side in (run, bare)]
    # The requests of a batch are the same, so the seconds of both sides can be compared.
    seconds = [[end - begin for begin, end in side.spans] for side in (run, bare)]
    by_batch = [theirs / ours for ours, theirs in zip(*seconds, strict=True)]
    print(
        f"{model.name}, {options.env}, {options.streams} streams, {options.steps} steps: {run.requests} "
        f"requests with {len(run.words)} texts in {len(run.spans)} batches\n"
        f"run {rates[0]:.1f} tokens/s, bare server {rates[1]:.1f}, ratio {rates[0] / rates[1]:.2f}; by batch "
        f"{statistics.median(by_batch):.2f} ({min(by_batch):.2f} to {max(by_batch):.2f})\n"
        f"the model waits {1 - run.busy / whole:.1%} of the run ({whole - run.busy:.1f} of {whole:.0f} s)"
    )


def waits(options: argparse.Namespace, model: lm.Cached) -> None:
    """Train with questions ahead and without, in turns; print the shares of time in which the model waits."""
    spans: list[tuple[float, float]] = []
    stream = LlamaModel.stream

    def timed(llama: LlamaModel, *questions: Any) -> Iterator[Any]:
        begin = time.perf_counter()
        yield from stream(llama, *questions)
        spans.append((begin, time.perf_counter()))

    LlamaModel.stream = timed  # type: ignore[method-assign, assignment]
    try:
        for turn in range(options.turns):
            for ahead in (False, True):
                spans.clear()
                with tempfile.TemporaryDirectory() as out:
                    result = hunch.train(
                        "dqn-prior",
                        options.env,
                        steps=options.steps,
                        seed=turn,
                        lm=lm.Cached(model.model),  # with a memory of its own
                        streams=Streams(envs=options.streams),
                        out=Path(out) / "run",
                        warmup=options.streams,
                        update_every=1,
                        batch_size=512,
                        ahead=ahead,
                        prior=PriorConfig(way="structured"),
                    )
                whole = spans[-1][1] - spans[0][0]
                idle = whole - sum(end - begin for begin, end in spans)
                kind = "ahead" if ahead else "in turn"
                calls = result.usage["calls"]
                waited = f"{idle / whole:.1%} of the run ({idle:.1f} of {whole:.0f} s, {calls} calls)"
                print(f"{kind}, seed {turn}: the model waits {waited}", flush=True)
    finally:
        LlamaModel.stream = stream  # type: ignore[method-assign]


def post(address: str, path: str, body: dict[str, Any]) -> Any:
    """Send a request and return the reply."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3600) as reply:
        return json.load(reply)


def count(address: str, texts: list[str]) -> int:
    """Return the number of tokens of texts by the model's own tokenizer, with their ends."""
    route = address.removesuffix("/v1")
    return sum(len(post(route, "/tokenize", {"content": text})["tokens"]) + 1 for text in texts)


if __name__ == "__main__":
    main()
