"""The demo that trains: what it prints, that it is not done twice, and the ten pools that it tells of."""

import json
from pathlib import Path

import pytest

from hunch_studies import demo

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_it_says_what_was_seen_and_what_is_next(tmp_path, capsys):
    out = tmp_path / "demo"
    demo.main(["--steps", "120", "--out", str(out)])
    said = capsys.readouterr().out
    assert all(said.count(label) >= 2 for label in demo.MEANING)
    assert "Seen: among MiniLM's proposals" in said
    assert f"hunch report {out}" in said
    assert (out / "curves.png").exists()
    metrics = sorted(out.glob("*/seed-0/metrics.jsonl"))
    assert len(metrics) == 3
    written = [path.stat().st_mtime_ns for path in metrics]
    demo.main(["--steps", "120", "--out", str(out)])  # what is done is not done again
    assert [path.stat().st_mtime_ns for path in metrics] == written


def test_no_pool_and_no_step_are_refused(tmp_path, capsys):
    for wrong in ("--pools", "--steps"):
        with pytest.raises(SystemExit) as ended:
            demo.main([wrong, "0", "--out", str(tmp_path / "demo")])
        assert ended.value.code == 2
    assert capsys.readouterr().err.count("at least one pool and one step") == 2


def test_proposals_that_do_not_help_are_not_praised():
    level = dict.fromkeys(demo.MEANING, (0.2, 0.3))
    said = " ".join(demo.sentences(level, {label: {0: pair} for label, pair in level.items()}))
    assert "did not help here" in said
    ahead = level | {"dqn-prior": (0.2, 0.6)}
    said = " ".join(demo.sentences(ahead, {label: {0: pair} for label, pair in ahead.items()}))
    assert "did not help" not in said


def test_no_line_is_wider_than_a_terminal():
    means = dict.fromkeys(demo.MEANING, (0.25, 0.75))
    one = demo.sentences(means, {label: {0: pair} for label, pair in means.items()})
    two = demo.sentences(means, {label: {0: pair, 1: pair} for label, pair in means.items()})
    assert max(map(len, one + two)) <= 80


@pytest.mark.parametrize(("file", "pools", "steps"), [("demo-pools", 10, demo.STEPS), ("demo", 5, 9_000)])
def test_the_pools_that_it_tells_of_are_those_of_the_rows(file, pools, steps):
    rows = json.loads((ROOT / "docs" / "assets" / "studies" / f"{file}.json").read_text())
    by_label = {row["label"]: row for row in rows}
    dqn, prior = by_label["dqn"], by_label["dqn-prior"]
    assert dqn["steps"] == prior["steps"] == steps
    assert set(dqn["by_seed"]) == set(prior["by_seed"]) == set(map(str, range(pools)))
    assert all(prior["by_seed"][pool] > dqn["by_seed"][pool] for pool in dqn["by_seed"])
    assert f"{pools} of {pools}" in " ".join(demo.MEASURED)
