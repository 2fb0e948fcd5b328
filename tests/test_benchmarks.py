"""Tables on pages that a benchmark prints from recorded answers are the ones that it prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_shows_the_measured_ways_of_asking():
    command = [sys.executable, str(ROOT / "benchmarks" / "ways.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    page = (ROOT / "docs" / "guides" / "packaged_models.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in printed.splitlines() if line.startswith("| qwen")]
    assert len(rows) > 10
    assert not set(rows) - set(page)
