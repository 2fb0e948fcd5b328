"""The study of decision models: its measures, its controls, and its recorded answers."""

import re

import numpy as np
import pytest

from hunch.core import State
from hunch.envs import make
from hunch.lm import load
from hunch.lm.base import Model
from hunch.roles.prior.language import DecisionPrior
from hunch_studies import decision_models as study


class Fixed(Model):
    """Gives each option a score of its own, and prefers the first letter by a bias."""

    name, revision, verbs = "fixed", "1", frozenset({"label"})

    def __init__(self, bias=0.0):
        self.bias = bias

    def label(self, prompts, labels):
        rows = []
        for prompt in prompts:
            options = re.findall(r"^[A-T]\) (.*)$", prompt, re.MULTILINE)
            scores = np.array([len(option) % 7 for option in options], dtype=float)
            scores[0] += self.bias
            rows.append(scores - np.log(np.exp(scores).sum()))
        return rows


ASKED = study.questions(0, 4, 12)


def test_questions_are_the_same_each_time_and_have_one_right_option():
    study.questions.cache_clear()
    assert study.questions(0, 4, 12) == ASKED
    assert len(ASKED) == 4
    for one in ASKED:
        assert len(set(one.options)) == 12
        assert 0 <= one.right < 12


@pytest.mark.parametrize(
    "pool",
    [pytest.param(pool, marks=pytest.mark.thorough if pool > 1 else ()) for pool in range(study.POOLS)],
)
def test_the_blank_prompt_does_not_tell_the_task(pool):
    """Nor do earlier steps, of which the first names it."""
    for one in study.questions(pool, study.STATES, study.OPTIONS):
        assert "Your task is to" in one.state
        assert "Your task is to" not in one.blank


@pytest.mark.parametrize("size", [3, 4, 6])
def test_groups_and_a_final_are_one_question_for_fixed_scores(size):
    once = study.answered(Fixed(), ASKED, [range(12)], "label")[:, 0]
    assert np.allclose(study.in_groups(Fixed(), ASKED, size), once, atol=1e-9)
    assert not np.allclose(study.in_groups(Fixed(2.0), ASKED, size), once, atol=0.01)


def test_probabilities_are_put_back_into_the_first_order():
    orders = study.rotations(12)
    p = study.answered(Fixed(), ASKED, orders, "label")
    assert p.shape == (4, 12, 12)
    assert np.allclose(p, p[:, :1])
    assert np.allclose(p.sum(2), 1)


def test_a_bias_for_the_first_place_is_seen():
    fair = study._places(study.answered(Fixed(), ASKED, study.rotations(12), "label"))
    biased = study._places(study.answered(Fixed(50.0), ASKED, study.rotations(12), "label"))
    assert biased[0] == "1.00"
    assert biased[-1] == "0.00"
    assert float(fair[0]) < 0.5
    assert fair[-1] == "1.00"


def test_favourites_that_tie_share_and_shuffled_ones_are_at_chance():
    right = [np.array([0, 1])] * 200
    tied = [np.full((2, 4), 0.25)] * 200
    assert study._right(tied, right).value == 0.25
    sure = [np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1]])] * 200
    assert study._right(sure, right).value == 1
    assert study._right(study._shuffled(sure), right).value == pytest.approx(0.25, abs=0.15)


def test_models_of_known_probabilities_are_what_they_are_said_to_be(tmp_path):
    known = tmp_path / "known.jsonl"
    study.known_models(known)
    env = make(study.LAKE)
    env.reset(seed=0)
    states, plans = [], []
    for cell in study.CELLS:
        observation, info = env.unwrapped.place(cell)
        states.append(State.read(observation, info))
        plans.append(env.unwrapped.oracle())
    found = {}
    for name in ("calibrated", "overconfident", "shuffled"):
        model = load(f"replay:{known}?model={name}", cache=None)
        assert model.evidence == "L0"
        found[name] = DecisionPrior(model).probabilities(states)
    for cell, state, plan, p, q, r in zip(study.CELLS, states, plans, *found.values(), strict=True):
        right = state.options[int(p.argmax())] == plan[0]
        assert right == (cell not in study.WRONG)
        assert p.max() == pytest.approx(0.9 if right else 0.4)
        assert q.argmax() == p.argmax()
        assert q.max() == pytest.approx(0.9)
        assert sorted(r) == pytest.approx(sorted(p))
    assert any(p.argmax() != r.argmax() for p, r in zip(found["calibrated"], found["shuffled"], strict=True))
