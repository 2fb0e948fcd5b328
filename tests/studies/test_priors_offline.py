"""The study of recorded data: what it learns from, and which checkpoint it tells."""

import json
import shutil
from dataclasses import replace

import pytest

from hunch.rl.dataset import load
from hunch.runs.resolve import resolve
from hunch_studies.priors_offline import GOOD, _pick_published, _salad_published, checkpoints, evaluated
from hunch_studies.study import SMOKE


def prepared(part):
    part.prepare()
    return part


def test_the_lines_have_the_papers_data_and_settings(tmp_path):
    part = prepared(_salad_published(SMOKE, tmp_path))
    for arm in part.arms:
        resolve(arm.config)
        assert arm.config.options.max_norm == 1.0
        assert arm.config.method == "bc" or arm.config.options.gamma == 0.99
        assert not arm.config.lm or arm.config.options.proposals == "visited"
    data = load(part.arms[0].config.data)
    good = sum(len(e) for e in data.episodes if e.behaviour == "oracle") / len(data)
    assert good == pytest.approx(GOOD, abs=0.01)
    assert data.env_options == {"history": 3, "max_steps": 51}


def test_every_prior_of_pick_has_its_lexical_control(tmp_path):
    arms = prepared(_pick_published(SMOKE, tmp_path)).arms
    for arm in arms:
        resolve(arm.config)
    data = load(arms[0].config.data)
    assert all(episode.success for episode in data.episodes[:-1])  # the last one is cut
    assert {"minilm", "words", "uniform"} <= {arm.config.lm for arm in arms}


def test_last_and_best_checkpoint(tmp_path):
    """Of the evaluations after 10 and 20 updates the first is the better one of the first seed."""
    for seed, returns in enumerate(([(10, 1.0), (10, 0.0), (20, 0.2), (20, 0.2)], [(10, 0.1), (20, 0.4)])):
        run = tmp_path / "cql" / f"seed-{seed}"
        run.mkdir(parents=True)
        lines = [{"evaluation": True, "step": step, "return": value} for step, value in returns]
        lines.append({"evaluation": False, "step": 20, "return": 9.0})
        (run / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (run / "summary.json").write_text("{}")
    assert evaluated(tmp_path / "cql" / "seed-0") == {10: 0.5, 20: 0.2}
    (tmp_path / "cql" / "seed-2").mkdir()  # a run that is not complete
    shutil.copytree(tmp_path / "cql" / "seed-0", tmp_path / "bc" / "seed-0")
    arms = [arm for arm in _salad_published(SMOKE, tmp_path).arms if arm.label == "BC"]
    arms.append(replace(arms[0], label="CQL"))
    _, _, of_bc, of_cql, *_, lead = checkpoints(
        [("CQL", "BC"), ("BC", "soup")], arms, 3, tmp_path
    ).splitlines()
    assert of_bc == "| BC | 0.20 | 0.50 | 10 |"
    best = "0.45 (range of 2 seeds: 0.40 to 0.50)"
    assert of_cql == f"| CQL | 0.30 (range of 2 seeds: 0.20 to 0.40) | {best} | 15 |"
    assert lead == "| CQL | BC | 0.00 | 0.00 |", "an arm that was not run has no lead"
