"""How large a report of 50 runs with 20,000 episodes is, and how fast it opens.

Ten real runs of random play, one an arm, each copied under four more seeds. All episodes are replayed, and
six a run explained. The page is opened from disk in headless Chromium, a new one each time.

    python -m benchmarks.report [episodes of a run]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.told import told
from tests.report.chromium import FOUND, Chromium

from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.report.gather import collect
from hunch.report.page import page
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_json, write_json

ARMS, SEEDS, OPENINGS, LONGEST = 10, 5, 5, 50
DRAWN = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000"


def main(episodes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for arm in range(ARMS):
            fabricate(Path(folder), arm, LONGEST * episodes)
        start = time.perf_counter()
        comparisons, _ = collect([Path(folder)])
        text = page(comparisons, [])
        results = [outcome.result for comparison in comparisons for outcome in comparison.outcomes]
        count = sum(len(result.episodes) for result in results if result)
        print(f"{len(results)} runs, {count:,} episodes, {sum(r.steps for r in results if r):,} steps")
        print(f"made in {time.perf_counter() - start:.0f} s, {len(text.encode()) / 1e6:.2f} MB")
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        if FOUND:
            drawn, shown = zip(*(opening(file) for _ in range(OPENINGS)), strict=True)
            print(f"charts drawn after {statistics.median(drawn):.2f} s (slowest {max(drawn):.2f} s)")
            print(f"an episode shown after {statistics.median(shown):.2f} s (slowest {max(shown):.2f} s)")


def fabricate(folder: Path, arm: int, steps: int) -> None:
    """Make a run, and copies of it with other seeds; arms differ in a setting that changes nothing here."""
    options = ZeroShotConfig(prior=PriorConfig(history=arm / ARMS))
    config = RunConfig(
        method="zero-shot",
        env="hunch/Household-Pick-v0",
        lm="uniform",
        steps=steps,
        seed=arm * SEEDS,
        env_options={"games": 8, "max_steps": LONGEST},
        options=options,
    )
    first = folder / f"arm-{arm}" / "seed-0"
    execute(config, first)
    for copy in range(1, SEEDS):
        other = Path(shutil.copytree(first, first.with_name(f"seed-{copy}")))
        record = read_json(other / "config.json") or {}
        record["run"]["seed"] += copy
        write_json(other / "config.json", record)


def opening(file: Path) -> tuple[float, float]:
    """Seconds from the start of the navigation until the charts are drawn, and until an episode is shown."""
    with Chromium() as browser:
        browser.look()
        start = time.perf_counter()
        browser.open(file)
        shown = time.perf_counter() - start
        return browser.js(DRAWN), shown


if __name__ == "__main__":
    told(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
