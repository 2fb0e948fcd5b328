"""The bandit over kinds of request: what it asks for, what it keeps, and what it learns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.envs.design.code import structure
from hunch.envs.design.problem import DesignProblem
from hunch.methods.program.code_policy import CodePolicy, CodePolicyConfig
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.roles.writer.bandit import Bandit
from hunch.roles.writer.plain import PLAIN_PROMPTS
from hunch.roles.writer.programs import Attempt, Kind, Request

RNG = np.random.default_rng


def tried(number: int, request: Request, fitness: float | None, **changes: object) -> Attempt:
    settings: dict[str, object] = {
        "parents": tuple(parent.number for parent in request.parents),
        "group": request.group,
        "kind": request.kind,
        "error": "" if fitness is not None else "it broke (line 2)",
        **changes,
    }
    return Attempt(number, f"program {number}", fitness, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("def act(o):\n    x = o[0]\n    return x", "def act(p):\n    y=p[0]  # why\n    return y", True),
        (
            "import math as m\ndef act(o): return m.sin(o)",
            "import math\ndef act(o): return math.sin(o)",
            True,
        ),
        ("def act(o): return f(o)\ndef f(x): return x", "def act(o): return g(o)\ndef g(z): return z", True),
        (
            "def act(o):\n    a = 1\n    b = 2\n    return a",
            "def act(o):\n    a = 1\n    b = 2\n    return b",
            False,
        ),
        ("def act(o): return o[0]", "def act(o): return o[1]", False),
        ("def act(o): return min(o)", "def act(o): return max(o)", False),
        (
            "def act(o): return f(o)\ndef f(x): return x",
            "def f(o): return act(o)\ndef act(x): return x",
            False,
        ),
        ("def act(o, a=1): return o", "def act(p, b=1): return p", True),
        (
            "def f(k): return k\ndef act(o): return f(k=o)",
            "def f(j): return j\ndef act(o): return f(j=o)",
            True,
        ),
        (
            "def act(o):\n    axis = 0\n    return sum(o, axis=axis)",
            "def act(o):\n    start = 0\n    return sum(o, start=start)",
            False,
        ),
        (
            "class A:\n    def f(self, k): return k\ndef act(o): return A().f(k=o)",
            "class B:\n    def f(self, j): return j\ndef act(o): return B().f(j=o)",
            True,
        ),
        (
            "def act(o):\n    match o:\n        case [a, *b]: return a\n        case {'k': c, **d}: return d",
            "def act(o):\n    match o:\n        case [s, *t]: return s\n        case {'k': u, **v}: return v",
            True,
        ),
        ("no program", "no program", True),
    ],
)
def test_programs_that_differ_in_names_alone_have_one_structure(one: str, other: str, alike: bool) -> None:
    assert (structure(one, "act") == structure(other, "act")) is alike


def test_the_required_functions_are_no_helpers_of_each_other() -> None:
    one = "def act(o): return o\ndef start(): return 1\ndef end(): return 2"
    other = "def act(o): return o\ndef end(): return 1\ndef start(): return 2"
    assert structure(one, "act", "start") != structure(other, "act", "start")
    assert structure(one, "act") == structure(other, "act")


def test_it_begins_afresh_and_keeps_the_fittest_of_each_outcome() -> None:
    search = Bandit(islands=1, elites=2)
    requests = search.ask(4, RNG(0))
    assert {request.kind for request in requests} == {"fresh"}
    fitnesses = [1.0, 3.0, 3.0, 2.0]  # the third has the outcome of the second
    search.tell([tried(i, r, f) for i, (r, f) in enumerate(zip(requests, fitnesses, strict=True))], RNG(0))
    assert [elite.number for elite in search.islands[0].programs] == [1, 3]


def test_a_copy_is_no_elite_and_pays_nothing() -> None:
    search = Bandit(islands=1)
    search.tell([tried(0, Request(kind="fresh"), 1.0)], RNG(0))
    search.tell([tried(1, Request(kind="fresh"), 9.0, copy_of=0)], RNG(0))
    assert [elite.number for elite in search.islands[0].programs] == [0]
    assert (search.asked["fresh"], search.paid["fresh"]) == (2, 1)


def test_each_kind_has_the_parents_that_it_needs() -> None:
    rng = RNG(1)
    search = Bandit(islands=2, fresh=0.1)
    fit = [tried(i, Request(group=i % 2, kind="fresh"), float(i)) for i in range(6)]
    broken = [tried(6 + i, Request(group=0, kind="fresh"), None) for i in range(200)]
    search.tell([*fit, *broken], rng)
    requests = search.ask(200, rng)
    number: dict[Kind, set[int]] = {
        "fresh": {0},
        "revise": {1},
        "simplify": {1},
        "repair": {1},
        "combine": {2},
    }
    assert {request.kind for request in requests} == set(number)
    assert all(len(request.parents) in number[request.kind] for request in requests)
    repaired = [request.parents[0].number for request in requests if request.kind == "repair"]
    assert len(set(repaired)) == len(repaired), "what is being repaired is not repaired again"
    for request in requests:
        if request.kind == "combine":
            first, second = request.parents
            assert {first.group, second.group} == {0, 1}
            assert first.fitness <= second.fitness  # type: ignore[operator]
        if request.kind in ("revise", "simplify"):
            assert request.parents[0].group == request.group


def test_a_program_is_repaired_so_often_and_no_more() -> None:
    search = Bandit(islands=1, repairs=2)
    search.tell([tried(0, Request(kind="fresh"), None)], RNG(0))
    for number in (1, 2):
        assert [broken.number for broken in search.repairs.broken] == [number - 1]
        search.tell([tried(number, Request((search.repairs.broken[0],), kind="repair"), None)], RNG(0))
    assert not search.repairs.broken


@pytest.mark.parametrize("pays", ["fresh", "revise", "combine"])
def test_what_pays_is_asked_for_most(pays: Kind) -> None:
    rng = RNG(2)
    search = Bandit(islands=2, fresh=0.1)
    asked: Counter[str] = Counter()
    best = 0.0
    for number in range(400):
        (request,) = search.ask(1, rng)
        paid = request.kind == pays or number < 4
        best += paid
        search.tell([tried(number, request, best if paid else 0.0)], rng)
        asked[request.kind] += number >= 200
    assert asked.most_common(1)[0][0] == pays
    assert asked[pays] > 100


def test_where_nothing_pays_any_more_a_share_is_written_from_scratch() -> None:
    rng = RNG(3)
    search = Bandit(islands=1, fresh=0.25)
    search.tell([tried(0, Request(kind="fresh"), 1.0)], rng)
    kinds = Counter(request.kind for request in search.ask(2_000, rng))
    assert kinds["fresh"] > 0.25 * 2_000


def test_the_paper_s_request_cannot_ask_in_several_ways() -> None:
    for config in (CodePolicyConfig, FunSearchConfig):
        with pytest.raises(UsageError, match="--request plain"):
            config(search="bandit")
        config(search="bandit", request="plain")


class Asks:
    """A writer that counts on: program i returns i, and every fifth cannot run."""

    evidence = None

    def __init__(self) -> None:
        self.kinds: list[Kind] = []

    def write(self, problem, parents, feedback, n, first=0, kind: Kind = ""):  # type: ignore[no-untyped-def]
        self.kinds += [kind] * n
        return [
            f"def f():\n    return {number % 7}" if number % 5 else "def f(:"
            for number in range(first, first + n)
        ]


def score(program: str) -> float:
    return float(program.rpartition(" ")[2])


def problem() -> DesignProblem:
    return DesignProblem(score, task="return much", function="f")


def test_a_resumed_search_asks_as_an_uninterrupted_one(tmp_path: Path) -> None:
    def agent() -> CodePolicy:
        return CodePolicy(Asks(), search="bandit", request="plain", islands=2, retries=0)

    whole, halves = agent(), agent()
    hunch.train(whole, problem(), 60, seed=4)
    hunch.train(halves, problem(), 24, seed=4, out=tmp_path / "run")
    halves = agent()
    hunch.train(halves, problem(), 60, seed=4, out=tmp_path / "run")
    assert [a.line() for a in halves.attempts] == [a.line() for a in whole.attempts]
    assert len({a.kind for a in whole.attempts}) >= 4


def test_copies_are_marked_and_counted() -> None:
    agent = CodePolicy(Asks(), search="single", retries=0)
    hunch.train(agent, problem(), 14, seed=0)
    copies = {a.number: a.copy_of for a in agent.attempts if a.copy_of is not None}
    assert copies, "seven programs, asked for fourteen times"
    assert all(agent.attempts[of].program == agent.attempts[number].program for number, of in copies.items())


def test_the_plain_requests_say_what_is_asked() -> None:
    task = problem().problem
    first, second = (Attempt(n, f"def f():\n    return {n}", float(n)) for n in (1, 2))
    broken = Attempt(3, "def f(:", None, error="SyntaxError: invalid syntax (line 1: `def f(:`)")
    parents = {
        "fresh": (),
        "revise": (second,),
        "repair": (broken,),
        "combine": (first, second),
        "simplify": (second,),
    }
    told = {
        kind: PLAIN_PROMPTS[kind](task, own, own[-1].outcome_text() if own else "")
        for kind, own in parents.items()
    }  # type: ignore[index]
    assert len(set(told.values())) == 5
    assert "return 1" not in told["fresh"]
    assert "SyntaxError" in told["repair"]
    assert told["combine"].index("return 1") < told["combine"].index("return 2")
    assert all("Answer with the code only" in request for request in told.values())


def test_without_feedback_no_request_shows_results() -> None:
    task = problem().problem
    parents = [Attempt(n, f"def f():\n    return {n}", 0.125 * n) for n in (1, 2)]
    for kind in ("revise", "combine", "simplify"):
        request = PLAIN_PROMPTS[kind](task, parents, "")  # type: ignore[index]
        assert "0.125" not in request
        assert "0.25" not in request
