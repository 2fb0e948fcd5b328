"""The study of prompts: the oracle's chance level, the weights of the enumeration, what is run."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from hunch import methods
from hunch_studies.prompting import STUDIES, _place, _quantile, chance_oracle
from hunch_studies.study import Scale


def results(strengths, questions, rng, spread=1.0):
    logits = np.array(strengths) + spread * rng.standard_normal((questions, 1))
    return (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)


def test_the_oracle_is_at_its_chance_level_where_one_prompt_is_best_for_all():
    drawn = results([1.0, 0.0, -0.5, -1.0], 2_000, np.random.default_rng(0))
    assert chance_oracle(drawn) == pytest.approx(drawn.max(1).mean(), abs=0.03)


def test_the_oracle_is_above_it_where_each_question_has_a_prompt_of_its_own():
    own = np.eye(4)[np.random.default_rng(1).integers(4, size=400)]
    assert own.max(1).mean() > chance_oracle(own) + 0.2


def test_quantiles_count_orders():
    values, orders = np.array([0.1, 0.5, 0.9]), np.array([1.0, 6.0, 3.0])
    assert [_quantile(values, orders, share) for share in (0.05, 0.5, 0.95)] == [0.1, 0.5, 0.9]
    assert _place(["feather", "feather", "feather"]) == 0


def test_every_arm_can_be_configured():
    parts = STUDIES["prompting"].parts(Scale(seeds=1, share=0.05), Path("data"))
    for arm in (arm for part in parts for arm in part.arms):
        agent_class = methods.find(arm.config.method).agent_class
        methods.settings.configure(agent_class, arm.config.options, {})
