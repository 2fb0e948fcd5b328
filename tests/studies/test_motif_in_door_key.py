"""Motif in DoorKey."""

import json
from pathlib import Path

import pytest

import hunch
from hunch import lm, methods
from hunch.core import HunchWarning
from hunch.methods.reward.motif import PreferenceConfig

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("steps", "said"), [(59, "no reward will be fitted"), (90, "nothing to compare")])
def test_a_run_in_which_nothing_is_fitted_says_so(steps, said):
    motif = methods.Motif(lm.load("scripted:captions"), preference=PreferenceConfig(collect=60))
    silent = hunch.make("hunch/CliffWalking-v0")
    silent.unwrapped.offers = frozenset({"events"})  # it says that it tells events, and tells none
    with pytest.warns(HunchWarning, match=said):
        hunch.train(motif, silent, steps)
    assert motif.records() == []


@pytest.mark.filterwarnings("ignore:All steps so far")
@pytest.mark.parametrize("learner", ["table", "dqn"])
def test_the_contract_is_kept_through_the_fit(learner):
    agent = methods.Motif(
        lm.load("scripted:captions?error=0.1"),
        learner=learner,
        preference=PreferenceConfig(pairs=60, collect=20),
        **({"dqn": methods.DQNConfig(hidden=8, warmup=10, batch_size=8)} if learner == "dqn" else {}),
    )
    methods.check(agent, hunch.make("hunch/DoorKey-v0"), steps=48)


@pytest.mark.filterwarnings("ignore:The judge replay")
def test_a_model_that_gives_the_probability_of_letters_alone_can_judge(tmp_path):
    answers = ROOT / "docs" / "assets" / "studies" / "motif.answers.jsonl.gz"
    spec = f"replay:{answers}?model=qwen-coder-1.5b"
    options = {"preference": PreferenceConfig(way="label", collect=60, pairs=50)}
    hunch.train("motif", "hunch/DoorKey-v0", 100, lm=spec, out=tmp_path / "run", **options)
    [record] = (json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines())
    assert record["unread"] == 0
    assert record["ties"] < 1
