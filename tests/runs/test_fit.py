"""What methods need is compared with what environments offer, before anything is loaded."""

import dataclasses
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import hunch
import hunch.envs
from hunch import methods
from hunch.core import Player, State, Transition, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.checker import ContractError
from hunch.envs.offers import acts, declared
from hunch.envs.text_wrapper import TextWrapper
from hunch.methods import registry
from hunch.methods.q_learning import QLearning
from hunch.runs.config import RunConfig
from hunch.runs.environments import require_fit
from hunch.runs.execute import execute

LISTED = "hunch/FrozenLake-v0"
PAIRS = [
    *((method, LISTED) for method in ("dqn-prior", "zero-shot", "motif", "ellm", "rl-adapter", "worldcoder")),
    *(
        (method, "hunch/Chain-v0")
        for method in ("icpi", "icpi-no-argmax", "matching", "tabular-q", "q-learning")
    ),
    *(("saycan", env) for env in ("hunch/Kitchen-v0", "hunch/Household-Pick-v0")),
    *(("glam", env) for env in ("hunch/FrozenLake-v0", "hunch/CartPole-v0")),
    ("plan4mc", "hunch/Craft-v0"),
    ("spring", "hunch/Craft-v0"),
    ("ellm", "hunch/Craft-v0"),
    ("motif", "hunch/Craft-v0"),
    ("kwon", "hunch/Ultimatum-v0"),
    ("count-bonus", "hunch/Taxi-v0"),
    ("eureka", "hunch/RewardDesign-Gymnasium-v0"),
    ("gif-mcts", "hunch/WorldModelCode-v0"),
    ("code-policy", "hunch/PolicyCode-v0"),
    ("funsearch", "hunch/Heuristic-BinPacking-v0"),
]


NOWHERE = f"hf:{Path(__file__).parent}"  # a folder without a model: what loads it would fail
"""A model that cannot be loaded."""


@pytest.mark.parametrize(("method", "env"), PAIRS)
def test_what_worked_fits(method, env):
    require_fit(methods.find(method), hunch.make(env))


@pytest.mark.parametrize("name", hunch.envs.names())
def test_every_environment_declares_what_it_offers(name):
    """That it offers what it declares, hunch.envs.check holds for each (tests/envs)."""
    maker = hunch.envs.creator(name)
    assert maker.offers is not None or issubclass(maker, TextWrapper)


@pytest.mark.parametrize("name", ["CartPole", "Taxi", "CliffWalking", "Blackjack"])
def test_wrapped_environments_declare_it_when_they_are_made(name):
    assert declared(hunch.make(f"hunch/{name}-v0")) == {"raw"}


class Told(TextEnv):
    """Tells an event and a raw state, and declares what it is asked to."""

    def __init__(self, offers=None, free=False, max_steps=3, render_mode=None):
        super().__init__(max_steps, render_mode)
        self.offers, self.actions = offers, None if free else ("a", "b")

    def _begin(self, options):
        self.task = "anything"
        return Outcome("Here.", self.actions)

    def _move(self, action):
        return Outcome("There.", self.actions, event="It happened.")

    def _raw(self):
        return [1, 2]


@pytest.mark.parametrize(
    ("offers", "problem"),
    [
        (("events",), "shows raw, which it does not name"),
        (("raw",), "shows events, which it does not name"),
        (("raw", "events", "pictures"), "names pictures, which was never shown"),
        (("raw", "events", "free_text"), "names free_text, which was never shown"),
        (("raw", "events", "wording"), "names wording, which was never shown"),
        (("raw", "events", "smell"), "names smell"),
    ],
)
def test_the_checker_compares_it_with_what_is_shown(offers, problem):
    with pytest.raises(ContractError, match=problem):
        hunch.envs.check(Told(offers))
    hunch.envs.check(Told(("raw", "events")))
    hunch.envs.check(Told())
    hunch.envs.check(Told(("raw", "events", "free_text"), free=True))


def test_an_environment_that_declares_nothing_is_not_refused():
    assert declared(Told()) is None
    assert acts(declared(Told())) == "listed"
    for method in ("motif", "worldcoder", "q-learning"):
        require_fit(methods.find(method), Told())
    with pytest.raises(UsageError, match="motif reads events"):
        require_fit(methods.find("motif"), Told(("raw",)))
    with pytest.raises(UsageError, match="Told offers none: give its class an attribute wording"):
        require_fit(methods.find("icpi"), Told(("raw",)))


