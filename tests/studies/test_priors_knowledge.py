"""The study of what an encoder knows beyond words: paired by pool, kept between sittings, tuned elsewhere."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

from hunch.runs.files import read_lines
from hunch_studies.priors_knowledge import (
    ENCODER,
    MODELS,
    REPORTED,
    TEMPERATURES,
    TUNING,
    Shot,
    Size,
    chosen,
    play_shots,
    table,
)


def test_nothing_is_reported_that_was_chosen_on() -> None:
    assert not set(TUNING) & set(REPORTED)
    assert len(REPORTED) == 20


def test_what_was_played_is_not_played_again(tmp_path: Path) -> None:
    shot = Shot("words", "uniform", 3, 0.1, 4)
    first = play_shots([shot], tmp_path / "z.jsonl")
    (stored,) = read_lines(tmp_path / "z.jsonl")
    assert stored == {"key": list(astuple(shot)), "success": first[shot]}
    (tmp_path / "z.jsonl").write_text(json.dumps({**stored, "success": 0.123}) + "\n")
    assert play_shots([shot], tmp_path / "z.jsonl") == {shot: 0.123}


def test_the_temperature_is_the_best_on_the_pools_for_tuning(tmp_path: Path) -> None:
    size = Size((100, 101), (20,), (), {True: 4, False: 4}, 200)
    known = [
        {
            "key": [model, placement, pool, t, 4],
            "success": (0.9 if t == TEMPERATURES[2] else 0.1) + 0.01 * (pool == 100),
        }
        for model in MODELS
        for placement in ("typical", "uniform")
        for pool in size.tuning
        for t in TEMPERATURES
    ]
    (tmp_path / "z.jsonl").write_text("".join(json.dumps(row) + "\n" for row in known))
    assert set(chosen(size, tmp_path / "z.jsonl").values()) == {TEMPERATURES[2]}


def test_the_lead_is_over_the_pools_that_both_played() -> None:
    found = {(ENCODER, "typical"): {1: 0.5, 2: 0.7, 3: 0.9}, ("words", "typical"): {1: 0.4, 2: 0.5}}
    lines = table(found, dict.fromkeys(found, 0.1)).splitlines()
    assert "| 3 | 0.70 |  |" in lines[2]
    assert "| 2 | 0.45 | 0.15 [" in lines[3]
    assert lines[-1] == "- minilm, typical (L3) over words: not shown."


def test_the_verdict_turns_with_the_pools() -> None:
    ours = {pool: 0.5 + 0.01 * pool for pool in range(6)}
    found = {(ENCODER, "typical"): ours, ("words", "typical"): {pool: s - 0.1 for pool, s in ours.items()}}
    found |= {("tfidf", "typical"): {pool: 1.2 - s for pool, s in ours.items()}}
    told = table(found, dict.fromkeys(found, 0.1))
    assert "- minilm, typical (L3) over words: shown; over tfidf: not shown." in told
