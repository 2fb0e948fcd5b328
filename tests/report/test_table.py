"""The verdict below a table: what the seeds at hand show, and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hunch.report.table import Row, verdict, write
from hunch.rl.statistics import above, over_seeds


def row(label: str, model: str, evidence: str, *scores: float) -> Row:
    return Row(
        label=label,
        environment="e",
        model=model,
        evidence=evidence,
        seeds=len(scores),
        steps=1,
        success=over_seeds(scores),
        returns=over_seeds(scores),
        area=over_seeds(scores),
        steps_to_half=None,
        by_seed=dict(enumerate(scores)),
        requests={"action prior": 7} if model != "none" else {},
        calls=0,
        hits=0,
        tokens=0,
        model_seconds=0.0,
        seconds=0.0,
    )


TABLE = (
    row("dqn", "none", "-", 0.0, 0.1, 0.05),
    row("dqn-prior", "minilm", "L3", 0.7, 0.75, 0.73),
    row("dqn-prior, random k", "uniform", "L0", 0.0, 0.1, 0.0),
    row("dqn-prior, words", "words", "L0", 0.64, 0.66, 0.72),
)


def test_the_verdict_says_yes_and_no() -> None:
    """Above all seeds of two lines, and not above all of the lexical control."""
    assert verdict(TABLE) == [
        "dqn-prior (L3) beats dqn: yes; beats dqn-prior, random k: yes; beats dqn-prior, words: no"
    ]


def test_each_of_several_models_has_a_verdict() -> None:
    """A model of a lower evidence level has one, too; controls have none."""
    writes = row("dqn-prior, pocket", "pocket", "L1", 0.9, 0.95, 0.93)
    assert verdict([*TABLE[1:], writes]) == [
        "dqn-prior (L3) beats dqn-prior, random k: yes; beats dqn-prior, words: no; "
        "beats dqn-prior, pocket: no",
        "dqn-prior, pocket (L1) beats dqn-prior: yes; beats dqn-prior, random k: yes; "
        "beats dqn-prior, words: yes",
    ]


def test_the_verdict_turns_with_the_data() -> None:
    worse = row("dqn-prior", "minilm", "L3", 0.7, 0.75, 0.05)
    assert verdict([*TABLE[:1], worse, *TABLE[2:]]) == [
        "dqn-prior (L3) beats dqn: no; beats dqn-prior, random k: no; beats dqn-prior, words: no"
    ]
    two = [row(r.label, r.model, r.evidence, *list(r.by_seed.values())[:2]) for r in TABLE]
    assert verdict(two)[0].startswith("dqn-prior (L3) beats dqn: no verdict from 2 seeds, lead 0.67; ")
    one = [row(r.label, r.model, r.evidence, r.by_seed[0]) for r in TABLE[:2]]
    assert verdict(one) == ["dqn-prior (L3) beats dqn: no verdict from 1 seed, lead 0.70"]


def test_below_five_seeds_the_ranges_must_be_disjoint() -> None:
    """Four seeds with one overlap pass the rank-sum test (p = 0.03) and not this; five go by the test."""
    others = (0.1, 0.2, 0.3, 0.5)
    assert not above((0.4, 0.6, 0.7, 0.8), others)
    assert above((0.51, 0.6, 0.7, 0.8), others)
    assert above((0.4, 0.6, 0.7, 0.8, 0.9), (*others, 0.0))
    assert not above((0.51, 0.6, 0.7, 0.8), (*others, 0.52))
    assert not above((0.3, 0.3, 0.3), (0.3, 0.3, 0.3))


def test_where_games_vary_with_the_seed_runs_in_the_same_games_are_compared() -> None:
    """Pools differ more than methods do; a run without a partner does not count."""
    own = row("dqn-prior", "minilm", "L3", 0.3, 0.5, 0.7, 0.8, 0.95)
    words = row("dqn-prior, words", "words", "L0", 0.2, 0.41, 0.59, 0.7, 0.86, 1.0)
    assert verdict([own, words]) == ["dqn-prior (L3) beats dqn-prior, words: no"]
    paired = [replace(each, varies=True) for each in (own, words)]
    assert verdict(paired) == ["dqn-prior (L3) beats dqn-prior, words: yes, by 0.10 [0.09, 0.11]"]
    worse = replace(paired[1], by_seed={0: 0.2, 1: 0.61, 2: 0.59, 3: 0.7, 4: 0.86})
    assert verdict([paired[0], worse]) == ["dqn-prior (L3) beats dqn-prior, words: no, by 0.06 [-0.06, 0.17]"]
    alone = replace(paired[1], by_seed={0: 0.1})
    assert verdict([paired[0], alone]) == [
        "dqn-prior (L3) beats dqn-prior, words: no verdict from 1 seed, lead 0.20"
    ]


def test_without_a_model_nothing_is_claimed() -> None:
    assert verdict([TABLE[0], TABLE[2]]) == []
    assert verdict([TABLE[1]]) == []


def test_it_is_written_beside_the_table(tmp_path: Path) -> None:
    write(TABLE, tmp_path)
    assert (
        (tmp_path / "verdict.txt")
        .read_text()
        .startswith("dqn-prior (L3) beats dqn: yes; beats dqn-prior, random k: yes")
    )
    stored = json.loads((tmp_path / "table.json").read_text())
    assert (stored[1]["requests, action prior"], "requests, action prior" in stored[0]) == (7, False)
    assert stored[1]["by_seed"] == {"0": 0.7, "1": 0.75, "2": 0.73}
    assert (stored[1]["success_low"], stored[1]["success_range_of"]) == (0.7, 3)
