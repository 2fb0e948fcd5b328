"""Tables on pages that a benchmark prints from recorded answers are the ones that it prints."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("benchmark", "least"), [("ways", 20), ("judging", 8)])
def test_the_page_shows_what_was_measured(benchmark, least):
    command = [sys.executable, str(ROOT / "benchmarks" / f"{benchmark}.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    page = (ROOT / "docs" / "guides" / "packaged_models.md").read_text(encoding="utf-8").splitlines()
    rows = [
        line for line in printed.splitlines() if line.startswith(("| qwen", "| smollm2", "| bag-of-words"))
    ]
    assert len(rows) >= least
    assert not set(rows) - set(page)
