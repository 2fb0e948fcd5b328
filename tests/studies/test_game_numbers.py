"""What programs of games give for numbers is read as everywhere."""

import math

import pytest
from tests.roles.test_program_numbers import EACH

from hunch_studies.games.coded_game import CodedGame, loaded, read_look
from hunch_studies.rules.game_code import KUHN


@EACH
def test_in_a_game(written, read):
    value = f"import numpy as np\ndef value(state, player):\n    return {written}"
    with loaded(f"{KUHN}\n{value}") as program:
        game = CodedGame(program)
        assert game.values([game.begin()]) == [None if read is None else (read, read)]
    chances = f"    import numpy as np\n    return [('deal J', {written})]\n"
    before = "def chance_outcomes(state):\n"
    assert before in KUHN
    with loaded(KUHN.replace(before, before + chances)) as program:
        first = CodedGame(program).begin()
        assert (first and first.look.chances) == (None if read is None else (read,))


@pytest.mark.parametrize(
    ("chances", "fits"),
    [
        ([0.5, 0.5], True),
        ([1, True], True),
        ([math.nan, 1.0], False),
        ([math.inf, 1.0], False),
        ([1e308, 1e308], False),
        ([-0.5, 1.5], False),
        ([2**1024 - 1, 1], False),
    ],
)
def test_chances_are_numbers_with_a_sum(chances, fits):
    look = read_look((-1, ["a", "b"], chances, ("", ""), (0.0, 0.0)))
    assert (look is not None) == fits
