"""Planning against exact values: small MDPs by hand and at random, tic-tac-toe, ways in Frozen Lake."""

from functools import cache
from math import inf, log, sqrt

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.rl.evaluator import Uniform
from hunch.rl.search import MCTS, roll_out
from hunch.rl.small_models import breadth_first, tabulate, value_iteration
from hunch.rl.world_model import LookUp, Prediction, TrueCopy, frozen


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


@pytest.mark.parametrize(
    "settings", [{}, {"evaluator": Uniform(bets)}, {"evaluator": Uniform(bets), "leaves": 3}]
)
def test_tree_search_comes_to_the_exact_values_under_chance(settings):
    search = MCTS(simulations=6_000, c=60.0, gamma=0.9, **settings)
    (root,) = search.search(Bet(), ["start"], bets, rngs(1))
    assert root.values == pytest.approx(EXACT, abs=0.25)
    assert root.best == "risky"
    assert root.visits.sum() == 6_000


def test_a_world_without_actions_has_no_values():
    table = tabulate(LookUp([]), ["the end"], lambda state: (), np.random.default_rng(0))
    assert value_iteration(table, 0.9).shape == (1, 0)


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
    with pytest.raises(UsageError, match="leaves must be"):
        MCTS(leaves=0).search(Bet(), ["start"], bets, rngs(1))
    with pytest.raises(UsageError, match="backup must be one of mean, max"):
        MCTS(backup="median").search(Bet(), ["start"], bets, rngs(1))
    with pytest.raises(UsageError, match="more than 3 states"):
        tabulate(Bet(), ["start"], bets, np.random.default_rng(0), draws=50, most=3)


class Walk:
    """Along the numbers for ever; a reward of 1 a step."""

    def step(self, states, actions, rngs):
        return [Prediction(False, 1.0, (s + a) % 5) for s, a in zip(states, actions, strict=True)]


def test_values_that_do_not_settle_are_said():
    table = tabulate(Walk(), [0], lambda state: (1, -1), np.random.default_rng(0))
    assert value_iteration(table, 0.5) == pytest.approx(np.full((5, 2), 2.0))
    assert value_iteration(table, 0.999) == pytest.approx(np.full((5, 2), 1000.0))
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


@pytest.mark.parametrize("evaluator", [None, Uniform(places)])
def test_tree_search_plays_tic_tac_toe_without_a_mistake(evaluator):
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
    search = MCTS(simulations=3_000, c=1.4, gamma=1.0, chance=False, turn=turn, evaluator=evaluator)
    roots = search.search(TicTacToe(), boards, places, rngs(12))
    best = [max(exact(board).values()) for board in boards]
    assert [exact(board)[root.best] for board, root in zip(boards, roots, strict=True)] == best
    assert [root.values[root.visits.argmax()] for root in roots] == pytest.approx(best, abs=0.25)


# ---- random MDPs ------------------------------------------------------------------------------------------


class Layers:
    """Four layers of three states; three actions with one or two outcomes each, which lead a layer down."""

    def __init__(self, seed, chance):
        rng = np.random.default_rng(seed)
        self.chance = chance
        self.outcomes = rng.integers(3, size=(4, 3, 3, 2))
        self.rewards = rng.integers(-2, 3, size=(4, 3, 3)).astype(float)

    def step(self, states, actions, rngs):
        return [self.one(*query) for query in zip(states, actions, rngs, strict=True)]

    def one(self, state, action, rng):
        layer, place = state
        outcome = int(rng.integers(2)) if self.chance else 0
        after = layer + 1, int(self.outcomes[layer, place, action, outcome])
        return Prediction(
            layer == 3, float(self.rewards[layer, place, action]), None if layer == 3 else after
        )

    def actions(self, state):
        return range(3)

    def exact(self, state):
        layer, place = state
        if layer == 4:
            return np.zeros(3)
        after = self.outcomes[layer, place][:, : 2 if self.chance else 1]
        worth = [np.mean([self.exact((layer + 1, int(p))).max() for p in own]) for own in after]
        return self.rewards[layer, place] + 0.9 * np.array(worth)


class Informed:
    """The exact value and equal priors; counts its calls and what it was asked."""

    def __init__(self, mdp):
        self.mdp, self.batches = mdp, []

    def evaluate(self, states):
        self.batches.append(list(states))
        return [np.full(3, 1 / 3)] * len(states), [self.mdp.exact(state).max() for state in states]


