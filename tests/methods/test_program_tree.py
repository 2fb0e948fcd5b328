"""The searches of world models: the tree of GIF-MCTS against figures by hand, and WorldCoder's draws."""

from collections import Counter
from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest

from hunch.core import UsageError
from hunch.methods.program.gif_mcts import ProgramTree
from hunch.roles.writer.programs import Attempt, shown
from hunch.roles.writer.search import SCRATCH, RepairFirst, Thompson

PROGRAM = "\n".join(f"line {i}" for i in range(9))
GENERATE, IMPROVE, FIX = range(3)
RNG = np.random.default_rng(0)


def tried(number, fitness, parent=(), group=GENERATE, error="boom"):
    parents = (parent,) if isinstance(parent, int) else parent
    why = "" if fitness is not None else error
    return Attempt(number, PROGRAM, fitness, parents=parents, group=group, error=why)


def told(*attempts, **settings):
    tree = ProgramTree(**settings)
    tree.tell(attempts, RNG)
    return tree


def asked(tree, n=1):
    return [((r.parents[-1].number if r.parents else -1), r.group) for r in tree.ask(n, RNG)]


def test_the_first_programs_come_from_nothing():
    assert asked(ProgramTree(), 3) == [(-1, GENERATE)] * 3


def test_the_bounds_of_the_root_are_those_by_hand():
    """After one program of 0.8: its own bound against that of another from nothing."""
    tree = told(tried(0, 0.8))
    old, new = tree._options(tree.root, Counter())
    bonus = 0.1 * sqrt(log(2) / 2)
    everywhere = (2 * 0.5 + 0.8) / 3
    assert old[0] == pytest.approx(0.8 + bonus)
    assert new == (pytest.approx((everywhere + 0.8) / 2 + bonus), "generate")
    assert asked(tree) == [(0, GENERATE)], "which is expected to be worth 0.6, and improve 0.55"


def test_a_good_program_is_worked_on_and_a_bad_one_left():
    assert asked(told(tried(0, 0.95)))[0][0] == 0
    assert asked(told(tried(0, 0.05))) == [(-1, GENERATE)]


def test_generate_shows_first_lines_and_nothing_of_what_became_of_them():
    tree = told(tried(0, 0.95), initial=(0.5, 0.0, 0.0))
    (request,) = tree.ask(1, RNG)
    assert request.group == GENERATE
    assert request.parents[0].program == "line 0\nline 1"
    assert shown(request, [], "own", RNG) == (request.parents, "")
    deeper = told(tried(0, 0.95), tried(1, 0.99, 0), initial=(0.5, 0.0, 0.0))
    assert deeper.ask(1, RNG)[0].parents[0].program.count("\n") == 3, "two lines more at each level"


def test_a_failure_is_fixed_at_most_so_often_and_then_left():
    tree = told(tried(0, None), initial=(0.0, 0.55, 0.5))
    assert tree.root.children[0].value == pytest.approx(0.99)
    assert asked(tree) == [(0, FIX)]
    tree.tell([tried(1, None, 0, FIX)], RNG)
    assert tree.nodes[0].value == pytest.approx(0.66)
    assert tree.nodes[1].value == pytest.approx(0.66)
    assert asked(tree) == [(1, FIX)]
    tree.tell([tried(2, None, 1, FIX)], RNG)
    assert asked(tree) == [(2, FIX)]
    tree.tell([tried(3, None, 2, FIX)], RNG)
    assert [tree.nodes[i].closed for i in range(4)] == [True] * 4
    assert [tree.nodes[i].value for i in range(4)] == [0] * 4
    assert asked(tree) == [(-1, GENERATE)]


def test_a_fix_makes_what_it_fixed_worth_as_much():
    tree = told(tried(0, None), tried(1, None, 0, FIX), tried(2, 0.9, 1, FIX))
    assert [tree.nodes[i].value for i in range(3)] == pytest.approx([0.9] * 3)
    assert asked(tree)[0][0] == 2


