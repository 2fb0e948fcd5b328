"""Proofs: formulas and their models, the kernel, tactics, pools, and the environment."""

import ast
from pathlib import Path

import pytest

from hunch.core import UsageError
from hunch.envs.proofs import kernel, logic
from hunch.envs.proofs.english import english
from hunch.envs.proofs.formaliser import parsed
from hunch.envs.proofs.logic import Formula, Goal, read


@pytest.mark.parametrize(
    ("text", "place"),
    [("p ->", 5), ("p q", 3), ("p & (q", 7), ("p, q", 5), ("p $ q", 3), ("", 1), ("p |- q )", 8)],
)
def test_what_cannot_be_parsed_is_refused_with_its_place(text, place):
    with pytest.raises(UsageError, match=f"at character {place} "):
        read(text)


def test_a_text_has_few_atoms_and_is_not_deep():
    with pytest.raises(UsageError, match="9 atoms; 8 are allowed"):
        read(" & ".join(f"a{i}" for i in range(9)))
    with pytest.raises(UsageError, match="deep"):
        read("(" * 5_000 + "p" + ")" * 5_000)
    with pytest.raises(UsageError, match="deep"):
        read("~" * 5_000 + "p")


def test_the_kernel_imports_formulas_and_nothing_else_of_ours():
    tree = ast.parse(Path(kernel.__file__).read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {"hunch.core", "hunch.envs.proofs.logic"}
    assert {name for name in names if name.startswith("hunch")} == ours
    below = ast.parse(Path(logic.__file__).read_text())
    under = {node.module for node in ast.walk(below) if isinstance(node, ast.ImportFrom)}
    assert {name for name in under if name.startswith("hunch")} == {"hunch.core"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no proof"),
        ("h9", "no hypothesis 'h9'"),
        ("h1", "proves p & q and not q & p"),
        ("(pair (fst h1) (snd h1))", "proves p and not q"),
        ("(pair (snd h1))", "no rule with its parts"),
        ("(pair (snd h1) (fst h1)", "character 1 is not closed"),
        ("(pair (snd h1) (fst h1)))", "too many at character 25"),
        ("h1 h1", "one expression"),
        ("(fun x x)", "no proof of q & p"),
        ("(app h1 h1)", "no '->' to use"),
        ("(let x (fun y y) h1)", "cannot be told"),
        ("(pair (snd h1) (fst h1;))", "no name"),
        ("(snd " * 300 + "h1" + ")" * 300, "deep"),
    ],
)
def test_the_kernel_says_why_it_refuses(text, why):
    with pytest.raises(kernel.ProofError) as error:
        kernel.check(read("p & q |- q & p"), text)
    assert why in str(error.value)


def test_a_term_that_is_too_deep_or_none_at_all_is_refused():
    deep = "h1"
    for _ in range(100_000):
        deep = ("fst", deep)
    assert not kernel.accepts(read("p |- p & p"), deep)
    assert not any(
        kernel.accepts(read("p |- p & p"), odd) for odd in (("pair", 1, 2), (), ("fun",), ("let",))
    )


def test_atoms_may_be_called_like_the_names_in_a_proof():
    goal = read("fun & h1 |- h1")
    kernel.check(goal, "(snd h1)")
    assert not kernel.accepts(goal, "h1")


def test_a_proof_is_shown_as_a_tree():
    assert kernel.outline("(fun x (case x y y z (absurd z)))") == (
        "fun x\n  case y z\n    x\n    y\n    (absurd z)"
    )


def test_a_formula_is_compared_by_its_parts():
    p = Formula("p")
    assert Goal.of([p, p], p).hypotheses == (p,)
    assert Goal.of([p], p).closed


@pytest.mark.parametrize(
    "text",
    ["a -> b |- ~a | b", "a, ~a |- false", "|- ~~a -> a", "it & a |- it", "p -> q, ~q |- ~p", "|- ~(a & b)"],
)
def test_the_scripted_formaliser_reads_the_english_of_any_atoms(text):
    assert parsed(english(read(text))) == read(text)
