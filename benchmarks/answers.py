"""The file of answers: how fast it is looked up, and that nothing is asked twice through faults and kills.

    python benchmarks/answers.py lookup [answers]      # one by one from disk, of a million
    python benchmarks/answers.py samples               # 500 to 8,000 samples of one prompt, singly
    python benchmarks/answers.py kills [requests] [kills]    # 10,000 requests, four processes, eight kills

``kills`` asks a local server of the tests that fails 35 % of its requests in ten ways. Four processes want
the same answers in different orders; now and then one is killed and started anew. In the end every process
must have every answer, each of them the server's, and the surplus is what the server answered more than once.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hunch import lm
from hunch.lm.answers.store import Source, Store
from hunch.lm.backends import http
from told import told

TESTS = Path(__file__).parents[1] / "tests" / "lm"
PROCESSES, SHARE = 4, 0.35
SHORT = lm.Sampling(max_tokens=2)


def main() -> None:
    kind, *more = sys.argv[1:] or ["lookup"]
    with tempfile.TemporaryDirectory() as place:
        {"lookup": lookup, "samples": samples, "kills": kills}[kind](Path(place), *map(int, more))


def filled(path: Path, n: int, request: Callable[[int], str], sample: Callable[[int], int]) -> Store:
    store, source = Store(path), Source("generate", "benchmark", "1")
    for start in range(0, n, 10_000):
        rows = range(start, min(start + 10_000, n))
        store.write({(request(i), sample(i)): json.dumps(f"answer {i}") for i in rows}, source)
    return store


def lookup(place: Path, n: int = 1_000_000) -> None:
    store = filled(place / "a.sqlite", n, lambda i: f"{i:064x}", lambda _: 0)
    size = (place / "a.sqlite").stat().st_size / 2**20
    chance = np.random.default_rng(0)
    keys = [(f"{i:064x}", 0) for i in chance.integers(n, size=10_000)]
    start = time.perf_counter()
    for key in keys:
        assert len(store.read([key])) == 1
    one = (time.perf_counter() - start) / len(keys)
    start = time.perf_counter()
    for at in range(0, len(keys), 32):
        assert store.read(keys[at : at + 32])
    many = (time.perf_counter() - start) / len(keys)
    print(f"{n:,} answers, {size:.0f} MB: {one * 1e6:.0f} us a look-up, {many * 1e6:.0f} us of 32 at once")


def samples(place: Path) -> None:
    print("samples of one prompt   us each, read singly")
    for n in (500, 2000, 8000):
        store = filled(place / f"{n}.sqlite", n, lambda _: "prompt", lambda i: i)
        start = time.perf_counter()
        for i in range(n):
            assert store.read([("prompt", i)])
        print(f"{n:23,} {(time.perf_counter() - start) / n * 1e6:15.0f}")


def kills(place: Path, n: int = 10_000, most: int = 8) -> None:
    sys.path.insert(0, str(TESTS))
    from server import FAULTS, Server

    from conftest import save_model

    save_model(place / "gpt2", "gpt2")
    server: Any = Server({"gpt2": place / "gpt2"})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asked = [f"Room {i}.\nAction:" for i in range(n)]
    load(server.url, place)
    server.answered.clear()
    server.share, server.faults = SHARE, FAULTS
    context, chance, begin = multiprocessing.get_context("spawn"), random.Random(0), time.monotonic()

    def start(number: int) -> Any:
        worker = context.Process(target=work, args=(server.url, place, number, asked))
        worker.start()
        return worker

    workers, killed = [start(number) for number in range(PROCESSES)], 0
    while any(worker.is_alive() for worker in workers):
        time.sleep(chance.uniform(4, 8))
        number = chance.randrange(PROCESSES)
        if killed < most and workers[number].is_alive():
            workers[number].kill()
            workers[number].join()
            workers[number], killed = start(number), killed + 1
    seconds = time.monotonic() - begin
    assert all(worker.exitcode == 0 for worker in workers)
    told = [json.loads((place / f"{number}.json").read_text(encoding="utf-8")) for number in range(PROCESSES)]
    server.share = 0.0
    right = load(server.url, place, cache=False).generate(asked[:200], sampling=SHORT)
    answers = [number for body, number in server.answered.items() if "Room" in body]
    surplus = sum(answers) - len(answers) - 200  # those just asked again, to compare
    print(f"{n:,} requests, {PROCESSES} processes, {killed} kills, {seconds:.0f} s; met {dict(server.met)}")
    print(f"all processes agree: {all(own == told[0] for own in told)}; right: {told[0][:200] == right}")
    print(f"answered more than once: {surplus} ({surplus / n:.2%}), killed processes included")


def load(url: str, place: Path, cache: bool = True) -> lm.Cached:
    file = place / "a.sqlite" if cache else None
    return lm.load("openai:gpt2", cache=file, base_url=url, chat=False, retries=60, evidence="L0")


def work(url: str, place: Path, number: int, asked: list[str]) -> None:
    http.FIRST_WAIT = 0.02
    model, turn = load(url, place), number * len(asked) // PROCESSES
    for start in range(0, len(asked), 50):
        part = [asked[(turn + start + i) % len(asked)] for i in range(50)]
        model.generate(part, sampling=SHORT)
    (place / f"{number}.json").write_text(json.dumps(model.generate(asked, sampling=SHORT)), encoding="utf-8")


if __name__ == "__main__":
    told(__doc__)
    main()
