"""Trained agents with other models in their role: the table is of the evaluations, and these are kept."""

import json

import numpy as np
import pytest

from hunch.core import HunchError
from hunch.rl.statistics import Estimate
from hunch.runs.compare import Arm, Job
from hunch.runs.evaluate import Score
from hunch_studies.priors import dqn_prior
from hunch_studies.study import Part, Scale, Study, conduct
from hunch_studies.transfer import Filling, Transfer, lines, section

RULE = "scripted:frozenlake"
TRANSFER = Transfer(
    (Filling("never wrong", RULE, 1), Filling("always wrong", f"{RULE}?error=1", 1)), 3, {"max_steps": 2}
)


def score(tried, value):
    return Score(
        tasks=tried.place,
        episodes=3,
        success=Estimate(value, 0.0, 1.0),
        episode_return=value,
        usage={"calls": 10, "cache_hits": 1, "prompt_tokens": 5, "completion_tokens": 2},
        seconds=60.0,
        evidence="L0",
    )


def test_a_line_is_over_the_seeds_of_one_filling(tmp_path):
    runs = [Job(Arm("DQN-Prior", None), seed, tmp_path / str(seed)) for seed in range(3)]
    tries = TRANSFER.tries(runs, tmp_path)
    assert len({tried.out for tried in tries}) == len(tries) == 2 * 2 * 3
    values = {tried: (0.2 * tried.run.seed if tried.place == "seen" else 0.0) for tried in tries}
    table = lines(TRANSFER, {tried: score(tried, value) for tried, value in values.items()})
    assert [line.prior for line in table] == ["never wrong", "always wrong"]
    for line in table:
        assert line.seeds == 3
        assert line.seen.value == pytest.approx(0.2)
        assert line.seen.low < 0.2 < line.seen.high
        assert line.unseen.value == 0.0
        assert (line.calls, line.tokens, line.seconds) == (60, 42, 360.0)
    text = section(TRANSFER, table, tmp_path)
    assert all(str(line.seen) in text for line in table)
    stored = json.loads((tmp_path / "transfer.json").read_text())
    assert [row["seen"]["value"] for row in stored] == pytest.approx([0.2, 0.2])


def test_without_other_tasks_there_is_no_figure_for_them(tmp_path):
    transfer = Transfer(TRANSFER.fillings, 3)
    tries = transfer.tries([Job(Arm("DQN-Prior", None), 0, tmp_path)], tmp_path)
    assert {tried.place for tried in tries} == {"seen"}
    table = lines(transfer, {tried: score(tried, 1.0) for tried in tries[:1]})
    assert [(line.prior, line.unseen) for line in table] == [("never wrong", None)]
    assert np.isnan(table[0].seen.low), "one seed says nothing of the spread"


@pytest.mark.slow
def test_a_study_with_evaluations(tmp_path):
    """Trained for real; a filling that cannot be is told, the others are kept and not played again."""
    arm = dqn_prior(
        "DQN-Prior", "hunch/FrozenLake-v0", RULE, 200, {}, k=2, hidden=16, warmup=50, encoder="bag-of-words"
    )
    reports = []

    def study(*more):
        transfer = Transfer((*TRANSFER.fillings, *more), TRANSFER.episodes, TRANSFER.unseen)
        return Study("mine", "?", "-", "-", lambda scale, data: [Part("Lake", (arm,), transfer)])

    def do(*more):
        reports.clear()
        scale = Scale(seeds=2, share=1.0)
        return conduct(
            study(*more), tmp_path, scale, workers=1, watch=lambda *_: lambda _: None, report=reports.append
        )

    with pytest.raises(HunchError, match=r"4 runs of the study failed, such as unknown, .*no rule 'nobody'"):
        do(Filling("unknown", "scripted:nobody", 1))
    assert len(reports) == 12
    done = {path: path.read_bytes() for path in tmp_path.rglob("evaluation.json")}
    assert len(done) == 8
    page = do().read_text()
    assert {path: path.read_bytes() for path in tmp_path.rglob("evaluation.json")} == done
    one, none = (f"{value} (range of 2 seeds: {value} to {value})" for value in ("1.00", "0.00"))
    assert f"| never wrong | 1 | `{RULE}` | L0 | {one} | {none} |" in page
    assert f"| always wrong | 1 | `{RULE}?error=1` | L0 | {none} |" in page
