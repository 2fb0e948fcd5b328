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


def test_arms_differ_only_in_what_repair_reads():
    """All learn the same feedback in the same updates, and the same repairs in the other half."""
    trained, drawn = {}, {}
    for feedback in ("predicted", "none", "shuffled"):
        agent = trained[feedback] = made(feedback)
        agent.begin(World(steps=6, examples=SHOWN), 0)
        drawn[feedback] = []
        for _ in range(6):
            agent.learn()
            drawn[feedback].append(agent.draw())
    assert drawn["predicted"] == drawn["none"] == drawn["shuffled"]
    n = len(SHOWN)
    assert all(row < n for rows in drawn["none"][:2] for row in rows), "the first examples are of feedback"
    for agent in trained.values():
        feedback = [(own.state.observation, own.text) for own in agent.examples[:n]]
        assert feedback == [(f"{request} feedback :", note) for request, (note, _) in SHOWN]
        assert [own.text for own in agent.examples[n:]] == [repair for _, (_, repair) in SHOWN]
    read = {name: [own.state.observation for own in agent.examples[n:]] for name, agent in trained.items()}
    assert read["none"] == [f"{request} repair :" for request, _ in SHOWN]
    # The first halves are the same, so the predictions are.
    notes = trained["predicted"].predicted
    assert read["predicted"] == _with(notes)
    assert sorted(trained["shuffled"].predicted) == sorted(notes)
    assert read["shuffled"] == _with(trained["shuffled"].predicted)


def _with(notes):
    return [
        with_feedback(State(request), note).observation
        for (request, _), note in zip(SHOWN, notes, strict=True)
    ]


def test_no_repair_is_learnt_by_its_own_feedback_where_feedback_is_shuffled():
    agent = made("shuffled")
    for seed in range(4):
        agent.begin(World(steps=6, examples=SHOWN), seed)
        agent.foretold = lambda: [f"note {i}" for i in range(len(SHOWN))]
        read = agent.read_by_repair()
        assert sorted(read) == sorted(agent.foretold())
        assert all(note != own for note, own in zip(read, agent.foretold(), strict=True))


def test_shuffled_feedback_is_that_on_another_answer_with_one_environment(monkeypatch):
    agent = made("shuffled")
    agent.begin(World(steps=6, examples=SHOWN), 0)
    agent.predicted = [f"note {i}" for i in range(len(SHOWN))]
    asked = []
    write = Trainable.write

    def seen(self, prompts, *rest, **options):
        asked.extend(prompts)
        return write(self, prompts, *rest, **options)

    monkeypatch.setattr(Trainable, "write", seen)
    rng = np.random.default_rng(0)
    for _ in range(20):
        agent.write([State(SHOWN[0][0])], rng)
    assert len({str(prompt) for prompt in asked}) > 1, "drawn anew for each answer"
    assert all("note" in str(prompt) for prompt in asked), "no feedback is written on the answer itself"


def test_the_upper_bound_reads_the_right_feedback_where_the_method_would_write_it():
    agent = made("none")
    agent.begin(World(steps=2, examples=Repair(demonstrations=6, told=True).examples), 0)
    for _ in range(2):
        agent.learn()
    (request, (note, repair)), *_ = SHOWN
    asked = with_feedback(State(request), note)
    assert (agent.examples[6].state.observation, agent.examples[6].text) == (asked.observation, repair)
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
def test_it_writes_feedback_before_the_repair_unless_it_is_given(feedback):
    agent = made(feedback)
    agent.begin(World(steps=2, examples=SHOWN), 0)
    for _ in range(2):
        agent.learn()
    before = agent.lm.usage.calls
    assert len(agent.player(0).act([State(SHOWN[0][0])] * 3)) == 3
    assert agent.lm.usage.calls - before == (6 if feedback == "predicted" else 3)


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
