"""AlphaProof: proofs are stored after the kernel, what is false is refuted, and the guide learns."""

import numpy as np
import pytest

from hunch import lm
from hunch.core import State, UsageError, World
from hunch.envs.proofs.logic import read
from hunch.envs.proofs.statements import Statements
from hunch.envs.proofs.tactics import tactics
from hunch.methods.solver.alpha_proof import METHOD, AlphaProof
from hunch.roles.guide import Rule
from hunch.roles.guide_network import features

SMALL = {"budget": 16, "updates": 20, "width": 16}


def begun(texts, **options):
    agent = AlphaProof(**{**SMALL, **options})
    agent.begin(World(problem=Statements(tuple(texts))), 0)
    return agent


def a_round(agent):
    agent.act([State(text) for text in agent.texts])
    agent.given = list(agent.texts)
    return agent.learn()


def test_what_is_no_theorem_is_refuted_with_its_witness():
    agent = begun(["p -> q, p |- q", "p -> q |- q -> p", "|- p | ~p"])
    told = a_round(agent)
    results = [line["result"] for line in agent.results()]
    assert results == ["proved", "refuted", "refuted"]
    assert agent.results()[1]["witness"] == "q"
    assert told["refuted"] == pytest.approx(2 / 3)
    assert agent.results()[0]["tree"]


def test_without_a_pool_later_statements_are_refuted_too():
    agent = AlphaProof(guide="uniform", budget=4)
    agent.begin(World(), 0)
    for text in ("p |- q", "r |- s"):  # each is a round
        agent.act([State(text)])
        agent.given = [text]
        assert agent.learn()["refuted"] == 1
    assert list(agent.refuted) == ["p |- q", "r |- s"]


def test_a_run_that_is_taken_up_within_a_round_knows_what_became_of_each_statement():
    """What it keeps as ``proofs.jsonl`` before the next round begins, which attempts all of them again."""
    agent = begun(["p -> q, p |- q", "p -> q |- q -> p"])
    agent.act([State(text) for text in agent.texts])
    again = begun(agent.texts)
    again.load_state_dict(agent.state_dict())
    assert [line["result"] for line in again.results()] == ["proved", "refuted"]
    assert again.files() == agent.files()


def test_a_formaliser_is_not_asked_again_what_it_has_read():
    text = "Suppose that if p holds then q holds. Suppose that p holds. Show that q holds."
    agent = begun([text], formaliser=lm.load("scripted:formaliser"))
    agent.act([State(text)])
    assert agent.results()[0]["formula"] == "p -> q, p |- q"
    again = begun([text])  # without a formaliser
    again.load_state_dict(agent.state_dict())
    assert again.statements([text]) == agent.statements([text])
    assert again.results() == agent.results()


def test_budget_0_is_refused():
    with pytest.raises(UsageError, match="budget"):
        AlphaProof(budget=0)


def test_a_language_model_as_the_guide_is_named():
    with pytest.raises(UsageError, match="--lm"):
        AlphaProof(guide="lm")


@pytest.mark.parametrize(
    ("lm", "fills"),
    [
        ("systemone:m?base_url=http://localhost:1/v1", {"lm"}),  # it decides, and writes nothing
        ("pocket?corpus=statements", {"lm", "formaliser"}),
        ("uniform", {"lm", "formaliser"}),
    ],
)
def test_the_guide_also_formalises_if_it_writes(lm, fills):
    assert METHOD.specs(AlphaProof.config_class(guide="lm"), lm) == dict.fromkeys(fills, lm)


@pytest.mark.parametrize(("priors", "why"), [(np.nan, "not a finite number"), (None, "shape")])
def test_a_guide_that_answers_nonsense_is_refused(priors, why):
    class Bad(Rule):
        def evaluate(self, states):
            counts = [len(tactics(goal)) for goal in states]
            return [np.full(n + (priors is None), priors or 1.0) for n in counts], [0.5] * len(states)

    agent = begun(["p -> q, q -> r |- p -> r"], guide="rule")
    agent.guide = Bad()
    with pytest.raises(UsageError, match=why):
        agent.act([State(agent.texts[0])])


def test_features_do_not_depend_on_names_of_atoms():
    goal = read("p -> q & r, ~q | s |- s | r")
    other = goal.renamed({"p": "a", "q": "d", "r": "c", "s": "b"})
    assert sorted(map(tuple, features(goal))) == sorted(map(tuple, features(other)))
