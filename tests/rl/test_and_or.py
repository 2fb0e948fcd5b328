"""AND-OR search against all proofs of small random problems, and its budget, batches and proofs."""

from itertools import pairwise

import numpy as np
import pytest

from hunch.core import UsageError
from hunch.rl.and_or import AndOr
from hunch.rl.evaluator import Uniform

RULES = ["puct", "breadth", "best"]


def rngs(n, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(n)]


def together(table):
    """The moves of goals, from the moves of each."""
    return lambda goals: [table(goal) for goal in goals]


class Told:
    """Some priors and values that depend on the goal alone; counts its calls."""

    def __init__(self, table, seed=0):
        self.table, self.seed, self.batches = table, seed, []

    def evaluate(self, goals):
        self.batches.append(list(goals))
        drawn = [np.random.default_rng([self.seed, abs(hash(goal))]) for goal in goals]
        priors = [
            rng.dirichlet(np.ones(len(self.table(goal)))) for goal, rng in zip(goals, drawn, strict=True)
        ]
        return priors, [rng.random() for rng in drawn]


class Graph:
    """Goals are numbers; moves lead to random goals, in circles too."""

    def __init__(self, seed, n=5):
        rng = np.random.default_rng(seed)
        self.rows = [
            [(f"m{i}", tuple(map(int, rng.integers(n, size=k)))) for i, k in enumerate(own)]
            for own in [rng.choice([0, 1, 2], p=[0.12, 0.38, 0.5], size=rng.integers(3)) for _ in range(n)]
        ]

    def __call__(self, goal):
        return self.rows[goal]

    def provable(self):
        """Every goal that holds: those of moves whose subgoals all hold, again and again."""
        holds = set()
        for _ in self.rows:
            holds |= {
                g for g, row in enumerate(self.rows) if any(holds.issuperset(parts) for _, parts in row)
            }
        return holds


class Endless:
    """Every goal has three moves with one, two and two new subgoals; none is ever proved."""

    def __call__(self, goal):
        return [(i, tuple((*goal, 3 * i + j) for j in range(1 + (i > 0)))) for i in range(3)]


def check(proof, table, above=()):
    """A proof goes by the moves of its goals, and never comes back to a goal above."""
    assert proof.goal not in above
    assert (proof.action, tuple(part.goal for part in proof.parts)) in table(proof.goal)
    assert proof.size == 1 + sum(part.size for part in proof.parts)
    for part in proof.parts:
        check(part, table, (*above, proof.goal))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("combine", ["product", "minimum"])
@pytest.mark.parametrize(("leaves", "backup"), [(1, "mean"), (4, "max")])
def test_what_holds_is_proved_and_what_does_not_is_refuted(rule, combine, leaves, backup):
    search = AndOr(budget=30_000, rule=rule, combine=combine, leaves=leaves, backup=backup)
    verdicts = []
    for seed in range(40):
        table = Graph(seed)
        trees = search.search(range(5), together(table), Told(table), rngs(5, seed))
        found = {tree.root.state for tree in trees if tree.root.proof is not None}
        assert found == table.provable()
        assert all(tree.root.refuted for tree in trees if tree.root.proof is None)
        for tree in trees:
            if tree.root.proof is not None:
                check(tree.root.proof, table)
        verdicts += [tree.root.refuted for tree in trees]
    assert 0.2 < np.mean(verdicts) < 0.8


def sizes(table, n, rounds=20):
    """The size of the smallest proof of every goal."""
    size = [np.inf] * n
    for _ in range(rounds):
        size = [
            min((1 + sum(size[p] for p in parts) for _, parts in table(g)), default=np.inf) for g in range(n)
        ]
    return size


def test_with_exact_priors_and_values_the_smallest_proof_is_found_at_once():
    class Exact(Told):
        def evaluate(self, goals):
            size = sizes(self.table, 12)
            left = [[1 + sum(size[p] for p in parts) for _, parts in self.table(g)] for g in goals]
            return [np.eye(len(own))[np.argmin(own)] for own in left], [0.9 ** size[g] for g in goals]

    tried = 0
    for seed in range(100):
        table = Graph(seed, 12)
        for goal, size in enumerate(sizes(table, 12)):
            if np.isfinite(size):
                (tree,) = AndOr(gamma=0.9).search([goal], together(table), Exact(table), rngs(1))
                assert tree.root.proof.size == tree.expansions == size
                tried += size > 3
    assert tried > 20


