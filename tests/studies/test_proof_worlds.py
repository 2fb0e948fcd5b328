"""Theorems, and the environment of proofs."""

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.envs.proofs import kernel
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import FALSE, Goal, counter_model, read
from hunch.envs.proofs.statements import variants
from hunch.envs.proofs.tactics import moves, named, tactics, term
from hunch.rl.and_or import AndOr
from hunch.rl.evaluator import Uniform
from hunch.rl.search import MCTS
from hunch.rl.world_model import TrueCopy
from hunch_studies.worlds.proofs import decide
from hunch_studies.worlds.proofs.decide import witness
from hunch_studies.worlds.proofs.theorems import (
    SIZES,
    Size,
    canonical,
    is_held_out,
    pool,
    random_goal,
    textbook,
)

SMALL = Size((1, 3), 3, (1, 3))


def proofs(goals, budget=128):
    search = AndOr(budget=budget)
    rngs = [np.random.default_rng(i) for i in range(len(goals))]
    trees = search.search(goals, moves, Uniform(tactics, 0.5), rngs)
    return [(goal, tree) for goal, tree in zip(goals, trees, strict=True)]


def some_goals(n=150):
    rng = np.random.default_rng(0)
    found = [random_goal(rng, SMALL) for _ in range(n)]
    return [goal for goal in found if not goal.closed]


def test_what_is_written_is_read_back():
    for goal in some_goals() + list(textbook().values()):
        assert read(str(goal)) == goal
        assert english(goal).count("Show that") == 1


def monotone(world):
    return all(world.true <= other.true and monotone(other) for other in world.above)


def test_each_statement_has_a_proof_or_a_model_that_refutes_it():
    both = set()
    for goal, tree in proofs(some_goals(60), 2_000):
        world = witness(goal)
        assert (world is None) == (tree.root.proof is not None)
        assert world is None or (world.refutes(goal) and monotone(world))
        found = counter_model(goal)
        assert found is None or (found.refutes(goal) and monotone(found) and world is not None)
        both.add(world is None)
    assert both == {True, False}


@pytest.mark.parametrize("text", ["p | ~p", "~~p -> p", "((p -> q) -> p) -> p", "(p -> q) | (q -> p)"])
def test_classical_laws_are_refuted_by_more_than_one_world(text):
    world = witness(read(text))
    assert world.above
    assert world.refutes(read(text))


def test_the_kernel_accepts_what_tactics_prove_and_no_proof_of_what_a_model_refutes():
    found = [(g, term(g, t.root.proof)) for g, t in proofs(some_goals(90), 300) if t.root.proof]
    assert len(found) > 15
    others = [goal for goal in some_goals(90) if witness(goal) is not None]
    for goal, proof in found:
        kernel.check(goal, proof)
        kernel.check(goal, kernel.written(proof))
        assert not any(kernel.accepts(other, proof) for other in others)


def test_pools_for_training_share_nothing_with_what_is_held_out():
    train = pool("easy", 40, 0) + pool("easy", 40, 1)
    held = pool("easy", 40, 0, held_out=True) + pool("easy", 40, 7, held_out=True)
    assert not set(map(canonical, train)) & set(map(canonical, held))
    assert not any(map(is_held_out, train))
    assert len(set(pool("easy", 40, 0))) == 40
    assert pool("easy", 20, 0) == pool("easy", 40, 0)[:20]


def test_theorems_of_a_pool_need_their_hypotheses_and_do_not_follow_from_a_contradiction():
    for goal in pool("easy", 40, 3) + pool("hard", 10, 3):
        assert witness(goal) is None
        assert witness(Goal(goal.hypotheses, FALSE)) is not None
        needed = [
            h
            for h in goal.hypotheses
            if witness(Goal(tuple(o for o in goal.hypotheses if o != h), goal.conclusion)) is not None
        ]
        assert len(needed) >= 2