def test_python_refuses_what_the_command_refuses(tmp_path):
    with pytest.raises(UsageError, match=r"icpi reads how .* and hunch/Kitchen-v0 offers none\.$"):
        hunch.train("icpi", "hunch/Kitchen-v0", lm=NOWHERE, steps=5)
    with pytest.raises(
        UsageError, match="q-learning chooses from listed actions, and hunch/Heuristic-BinPacking-v0 takes"
    ):
        hunch.train("q-learning", "hunch/Heuristic-BinPacking-v0", steps=5)
    with pytest.raises(UsageError, match="q-learning chooses from listed actions"):
        hunch.train(QLearning(), "hunch/Heuristic-BinPacking-v0", steps=5)
    with pytest.raises(UsageError, match="worldcoder reads raw states"):
        execute(RunConfig(method="worldcoder", env="hunch/Household-Pick-v0", lm=NOWHERE), tmp_path / "r")
    assert not list(tmp_path.iterdir())


def episode(event="", raw=None):
    here, there = State("a", "", ("x",)), State("b", "", ("x",), raw=raw)
    return [Transition(here, "x", 1.0, there, True, False, True, event)]


def test_data_without_what_a_method_reads_are_refused():
    with pytest.raises(UsageError, match=r"motif reads events .* and the recorded data hold none"):
        hunch.train("motif", data=[episode()], steps=5, lm=NOWHERE)
    with pytest.raises(UsageError, match=r"worldcoder reads raw states .* and the recorded data hold none"):
        hunch.train("worldcoder", data=[episode("it happened")], steps=5, lm=NOWHERE)


class Sees(QLearning):
    """Notes what it finds in its states, in training and in evaluations."""

    def __init__(self, *given, **options):
        self.found = []
        super().__init__(*given, **options)

    def act(self, states):
        self.found += [state.raw for state in states]
        return super().act(states)

    def player(self, seed):
        return Notes(super().player(seed), self.found)


class Notes(Player):
    def __init__(self, inner, found):
        self.inner, self.found = inner, found

    def act(self, states):
        self.found += [state.raw for state in states]
        return self.inner.act(states)

    def observe(self, transitions):
        self.found += [t.next_state.raw for t in transitions]


@pytest.fixture
def register(monkeypatch):
    """Register a method for a test, as the entry point of a package does."""

    def registers(row):
        monkeypatch.setattr(sys.modules[__name__], "ROW", row, raising=False)
        registry.points()[row.name] = EntryPoint(row.name, f"{__name__}:ROW", registry.GROUP)
        registry._added.cache_clear()

    yield registers
    registry.points.cache_clear()
    registry._added.cache_clear()


@pytest.mark.parametrize(("reads", "optional"), [((), ()), (("raw",), ()), (("raw",), ("raw",)), (None, ())])
def test_raw_reaches_only_methods_that_declare_it(register, reads, optional):
    """None: an agent of one's own, of no method, finds all."""
    if reads is not None:
        row = methods.Method("sees", Sees, "", "")
        register(dataclasses.replace(row, reads=frozenset(reads), optional=frozenset(optional)))
    agent = Sees()
    hunch.train(agent, Told(), steps=4, evaluation=hunch.Evaluation(Told(), 4, 1))
    hunch.evaluate(agent, Told(), 1)
    assert len(agent.found) == 4 + 2 * 3 + 2 * 3
    assert set(map(repr, agent.found)) == {"None" if reads == () else "[1, 2]"}


def test_capabilities_are_declared_and_no_words(register):
    """A method that writes programs may say so in its roles as it likes."""
    register(dataclasses.replace(methods.find("funsearch"), name="mine", roles=("whatever",)))
    require_fit(methods.find("mine"), hunch.make("hunch/Heuristic-BinPacking-v0"))


def test_a_package_that_cannot_be_imported_ends_no_run_that_does_not_need_it():
    """The method of any agent is looked up, also of one of no method, or with a reward of one's own."""
    registry.points()["broken"] = EntryPoint("broken", "no_such_module:M", registry.GROUP)
    try:
        assert hunch.train(Sees(), LISTED, steps=3).steps == 3
    finally:
        registry.points.cache_clear()
