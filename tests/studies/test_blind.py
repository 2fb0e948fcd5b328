"""Answers that read nothing: each is what it says, and their scores are those of the beds."""

from __future__ import annotations

import pytest

from hunch.runs.foretell import Foretelling, recorded, text_steps
from hunch_studies import blind


def rows(found):
    return {(row.bed, row.answer, row.measure): row.score for row in found}


def test_a_recipe_that_names_no_food_harms_nobody_and_has_most_of_a_writers_gold():
    scores = rows(blind.recipes())
    assert {score for (_, _, measure), score in scores.items() if "harmful" in measure} == {"0.00"}
    assert {score for (_, _, measure), score in scores.items() if measure.startswith("gold")} == {"0.90"}


def test_one_outcome_chosen_by_more_labels_is_right_more_often():
    scores = [float(row.score) for row in blind.verdicts(draws=300)]
    always, by_ten, by_thirty, _ = scores
    assert by_ten < by_thirty <= always


def test_the_spiral_has_more_than_half_of_the_key_and_the_door():
    [row] = blind.key_and_door(episodes=20)
    assert 1.0 < float(row.score.split()[0]) < 1.4


def test_one_plan_does_some_errands_and_not_half_of_them():
    [row] = blind.kitchen(chosen_on=1, scenes=3)
    assert 0.1 < float(row.score.split()[0]) < 0.5


def test_the_usual_change_repeats_what_was_shown_and_else_shifts_the_numbers():
    known = recorded(Foretelling(env="hunch/Chain-v0", examples=16, episodes=2, seed=0), {"hints": False})
    steps = text_steps(known.shown)
    guess = blind.Usual(steps)
    for step in steps:
        assert guess(step.state, step.action) == (step.done, step.reward, step.next_state)
    assert blind.shifted("row 3, column -1", (1, 2)) == "row 4, column 1"
    assert blind.Usual([])("row 3", "up") == (False, 0.0, "row 3"), "without any step nothing changes"


def test_a_cycle_does_not_look():
    act = blind.cycling(("a", "b"))
    assert [act(None) for _ in range(3)] == ["a", "b", "a"]  # type: ignore[arg-type]


def test_a_bed_that_there_is_not_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["blind", "nowhere"])
    with pytest.raises(SystemExit):
        blind.main()
    assert "there is no bed 'nowhere'" in capsys.readouterr().err