# ---- the budget, batches, seeds ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("budget", [1, 2, 7, 50])
@pytest.mark.parametrize("leaves", [1, 3, 16])
def test_the_budget_is_spent_to_the_last_expansion_and_never_passed(rule, budget, leaves):
    expanded, told = [], Told(Endless())

    def moves(goals):
        expanded.extend(goals)
        return [Endless()(goal) for goal in goals]

    (tree,) = AndOr(budget=budget, rule=rule, leaves=leaves).search([()], moves, told, rngs(1))
    assert tree.expansions == len(expanded) == len(set(expanded)) == sum(map(len, told.batches)) == budget
    assert tree.root.open


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("leaves", [1, 4])
def test_trees_are_the_same_one_by_one_and_all_leaves_are_one_question(rule, leaves):
    def grown(goal):
        moves = [
            (m.action, m.visits, m.total, m.pending, list(map(grown, m.subgoals))) for m in goal.moves or ()
        ]
        return goal.state, goal.value, goal.refuted, moves

    search, starts = AndOr(budget=30, rule=rule, leaves=leaves), [(i,) for i in range(5)]
    both, alone = Told(Endless()), Told(Endless())
    side_by_side = search.search(starts, together(Endless()), both, rngs(5))
    again = search.search(starts, together(Endless()), Told(Endless()), rngs(5))
    one_by_one = [
        search.search([start], together(Endless()), alone, [rng])[0]
        for start, rng in zip(starts, rngs(5), strict=True)
    ]
    assert [grown(t.root) for t in side_by_side] == [grown(t.root) for t in one_by_one]
    assert [grown(t.root) for t in side_by_side] == [grown(t.root) for t in again]
    assert both.batches[0] == starts
    assert len(both.batches) <= 30
    assert len(both.batches) < len(alone.batches) / 3
    assert {move for tree in side_by_side for move in [m.pending for m in tree.root.moves]} == {0}


def test_ties_are_broken_by_the_seed():
    trees = AndOr(budget=5).search([()] * 20, together(Endless()), Uniform(Endless(), 0.5), rngs(20))
    assert len({tuple(move.visits for move in tree.root.moves) for tree in trees}) > 1


