"""Temporal logic: progression agrees with the meaning of the formulas, and what cannot be read is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hunch.core import UsageError
from hunch_contrib.goal.temporal import (
    FALSE,
    TRUE,
    Automaton,
    all_of,
    any_of,
    parse,
    progress,
    propositions,
    show,
    swapped,
)

NAMES = ("a", "b", "c")
atoms = st.one_of(
    st.sampled_from(NAMES).map(lambda n: ("is", n)), st.sampled_from(NAMES).map(lambda n: ("not", n))
)
formulas = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(lambda f: ("F", f)),
        inner.map(lambda f: ("X", f)),
        st.tuples(inner, inner).map(lambda p: ("U", *p)),
        st.tuples(inner, inner).map(all_of),
        st.tuples(inner, inner).map(any_of),
    ),
    max_leaves=4,
)
traces = st.lists(st.sampled_from(("", *NAMES)), min_size=1, max_size=6)


def holds(f, trace, i=0):
    """Whether a trace is good for a formula, whatever comes after it: the textbook's definition."""
    if f in (TRUE, FALSE):
        return f == TRUE
    if i >= len(trace):
        return False
    match f:
        case ("is", name):
            return trace[i] == name
        case ("not", name):
            return trace[i] != name
        case ("X", g):
            return holds(g, trace, i + 1)
        case ("F", g):
            return any(holds(g, trace, j) for j in range(i, len(trace)))
        case ("U", g, h):
            return any(
                holds(h, trace, j) and all(holds(g, trace, k) for k in range(i, j))
                for j in range(i, len(trace))
            )
        case ("&", *parts):
            return all(holds(g, trace, i) for g in parts)
        case ("|", *parts):
            return any(holds(g, trace, i) for g in parts)


@given(formulas, traces)
def test_progression_agrees_with_the_meaning(f, trace):
    left = f
    for label in trace:
        left = progress(left, (label,))
    assert not holds(f, trace) or left == TRUE
    if left == TRUE:
        assert holds(f, [*trace, "", "", "", ""]), "true only where the trace is enough"
    if left == FALSE:
        assert not any(holds(f, [*trace, *more]) for more in ([], ["a"], ["b"], ["c", "a", "b"]))


@given(formulas)
def test_what_is_shown_is_read_back(f):
    assert parse(show(f)) == f
    assert set(propositions(f)) <= set(NAMES)


def test_the_automaton_of_a_sequence():
    automaton = Automaton.of(parse("F (a & F b)"))
    left = automaton.start
    for label, over in (("b", False), ("a", False), ("elsewhere", False), ("b", True)):
        left = automaton.after(left, label)
        assert (left == TRUE) is over
    assert FALSE not in automaton.open
    assert swapped(automaton.start, {"a": "c"}) == parse("F (c & F b)")


def test_what_is_lost_is_lost():
    automaton = Automaton.of(parse("!a U b"))
    assert automaton.after(automaton.start, "a") == FALSE
    assert automaton.after(automaton.start, "b") == TRUE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("F (a", "a bracket is not closed"),
        ("F", "a proposition is missing at its end"),
        ("a b", "what is 'b'"),
        ("a & ) b", "a proposition is missing before"),
        ("a + b", "what is '\\+ b'"),
        ("G a", "is never done"),
        ("!true U a", "a proposition is missing before 'true'"),
        ("", "a proposition is missing"),
    ],
)
def test_what_cannot_be_read(text, said):
    with pytest.raises(UsageError, match=said):
        parse(text)


@pytest.mark.parametrize("text", ["a & !a", "F (a & b)"])
def test_a_task_without_an_accepting_path(text):
    """Two things are never at one place."""
    with pytest.raises(UsageError, match="impossible"):
        Automaton.of(parse(text))
