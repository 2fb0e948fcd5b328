"""AlphaProof with the theorems and the environment of its study."""

import json
from copy import deepcopy

import pytest
from tests.methods.test_alpha_proof import SMALL, a_round, begun

import hunch
from hunch import lm, methods
from hunch.core import HunchError, State, UsageError
from hunch.envs.proofs import kernel
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import read
from hunch.envs.proofs.tactics import tactics
from hunch.methods.solver.alpha_proof import AlphaProof, search
from hunch.rl.and_or import nodes
from hunch.roles.formaliser import Formaliser
from hunch.roles.guide import LanguageGuide, Rule, prompt
from hunch.roles.guide_network import GuideNetwork, Lesson
from hunch_studies.worlds.proofs.theorems import pool


def env(**options):
    return hunch.make("hunch/Proof-v0", pool="easy", theorems=12, whole=True, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"guide": "breadth", "combine": "minimum"},
        {"curriculum": True, "targets": "shuffled", "value": False, "variants": 2},
    ],
)
def test_it_keeps_the_contract_with_all_settings(options):
    small = hunch.make("hunch/Proof-v0", pool="easy", theorems=4, whole=True)
    methods.check(AlphaProof(budget=8, updates=3, width=8, **options), small, steps=6, streams=2)


def test_a_step_is_a_statement_and_a_round_is_a_pass():
    result = hunch.train(AlphaProof(**SMALL), env(), 24, watch=hunch.Watch(progress=False))
    agent = result.agent
    assert agent.round == 2
    proved = {str(read(text)) for text in agent.texts} & set(agent.stored)
    assert sum(e.success for e in result.episodes[12:]) == len(proved) > 0
    assert agent.spent <= 2 * 12 * SMALL["budget"]
    for text, (_, size, proof) in agent.stored.items():
        kernel.check(read(text), proof)
        assert size >= 1


def test_a_stored_proof_that_the_kernel_refuses_stops_the_run():
    agent = begun(map(str, pool("easy", 8, 0)))
    agent.act([State(text) for text in agent.texts])
    agent.given = list(agent.texts)
    text = next(iter(agent.stored))
    saved = deepcopy(agent.state_dict())
    agent.stored[text] = (0, 1, "h9")
    with pytest.raises(HunchError, match="The kernel refuses the stored proof"):
        agent.learn()
    saved["stored"][text] = (0, 1, "(fst h1)")
    again = begun(agent.texts)
    with pytest.raises(HunchError, match="The kernel refuses the stored proof"):
        again.load_state_dict(saved)


def test_the_run_s_file_says_what_became_of_each_statement_in_the_end(tmp_path):
    """Not what was known after the first steps; also of a run that goes on."""
    for steps in (12, 36):
        agent = hunch.train(
            AlphaProof(**SMALL), env(), steps, out=tmp_path, watch=hunch.Watch(progress=False)
        ).agent
    lines = [json.loads(line) for line in (tmp_path / "proofs.jsonl").read_text().splitlines()]
    assert lines == agent.results()
    assert [line["statement"] for line in lines] == list(agent.texts)
    assert {line["statement"] for line in lines if line["result"] == "proved"} == set(agent.stored) & set(
        agent.texts
    )


def test_statements_in_english_need_a_formaliser():
    with pytest.raises(UsageError, match="--formaliser"):
        hunch.train(AlphaProof(**SMALL), env(english=True), 12, watch=hunch.Watch(progress=False))


def test_the_guide_learns_what_proofs_teach():
    goals = pool("easy", 24, 0)
    trees = search(AlphaProof().config, Rule(), goals, (0,), 64)
    lessons = []
    for tree in trees:
        for node in nodes(tree.root):
            if node.proof:
                index = [own for own, _ in tactics(node.state)].index(node.proof.action)
                lessons.append(Lesson(node.state, index, 0.9**node.proof.size))
    net = GuideNetwork(0)
    before = net.learn(lessons, 1, 64)["policy_loss"]
    net.learn(lessons, 200, 64)
    assert net.learn(lessons, 5, 64)["policy_loss"] < before / 3


def test_a_model_that_scores_can_guide():
    model = lm.load("uniform")
    goals = pool("easy", 6, 0)
    told, _ = LanguageGuide(model).evaluate([*goals, read("|- p")])
    assert [len(own) for own in told] == [len(tactics(goal)) for goal in [*goals, read("|- p")]]
    assert str(goals[0]).rpartition("|- ")[2] in prompt(goals[0], ["intro"])
    assert "Prove" not in prompt(None, ["intro"])
    agent = AlphaProof(budget=8, guide="lm", lm=model)
    hunch.train(agent, env(), 12, watch=hunch.Watch(progress=False))
    assert agent.stored
    assert agent.evidence == model.evidence


def test_a_formaliser_reads_english_and_a_vote_reads_better():
    goals = pool("easy", 30, 0)
    texts = list(map(english, goals))

    def right(error, readings):
        reader = Formaliser(lm.load(f"scripted:formaliser?error={error}"), readings)
        return sum(own == goal for own, goal in zip(reader.read(texts), goals, strict=True))

    assert right(0, 1) == 30
    assert right(0.03, 7) > right(0.03, 1)
    assert right(0.9, 3) == 0


def test_a_round_trip_finds_the_reading_that_was_meant():
    """It is above the vote of as many readings, in statements of many places that can be wrong."""
    goals = pool("hard", 20, 0)
    texts = list(map(english, goals))

    def right(readings, returns):
        reader = Formaliser(lm.load("scripted:formaliser?error=0.08"), readings, returns)
        return sum(own == goal for own, goal in zip(reader.read(texts), goals, strict=True))

    assert right(5, 5) > right(5, 0)


def test_what_is_proved_but_not_meant_is_counted_beside_what_is_proved():
    model = lm.load("scripted:formaliser?error=0.3")
    agent = AlphaProof(**{**SMALL, "budget": 64}, formaliser=model, readings=1)
    told = []
    hunch.train(agent, env(english=True), 12, watch=hunch.Watch(progress=False, report=told.append))
    results = [line["result"] for line in agent.results()]
    assert "proved, but it is not what was meant" in results
    assert agent.evidence == "L0"


def test_variants_join_the_pool_of_a_statement_that_stays_open():
    agent = begun([str(pool("hard", 3, 0)[0])], budget=1, variants=5)
    a_round(agent)
    assert 1 <= len(agent.extra) <= 5
    a_round(agent)
    assert agent.spent == 1 + 1 + len(agent.extra)
