"""Value functions of games as code: a good one wins the tournament, and those that fail are left out."""

import numpy as np
import pytest

from hunch.core import HunchError
from hunch_studies.games.coded_game import CodedGame, loaded
from hunch_studies.games.game import Known
from hunch_studies.games.inference import Filtering
from hunch_studies.games.ismcts import ISMCTS, Searching
from hunch_studies.games.matches import AtRandom, tournament
from hunch_studies.games.tabletop.games import GAMES
from hunch_studies.games.value import best, candidates, problem_of, seat, standings
from hunch_studies.rules.game_code import GAME_VALUE, SQUALL, TIC_TAC_TOE

TEXT = GAMES["tic-tac-toe"].text
GOOD = GAME_VALUE["The game of tic-tac-toe."]
WRONG = GOOD.replace("return (good - bad)", "return (bad - good)")
FAILS = "def value(state, player):\n    return state[100]\n"


class Written:
    evidence = None

    def write(self, problem, parents, feedback, n, first=0, kind=""):
        return [
            GOOD,
            "def worth(state):\n    return 0",
            "def value(state, player):\n    return (",
            "x = 1 / 0\n" + GOOD,
        ]


def test_candidates_that_cannot_be_run_are_left_out():
    problem = problem_of(TEXT, TIC_TAC_TOE)
    assert candidates(Written(), problem, 4) == [GOOD]
    assert "the function `value`" in problem.requested_functions
    assert TEXT in problem.text()
    assert "def apply_action" in problem.text()


def test_the_tournament_finds_the_good_one():
    search = ISMCTS(simulations=30, worlds=1)
    standing = standings(TIC_TAC_TOE, [WRONG, GOOD], search, 3, 0)
    assert best(standing) == 2
    assert standing.sum() == pytest.approx(0), "what one wins the other loses"
    assert standing[1] < standing[0] < standing[2]


def test_a_value_function_that_fails_says_nothing():
    with loaded(f"{TIC_TAC_TOE}\n{FAILS}") as program:
        game = CodedGame(program)
        assert game.values([game.begin()] * 2) == [None, None]
        (node,) = seat(game, ISMCTS(simulations=20), valued=True).search.search(
            game, [[game.begin()]], [np.random.default_rng(0)]
        )
        assert sum(node.visits.values()) == 20


def test_both_players_are_told_what_they_win():
    with loaded(f"{SQUALL}\n{GAME_VALUE['Squall, a game of two captains']}") as program:
        game = CodedGame(program)
        position = game.begin()
        for action in ("hull 3", "hull 1", "sail", "hold"):
            (position,) = game.follow([position], [action])
        ((one, other),) = game.values([position])
        assert one == -other > 0, "ahead, and in the stronger hull"


def test_search_without_values_is_as_it_was():
    """A search that asks nobody is the one with random playouts."""
    true = Known(GAMES["tic-tac-toe"])
    plain, same = (
        Searching(true, Filtering(true), ISMCTS(simulations=10, value=value)) for value in (None, None)
    )
    won = tournament(true, [plain, same, AtRandom()], 4, 0)
    assert won[0, 1] == -won[1, 0]
    assert won[0, 2] == won[1, 2] > 0


def test_a_game_that_breaks_off_is_named():
    code = TIC_TAC_TOE.replace(
        "    cell = int(action[5:])\n", "    cell = int(action[5:]) if state.count('x') < 2 else 1 / 0\n"
    )
    with pytest.raises(HunchError, match="nothing to say of"):
        standings(code, [GOOD], ISMCTS(simulations=4), 2, 0)
