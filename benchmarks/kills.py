"""Runs that are killed again and again, against the same runs left alone.

Three methods are run in sittings. Each sitting is ended by SIGKILL: at a random moment by the clock, or just
before a random line of the code that writes the folder. What a run came to in the end must be what the
uninterrupted one came to: every tensor of the checkpoint, every line of metrics but for the clock and the
usage, every episode. Then whole comparisons, of which a random worker or the parent is killed.

    python -m benchmarks.kills [kills] [kills of comparisons] [seed]
"""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from benchmarks.told import told

from hunch.methods.prior.dqn_prior import DQNConfig, DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.rl.comparison import difference
from hunch.runs import checkpoints, files, folder, loop, resume
from hunch.runs.checkpoints import BEST, CHECKPOINT, file_of, kept_steps, read_checkpoint
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines
from hunch.runs.stored import finished

LAKE = "hunch/FrozenLake-v0"
WRITERS = {module.__file__ for module in (checkpoints, files, folder, resume)}
RULE = "scripted:frozenlake?error=0.3&malformed=0.1"
SMALL: dict[str, Any] = {"hidden": 16, "warmup": 50, "batch_size": 16, "encoder": "bag-of-words"}
RUNS = {
    "dqn-prior": RunConfig(
        method="dqn-prior",
        env=LAKE,
        lm=RULE,
        steps=300,
        eval_every=50,
        eval_episodes=2,
        options=DQNPriorConfig(k=2, **SMALL),
    ),
    "dqn": RunConfig(
        method="dqn",
        env="hunch/Household-Pick-v0",
        env_options={"games": 2, "max_steps": 20},
        steps=300,
        envs=2,
        keep_every=40,
        keep_last=3,
        options=DQNConfig(**SMALL),
    ),
    "zero-shot": RunConfig(
        method="zero-shot",
        env=LAKE,
        lm=RULE,
        envs=3,
        steps=1500,
        eval_every=300,
        eval_episodes=2,
        options=ZeroShotConfig(),
    ),
}
COMPARISON = [
    *("dqn", "zero-shot", "--env", LAKE, "--lm", RULE, "--steps", "600", "--seeds", "2", "--workers", "2"),
    *("--dqn.hidden", "16", "--dqn.warmup", "50", "--dqn.batch-size", "16", "--dqn.encoder", "bag-of-words"),
]
CLOCK = ("seconds", "usage", "models")


@dataclass(frozen=True)
class Blow:
    """When a sitting is killed: so many seconds after it began, or at so many lines of the folder's code."""

    seconds: float | None = None
    lines: int | None = None

    def aim(self) -> None:
        """Arrange for this process to be killed."""
        if self.seconds is not None:
            timer = threading.Timer(self.seconds, _die)
            timer.daemon = True
            timer.start()
        else:
            sys.settrace(self._trace)

    def _trace(self, frame: Any, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in WRITERS:
            return None
        if event == "line":
            object.__setattr__(self, "lines", (self.lines or 0) - 1)
            if self.lines == 0:
                _die()
        return self._trace


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sitting(config: RunConfig, out: Path, blow: Blow | None) -> None:
    """Go on with a run, saving it at every line of metrics, until the blow falls."""
    loop.CHECKPOINT_SECONDS = 0.02
    if blow:
        blow.aim()
    execute(config, out)


def sit(config: RunConfig, out: Path, blow: Blow | None = None) -> tuple[bool, float]:
    """One sitting in a process of its own: whether it was killed, and its seconds."""
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["hunch.runs.execute", "torch"])
    start = time.monotonic()
    process = context.Process(target=sitting, args=(config, out, blow))
    process.start()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        raise SystemExit(f"A sitting of {out} ended with {process.exitcode} instead of a kill.")
    return process.exitcode != 0, time.monotonic() - start


def differences(first: Path, second: Path) -> list[str]:
    """What differs between two runs' folders, but for the clock and the usage."""
    found = []
    if (first / "episodes.jsonl").read_bytes() != (second / "episodes.jsonl").read_bytes():
        found.append("episodes.jsonl")
    lines = [
        [{k: v for k, v in line.items() if k not in CLOCK} for line in read_lines(path / "metrics.jsonl")]
        for path in (first, second)
    ]
    if not same(*lines):
        found.append("metrics.jsonl")
    kept = {step: file_of(step) for path in (first, second) for step in kept_steps(path)}
    for which in (CHECKPOINT, BEST, *kept.values()):
        states = [read_checkpoint(path, which) or {} for path in (first, second)]
        names = (states[0].keys() | states[1].keys()) - {*CLOCK, "offsets"}
        found += [f"{which}: {n}" for n in sorted(names) if not same(*(s.get(n) for s in states))]
    results = [finished(path) for path in (first, second)]
    if None in results or not same(*(list(map(astuple, r.episodes)) for r in results if r)):
        found.append("summary.json")
    return found


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, tensors and the order of keys included, whatever holds them; nan equals nan."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return difference(a, b) is None


