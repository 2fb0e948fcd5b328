"""The table of abilities: a model that knows the rules is always right, one that is often wrong is not."""

import numpy as np
import pytest

from hunch.cli.main import main
from hunch.core import UsageError
from hunch.lm import load
from hunch_studies.abilities import DOMAINS, PIECES, SHOWN, Steps, measure


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_model_that_knows_the_rules_is_right(domain):
    found = list(measure(load("scripted:icpi", cache=None), domains=[domain], questions=6))
    assert [(a.piece, a.shown) for a in found] == [(piece, n) for piece in PIECES for n in SHOWN]
    assert {a.share.value for a in found if a.piece != "action"} == {1.0}


def test_errors_are_seen():
    found = measure(load("scripted:icpi?error=0.5", cache=None), domains=["Maze"], questions=40)
    shares = [a.share.value for a in found if a.piece == "end"]
    assert 0.35 < np.mean(shares) < 0.65


def test_questions_repeat():
    prompts = [
        [
            Steps("Maze", np.random.default_rng(3), 20).question(piece, 8, load("uniform")).prompt
            for piece in PIECES
        ]
        for _ in range(2)
    ]
    assert prompts[0] == prompts[1]


def test_outcomes_are_asked_for_equally_often():
    steps = Steps("Chain", np.random.default_rng(0), 60)
    shown = [steps.question("reward", 8, load("uniform")).prompt for _ in range(40)]
    assert any("reward == 1" in prompt and "reward == 0" in prompt for prompt in shown)


def test_the_best_play_is_the_best():
    steps = Steps("Maze", np.random.default_rng(0), 40)
    assert all(step.reward == 1 for step in steps.best if step.done)
    assert sum(step.done for step in steps.best) >= 10


def test_a_model_that_cannot_write_is_refused():
    with pytest.raises(UsageError, match="generate"):
        next(measure(load("minilm"), questions=1))


def test_the_study_writes_a_table_without_a_run(tmp_path, capsys):
    main(["study", "abilities", "--smoke", "--lm", "scripted:icpi", "--out", str(tmp_path)])
    page = (tmp_path / "page.md").read_text()
    assert "| next state | 1.00 [" in page
    assert "`scripted:icpi`, evidence L0" in page
    assert "over seeds" not in page
