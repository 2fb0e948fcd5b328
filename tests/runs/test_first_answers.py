"""Whoever starts a run sees once how each role asks its model, and the first answers as they were read."""

import json

import numpy as np
import pytest

from hunch import lm
from hunch.cli.main import main
from hunch.core import HunchError, State
from hunch.lm.base import Model
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.report.gather import collect
from hunch.report.page import page
from hunch.roles import PriorConfig, build_prior
from hunch.runs.callbacks import Watch
from hunch.runs.execute import RunConfig, execute
from hunch.runs.first_answers import FILE, FirstAnswers, first_answers, kept_in

LAKE = "hunch/FrozenLake-v0"


class Rambler(Model):
    """Writes around the options, or an option with more words."""

    verbs = frozenset({"generate"})
    name, revision, speaks = "rambler", "1", True

    def __init__(self, texts):
        self.texts = texts

    def generate(self, prompts, k=1, sampling=None, first=0):
        return [self.texts[:k] for _ in prompts]


def ran(folder, said, steps=8, way="auto"):
    prior = PriorConfig(way=way, patience=None)
    config = RunConfig(
        env=LAKE,
        method="zero-shot",
        lm="scripted:frozenlake",
        steps=steps,
        options=ZeroShotConfig(prior=prior),
    )
    return execute(config, folder, watch=Watch(progress=False, say=said.append))


def test_a_run_says_once_which_way_auto_chose_and_what_the_model_said(tmp_path):
    said = []
    ran(tmp_path / "run", said)
    (text,) = said
    assert text.startswith("scripted:frozenlake as prior: auto chose the way text (free answers")
    assert text.count("'Go ") == 3
    ran(tmp_path / "run", said, steps=16)  # the run goes on, and has been told
    assert said == [text, "The run goes on from step 8 of 16."]
    (row,) = kept_in(tmp_path / "run")
    assert (row.option, row.role, row.way, row.automatic) == ("lm", "prior", "text", True)
    assert len(row.answers) == 3
    assert all(answer.strip().startswith(read) for answer, read in row.answers)
    assert str(row) == text


def test_a_way_that_was_set_is_no_choice_of_auto(tmp_path):
    said = []
    ran(tmp_path / "run", said, way="text-unlisted")
    assert "asked in the way text-unlisted" in said[0]
    assert "auto" not in said[0]


def test_a_run_that_ends_before_three_answers_says_what_there_is(tmp_path):
    said = []
    ran(tmp_path / "run", said, steps=2)
    assert said[0].count("'Go ") == 2


def test_answers_are_shown_as_they_were_read():
    model = lm.Cached(Rambler(["I would go left.", "What a nice day", "", "go left"]))
    prior = build_prior(PriorConfig(way="text", patience=None), model)
    prior.propose([State("At the lake.", "", ("go left", "go right"))], 4, np.random.default_rng(0))
    (row,) = first_answers([("lm", model)])
    assert str(row).endswith(
        "first answers: 'I would go left.' (read as go left); 'What a nice day' (read as nothing); "
        "an empty answer."
    )


def test_probabilities_are_shown_by_the_likeliest_options(tmp_path):
    model = lm.load("minilm", cache=None)
    prior = build_prior(PriorConfig(), model)
    state = State("A fridge and a mug.", "take the mug", ("take the mug", "look", "go north", "go south"))
    (p,) = prior.probabilities([state])
    (row,) = first_answers([("lm", model)])
    ((shown, read),) = row.answers
    assert read == state.options[int(p.argmax())] == "take the mug"
    assert shown.startswith(f"take the mug {p.max():.2f}, ")
    assert shown.count(",") == 2


def test_the_report_shows_it_and_an_evaluation_prints_it(tmp_path, capsys):
    said = []
    ran(tmp_path / "run", said)
    comparisons, _ = collect([tmp_path / "run"])
    assert json.dumps(said[0])[1:-1] in page(comparisons, (), episodes=1)
    main(["evaluate", str(tmp_path / "run"), "--episodes", "1", "--out", str(tmp_path / "scored")])
    assert "as prior: auto chose the way text" in capsys.readouterr().err
    main(["evaluate", str(tmp_path / "run"), "--episodes", "1", "--out", str(tmp_path / "scored")])
    assert "as prior: auto chose the way text" in capsys.readouterr().err  # read from the file


def test_a_damaged_file_is_one_sentence_for_the_report(tmp_path):
    ran(tmp_path / "run", [])
    (tmp_path / "run" / FILE).write_text('{"roles": [{"option": "lm"}]}', encoding="utf-8")
    with pytest.raises(HunchError, match=FILE):
        kept_in(tmp_path / "run")


def test_a_dry_run_and_an_uninformed_control_say_nothing(tmp_path):
    said = []
    config = RunConfig(env=LAKE, method="dqn-prior", lm="uniform", steps=8, options=DQNPriorConfig())
    execute(config, tmp_path / "run", watch=Watch(progress=False, say=said.append))
    assert not [text for text in said if "uniform" in text]


def test_a_program_as_an_answer_is_one_short_line() -> None:
    program = "def act(observation):\n" + "    observation += 1\n" * 40 + "    return 0"
    told = str(FirstAnswers("lm", "coder", "writer", "", False, ((f"```\n{program}\n```", program),)))
    assert "\n" not in told
    assert "(read as 42 lines)" in told
    assert len(told) < 260


def test_a_role_that_never_asks_is_not_mentioned():
    model = lm.Cached(Rambler(["go left"]))
    build_prior(PriorConfig(), model)
    assert first_answers([("lm", model)]) == []
