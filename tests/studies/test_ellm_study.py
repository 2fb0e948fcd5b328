"""The part of the study of ELLM in which one run has two phases."""

import gzip
import json

import pytest

import hunch
from hunch import lm, methods
from hunch_studies import ellm


@pytest.mark.parametrize("pretraining", [0, 20, 10_000])
def test_both_phases_keep_the_contract(pretraining):
    """Resume included, before, at and after the turn."""
    config = ellm.TurningELLMConfig(pretraining=pretraining)
    agent = ellm.TurningELLM(lm.load(ellm.RULE), config, lm.load("bag-of-words"))
    methods.check(agent, hunch.make(ellm.ENV))
    count = ellm.TurningCount(ellm.TurningCountConfig(pretraining=pretraining), lm.load("bag-of-words"))
    methods.check(count, hunch.make(ellm.ENV))


def test_after_the_turn_only_the_environment_rewards():
    agent = ellm.TurningCount(ellm.TurningCountConfig(pretraining=40, weight=1.0, extrinsic=0.0))
    weights = []

    class Watch(hunch.Callback):
        def on_step(self, run, transitions):
            weights.append((agent.weight, agent.extrinsic))

    hunch.train(agent, hunch.make(ellm.ENV), steps=60, watch=hunch.Watch(callbacks=[Watch()]))
    assert weights == [(1.0, 0.0)] * 39 + [(0.0, 1.0)] * 21


def test_answers_that_copy_the_list_are_counted(tmp_path):
    request = "Name up to 5 things of this list.\n- go to meadow\n- drink water\n- sleep\nGoals:"
    said = ["- go to meadow\n- drink water", "- sleep\n- drink water", "I do not know.", "- go to meadow"]
    file = tmp_path / "answers.jsonl.gz"
    with gzip.open(file, "wt") as lines:
        lines.writelines(json.dumps({"request": [request], "value": value}) + "\n" for value in said)
    assert ellm.copied(file) == (
        "4 answers: 0.25 name the first things of the list in its order, 0.25 name none."
    )
