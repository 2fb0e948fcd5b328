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

from hunch.lm.training import Trainable  # noqa: E402
from hunch_contrib.tune.syndicom import with_feedback  # noqa: E402

ENV = "hunch_studies.worlds.repair:Repair"
SCRATCH = "scratch?width=32&layers=1&vocabulary=96"
SHOWN = Repair(demonstrations=6).examples


def made(feedback="predicted", **options):
    found = methods.find("syndicom")
    options |= {"lm": SCRATCH, "feedback": feedback, "max_tokens": 4, "batch_size": 4}
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
    assert known["predicted"][0] == (f"{request} feedback :", note)
    assert known["predicted"][6] == (f"{request} feedback : {note} repair :", repair)
    assert known["none"][0] == (f"{request} repair :", repair)
    assert len(known["none"]) == 6
    assert sorted(text for _, text in known["shuffled"]) == sorted(text for _, text in known["predicted"])
    assert known["shuffled"] != known["predicted"]
    assert with_feedback(State("a |"), "").observation == "a | repair :"


def test_the_upper_bound_reads_the_right_feedback_where_the_method_would_write_it():
    agent = made("none")
    agent.begin(World(steps=10, examples=Repair(demonstrations=6, told=True).examples), 0)
    (request, (note, repair)), *_ = SHOWN
    asked = with_feedback(State(request), note)
    assert (agent.examples[0].state.observation, agent.examples[0].text) == (asked.observation, repair)
    observation, _ = Repair(told=True).reset(seed=0)
    assert " | feedback : " in observation


def test_repair_learns_by_the_feedback_that_the_model_predicts_itself():
    """Feedback alone in the first half; then repair, by what was predicted for each demonstration."""
    agent = made()
    agent.begin(World(steps=6, examples=SHOWN), 0)
    drawn = []
    for _ in range(6):
        drawn.append(max(agent.draw()))
        agent.learn()
    assert all(row < 6 for row in drawn[:3]), "the first six examples are of feedback"
    assert agent.predicted
    assert len(agent.predicted) == 6
    repairs = [own.state.observation for own in agent.examples[6:]]
    requests = [request for request, _ in SHOWN]
    told = [
        with_feedback(State(r), note).observation for r, note in zip(requests, agent.predicted, strict=True)
    ]
    assert repairs == told
    again = made()
    again.begin(World(steps=6, examples=SHOWN), 0)
    again.load_state_dict(agent.state_dict())
    assert [own.state.observation for own in again.examples[6:]] == told
    assert again.learn()["loss"] == agent.learn()["loss"]


def test_feedback_is_predicted_for_a_few_demonstrations_at_once(monkeypatch):
    """The likeliest feedback does not depend on how many are written at once."""
    predicted, counts = [], []
    write = Trainable.write

    def counted(self, prompts, *rest, **options):
        counts.append(len(prompts))
        return write(self, prompts, *rest, **options)

    monkeypatch.setattr(Trainable, "write", counted)
    for micro in (64, 4):
        counts.clear()
        agent = made(micro=micro)
        agent.begin(World(steps=4, examples=SHOWN), 0)
        for _ in range(3):
            agent.learn()
        assert max(counts) == min(micro, len(SHOWN))
        predicted.append(agent.predicted)
    assert predicted[0] == predicted[1]


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
