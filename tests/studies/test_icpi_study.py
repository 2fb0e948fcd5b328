"""The study of ICPI: its lines, its regret table and its picture."""

from dataclasses import replace

import pytest

from hunch.runs.compare import compare, jobs
from hunch.studies import find
from hunch.studies.icpi import DOMAINS, arm, regrets
from hunch.studies.study import FULL, SMOKE


def test_every_domain_has_all_algorithms_and_models(tmp_path):
    parts = find("icpi").parts(replace(FULL, lms=("openai:mine",)), tmp_path)
    assert [part.title for part in parts] == list(DOMAINS)
    for part in parts:
        assert {a.config.method for a in part.arms} == {"icpi", "icpi-no-argmax", "matching", "tabular-q"}
        assert {"pocket", "openai:mine"} <= {a.config.lm for a in part.arms}
        bare = [a for a in part.arms if a.config.env_options == {"hints": False}]
        assert [a.config.lm for a in bare] == ["pocket", "openai:mine"]
    assert find("icpi").seeds >= 8
    assert len(find("icpi").parts(SMOKE, tmp_path)) == 1


@pytest.mark.slow
def test_regret_of_a_model_that_knows_is_less(tmp_path):
    lines = [
        arm("right", "Chain", "icpi", "scripted:icpi-nearest?error=0.0"),
        arm("wrong", "Chain", "icpi", "scripted:icpi-nearest?error=0.5"),
    ]
    compare(jobs(lines, 2, tmp_path), workers=2)
    table = regrets("Chain", lines, 2, tmp_path)
    right, wrong = (float(row.split("|")[3].split()[0]) for row in table.splitlines()[2:4])
    assert right < 0.1 < wrong
    assert (tmp_path / "regret.png").stat().st_size > 5_000
