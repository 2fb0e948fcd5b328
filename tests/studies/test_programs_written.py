"""FunSearch and generalised planning with a real model: arms and tables."""

import json

import pytest

from hunch_studies.programs_written import (
    BEST_OF_N,
    BLANK,
    DOMAINS,
    FUNSEARCH_BEDS,
    GAMES,
    ISLANDS,
    POLICY_BEDS,
    REFINED,
    by_chance,
    funsearch_arms,
    game_arms,
    planning_arms,
    policy_arms,
    random_priorities,
    recorded,
    unwritten,
)


def test_arms_differ_in_what_is_compared_alone():
    for bed in FUNSEARCH_BEDS.values():
        by_label = {arm.label: arm.config for arm in funsearch_arms(bed, "model", 64)}
        assert {config.steps for config in by_label.values()} == {64}
        blank = by_label[f"{ISLANDS}, {BLANK}"]
        assert blank.options == by_label[ISLANDS].options
        assert blank.env_options == {**bed.options, "blank": True}
        assert by_label[BEST_OF_N].options.request == by_label[ISLANDS].options.request == "paper"
    for bed in POLICY_BEDS.values():
        by_label = {arm.label: arm.config for arm in policy_arms(bed, "model", 16)}
        assert {config.steps for config in by_label.values()} == {16}
        blank = by_label[f"{BEST_OF_N}, {BLANK}"]
        assert blank.options == by_label[BEST_OF_N].options
        assert blank.env_options == {**bed.options, "blank": True}
    for domain in DOMAINS:
        by_label = {arm.label: arm.config for arm in planning_arms(domain, "model")}
        assert {config.steps for config in by_label.values()} == {5}
        assert by_label[f"{BEST_OF_N}, {BLANK}"].options == by_label[BEST_OF_N].options
    for game in GAMES:
        by_label = {arm.label: arm.config for arm in game_arms(game, "model", 8)}
        assert {config.steps for config in by_label.values()} == {8}
        blank = by_label[f"{BEST_OF_N}, {BLANK}"]
        assert blank.options == by_label[BEST_OF_N].options
        assert blank.env_options == {"game": game, "blank": True}


def test_random_priorities_are_those_of_a_seed():
    row = random_priorities(3, 16, 0)
    assert row == random_priorities(3, 16, 0)
    assert row["best"][16] == row["unseen"] <= 9
    assert row != random_priorities(3, 16, 1) or row["unseen"] == 9


def test_walks_by_chance_solve_some_held_out_problems_only():
    assert max(by_chance("ferry").values()) < 0.5


def test_recorded_rows_have_leads_paired_by_seed(tmp_path):
    rows = [
        {
            **{"part": "ferry", "arm": arm, "seed": seed, "best": {}, "unseen": base + lead},
            **{"failed": 0.5, "copies": 0.0, "program": "", "tokens": 10},
        }
        for arm, lead in ((ISLANDS, 0.25), (BEST_OF_N, 0.0))
        for seed, base in enumerate((0.1, 0.7))
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    head, _, first, second = recorded(file).splitlines()[2:]
    assert head.endswith("ahead of best of n by |")
    assert first.split("|")[-2].strip() == "0.25 [0.25, 0.25]"
    assert second.split("|")[-2].strip() == ""
    assert first.split("|")[3].strip() == "50%"


def test_functions_in_which_nothing_changes_pass_few_tests_and_know_no_position():
    for game in GAMES:
        row = unwritten(game)
        assert 0 < row["fitness"][0] < 0.05
        assert row["unseen"] == 0.0


def test_programs_of_games_are_counted_by_what_became_of_them(tmp_path):
    row = {
        **{"part": "kuhn", "arm": REFINED, "seed": 0, "best": {}, "unseen": 0.0},
        **{"failed": 0.6, "copies": 0.0, "program": "", "tokens": 10},
        "fitness": [None, None, None, 0.0, 0.5],
        "errors": [
            "it does not define the function returns",
            "ValueError: no",
            "the answer holds no code",
            "",
            "",
        ],
    }
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row) + "\n")
    assert recorded(file).splitlines()[-1] == f"| {REFINED} | 5 | 1 | 0 | 1 | 1 | 1 | 1 | 0.50 |"


def test_arms_without_a_seed_in_common_have_a_table_without_numbers(tmp_path):
    shared = {"part": "kuhn", "best": {8: 0.5}, "unseen": 0.1, "failed": 0.5, "copies": 0.0, "tokens": 10}
    rows = [{**shared, "arm": arm, "seed": seed} for seed, arm in enumerate((ISLANDS, BEST_OF_N))]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    *_, first, second = recorded(file).splitlines()
    assert [line.split("|")[2].strip() for line in (first, second)] == ["-", "-"]


@pytest.mark.parametrize("n", [4, 6])
def test_a_set_of_random_priorities_is_a_cap_set_no_larger_than_known(n):
    assert random_priorities(n, 2, 0)["unseen"] <= {4: 20, 6: 112}[n]
