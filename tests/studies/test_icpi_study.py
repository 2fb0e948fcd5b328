"""The study of ICPI: its lines, its regret table and its picture."""

from dataclasses import replace

import pytest
from tests.begun import begun

import hunch
from hunch import lm
from hunch.cli.main import main
from hunch.lm.answers.archive import Archive
from hunch.methods import ICPI
from hunch.runs.compare import compare, jobs
from hunch.runs.files import read_lines
from hunch_studies import find
from hunch_studies.icpi import DOMAINS, NEW, SCRIPTED, arm, regrets, written
from hunch_studies.icpi_answers import ACTION, COPY, END, NEXT_OTHER, NEXT_SHOWN, REWARD, SHOWN, judged
from hunch_studies.study import FULL, SMOKE


def test_every_domain_has_all_algorithms_and_models(tmp_path):
    parts = find("icpi").parts(replace(FULL, lms=("openai:mine",)), tmp_path)
    assert [part.title for part in parts[::2]] == list(DOMAINS)
    assert [part.title for part in parts[1::2]] == [f"{domain} without hints" for domain in DOMAINS]
    for part in parts:
        assert {a.config.method for a in part.arms} == {"icpi", "icpi-no-argmax", "matching", "tabular-q"}
        assert {"pocket", "openai:mine", "uniform"} <= {a.config.lm for a in part.arms}
    assert find("icpi").seeds >= 8
    assert len(find("icpi").parts(SMOKE, tmp_path)) == 2


def test_models_are_compared_and_so_is_how_often_prompts_are_drawn(tmp_path):
    parts = find("icpi-models").parts(replace(FULL, lms=("openai:mine",)), tmp_path)
    assert len({part.folder for part in parts}) == len(parts) == 4
    for by_model, by_prompts in zip(parts[::2], parts[1::2], strict=True):
        assert [a.config.lm for a in by_model.arms] == ["uniform", "openai:mine", "pocket"]
        assert len({a.config.options for a in by_model.arms}) == 1
        lines = {(a.config.lm, a.config.options.prompts) for a in by_prompts.arms}
        assert lines == {(lm, p) for lm, _ in lines for p in ("per-episode", "per-prediction")}
        assert "pocket" in {lm for lm, _ in lines}


def test_each_role_is_filled_by_the_model_and_by_rules(tmp_path):
    parts = find("icpi-roles").parts(replace(FULL, lms=("openai:mine",)), tmp_path)
    assert [part.title for part in parts] == [*DOMAINS, *NEW]
    for part in parts:
        *informed, look_up = part.arms
        filled = {(a.config.lm, a.config.options.policy_lm) for a in informed}
        mine = {("openai:mine", "openai:mine"), ("openai:mine", SCRIPTED), (SCRIPTED, "openai:mine")}
        assert filled == mine | {("uniform", "uniform"), (SCRIPTED, SCRIPTED)}
        assert look_up.config.method == "matching"
        assert {a.config.env_options["hints"] for a in part.arms} == {False}


def test_a_model_that_writes_stands_beside_one_that_knows_nothing_in_the_same_role(tmp_path):
    for part in find("icpi-written").parts(replace(FULL, lms=("openai:mine",)), tmp_path):
        icpi = [a for a in part.arms if a.config.method == "icpi"]
        filled = {(a.config.lm, a.config.options.policy_lm) for a in icpi}
        both = {(lm, lm) for lm in ("openai:mine", "uniform", SCRIPTED)}
        one = {pair for lm in ("openai:mine", "uniform") for pair in ((lm, SCRIPTED), (SCRIPTED, lm))}
        assert filled == both | one
        methods = {a.config.method for a in part.arms}
        assert methods == {"icpi", "icpi-no-argmax", "matching", "tabular-q"}
        assert {a.config.options.context for a in icpi} == {1000}


def test_leads_of_recorded_rows_are_paired_by_seed():
    rows = [
        {"arm": arm, "seed": seed, "regret": regret, "early": 0.8, "success": 0.5}
        for arm, regrets in (("knowing nothing", (0.5, 0.6, 0.7, 0.9)), ("mine", (0.4, 0.4, 0.6)))
        for seed, regret in enumerate(regrets)
    ]
    _, _, first, second = written(rows).splitlines()
    assert first.endswith("|  |"), "no lead over itself"
    assert "| 3 | 0.50 |" in second
    assert "0.13 [" in second, "(0.1 + 0.2 + 0.1) / 3"


def test_the_study_writes_the_rows_from_which_its_table_is_made(tmp_path):
    main(["study", "icpi-written", "--smoke", "--arm", "Matching Model", "--out", str(tmp_path)])
    rows = read_lines(tmp_path / "chain" / "rows.jsonl")
    assert [(row["arm"], row["seed"]) for row in rows] == [("Matching Model", 0)]
    assert written(rows) in (tmp_path / "page.md").read_text()

    # Another arm later adds its row, and leaves that of the first one.
    main(["study", "icpi-written", "--smoke", "--arm", "Tabular Q", "--out", str(tmp_path)])
    arms = [row["arm"] for row in read_lines(tmp_path / "chain" / "rows.jsonl")]
    assert sorted(arms) == ["Matching Model", "Tabular Q"]


@pytest.mark.slow
def test_regret_of_a_model_that_knows_is_less(tmp_path):
    lines = [
        arm("right", "Chain", "icpi", "scripted:icpi-nearest?error=0.0"),
        arm("wrong", "Chain", "icpi", "scripted:icpi-nearest?error=0.5"),
    ]
    compare(jobs(lines, 1, tmp_path), workers=2)
    table = regrets("Chain", lines, 1, tmp_path)
    right, wrong = (float(row.split("|")[4].split()[0]) for row in table.splitlines()[2:4])
    assert right < 0.1 < wrong
    assert (tmp_path / "regret.png").stat().st_size > 5_000


def test_recorded_answers_of_a_reader_of_the_rules_are_right(tmp_path):
    model = lm.load("scripted:icpi", cache=tmp_path / "answers.sqlite")
    agent = begun(ICPI(model, answers="choose", required_successes=0.0))
    hunch.train(agent, hunch.make("hunch/Chain-v0"), 80)
    model.store.close()
    Archive(tmp_path / "answers.sqlite").export(tmp_path / "answers.jsonl.gz")
    lines = judged(tmp_path / "answers.jsonl.gz").splitlines()
    right = {line.split("|")[1].strip(): float(line.split("|")[3]) for line in lines[2:]}
    asked = {line.split("|")[1].strip(): line.split("|")[2] for line in lines[2:]}
    assert asked[SHOWN] == asked[COPY]  # the two are compared
    assert right.keys() >= {END, REWARD, ACTION, SHOWN, COPY}
    assert right[END] == right[REWARD] == right[NEXT_SHOWN] == right[NEXT_OTHER] == 1.0
    # As the policy this reader repeats what the examples show, and it knows no better.
    assert 0.3 < right[ACTION] < 1.0
