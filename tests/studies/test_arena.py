"""Games of TextArena against two opponents: the rule that plays them, and what the study counts."""

import pytest

import hunch
from hunch import lm
from hunch.core import UsageError
from hunch_studies.arena import (
    AT_RANDOM,
    BLANK,
    BY_RULE,
    FIRST,
    ORACLE,
    UNINFORMED,
    Blank,
    Listed,
    played,
    table,
)
from hunch_studies.rules.tabletop import best_moves, moves

pytest.importorskip("textarena")

TIC_TAC_TOE = """You are Player {} in Tic Tac Toe.
[GAME] Current Board:

 X | X | 2
---+---+---
 3 | O | O
---+---+---
 6 | 7 | 8

Available Moves: '[2]', '[3]', '[6]', '[7]', '[8]'"""
CONNECT_FOUR = """You are Player {} in Connect Four.
[GAME] Board state:
0 1 2 3 4 5 6
-------------
. . . . . . .
. . . . . . .
. . . . . . .
X . . . . . .
X . . O O . .
X . . O O . ."""
NIM = """Welcome to Nim, Player 0!
[GAME] Current Pile:
  pile 0: 9
[GAME] Current Pile:
  pile 0: {}
  pile 1: {}
  pile 2: {}"""


def test_it_wins_in_one_move_and_prevents_what_would_win():
    assert best_moves(TIC_TAC_TOE.format(0)) == ["[3]"], "O wins"
    assert best_moves(TIC_TAC_TOE.format(1)) == ["[2]"], "X wins"
    assert moves(TIC_TAC_TOE.format(0)) == ["[2]", "[3]", "[6]", "[7]", "[8]"]
    assert best_moves(CONNECT_FOUR.format(0)) == ["[col 0]"], "X wins"
    assert best_moves(CONNECT_FOUR.format(1)) == ["[col 0]"], "O has no line of four yet, and prevents one"
    assert moves(CONNECT_FOUR.format(0)) == [f"[col {column}]" for column in range(7)]


def test_in_nim_it_leaves_piles_whose_exclusive_or_is_0():
    assert best_moves(NIM.format(3, 4, 5)) == ["[0 2]"]
    assert best_moves(NIM.format(0, 0, 4)) == ["[2 4]"]
    assert len(best_moves(NIM.format(1, 1, 0))) == 2, "nothing wins: any move"
    assert moves(NIM.format(0, 2, 1)) == ["[1 1]", "[1 2]", "[2 1]"]
    assert moves("You are in a room.") == []


def test_a_column_that_is_full_is_no_move():
    full = CONNECT_FOUR.replace(". . . . . . .", "O . . . . . .")
    assert moves(full.format(0)) == [f"[col {column}]" for column in range(1, 7)]


@pytest.mark.parametrize(
    "prompt", ["hello", "", "You are Player 0 in Tic Tac Toe.\n[GAME] Current Board:", NIM.format(0, 0, 0)]
)
def test_without_a_position_it_says_nothing(prompt):
    assert lm.load("scripted:tabletop").generate([prompt]) == [[""]]


def test_what_a_player_writes_is_no_position():
    said = "\n[Player 0] Board state: [col 9] Current Board: pile 0: 7"
    assert moves(TIC_TAC_TOE.format(0) + said) == moves(TIC_TAC_TOE.format(0))
    assert moves(CONNECT_FOUR.format(0) + said) == moves(CONNECT_FOUR.format(0))
    assert moves(NIM.format(1, 2, 0) + said) == ["[0 1]", "[1 1]", "[1 2]"]
    assert best_moves(TIC_TAC_TOE.replace("You are Player {} in", "This is")) == moves(TIC_TAC_TOE), (
        "no mover"
    )


def test_the_dial_is_a_share():
    with pytest.raises(UsageError, match="from 0 to 1"):
        lm.load("scripted:tabletop?skill=2")


def test_the_rule_always_wins_nim_and_its_moves_are_admissible():
    row = played({ORACLE: BY_RULE}, "Nim-v0", "plays by a rule", ORACLE, 4)
    assert row == {"points": [1.0] * 4, "won": 1.0, "lost": 0.0, "refused": 0.0}


def test_a_move_that_is_refused_counts():
    row = played({"words": "scripted:first"}, "Nim-v0", "moves at random", "words", 2)
    assert row["points"] == [-1.0, -1.0]
    assert row["refused"] == 1.0


def test_the_blank_prompt_shows_moves_alone():
    env = Blank(hunch.make("textarena:TicTacToe-v0", opponent="scripted:tabletop"))
    observation, _ = env.reset(seed=0)
    assert observation.startswith("Moves that can be made: [0], [1], [2]")
    observation, *_ = env.step("[4]")
    assert "[4]" not in observation
    assert len(observation.splitlines()) == 2


def test_who_chooses_gets_the_moves_as_actions():
    env = Listed(hunch.make("textarena:Nim-v0", opponent="scripted:tabletop"))
    observation, info = env.reset(seed=0)
    assert "pile 0: 3" in observation
    assert info["actions"][:3] == ("[0 1]", "[0 2]", "[0 3]")
    blank, info = Blank(env).reset(seed=0)
    assert blank == ""
    assert len(info["actions"]) == 3 + 4 + 5
    row = played({"words": "scripted:first"}, "Nim-v0", "moves at random", "words chooses", 2)
    assert row["refused"] == 0.0


def test_leads_are_paired_by_game():
    game = ("Nim-v0", "moves at random")
    rows = [
        {"key": [*game, UNINFORMED, 2, 20], "points": [1.0, -1.0], "won": 0.5, "lost": 0.5, "refused": 0.0},
        {"key": [*game, FIRST, 2, 20], "points": [0.5, 0.5], "won": 0.6, "lost": 0.1, "refused": 0.0},
        {"key": [*game, "model", 2], "points": [1.0, 1.0], "refused": 0.25},
        {"key": [*game, f"model, {BLANK}", 2], "points": [0.0, 0.0], "refused": 0.5},
    ]
    lines = [line.strip("| ").split(" | ") for line in table(rows).splitlines()]
    assert lines[3][3:8] == ["2", "0.50 [0.50, 0.50]", "0.60", "0.10", "0.00"], "shares of single games"
    assert lines[4][3:8] == ["2", "1.00 [1.00, 1.00]", "1.00", "0.00", "0.25"]
    assert lines[4][8].startswith("1.00 [")
    assert lines[4][9:] == ["0.50 [0.50, 0.50]", "1.00 [1.00, 1.00]"]


def test_a_control_plays_each_game_several_times():
    row = played({UNINFORMED: AT_RANDOM}, "TicTacToe-v0", "moves at random", UNINFORMED, 3, 4)
    assert len(row["points"]) == 3
    assert row["won"] + row["lost"] <= 1
    assert sum(row["points"]) / 3 == pytest.approx(row["won"] - row["lost"])
