"""Games beside published tables: the players, their episodes, and the leads."""

import pytest

from hunch.cli.main import main
from hunch.runs.files import read_lines
from hunch_studies.beside_published import BLANK, CONTROLS, RANDOM, WORDS, played, players, table
from hunch_studies.draws import DRAWS

pytest.importorskip("minigrid")
SPECS = {"first": "scripted:first", "mute": "scripted:overlap?refusal=1.0"}


def row(label, scores, game="GoToObj"):
    return {"key": ["BabyAI", game, label, len(scores)], "scores": scores, "steps": [3], "unread": 0.5}


def test_a_model_plays_in_both_ways_with_and_without_the_task():
    assert {player.label for player in players(SPECS)} == {
        f"{model}, {way}{blank}"
        for model in ("first", "mute")
        for way in ("text", "structured")
        for blank in ("", f", {BLANK}")
    }


def test_the_same_episodes_come_again_and_scores_are_successes():
    first, again = (played(SPECS, "BabyAI", "GoToObj", RANDOM, 4, DRAWS) for _ in range(2))
    assert first == again
    assert all((score * DRAWS).is_integer() for score in first["scores"]), "means of successes"
    assert len(set(first["scores"])) > 1, "draws differ"
    assert all(1 <= steps <= 30 for steps in first["steps"])
    assert first["unread"] == 0


def test_the_blank_prompt_does_not_change_who_reads_no_task_and_it_does_change_words():
    told, blank = (played(SPECS, "BabyAI", "GoToLocal", f"first, text{end}", 3) for end in ("", f", {BLANK}"))
    assert told == blank, "it names the first command whatever it reads"
    assert told["unread"] == 0
    assert played(SPECS, "BabyAI", "GoToLocal", WORDS, 6) != played(SPECS, "BabyAI", "GoToLocal", RANDOM, 6)


@pytest.mark.filterwarnings("ignore:20 answers")
def test_answers_that_name_no_command_are_counted():
    assert played(SPECS, "BabyAI", "GoToObj", "mute, text", 2)["unread"] == 1


def test_leads_are_paired_by_episode_and_players_without_all_games_are_left_out():
    rows = [
        row(RANDOM, [0.0, 0.0, 1.0]),
        row(WORDS, [0.0, 1.0, 1.0]),
        row("m, text", [1.0, 1.0, 1.0]),
        row(f"m, text, {BLANK}", [1.0, 0.0, 1.0]),
        row(RANDOM, [0.0, 0.0, 0.0], "PickupLoc"),
        row(WORDS, [0.0, 0.0, 0.0], "PickupLoc"),
        row("m, text", [0.0, 1.0, 0.0], "PickupLoc"),
        row(f"m, text, {BLANK}", [0.0, 0.0, 0.0], "PickupLoc"),
        row("m, structured", [1.0, 1.0, 1.0]),
    ]
    lines = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in table(rows).splitlines()}
    assert "m, structured" not in lines, "its other game has not been played"
    model = lines["m, text"]
    assert model[1].startswith("0.67")
    assert [cell.split()[0] for cell in model[3:6]] == ["0.50", "0.33", "0.33"]
    assert [cell.strip(" |") for cell in model[6:]] == ["1.00", "0.33"]
    assert lines[WORDS][3].startswith("0.17")
    assert not lines[f"m, text, {BLANK}"][3].strip(), "a control has no leads"


def test_single_players_can_be_chosen_and_the_controls_stay(tmp_path, capsys):
    command = ["study", "beside-published", "--smoke", "--part", "BabyAI", "--lm", "scripted:first"]
    main([*command, "--arm", "text, blank", "--out", str(tmp_path)])
    played_by = {row["key"][2] for row in read_lines(tmp_path / "babyai" / "rows.jsonl")}
    assert played_by == {*CONTROLS, f"scripted:first, text, {BLANK}"}
    with pytest.raises(SystemExit):
        main([*command, "--arm", "soup", "--out", str(tmp_path)])
    assert "no arm 'soup'; it has scripted:first, text" in capsys.readouterr().err
