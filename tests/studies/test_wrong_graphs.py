"""Skill graphs that are wrong on purpose, and what is said of plans."""

from dataclasses import replace

from tests.contrib import test_plan4mc

from hunch_contrib.planner.skill_graph import Entry
from hunch_studies.plan4mc_graphs import SILENT, corrupted, reason

graph = test_plan4mc.graph


def test_as_many_edges_are_wrong_as_asked(graph):
    import numpy as np

    def edges(entry):
        sides = ("consumes", "requires", "nearby", "obtains", "brings")
        return [(side, i, x) for side in sides for i, x in enumerate(getattr(entry, side))]

    for n in (1, 5, 20):
        wrong = corrupted(graph, n, np.random.default_rng(n))
        assert wrong.entries.keys() == graph.entries.keys()
        changed = sum(
            len(set(edges(e)) - set(edges(wrong.entries[name]))) for name, e in graph.entries.items()
        )
        assert n <= changed <= n + 3  # a thing left out moves those after it
    same = [corrupted(graph, 3, np.random.default_rng(0)) for _ in range(2)]
    assert same[0] == same[1] != graph


def test_what_is_said_has_a_kind():
    assert reason("Nothing obtains wood, which make table takes.") == "nothing obtains a thing"
    assert reason("To a takes to b and to a first.") == "a skill needs itself first"
    assert reason("The plan is at its end, and the target is not reached.") == SILENT
    assert replace(Entry(), moves=True).moves