def test_breadth_first_goes_by_depth_and_best_first_by_the_product_of_priors():
    class Sure(Told):
        def evaluate(self, goals):
            super().evaluate(goals)
            return [np.array([0.1, 0.7, 0.2])] * len(goals), [0.5] * len(goals)

    asked = {}
    for rule in RULES:
        told = Sure(Endless())
        AndOr(budget=40, rule=rule).search([()], together(Endless()), told, rngs(1))
        asked[rule] = [goal for batch in told.batches for goal in batch]
    assert [len(goal) for goal in asked["breadth"]] == sorted(len(goal) for goal in asked["breadth"])
    chance = [np.prod([(0.1, 0.7, 0.2)[i // 3] for i in goal]) for goal in asked["best"]]
    assert all(one >= other - 1e-12 for one, other in pairwise(chance))
    assert asked["puct"] != asked["best"] != asked["breadth"]


# ---- by hand ----------------------------------------------------------------------------------------------


def searched(rows, values=None, goal="a", **settings):
    class Valued(Uniform):
        def evaluate(self, goals):
            return super().evaluate(goals)[0], [(values or {}).get(g, 0.5) for g in goals]

    table = lambda goal: rows.get(goal, ())  # noqa: E731
    (tree,) = AndOr(**settings).search([goal], together(table), Valued(table), rngs(1))
    return tree


@pytest.mark.parametrize("rule", RULES)
def test_a_goal_that_is_its_own_ancestor_is_no_proof(rule):
    circle = {"a": [("on", ("b",))], "b": [("back", ("a",))]}
    assert searched({"a": [("stay", ("a",))]}, rule=rule).root.refuted
    assert searched(circle, rule=rule).root.refuted
    tree = searched(circle | {"b": [("back", ("a",)), ("out", ())]}, rule=rule)
    assert tree.root.proof.parts[0].action == "out"
    beside = {"a": [("both", ("b", "b"))], "b": [("out", ())]}
    assert searched(beside, rule=rule).root.proof.size == 3, "twice beside each other is no circle"


@pytest.mark.parametrize("rule", RULES)
def test_a_goal_without_moves_is_refuted_and_one_that_is_closed_costs_one_expansion(rule):
    assert (searched({}, rule=rule).root.refuted, searched({}, rule=rule).expansions) == (True, 1)
    closed = searched({"a": [("close", ())]}, rule=rule)
    assert (closed.root.proof.size, closed.expansions) == (1, 1)
    dead = {"a": [("two", ("b", "c"))], "c": [("c", ("d",))], "d": [("d", ("e",))], "b": ()}
    tree = searched(dead, rule=rule)
    assert tree.root.refuted
    assert tree.expansions <= 3, "what is beside a refuted goal is not wanted"


@pytest.mark.parametrize("rule", ["breadth", "best"])
def test_goals_beside_a_refuted_one_are_not_expanded(rule):
    rows = {"a": [("two", ("b", "c")), ("long", ("d",))], "c": [("c", ("f",))], "d": [("d", ("e",))]}
    tree = searched(rows | {"e": [("e", ())]}, rule=rule)
    assert tree.root.proof.action == "long"
    assert tree.expansions == 4, "a, b, d and e, without c"


@pytest.mark.parametrize(("combine", "value"), [("product", 0.9 * 0.8 * 0.5), ("minimum", 0.9 * 0.5)])
def test_subgoals_are_combined_and_a_proved_one_counts_one(combine, value):
    rows = {"a": [("split", ("b", "c"))], "b": [("b", ("d",))], "c": [("c", ("e",))]}
    tree = searched(rows, {"b": 0.8, "c": 0.5}, combine=combine, gamma=0.9, budget=3)
    assert tree.root.moves[0].visits == 1
    assert tree.root.moves[0].value == pytest.approx(value)
    tree = searched(rows | {"b": [("b", ())]}, {"c": 0.5}, combine=combine, gamma=0.9, budget=3)
    assert tree.root.moves[0].value == pytest.approx(0.9 * 0.5)


def test_backups_by_hand():
    """Values 0.5, then 0.2 below it: the mean is between, the other backup says what is known now."""
    rows = {"a": [("a", ("b",))], "b": [("b", ("c",))], "c": [("c", ("d",))]}
    for backup, value in (("mean", (0.9 * 0.5 + 0.81 * 0.2) / 2), ("max", 0.81 * 0.2)):
        tree = searched(rows, {"b": 0.5, "c": 0.2}, backup=backup, gamma=0.9, budget=3)
        assert tree.root.moves[0].value == pytest.approx(value)


def test_all_open_subgoals_of_a_move_are_one_question():
    rows = {
        "a": [("split", ("b", "c", "d"))],
        "b": [("b", ("e",))],
        "c": [("c", ("f",))],
        "d": [("d", ("g",))],
    }
    told = Told(lambda goal: rows.get(goal, ()))
    AndOr(budget=4).search(["a"], together(told.table), told, rngs(1))
    assert told.batches == [["a"], ["b", "c", "d"]]


def test_a_proof_may_be_deeper_than_pythons_stack():
    table = lambda goal: [("down", (goal + 1,) if goal < 1_100 else ())]  # noqa: E731
    (tree,) = AndOr(budget=2_000, rule="best").search([0], together(table), Uniform(table, 0.5), rngs(1))
    assert tree.root.proof.size == tree.expansions == 1_101


@pytest.mark.parametrize(
    ("settings", "value", "told"),
    [
        ({"budget": 0}, 0.5, "budget must be"),
        ({"leaves": 0}, 0.5, "leaves must be"),
        ({"rule": "depth"}, 0.5, "rule must be one of puct, breadth, best"),
        ({"combine": "mean"}, 0.5, "combine must be one of product, minimum"),
        ({}, 1.5, "from 0 to 1, not 1.5"),
        ({}, float("nan"), "not a finite number"),
    ],
)
def test_bad_input_is_one_sentence(settings, value, told):
    with pytest.raises(UsageError, match=told):
        AndOr(**settings).search([()], together(Endless()), Uniform(Endless(), value), rngs(1))
    with pytest.raises(UsageError, match="for 3 actions"):
        AndOr().search([()], together(Endless()), Uniform(lambda goal: "ab"), rngs(1))