def kill(
    config: RunConfig, whole: Path, out: Path, seed: int, seconds: float, most: int = 5
) -> Iterator[list[str]]:
    """Kill runs of these settings; after each kill yield what had gone wrong by the end of its run.

    A run is killed so many times at most, then finished and compared with the whole one, which took these
    seconds and passed some 60 lines of the folder's code for each line of its metrics.
    """
    rng = random.Random(seed)
    lines = 60 * len(read_lines(whole / "metrics.jsonl"))
    number = 0
    while True:
        part = out / f"{config.method}-{number}"
        struck = 0
        while struck < most:
            blow = (
                Blow(seconds=rng.uniform(0.02, 0.6 * seconds))
                if rng.random() < 0.5
                else Blow(lines=rng.randint(1, lines // 2))
            )
            if not sit(config, part, blow)[0]:
                break
            struck += 1
        sit(config, part)
        found = differences(whole, part)
        yield from [found] * struck
        number += 1


def runs(kills: int, seed: int, out: Path) -> int:
    """Kill runs of all methods in turn; print what came of it and return how many kills left a trace."""
    wrong = 0
    for index, (name, config) in enumerate(RUNS.items()):
        whole = out / name
        _, seconds = sit(config, whole)
        share = kills // len(RUNS) + (index < kills % len(RUNS))
        struck = kill(config, whole, out / f"{name}-killed", seed + index, seconds)
        found = [next(struck) for _ in range(share)]
        bad = [trace for trace in found if trace]
        print(f"{name:10} {share:3} kills, {share - len(bad)} identical {bad or ''}", flush=True)
        wrong += len(bad)
    return wrong


def comparisons(kills: int, seed: int, out: Path) -> int:
    """Kill workers and parents of comparisons; return how many comparisons ended in another result."""
    rng = random.Random(seed)
    command = [sys.executable, "-m", "hunch", "compare", *COMPARISON, "--out"]
    start = time.monotonic()
    subprocess.run([*command, str(out / "whole")], check=True, capture_output=True)
    seconds, wrong = time.monotonic() - start, 0
    for number in range(kills):
        part, parent = out / str(number), number % 2 == 0
        process = subprocess.Popen(
            [*command, str(part)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.4, 0.9) * seconds)
        strike(process, parent, rng)
        process.wait()
        done = subprocess.run([*command, str(part)], capture_output=True, text=True)
        found = [done.stdout + done.stderr] if done.returncode else []
        folders = sorted(path.parent.relative_to(part) for path in part.rglob("config.json"))
        found += [f"{f}: {d}" for f in folders for d in differences(out / "whole" / f, part / f)]
        print(
            f"comparison {number}: {'parent' if parent else 'worker'} killed; {found or 'identical'}",
            flush=True,
        )
        wrong += bool(found)
    return wrong


def strike(process: subprocess.Popen[bytes], parent: bool, rng: random.Random) -> None:
    """Kill a comparison, or one of its workers: they are the grandchildren, below the fork server."""
    workers = [pid for child in children(process.pid) for pid in children(child)]
    victims = [process.pid] if parent or not workers else [rng.choice(workers)]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)


def children(parent: int) -> list[int]:
    """The processes that a process has begun (Linux)."""
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in path.read_text(encoding="utf-8").split()] if path.exists() else []


def main(kills: int, of_comparisons: int, seed: int) -> None:
    memory = "/dev/shm" if Path("/dev/shm").exists() else None  # kills, not the disk, are what is tested
    with tempfile.TemporaryDirectory(dir=memory) as name:
        out = Path(name)
        os.environ["HUNCH_CACHE"] = str(out / "answers.sqlite")
        wrong = runs(kills, seed, out / "runs")
        wrong += comparisons(of_comparisons, seed, out / "comparisons")
    print(f"{kills + of_comparisons} kills, {wrong} left a trace")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    told(__doc__)
    main(*(int(text) for text in [*sys.argv[1:], *("100", "10", "0")[len(sys.argv) - 1 :]][:3]))