@pytest.mark.parametrize("chance", [False, True])
@pytest.mark.parametrize("backup", ["mean", "max"])
@pytest.mark.parametrize("leaves", [1, 4])
def test_tree_search_agrees_with_exact_values_of_random_mdps(chance, backup, leaves):
    for seed in range(3):
        mdp = Layers(seed, chance)
        for evaluator in (None, Uniform(mdp.actions), Informed(mdp)):
            search = MCTS(
                simulations=1_500,
                c=4.0 if backup == "mean" else 10.0,
                gamma=0.9,
                chance=chance,
                evaluator=evaluator,
                leaves=leaves,
                backup=backup,
            )
            (root,) = search.search(mdp, [(0, 0)], mdp.actions, rngs(1, seed))
            exact = mdp.exact((0, 0))
            assert root.values.max() == pytest.approx(exact.max(), abs=0.5)
            assert exact[root.best] > exact.max() - 0.4
            assert root.visits.sum() == 1_500


def test_the_largest_backup_is_exact_without_chance_where_every_step_was_taken():
    mdp = Layers(0, chance=False)
    search = MCTS(simulations=4_000, c=50.0, gamma=0.9, chance=False, evaluator=Informed(mdp), backup="max")
    (root,) = search.search(mdp, [(0, 0)], mdp.actions, rngs(1))
    assert root.values == pytest.approx(mdp.exact((0, 0)), abs=1e-9)


# ---- the evaluator ----------------------------------------------------------------------------------------


def grown(node):
    """A tree in full."""
    children = [[(after, grown(child)) for after, child in edge.children.items()] for edge in node.edges]
    return node.state, node.visits.tolist(), node.values.tolist(), children


@pytest.mark.parametrize("chance", [False, True])
@pytest.mark.parametrize("leaves", [1, 5])
def test_trees_are_the_same_one_by_one_and_the_evaluator_is_asked_once_a_round(chance, leaves):
    mdp = Layers(1, chance)
    starts = [(0, 0), (0, 1), (0, 2), (1, 0)]
    both, alone = Informed(mdp), Informed(mdp)
    search = MCTS(simulations=23, chance=chance, evaluator=both, leaves=leaves)
    side_by_side = search.search(mdp, starts, mdp.actions, rngs(4))
    search = MCTS(simulations=23, chance=chance, evaluator=alone, leaves=leaves)
    one_by_one = [
        search.search(mdp, [s], mdp.actions, [rng])[0] for s, rng in zip(starts, rngs(4), strict=True)
    ]
    assert [grown(root) for root in side_by_side] == [grown(root) for root in one_by_one]
    assert sum(map(len, both.batches)) == sum(map(len, alone.batches))
    assert both.batches[0] == starts
    assert len(both.batches) <= 1 + -(-23 // leaves), "the roots, then once a round"
    assert max(map(len, both.batches[1:])) > len(starts) * (leaves > 1), "several of each tree"


def test_descents_of_a_round_spread_and_leave_no_mark():
    mdp = Layers(2, chance=False)
    told = Informed(mdp)
    (root,) = MCTS(simulations=3, leaves=3, evaluator=told).search(mdp, [(0, 0)], mdp.actions, rngs(1))
    assert root.visits.tolist() == [1, 1, 1]
    assert [edge.pending for edge in root.edges] == [0, 0, 0]
    assert len(told.batches) == 2


def test_descents_that_end_in_the_same_state_are_one_question():
    class Counting(Uniform):
        batches = ()

        def evaluate(self, states):
            self.batches += (len(states),)
            return super().evaluate(states)

    told = Counting(lambda state: (1,))
    (root,) = MCTS(simulations=12, leaves=4, evaluator=told).search(Walk(), [0], told.actions, rngs(1))
    assert root.visits.tolist() == [12]
    assert told.batches == (1, 1, 1, 1), "the root, and the end of the way in each round"


def test_a_prior_directs_the_search():
    class Sure(Informed):
        def evaluate(self, states):
            return [np.array([0.0, 1.0, 0.0])] * len(states), np.zeros(len(states))

    mdp = Layers(0, chance=False)
    (root,) = MCTS(simulations=30, c=100.0, evaluator=Sure(mdp)).search(mdp, [(0, 0)], mdp.actions, rngs(1))
    assert root.visits.tolist() == [0, 30, 0]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (([], []), "0 priors and 0 values for 1 states"),
        (([np.ones(3)], []), "1 priors and 0 values"),
        (([np.ones(2)], [0.0]), r"shape \(2,\) for 3 actions"),
        (([np.ones(3)], [float("nan")]), "not a finite number"),
        (([np.array([1, float("inf"), 0])], [0.0]), "not a finite number"),
        (([np.array([1, -1, 0])], [0.0]), "negative"),
    ],
)
def test_an_evaluator_that_cannot_be_used_is_said(answer, told):
    class Wrong:
        def evaluate(self, states):
            return answer

    with pytest.raises(UsageError, match=told):
        MCTS(evaluator=Wrong()).search(Layers(0, False), [(0, 0)], lambda state: range(3), rngs(1))