def test_a_repair_outside_of_the_tree_is_a_fix():
    search = RepairFirst(ProgramTree(), 2)
    search.tell([tried(0, None)], RNG)
    (request,) = search.ask(1, RNG)
    search.tell([tried(1, 0.9, 0, request.group)], RNG)
    tree = search.search
    assert (tree.nodes[1].kind, tree.nodes[0].value) == ("fix", 0.9)
    assert [tree.expected[kind].count for kind in ("generate", "improve", "fix")] == [3, 2, 3]


def test_several_at_a_time_do_not_ask_for_the_same_fix():
    tree = told(tried(0, None))
    assert sorted(asked(tree, 3)) == [(-1, GENERATE), (-1, GENERATE), (0, FIX)]


def test_no_fixes_at_all():
    tree = told(tried(0, None), fixes=0)
    assert asked(tree) == [(-1, GENERATE)]


def test_expectations_learn_from_results():
    """Where improving is worth more than it seems, it comes to be expected."""
    tree = told(tried(0, 0.5), *(tried(i, 0.9, 0, IMPROVE) for i in range(1, 6)))
    improve, generate = tree.expected["improve"], tree.expected["generate"]
    assert improve([]) == pytest.approx((2 * 0.55 + 5 * 0.9) / 7)
    assert generate([]) == pytest.approx((2 * 0.5 + 0.5) / 3)
    here = tree.nodes[0].of("improve")
    assert improve.weights[1] > improve.weights[0], "the siblings foretold it better than all"
    assert improve([]) < improve(here) < 0.9


def test_a_tree_is_rebuilt_from_its_attempts():
    attempts = [tried(0, 0.5), tried(1, None, 0, IMPROVE), tried(2, 0.6, 1, FIX)]
    attempts += [tried(3, 0.7, 0), tried(4, 0.2)]
    once, later = told(*attempts), ProgramTree()
    for attempt in attempts:
        later.ask(2, RNG)
        later.tell([attempt], RNG)
    assert [n.total for n in once.nodes.values()] == [n.total for n in later.nodes.values()]
    assert once.root.visits == later.root.visits == 6
    once.tell([tried(5, 0.9, 4, -1)], RNG)
    assert once.root.visits == 6, "a winner that is submitted again is no news"


def refined(search, n=300):
    """Return the numbers of the parents of n requests; ``SCRATCH`` stands for none."""
    requests = search.ask(n, np.random.default_rng(0))
    return [request.parents[0].number if request.parents else SCRATCH for request in requests]


def test_thompson_draws_by_fitness_and_past_failures():
    search = Thompson(5.0)
    search.tell([tried(0, 0.9), replace(tried(1, 0.1), program="another")], RNG)
    assert search.beta(0) == pytest.approx((5.5, 1.5))
    drawn = Counter(refined(search))
    assert drawn[0] > 200
    assert min(drawn[1], drawn[SCRATCH]) > 0
    search.tell([tried(2 + i, 0.0, 0) for i in range(20)], RNG)
    assert search.beta(0) == pytest.approx((5.5, 21.5))
    search.tell([tried(30, 1.0, 0)], RNG)
    assert search.beta(0) == pytest.approx((5.5, 21.5)), "one that is perfect is no failure"


def test_thompson_sampling_says_that_a_fitness_has_to_be_a_share():
    with pytest.raises(UsageError, match=r"fitness from 0 to 1, such as .* a program has 9\.4"):
        Thompson().tell([tried(0, 9.4)], RNG)


def test_thompson_goes_on_writing_from_scratch():
    search = Thompson()
    assert refined(search, 3) == [SCRATCH] * 3
    search.tell([tried(0, None), tried(1, 0.0)], RNG)
    assert refined(search, 3) == [SCRATCH] * 3, "what explains nothing is not refined"
    assert search.beta(SCRATCH) == (1, 3)
    search.tell([replace(tried(2, 0.5), group=-1), tried(3, 0.5, 2)], RNG)
    assert search.beta(SCRATCH) == (1, 3), "a program from before was not written now"
    assert set(refined(search)) == {SCRATCH, 2}, "the same program is one arm"
