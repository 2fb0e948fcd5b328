"""Our games and figures against OpenSpiel's, where the extra ``open-spiel`` is installed."""

import numpy as np
import pytest

from hunch_studies.games.cfr import exploitability, solve, tree_of, value
from hunch_studies.games.game import CHANCE, END, PLAYERS, Known
from hunch_studies.games.tabletop.games import GAMES

pyspiel = pytest.importorskip("pyspiel")

NAMES = {
    "tic-tac-toe": "tic_tac_toe",
    "connect-four": "connect_four(rows=4,columns=5,x_in_row=4)",
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
}
MOVES = {
    "kuhn": lambda action: ["pass", "bet"].index(action),
    "leduc": lambda action: ["fold", "call", "raise"].index(action),
    "tic-tac-toe": lambda action: int(action[5:]),
    "connect-four": lambda action: int(action[5:]),
}


def dealt(name, state, action):
    """OpenSpiel's number of a card of this rank that is left."""
    ranks = {"kuhn": 1, "leduc": 2}[name]
    return next(a for a, _ in state.chance_outcomes() if a // ranks == "JQK".index(action[-1]))


@pytest.mark.parametrize("name", NAMES)
def test_matches_side_by_side_agree_at_every_position(name):
    rng, game, true = np.random.default_rng(0), pyspiel.load_game(NAMES[name]), Known(GAMES[name])
    for _ in range(60):
        state, position = game.new_initial_state(), true.begin()
        while True:
            look = position.look
            assert state.is_terminal() == (look.player == END)
            if state.is_terminal():
                assert tuple(state.returns()) == look.returns
                break
            assert state.is_chance_node() == (look.player == CHANCE)
            action = str(rng.choice(look.actions))
            if look.player in PLAYERS:
                assert state.current_player() == look.player
                assert {MOVES[name](own) for own in look.actions} == set(state.legal_actions())
                move = MOVES[name](action)
            else:
                move = dealt(name, state, action)
                share = dict(zip(look.actions, look.chances, strict=True))[action]
                ranks = {"kuhn": 1, "leduc": 2}[name]
                same = sum(p for a, p in state.chance_outcomes() if a // ranks == move // ranks)
                assert share == pytest.approx(same)
            state.apply_action(move)
            (position,) = true.follow([position], [action])


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_exploitability_and_values_agree(name):
    exploit = pytest.importorskip("open_spiel.python.algorithms.exploitability")
    policies = pytest.importorskip("open_spiel.python.policy")
    cfr = pytest.importorskip("open_spiel.python.algorithms.cfr")
    game, tree = pyspiel.load_game(NAMES[name]), tree_of(Known(GAMES[name]))
    uniform = policies.UniformRandomPolicy(game)
    assert exploitability(tree, {}) == pytest.approx(exploit.exploitability(game, uniform), abs=1e-9)
    if name == "kuhn":
        solver = cfr.CFRPlusSolver(game)
        for _ in range(300):
            solver.evaluate_and_update_policy()
        theirs = exploit.exploitability(game, solver.average_policy())
        assert exploitability(tree, solve(tree, 300)) <= theirs + 1e-3
        assert value(tree, solve(tree, 300)) == pytest.approx(-1 / 18, abs=1e-3)