# ---- UCT as it was before there was an evaluator ----------------------------------------------------------


def before(model, state, actions, rng, search, turn=lambda state: 0):
    """UCT with random rollouts, written out on its own: the reference for trees to the last bit."""
    new = lambda state: (state, actions(state), [[0, 0.0, None, {}] for _ in actions(state)])  # noqa: E731
    ask = lambda state, action: model.step([state], [action], [rng])[0]  # noqa: E731
    root = new(state)
    for _ in range(search.simulations):
        node, value, way = root, 0.0, []
        while node[1] and len(way) < search.depth:
            n = sum(edge[0] for edge in node[2])
            scores = [e[1] / max(e[0], 1) + search.c * sqrt(log(n) / e[0]) if e[0] else inf for e in node[2]]
            ties = [i for i, score in enumerate(scores) if score == max(scores)]
            i = ties[int(rng.integers(len(ties)))] if len(ties) > 1 else ties[0]
            edge = node[2][i]
            if search.chance or edge[2] is None:
                edge[2] = ask(node[0], node[1][i])
            way.append((node[0], edge, edge[2]))
            after = edge[2].next_state
            if edge[2].done or after is None:
                break
            if after not in edge[3]:
                edge[3][after] = new(after)
                weight = 1.0
                for _ in range(search.depth):
                    if not actions(after):
                        break
                    found = ask(after, actions(after)[int(rng.integers(len(actions(after))))])
                    value += weight * (found.reward or 0.0)
                    if found.done or found.next_state is None:
                        break
                    weight *= search.gamma * (1 if turn(after) == turn(found.next_state) else -1)
                    after = found.next_state
                break
            node = edge[3][after]
        for state, edge, found in reversed(way):
            same = found.done or found.next_state is None or turn(state) == turn(found.next_state)
            value = (found.reward or 0.0) + search.gamma * (1 if same else -1) * value
            edge[0] += 1
            edge[1] += value
    return root


def as_grown(node):
    state, _, edges = node
    children = [[(after, as_grown(child)) for after, child in edge[3].items()] for edge in edges]
    return state, [edge[0] for edge in edges], [edge[1] / max(edge[0], 1) for edge in edges], children


@pytest.mark.parametrize(
    "settings", [{}, {"depth": 2}, {"depth": 1}, {"c": 3.0, "gamma": 0.9, "simulations": 200}]
)
@pytest.mark.parametrize("chance", [True, False])
def test_uct_with_rollouts_is_to_the_last_bit_what_it_was(settings, chance):
    search, mdp = MCTS(chance=chance, **settings), Layers(3, chance)
    for model, start, actions in ((Bet(), "start", bets), (mdp, (0, 0), mdp.actions)):
        roots = search.search(model, [start] * 3, actions, rngs(3))
        assert [grown(r) for r in roots] == [
            as_grown(before(model, start, actions, rng, search)) for rng in rngs(3)
        ]
    two = MCTS(chance=chance, turn=turn, **settings)
    (root,) = two.search(TicTacToe(), ["xo......."], places, rngs(1))
    assert grown(root) == as_grown(before(TicTacToe(), "xo.......", places, rngs(1)[0], two, turn))


# ---- environments -----------------------------------------------------------------------------------------


def made(id):
    env = hunch.make(id)
    _, info = env.reset(seed=0)
    return TrueCopy(env), frozen(info["raw"]), lambda state: info["actions"]


def test_breadth_first_search_finds_the_shortest_way():
    model, start, actions = made("hunch/FrozenLake-v0")
    rng = np.random.default_rng(0)
    way = breadth_first(model, start, actions, lambda step: step.reward > 0, rng).path
    env = hunch.make("hunch/FrozenLake-v0")
    env.reset(seed=0)
    assert len(way) == len(env.unwrapped.oracle()) == 6
    assert [env.step(action)[1] for action in way][-1] == 1
    assert breadth_first(model, start, actions, lambda step: step.reward > 1, rng) == (None, True)
    assert breadth_first(model, start, actions, lambda step: step.reward > 0, rng, most=3) == (None, False)


def test_value_iteration_in_cliff_walking_is_the_known_optimum():
    model, start, actions = made("hunch/CliffWalking-v0")
    table = tabulate(model, [start], actions, np.random.default_rng(0))
    assert len(table.states) == 37, "48 cells without cliff and goal"
    assert value_iteration(table, 1.0)[0].max() == -13
