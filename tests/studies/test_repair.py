"""SYNDICOM: injected errors, the two prompts and their controls, contract, bad input."""

import numpy as np
import pytest

import hunch
from hunch import methods
from hunch.cli.main import main
from hunch.core import State, World
from hunch_studies.worlds.recipes import requests
from hunch_studies.worlds.repair import RULES, Repair, injected

torch = pytest.importorskip("torch")

from hunch_contrib.tune.syndicom import with_feedback  # noqa: E402

ENV = "hunch_studies.worlds.repair:Repair"
SCRATCH = "scratch?width=32&layers=1&vocabulary=96"
SHOWN = Repair(demonstrations=6).examples


def made(feedback="predicted"):
    found = methods.find("syndicom")
    options = {"lm": SCRATCH, "feedback": feedback, "max_tokens": 4, "batch_size": 4}
    return found.build(methods.settings.configure(found.agent_class, None, options), {})


def test_an_error_changes_the_recipe_and_its_feedback_names_a_clause_of_it():
    rng, met = np.random.default_rng(0), set()
    for i in range(200):
        own = injected(requests("training")[i % 32], rng)
        assert own.text != own.repair
        clause, rule = own.feedback.split(" : ")
        assert clause in own.text.split(" ; ")
        met.add(rule.split(" ")[0])
    assert met == set(RULES)
    env = Repair()
    env.reset(seed=0)
    assert env.step(env.oracle()[0])[1] == 1
    observation, _ = env.reset(seed=0)
    assert env.step(env.broken.text)[1] == 0
    hunch.envs.check(hunch.make(ENV))
    assert str(env.broken) == observation


def test_each_control_learns_from_other_prompts():
    begun = {}
    for feedback in ("predicted", "none", "shuffled"):
        begun[feedback] = made(feedback)
        begun[feedback].begin(World(steps=10, examples=SHOWN), 0)
    known = {
        name: [(own.state.observation, own.text) for own in agent.examples] for name, agent in begun.items()
    }
    (request, (note, repair)), *_ = SHOWN
    assert known["predicted"][:2] == [
        (f"{request} feedback :", note),
        (f"{request} feedback : {note} repair :", repair),
    ]
    assert known["none"][0] == (f"{request} repair :", repair)
    assert len(known["none"]) == 6
    assert sorted(text for _, text in known["shuffled"]) == sorted(text for _, text in known["predicted"])
    assert known["shuffled"] != known["predicted"]
    assert with_feedback(State("a |"), "").observation == "a | repair :"


@pytest.mark.parametrize("feedback", ["predicted", "none", "shuffled"])
def test_it_writes_feedback_before_the_repair_unless_there_is_none(feedback):
    agent = made(feedback)
    agent.begin(World(steps=10, examples=SHOWN), 0)
    before = agent.lm.usage.calls
    assert len(agent.player(0).act([State(SHOWN[0][0])] * 3)) == 3
    assert agent.lm.usage.calls - before == (3 if feedback == "none" else 6)


def test_the_agent_keeps_its_contract():
    methods.check(made(), hunch.make(ENV, demonstrations=12), steps=6, streams=2)


def test_demonstrations_of_one_text_are_refused_in_a_sentence(capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "run",
                "syndicom",
                "--env",
                "hunch/Recipes-v0",
                "--lm",
                SCRATCH,
                "--steps",
                "2",
                "--out",
                str(tmp_path / "x"),
            ]
        )
    assert stopped.value.code == 2
    assert "demonstrations with two texts" in capsys.readouterr().err