def test_renaming_does_not_change_the_canonical_form():
    rng = np.random.default_rng(1)
    for goal in [random_goal(rng, SIZES["hard"]) for _ in range(30)] + list(textbook().values())[:20]:
        atoms = goal.atoms
        other = goal.renamed(dict(zip(atoms, (f"x{i}" for i in rng.permutation(len(atoms))), strict=True)))
        assert canonical(goal) == canonical(other) == canonical(canonical(goal))


def test_textbook_theorems_are_theorems():
    assert len(textbook()) == 22
    assert all(witness(goal) is None for goal in textbook().values())


def test_variants_differ_from_their_statement():
    goal = pool("hard", 1, 0)[0]
    found = variants(goal, 20, np.random.default_rng(0))
    assert len(set(found)) == 20
    assert goal not in found


@pytest.mark.parametrize("options", [{}, {"whole": True}, {"whole": True, "english": True}])
def test_the_environment_keeps_the_contract(options):
    hunch.envs.check(hunch.make("hunch/Proof-v0", pool="easy", theorems=6, **options))


def test_a_proof_by_tactics_is_a_success_of_the_environment():
    env = hunch.make("hunch/Proof-v0", pool="easy", theorems=6)
    for number, (goal, tree) in enumerate(proofs(pool("easy", 6, 0))):
        if tree.root.proof is None:
            continue
        env.reset(options={"theorem": number})
        left, rewards = [tree.root.proof], 0.0
        while left:
            proof = left.pop(0)
            _, reward, over, _, info = env.step(named(proof.goal, proof.action))
            rewards += reward
            left = [*proof.parts, *left]
        assert over
        assert info["success"]
        assert rewards == -tree.root.proof.size
        whole = hunch.make("hunch/Proof-v0", pool="easy", theorems=6, whole=True)
        whole.reset(options={"theorem": number})
        _, reward, _, _, info = whole.step(kernel.written(term(goal, tree.root.proof)))
        assert reward == 1.0
        assert info["event"].startswith("Proved:\n")


def test_a_dead_end_costs_all_remaining_steps():
    env = hunch.make("hunch/Proof-v0", statement="p & q |- p | r", max_steps=10)
    env.reset()
    _, reward, over, _, info = env.step("right")
    assert not over
    _, reward, over, _, info = env.step("cases h1")
    assert (reward, over, info["success"], info["actions"]) == (-9.0, True, False, ())


def test_an_empty_or_wrong_proof_is_a_failed_attempt():
    env = hunch.make("hunch/Proof-v0", statement="p & q |- q & p", whole=True)
    for action, why in (("", "There is no proof."), ("h1", "h1 proves p & q and not q & p.")):
        env.reset()
        _, reward, over, _, info = env.step(action)
        assert (reward, over, info["success"], info["event"]) == (0.0, True, False, why)


def test_a_search_on_the_stack_of_goals_can_play_it():
    env = hunch.make("hunch/Proof-v0", statement="p -> q, q -> r |- p -> r")
    _, info = env.reset(seed=0)
    search = MCTS(simulations=200)

    def actions(goals):
        return [named(goal, tactic) for goal in map(read, goals[:1]) for tactic, _ in tactics(goal)]

    (root,) = search.search(TrueCopy(env), [info["raw"]], actions, [np.random.default_rng(0)])
    assert root.best in info["actions"]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("p |- q", "it fails where p is true and all else false"),
        ("(p -> q) -> p |- p", "it fails in the Kripke model nothing \\[p\\]"),
        ("p |- p", "nothing to prove"),
        ("p -> |- q", "at character 6"),
    ],
)
def test_what_is_no_theorem_is_refused_with_a_witness(statement, why):
    with pytest.raises(UsageError, match=why):
        hunch.make("hunch/Proof-v0", statement=statement)


def test_english_needs_whole_proofs():
    with pytest.raises(UsageError, match=r"--env\.whole"):
        hunch.make("hunch/Proof-v0", english=True)


def test_a_pool_of_large_theorems_needs_few_branches():
    """Each is tried once; tried anew wherever it came up, this pool took many minutes."""
    decide._refuted.cache_clear()
    assert len(pool("large", 3, 1)) == 3
    tried = decide._refuted.cache_info()
    assert tried.hits > 1_000
    assert tried.misses < 100_000
