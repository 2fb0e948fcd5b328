"""Runs that learn nothing say so."""

import pytest

import hunch
from hunch.cli.main import main

LAKE = "hunch/FrozenLake-v0"
SMALL = {"encoder": "bag-of-words", "hidden": 8, "batch_size": 4}


def said_of(method, steps, streams=1, **options):
    """What a run says of its updates, and its agent."""
    said = []
    watch = hunch.Watch(say=said.append)
    result = hunch.train(method, LAKE, steps, streams=hunch.Streams(envs=streams), watch=watch, **options)
    return [text for text in said if "makes no update" in text], result.agent


@pytest.mark.parametrize(
    ("steps", "streams", "updates"), [(20, 1, 0), (21, 1, 0), (22, 1, 1), (19, 3, 0), (22, 3, 2)]
)
def test_a_run_that_ends_before_the_first_update_says_so(steps, streams, updates):
    said, agent = said_of("dqn", steps, streams, warmup=20, update_every=2, **SMALL)
    assert agent.learner.updates == updates
    assert bool(said) == (updates == 0)


def test_the_sentence_names_the_options(tmp_path, capsys):
    settings = ["--encoder", "bag-of-words", "--steps", "40", "--out", str(tmp_path / "r")]
    main(["run", "dqn", "--env", LAKE, *settings])
    sentence = (
        "This run makes no update, so its agent learns nothing: the first one comes at step 502 (--warmup), "
        "and the run ends at step 40 (--steps)."
    )
    assert " ".join(capsys.readouterr().err.split()).count(sentence) == 1


def test_a_learner_within_a_method_says_so_too():
    (sentence,), _ = said_of("count-bonus", 30, learner="dqn")
    assert "step 502 (--dqn.warmup)" in sentence
    assert not said_of("count-bonus", 30)[0], "a table learns from the first step on"


def test_a_comparison_says_it_once(tmp_path, capsys):
    settings = ["--encoder", "bag-of-words", "--steps", "40", "--seeds", "1", "--out", str(tmp_path / "c")]
    main(["compare", "dqn", "dqn-prior", "--lm", "uniform", "--no-control", "--env", LAKE, *settings])
    assert " ".join(capsys.readouterr().err.split()).count("This run makes no update") == 1
