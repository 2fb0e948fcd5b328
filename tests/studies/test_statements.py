"""The corpus of English statements: what it asks, what it leaves out, and the model that has read it."""

import hashlib

import numpy as np
import pytest

import hunch
from hunch.audition.formaliser import FORMALISER
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import read
from hunch.roles.formaliser import Formaliser, prompt
from hunch_studies.laboratory import statements, tokenizer
from hunch_studies.laboratory.tokenizer import END
from hunch_studies.worlds.proofs.theorems import canonical, pool, textbook

pytest.importorskip("transformers")
pytest.importorskip("hunch_pocket")

from hunch_pocket import STATEMENTS

DIGEST = "f1dc70e12bc550109fab6e55284c541a6ebb04bff2b7963f026ad31d32a08991"


@pytest.fixture(scope="module")
def goals():
    """The statements of some documents, in rows of each length of the training."""
    documents = [statements.document(f"{room}-{i}", 4 * room) for room in (96, 224, 320) for i in range(120)]
    assert all(asked.text == prompt(english(goal_of(told))) for asked, told in documents)
    return [goal_of(told) for _, told in documents]


def goal_of(piece):
    return read(piece.text.removesuffix(END))


def test_each_token_of_an_answer_has_one_of_the_english():
    fitted = statements.fit()
    for i in range(60):
        parts = [piece.text for piece in statements.document(f"1-{i}", 4 * 224)]
        asked, told = fitted(parts, add_special_tokens=False)["input_ids"]
        assert fitted.decode(asked + told) == "".join(parts)
        assert len(asked) + len(told) <= statements.tokens(read(parts[1].removesuffix(END))) <= 224
        assert len(asked) - len(told) in (0, 1, 2)  # "Suppose that" and the instructions have none


def test_no_document_has_a_statement_that_is_asked_elsewhere(goals):
    trained = set(map(canonical, goals))
    assert len(trained) > 350
    for seed in range(3):
        held = pool("easy", 60, seed, held_out=True) + pool("hard", 10, seed, held_out=True)
        assert not trained & set(map(canonical, held))
        assert not any(map(statements.is_for_training, held))
        asked = FORMALISER.draw(FORMALISER.beds[0], 100, seed)
        assert not trained & set(map(canonical, asked))
        assert not any(map(statements.is_for_training, asked))
    assert not any(map(statements.is_for_training, textbook().values()))


def test_other_names_of_atoms_do_not_make_a_statement_new(goals):
    for goal in goals[:40]:
        again = goal.renamed(dict(zip(goal.atoms, reversed(goal.atoms), strict=True)))
        assert statements.is_for_training(again)
    held = statements.unseen(np.random.default_rng(0), statements.SIZES["hard"])
    assert not statements.is_for_training(held.renamed({"p": "b", "q": "a", "r": "z"}))


def test_false_is_a_clause_now_and_then(goals):
    assert 0.02 < np.mean(["a contradiction holds" in english(goal) for goal in goals]) < 0.2


def test_the_shipped_model_is_the_pinned_one():
    assert hashlib.sha256((STATEMENTS / "model.safetensors").read_bytes()).hexdigest() == DIGEST


def test_the_model_reads_the_prompt_of_the_role_in_phrases():
    """A changed prompt is text that it never saw."""
    goal = pool("easy", 1, 0)[0]
    read_as = tokenizer.load(STATEMENTS)(prompt(english(goal)))["input_ids"]
    assert len(read_as) <= statements.tokens(goal) / 2 + 3


def test_the_model_reads_held_out_statements():
    model = hunch.lm.load("pocket?corpus=statements", cache=None)
    assert model.evidence == "L1"
    held = pool("easy", 40, 0, held_out=True)
    told = Formaliser(model, readings=1).read(list(map(english, held)))
    assert np.mean([own == goal for own, goal in zip(told, held, strict=True)]) > 0.5
