"""Planning against exact values: a small MDP by hand, tic-tac-toe solved, ways in Frozen Lake."""

from functools import cache

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.rl.search import MCTS, roll_out
from hunch.rl.small_models import shortest, tabulate, value_iteration
from hunch.rl.world_model import Prediction, TrueCopy, frozen


def rngs(n, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(n)]


# ---- a small MDP with chance ------------------------------------------------------------------------------


class Bet:
    """Safe pays 1 and ends; risky pays 4 or 0, and leads to where 1 is left; chain may lead to 10."""

    def __init__(self):
        self.asked = 0

    def step(self, states, actions, rngs):
        self.asked += len(states)
        return [self.one(*query) for query in zip(states, actions, rngs, strict=True)]

    def one(self, state, action, rng):
        if state == "start" and action == "risky":
            return Prediction(False, 4.0 * (rng.random() < 0.5), "after")
        if state == "start" and action == "chain":
            return Prediction(False, 0.0, "won" if rng.random() < 0.25 else "lost")
        return Prediction(True, {"won": 10.0, "lost": 0.0}.get(state, 1.0), None)


def bets(state):
    return ("safe", "risky", "chain") if state == "start" else ("on",)


EXACT = (1.0, 2.0 + 0.9, 0.9 * 0.25 * 10)


@pytest.mark.parametrize("prior", [None, lambda state, actions: np.full(len(actions), 1 / len(actions))])
def test_tree_search_comes_to_the_exact_values_under_chance(prior):
    search = MCTS(simulations=6_000, c=60.0, gamma=0.9, prior=prior)
    (root,) = search.search(Bet(), ["start"], bets, rngs(1))
    assert root.values == pytest.approx(EXACT, abs=0.25)
    assert root.best == "risky"
    assert root.visits.sum() == 6_000


def test_value_iteration_of_drawn_outcomes_comes_to_the_exact_values():
    table = tabulate(Bet(), ["start"], bets, np.random.default_rng(0), draws=4_000)
    q = value_iteration(table, 0.9)
    assert set(table.states) == {"start", "after", "won", "lost"}
    assert q[0] == pytest.approx(EXACT, abs=0.15)
    assert q[1, 1:].tolist() == [-np.inf, -np.inf], "there is one action after the bet"


def test_a_model_without_chance_is_asked_once_for_each_step():
    once, often = Bet(), Bet()
    for model, chance in ((once, False), (often, True)):
        MCTS(simulations=200, chance=chance, depth=3).search(model, ["start"], bets, rngs(1))
    assert once.asked < 20 < 200 < often.asked


@pytest.mark.parametrize("chance", [True, False])
def test_the_same_seed_gives_the_same_tree_in_any_company(chance):
    search = MCTS(simulations=60, chance=chance)
    together = search.search(Bet(), ["start"] * 4, bets, rngs(4))
    alone = [search.search(Bet(), ["start"], bets, [rng])[0] for rng in rngs(4)]
    assert [n.visits.tolist() for n in together] == [n.visits.tolist() for n in alone]
    assert [n.values.tolist() for n in together] == [n.values.tolist() for n in alone]
    assert len({tuple(n.values) for n in together}) > 1


def test_nothing_to_choose_is_said():
    with pytest.raises(UsageError, match="no action"):
        MCTS().search(Bet(), ["start"], lambda state: (), rngs(1))
    with pytest.raises(UsageError, match="more than 3 states"):
        tabulate(Bet(), ["start"], bets, np.random.default_rng(0), draws=50, most=3)


class Walk:
    """Along the numbers for ever; a reward of 1 a step."""

    def step(self, states, actions, rngs):
        return [Prediction(False, 1.0, (s + a) % 5) for s, a in zip(states, actions, strict=True)]


def test_values_that_do_not_settle_are_said():
    table = tabulate(Walk(), [0], lambda state: (1, -1), np.random.default_rng(0))
    assert value_iteration(table, 0.5) == pytest.approx(np.full((5, 2), 2.0))
    with pytest.raises(UsageError, match="does not converge"):
        value_iteration(table, 1.0)


class Onward:
    def choose(self, states, rngs):
        return [None if state == 3 else 1 for state in states]


def test_a_rollout_ends_where_the_policy_does_and_discounts():
    values = roll_out(Walk(), Onward(), [0, 2, 3], [1, 1, 1], rngs(3), depth=4, gamma=0.5)
    assert values.tolist() == [1 + 0.5 + 0.25, 1.0, 1 + 0.5 + 0.25 + 0.125]


# ---- tic-tac-toe, solved ----------------------------------------------------------------------------------

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def places(board):
    return tuple(i for i, mark in enumerate(board) if mark == ".")


def turn(board):
    return len(places(board)) % 2


def placed(board, place):
    mark = "ox"[turn(board)]
    after = board[:place] + mark + board[place + 1 :]
    return after, any(all(after[i] == mark for i in line) for line in LINES)


class TicTacToe:
    def step(self, states, actions, rngs):
        found = [placed(*query) for query in zip(states, actions, strict=True)]
        return [Prediction(won or "." not in after, float(won), after) for after, won in found]


@cache
def exact(board):
    """What each place is worth to whose turn it is, by going through the whole game."""
    return {place: worth(*placed(board, place)) for place in places(board)}


def worth(after, won):
    return 1.0 if won else -max(exact(after).values(), default=0.0)


@pytest.mark.parametrize("prior", [None, lambda state, actions: np.full(len(actions), 1 / len(actions))])
def test_tree_search_plays_tic_tac_toe_without_a_mistake(prior):
    assert max(exact("." * 9).values()) == 0, "a draw"
    rng = np.random.default_rng(1)
    boards = []
    while len(boards) < 12:
        board, won = "." * 9, False
        for _ in range(int(rng.integers(3, 7))):
            board, won = placed(board, int(rng.choice(places(board))))
            if won or not places(board):
                break
        if not won and places(board) and len(set(exact(board).values())) > 1:
            boards.append(board)
    search = MCTS(simulations=3_000, c=1.4, gamma=1.0, chance=False, turn=turn, prior=prior)
    roots = search.search(TicTacToe(), boards, places, rngs(12))
    best = [max(exact(board).values()) for board in boards]
    assert [exact(board)[root.best] for board, root in zip(boards, roots, strict=True)] == best
    assert [root.values[root.visits.argmax()] for root in roots] == pytest.approx(best, abs=0.25)


# ---- environments -----------------------------------------------------------------------------------------


def made(id):
    env = hunch.make(id)
    _, info = env.reset(seed=0)
    return TrueCopy(env), frozen(info["raw"]), lambda state: info["actions"]


def test_breadth_first_search_finds_the_shortest_way():
    model, start, actions = made("hunch/FrozenLake-v0")
    rng = np.random.default_rng(0)
    way = shortest(model, start, actions, lambda step: step.reward > 0, rng)
    env = hunch.make("hunch/FrozenLake-v0")
    env.reset(seed=0)
    assert len(way) == len(env.unwrapped.oracle()) == 6
    assert [env.step(action)[1] for action in way][-1] == 1
    assert shortest(model, start, actions, lambda step: step.reward > 1, rng) is None
    assert shortest(model, start, actions, lambda step: step.reward > 0, rng, most=3) is None


def test_value_iteration_in_cliff_walking_is_the_known_optimum():
    model, start, actions = made("hunch/CliffWalking-v0")
    table = tabulate(model, [start], actions, np.random.default_rng(0))
    assert len(table.states) == 37, "48 cells without cliff and goal"
    assert value_iteration(table, 1.0)[0].max() == -13
