"""The ladder: cells are files, they resume, and recorded answers give the same scores without a model."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from hunch.audition import submission
from hunch.audition.roles import role_named
from hunch.cli.main import main
from hunch.core import HunchError, UsageError
from hunch_studies import ladder
from hunch_studies.ladder import Cell, LadderOptions, climb, command, lead, rows, scores_of

ROOT = Path(__file__).parents[2]
SMALL = ("--pilot", "6", "--full", "9", "--no-cache")
JUDGE = ("--rung", "rule=scripted:judge", "--roles", "judge", "--ways", "text", *SMALL)


@pytest.fixture(scope="module")
def climbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ladder")
    command([*JUDGE, "--out", str(folder)])
    return folder


def result(folder, *cell):
    return json.loads((folder / "cells" / f"{Cell(*cell).file}.json").read_text())


def test_each_cell_has_a_file_of_its_own_with_scores_and_what_was_asked(climbed):
    asked = result(climbed, "pilot", "judge", "rule", "text")
    assert scores_of(asked).ability == 1
    assert asked["spec"] == "scripted:judge"
    assert asked["model"]["evidence"] == "L0"
    assert sum(len(bed["values"]) for bed in asked["beds"]) == 6
    assert sum(len(bed["values"]) for bed in result(climbed, "full", "judge", "rule", "text")["beds"]) == 9


def test_the_full_number_of_questions_are_others_than_those_of_the_pilot(climbed):
    asked = {}
    for stage in ("pilot", "full"):
        lines = (climbed / "answers" / f"{Cell(stage, 'judge', 'rule', 'text').file}.jsonl").read_text()
        asked[stage] = {json.dumps(json.loads(line)["request"]) for line in lines.splitlines()}
    assert not asked["pilot"] <= asked["full"]


def test_known_cells_are_not_asked_again(climbed, capsys):
    command([*JUDGE, "--out", str(climbed)])
    assert "left]" not in capsys.readouterr().out


def test_recorded_answers_give_the_same_scores_without_a_model(climbed, tmp_path, capsys):
    command(["--out", str(climbed), "--pack", str(tmp_path / "archives"), "--no-table"])
    archives = sorted((tmp_path / "archives").iterdir())
    assert [file.name for file in archives] == ["ladder-rule.tar.xz", "ladder-stand-ins.tar.xz"]
    other = tmp_path / "other"
    command(["--out", str(other), "--unpack", *map(str, archives), "--repeat"])
    assert "0 are of embeddings" in capsys.readouterr().out
    command(["--out", str(other), "--unpack", *map(str, archives)])
    assert (other / "ladder.json").read_text() == (climbed / "ladder.json").read_text()
    assert (other / "ladder.png").is_file()


def test_the_published_controls_score_as_todays_code_says(tmp_path):
    """Every lead of the page is over these cells, so a change of what one reads must be seen."""
    archive = ROOT / "docs/assets/studies/ladder/ladder-stand-ins.tar.xz"
    ladder.unpack([archive], tmp_path)
    assert len(list((tmp_path / "cells").glob("*.json"))) > 20
    ladder.repeat(tmp_path)


def test_a_changed_score_is_found(climbed, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(climbed, folder)
    file = folder / "cells" / f"{Cell('pilot', 'judge', 'rule', 'text').file}.json"
    changed = json.loads(file.read_text())
    changed["beds"][0]["values"][0] = 0.25
    file.write_text(json.dumps(changed))
    with pytest.raises(HunchError, match="1 cells have other scores"):
        command(["--out", str(folder), "--repeat"])


def test_processes_side_by_side_make_the_same_cells(climbed, tmp_path):
    command([*JUDGE, "--out", str(tmp_path), "--workers", "2", "--no-table"])

    def values(folder):
        files = sorted((folder / "cells").iterdir())
        return {file.name: [bed["values"] for bed in json.loads(file.read_text())["beds"]] for file in files}

    assert values(tmp_path) == values(climbed)


def test_a_rule_that_reads_the_objective_is_better_than_with_the_blank_prompt(climbed):
    (row,) = [row for row in rows(climbed) if row.chosen]
    assert row.stage == "full"
    assert row.ability == 1
    assert row.blank < 1
    assert row.over_blank == lead(
        result(climbed, "full", "judge", "rule", "text"),
        result(climbed, "full", "judge", "rule", "text", True),
    )


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
def test_a_model_whose_answers_cannot_be_read_has_no_score(tmp_path):
    mute = ("--rung", "mute=scripted:judge?refusal=1", *JUDGE[2:])
    command([*mute, "--out", str(tmp_path)])
    (row,) = rows(tmp_path)
    assert np.isnan(row.ability)
    assert row.verdict == "could not be asked"
    assert "could not be read" in row.why
    assert json.loads((tmp_path / "ladder.json").read_text())[0]["ability"] is None


def test_a_lead_is_the_mean_gap_question_by_question():
    bed = {"env": "one", "groups": [0, 0, 1, 1]}
    mine = {"beds": [{**bed, "values": [1.0, 1.0, 0.5, 0.5]}]}
    theirs = {"beds": [{**bed, "values": [0.5, 0.5, 0.5, 0.5]}]}
    found = lead(mine, theirs)
    assert found.value == 0.25
    assert found.low == 0
    assert found.high == 0.5
    assert lead(mine, {"beds": [{**bed, "env": "another", "values": [0.5] * 4}]}) is None


def test_a_lead_of_one_episode_is_no_certainty():
    mine = {"beds": [{"env": "one", "groups": [0, 0, 0, 0], "values": [1.0, 1.0, 0.0, 1.0]}]}
    words = {"beds": [{"env": "one", "groups": [0, 0, 0, 0], "values": [0.0, 0.0, 1.0, 0.0]}]}
    gap = lead(mine, words)
    assert gap.low < gap.value < gap.high
    single = {"beds": [{"env": "one", "groups": [0], "values": [1.0]}]}
    assert lead(single, {"beds": [{"env": "one", "groups": [0], "values": [0.0]}]}) is None


def test_questions_with_the_same_drawn_answers_count_once():
    """Ten questions of two states: the lead is right in one state and not in the other."""
    words = {"beds": [{"env": "one", "groups": range(10), "values": [0.0] * 10}]}
    bed = {"env": "one", "groups": range(10), "values": [1.0, 0.0] * 5}
    apart = lead({"beds": [bed]}, words)
    assert apart.low > 0
    alike = {"beds": [{**bed, "alike": [0, 1] * 5}]}
    assert lead(alike, words) == (0.5, 0, 1)
    assert scores_of(alike).interval == (0, 1)
    assert scores_of({"beds": [*alike["beds"], {**bed, "env": "two"}]}).alike[-1] == 11


def test_the_blank_prompt_is_shown_on_the_questions_that_the_model_could_be_asked(climbed, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(climbed, folder)
    file = folder / "cells" / f"{Cell('full', 'judge', 'rule', 'text').file}.json"
    cell = json.loads(file.read_text())
    cell["beds"][0] |= {"values": [], "groups": [], "why": "its prompts are too long"}
    file.write_text(json.dumps(cell))
    (row,) = [row for row in rows(folder) if row.stage == "full"]
    blank = result(climbed, "full", "judge", "rule", "text", True)["beds"][1]
    assert row.questions == len(blank["values"])
    assert row.blank == np.mean(blank["values"])


def test_other_numbers_of_questions_are_refused_where_they_could_not_be_compared(climbed):
    with pytest.raises(UsageError, match="--pilot 5 could not be compared: take --pilot 6"):
        command([*JUDGE, "--pilot", "5", "--out", str(climbed)])


def test_the_full_number_is_asked_in_the_named_ways_only(tmp_path):
    begun = ("--rung", "rule=scripted:judge", "--roles", "judge", "--pilot", "4", "--no-cache", "--no-table")
    command([*begun, "--ways", "text", "likelihood", "--full", "0", "--out", str(tmp_path)])
    command([*begun, "--ways", "text", "--full", "6", "--out", str(tmp_path)])
    ways = {file.stem.split("--")[3] for file in (tmp_path / "cells").glob("full--judge--rule--*")}
    assert len(list((tmp_path / "cells").glob("pilot--judge--rule--likelihood*"))) == 2
    assert ways == {"text"}


def test_a_repetition_says_what_it_had_no_answers_for(climbed, tmp_path, capsys):
    with pytest.raises(HunchError, match="holds no cells"):
        command(["--out", str(tmp_path), "--repeat"])
    folder = tmp_path / "copy"
    shutil.copytree(climbed, folder)
    cell = Cell("pilot", "judge", "rule", "text").file
    other = Cell("full", "judge", "rule", "text").file
    (folder / "answers" / f"{cell}.jsonl").unlink()
    (folder / "answers" / f"{other}.jsonl").write_text("")
    with pytest.raises(HunchError, match=f"{other}: The answers of"):
        command(["--out", str(folder), "--repeat"])
    (folder / "cells" / f"{other}.json").unlink()
    command(["--out", str(folder), "--repeat"])
    said = capsys.readouterr().out
    assert f"1 cells have no file of answers, such as {cell}." in said
    assert "0 are of embeddings" in said
    assert "the same scores" in said, "each cell has a line, because all of them take minutes"


def test_folders_of_a_machine_do_not_reach_a_recording():
    assert ladder.public("hf:/some/where/file.gguf?chat=true") == "hf:file.gguf?chat=true"
    assert ladder.public("hf:Qwen/Qwen2.5-0.5B") == "hf:Qwen/Qwen2.5-0.5B"
    assert ladder.public("smollm2") == "smollm2"


@pytest.mark.parametrize(
    "rung",
    [
        "unknown",
        "mine=",
        "minilm=",
        "a/b=minilm",
        "=minilm",
        "a--b=minilm",
        "a-=minilm",
        "words=minilm",
        "stand-ins=minilm",
    ],
)
def test_a_wrong_rung_is_refused_in_one_sentence_before_anything_is_asked(rung, tmp_path):
    with pytest.raises(UsageError):
        climb(LadderOptions(rung=(rung,), out=tmp_path, roles=("judge",), pilot=4, full=0))
    assert not list(tmp_path.iterdir())


def test_a_policy_is_asked_as_a_prior_and_a_sentence_says_so(tmp_path):
    with pytest.raises(UsageError, match="--roles prior"):
        command([*JUDGE[:2], "--roles", "policy", "--out", str(tmp_path)])


def test_another_model_under_the_name_of_a_rung_is_told_apart(climbed, capsys):
    other = ("--rung", "rule=scripted:judge?error=0.5", *JUDGE[2:])
    command([*other, "--out", str(climbed), "--no-table"])
    said = capsys.readouterr().out
    assert "rule: 4 cells in" in said
    assert "are of another model, scripted:judge (revision" in said


@pytest.mark.parametrize("folder", ["cells", "answers"])
def test_a_damaged_file_is_named(climbed, tmp_path, folder):
    """Among a hundred and fifty files that were copied together, which one is it?"""
    shutil.copytree(climbed, tmp_path / "copy")
    file = next(path for path in sorted((tmp_path / "copy" / folder).iterdir()) if "--rule--" in path.name)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(HunchError, match=rf"{re.escape(file.name)} cannot be read as"):
        command(["--out", str(tmp_path / "copy"), "--repeat"])
    if folder == "cells":
        with pytest.raises(HunchError, match=rf"{re.escape(file.name)} cannot be read as a cell"):
            command([*JUDGE, "--out", str(tmp_path / "copy")])


def test_an_archive_that_was_cut_is_refused_in_one_sentence(climbed, tmp_path):
    command(["--out", str(climbed), "--pack", str(tmp_path), "--no-table"])
    cut = tmp_path / "cut.tar.xz"
    cut.write_bytes((tmp_path / "ladder-rule.tar.xz").read_bytes()[:200])
    with pytest.raises(UsageError, match=r"cut\.tar\.xz is no archive"):
        ladder.unpack([cut], tmp_path / "out")


def test_every_role_that_reads_texts_has_questions():
    for role in ladder.ASKED:
        drawn = ladder.questions(role_named(role.name), 6, "pilot")
        assert bool(drawn) == (role.name != "reader")


def test_rows_that_others_submitted_stand_beside_the_cells(tmp_path):
    pytest.importorskip("model2vec")
    file = tmp_path / "rows.json"
    main(["audition", "--lm", "minilm", "--roles", "planner", "--questions", "20", "--submit", str(file)])
    options = ["--rung", "mine=minilm", "--roles", "planner", "--pilot", "20", "--full", "0"]
    ladder.command(["--out", str(tmp_path / "ladder"), *options, "--add", str(file)])
    page = (tmp_path / "ladder" / "page.md").read_text()
    [row] = submission.read(file).rows
    assert "## Submitted by others" in page
    assert f"| planner | Kitchen-v0 | minilm | similarity | 20 | {row.ability:.2f}" in page


def test_submitted_rows_without_the_figures_of_their_cost_are_shown(tmp_path):
    """They are null where answers came from the cache."""
    row = submission.Row(
        *("planner", "hunch/Kitchen-v0", "similarity", 20),
        *(0.75, 0.5, 0.9),
        uninformed=0.2,
        words=None,
        blank=None,
        calibration_error=None,
        unread=0.0,
        tokens_read=None,
        tokens_written=None,
        seconds=None,
    )
    file = tmp_path / "rows.json"
    submission.write(submission.Submission("theirs", "1", "L3", "0", 0, (row,)), file)
    assert "| planner | Kitchen-v0 | theirs | similarity | 20 | 0.75" in ladder.added([submission.read(file)])
