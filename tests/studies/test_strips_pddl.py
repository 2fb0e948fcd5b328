"""PDDL is read as it says, and refused by name where it asks for more."""

import pytest

from hunch.core import UsageError
from hunch_studies.worlds.strips.grounding import ground
from hunch_studies.worlds.strips.pddl import read_domain, read_problem

ERRANDS = """
(define (domain errands)  ; typed, with constants, equality and what must not be
  (:requirements :strips :typing :equality :negative-preconditions)
  (:types city town - place  person - object  courier - person)
  (:constants home - city)
  (:predicates (at ?p - person ?x - place) (road ?x ?y - place) (closed ?x - place) (done ?p - courier))
  (:action go
    :parameters (?p - courier ?x ?y - place)
    :precondition (and (at ?p ?x) (road ?x ?y) (not (closed ?y)) (not (= ?x ?y)))
    :effect (and (at ?p ?y) (not (at ?p ?x))))
  (:action rest
    :parameters (?p - (either courier person) ?x - city)
    :precondition (and (at ?p ?x) (= ?x home))
    :effect (and (at ?p ?x) (not (at ?p ?x)) (closed ?x)))
  (:action finish
    :parameters (?p - courier)
    :precondition (not (done ?p))
    :effect (done ?p)))
"""
ROUND = """
(define (problem round) (:domain whatever)
  (:objects mill - town  ann - courier  bob - person  far - town)
  (:init (AT ann home) (at bob home) (road home home) (road home mill) (road mill home))
  (:goal (and (at ann mill) (not (closed home)) (done ann))))
"""


def errands(text=ERRANDS):
    return read_domain(text)


def atoms(operators):
    return {operator.atom for operator in operators}


def test_actions_are_those_that_types_equality_and_static_facts_leave():
    grounded = ground(read_problem(ROUND, errands()))
    assert atoms(grounded.operators) == {
        ("go", "ann", "home", "mill"),
        ("go", "ann", "mill", "home"),
        ("rest", "ann", "home"),
        ("rest", "bob", "home"),
        ("finish", "ann"),
    }


def test_what_is_added_stays_though_it_is_deleted_too():
    problem = read_problem(ROUND, errands())
    grounded = ground(problem)
    state = grounded.bits(atom for atom in problem.init if atom in grounded.index)
    after = grounded.by_atom["rest", "bob", "home"].after(state)
    assert after == state | grounded.bits([("closed", "home")])


def test_what_must_not_be_true_keeps_an_action_away():
    problem = read_problem(ROUND, errands())
    grounded = ground(problem)
    state = grounded.bits([("at", "ann", "mill"), ("closed", "home"), ("done", "ann")])
    assert atoms(grounded.applicable(state)) == set()
    assert atoms(grounded.applicable(grounded.bits([("at", "ann", "mill")]))) == {
        ("go", "ann", "mill", "home"),
        ("finish", "ann"),
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (":equality", ":conditional-effects :fluents", ":conditional-effects, :fluents"),
        ("(done ?p)))", "(when (done ?p) (closed home))))", "when"),
        (":precondition (not (done ?p))", ":precondition (or (done ?p) (closed home))", "or"),
        (":precondition (not (done ?p))", ":precondition (exists (?q) (done ?q))", "exists"),
        ("(:constants", "(:durative-action", ":durative-action"),
        (":effect (done ?p)", ":effect (ready ?p)", "no predicate ready"),
        (":effect (done ?p)", ":effect (done ?p ?p)", "done takes 1 terms, not 2"),
        (":effect (done ?p)", ":effect (done ?q)", "?q"),
        ("?p - courier)\n    :precondition (not", "?p - robot)\n    :precondition (not", "no type robot"),
        ("(:action finish", "(:action go", "same name"),
        ("courier - person", "courier - person person - courier", "above itself"),
        ("(define (domain errands)", "(define (problem errands)", "form (define (domain NAME)"),
        ("(:types", "((:types", "parenthes"),
    ],
)
def test_a_domain_that_cannot_be_used_says_why(old, new, said):
    assert old in ERRANDS
    with pytest.raises(UsageError) as refusal:
        errands(ERRANDS.replace(old, new))
    assert said in str(refusal.value)
    assert str(refusal.value).count("\n") == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(at bob home)", "(at tom home)", "tom"),
        ("mill - town", "mill - town mill", "mill comes twice"),
        ("far - town", "far - farm", "no type farm"),
        ("(:goal", "(:metric minimize (total-time)) (:goal", ":metric"),
        ("(:init", "(:begin", ":begin"),
        ("(done ann))", "(done ann)) (at ann far)", "not one expression"),
    ],
)
def test_a_problem_that_cannot_be_used_says_why(old, new, said):
    assert old in ROUND
    with pytest.raises(UsageError) as refusal:
        read_problem(ROUND.replace(old, new), errands(), "The problem round.pddl")
    assert said in str(refusal.value)
    assert "round.pddl" in str(refusal.value)


def test_too_many_actions_are_refused_before_they_fill_the_memory():
    domain = read_domain(
        "(define (domain d) (:predicates (p ?x)) (:action a :parameters (?a ?b ?c ?d ?e ?f) "
        ":precondition () :effect (p ?a)))"
    )
    names = " ".join(f"o{i}" for i in range(60))
    problem = read_problem(
        f"(define (problem q) (:domain d) (:objects {names}) (:init) (:goal (p o1)))", domain
    )
    with pytest.raises(UsageError, match="more than 200,000"):
        ground(problem)
