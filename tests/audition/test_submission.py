"""Rows of an audition for others: written by the command, read by the ladder, checked both times."""

import json
from dataclasses import replace

import numpy as np
import pytest

import hunch
from hunch.audition import submission
from hunch.audition.answer import Audition, Heard, Line
from hunch.audition.question import Scores
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.lm.answers.cache import Cached
from hunch.lm.answers.store import Store
from hunch.lm.base import Model
from hunch.lm.budget import Budget


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    pytest.importorskip("model2vec")
    path = tmp_path_factory.mktemp("submitted") / "rows.json"
    asked = ["--roles", "prior", "planner", "writer", "--questions", "20"]
    main(["audition", "--lm", "minilm", *asked, "--submit", str(path)])
    return path


def test_the_rows_hold_the_blank_prompt_and_no_role_that_could_not_be_asked(file):
    made = submission.read(file)
    assert made.model == "minilm"
    assert made.evidence == "L3"
    assert {row.role for row in made.rows} == {"prior", "planner"}  # an encoder writes nothing
    [plan] = [row for row in made.rows if row.role == "planner"]
    assert plan.blank is not None
    assert plan.blank < plan.low
    assert str(file.parent) not in file.read_text()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ability", 1.5, "between 0 and 1"),
        ("ability", "good", "wrong type"),
        ("ability", float("nan"), "wrong type"),
        ("low", 0.99, "outside its interval"),
        ("role", "oracle", "no role"),
        ("way", "telepathy", "no way of asking"),
        ("questions", 3, "needs at least 20"),
        ("seconds", float("inf"), "at least 0"),
        ("words", True, "wrong type"),
    ],
)
def test_a_row_that_was_changed_is_refused(file, tmp_path, name, value, says):
    lines = json.loads(file.read_text())
    for row in lines["rows"]:
        row[name] = value
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(lines))
    with pytest.raises(UsageError, match=says):
        submission.read(changed)


ROW = submission.Row(
    role="prior",
    env="hunch/FrozenLake-v0",
    way="",
    questions=20,
    ability=0.5,
    low=0.3,
    high=0.7,
    uninformed=0.25,
    words=None,
    blank=None,
    calibration_error=0.1,
    unread=0.0,
    tokens_read=0.0,
    tokens_written=0.0,
    seconds=0.0,
)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"calibration_error": 7.0}, "between 0 and 1"),
        ({"questions": 0}, "at least one question"),
        ({"questions": -5}, "at least one question"),
        ({"env": "Lake | 1.00"}, "where it is not asked"),
        ({"env": "hunch/Kitchen-v0"}, "where it is not asked"),
        ({"tokens_read": 10**400}, "at most"),
        ({"seconds": 10**400}, "at most"),
        ({"questions": 10**400}, "at most"),
    ],
)
def test_one_impossible_row_beside_a_good_one_is_refused(changes, says):
    rows = (ROW, replace(ROW, **{"env": "hunch/Household-Pick-v0", **changes}))
    made = submission.Submission("a", "1", "L3", "0", seed=0, rows=(ROW,))
    submission.check(made, "This file")
    with pytest.raises(UsageError, match=says):
        submission.check(replace(made, rows=rows), "This file")


def test_a_way_or_a_blank_prompt_that_the_role_does_not_have_is_refused():
    judged = replace(ROW, role="judge", env="hunch/MatrixGame-v0", way="label", blank=0.5)
    written = replace(ROW, role="writer", env="hunch/PolicyCode-v0")
    made = submission.Submission("a", "1", "L3", "0", seed=0, rows=(judged, written))
    submission.check(made, "This file")
    for wrong, says in (
        ((replace(judged, way="similarity"), written), "is asked by decision, structured, label"),
        ((judged, replace(written, blank=0.4)), "no blank prompt"),
    ):
        with pytest.raises(UsageError, match=says):
            submission.check(replace(made, rows=wrong), "This file")


@pytest.mark.parametrize(
    "name", ["<img src=x>", "[a](javascript:b)", "![](x)", "`a", "http://host/model", "a|b", "a\nb", "   "]
)
def test_a_name_that_a_page_would_read_as_markup_is_refused(name):
    made = submission.Submission("Qwen2.5 (v1), 7B:q4_K_M", "1", "L3", "0", seed=0, rows=(ROW,))
    submission.check(made, "This file")
    with pytest.raises(UsageError, match="names its model"):
        submission.check(replace(made, model=name), "This file")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": -1}, "no seed from 0"),
        ({"seed": 10**4000}, "no seed from 0"),
        ({"version": "1.0\n| a |"}, "names the version"),
        ({"version": "1" * 1000}, "names the version"),
    ],
)
def test_a_seed_or_a_version_that_cannot_be_is_refused(changes, says):
    made = submission.Submission("a", "1", "L3", "0.1.dev1+gabc", seed=0, rows=(ROW,))
    submission.check(made, "This file")
    with pytest.raises(UsageError, match=says):
        submission.check(replace(made, **changes), "This file")


HEARD = Heard(
    "prior",
    "hunch/FrozenLake-v0",
    "served",
    "L3",
    ability=float(np.mean([0.2] * 20)),
    interval=Scores(np.full(20, 0.2), [i // 4 for i in range(20)]).interval,
    questions=20,
)


class Served:
    """What a submission reads of a model behind a server."""

    name, revision, evidence = "openai:mine", "http://10.0.0.5:8000/v1 chat-1", "L3"


def audition_of(heard):
    return Audition((Line(heard, heard, None),), 0.05, 0, {})


class Guessing(Model):
    """Answers by letter, always in the same way."""

    name, revision, evidence, verbs = "guessing", "1", "L1", frozenset({"label"})

    def label(self, prompts, labels):
        self.tokens_read += 10 * len(prompts)
        self.tokens_written += len(prompts)
        return [np.log(np.linspace(2, 1, len(letters)) / 1.5 / len(letters)) for letters in labels]


def asked_as(roles, env, model):
    usual = hunch.audition(model, roles, env, questions=20)
    return usual, submission.submission(model, usual, replace(usual, lines=())).rows


def test_what_earlier_answers_took_is_not_known(tmp_path):
    """Asked again, as after an interruption, a model has nothing to do: 0 would look as if it were free."""
    store = tmp_path / "answers.sqlite"
    place = ["judge"], "hunch/MatrixGame-v0"
    usual, [first] = asked_as(*place, Cached(Guessing(), Store(store)))
    assert usual.lines[0].heard.usage["cache_hits"] > 0, "a dozen verdicts are asked for again"
    assert first.tokens_read == 10 * first.tokens_written > 0, "which leaves the figures whole"
    _, [again] = asked_as(*place, Cached(Guessing(), Store(store)))
    assert again == replace(first, tokens_read=None, tokens_written=None, seconds=None)
    made = submission.Submission("guessing", "1", "L1", "0", 0, (again,))
    submission.write(made, tmp_path / "rows.json")
    assert submission.read(tmp_path / "rows.json") == made


def test_what_a_role_took_is_not_known_where_another_one_had_its_answers():
    _, rows = asked_as(["prior", "policy"], "hunch/FrozenLake-v0", Cached(Guessing()))
    prior, policy = rows
    assert (prior.role, policy.role) == ("prior", "policy")
    assert prior.tokens_read > 0
    assert policy.tokens_read is None


def test_equal_scores_are_within_their_interval():
    assert HEARD.ability > HEARD.interval[1], "by rounding"
    [row] = submission.submission(Served(), audition_of(HEARD), audition_of(HEARD)).rows
    assert row.low <= row.ability <= row.high


def test_a_role_with_too_few_questions_does_not_cost_the_others_their_rows():
    few = replace(HEARD, role="judge", env="hunch/MatrixGame-v0", questions=18)
    both = Audition(tuple(Line(heard, heard, None) for heard in (few, HEARD)), 0.05, 0, {})
    assert [row.role for row in submission.submission(Served(), both, both).rows] == ["prior"]
    with pytest.raises(UsageError, match="18 questions as judge"):
        submission.submission(Served(), audition_of(few), audition_of(few))


def test_a_submission_that_is_refused_leaves_its_table(tmp_path, capsys):
    asked = ["--roles", "text-judge", "--questions", "20"]
    with pytest.raises(SystemExit):
        main(["audition", "--lm", "uniform", *asked, "--submit", str(tmp_path / "rows.json")])
    printed = capsys.readouterr()
    assert "text-judge" in printed.out
    assert "scripted model" in printed.err


def test_the_blank_prompts_have_what_is_left_of_the_budget():
    used = {"calls": 30, "prompt_tokens": 100, "completion_tokens": 10, "cost": 0.5, "seconds": 9.0}
    rest = Budget(calls=50, tokens=100, money=2.0).rest(used)
    assert (rest.calls, rest.tokens, rest.money, rest.seconds) == (20, 0, 1.5, None)


def test_the_address_of_a_server_stays_here():
    made = submission.submission(Served(), audition_of(HEARD), audition_of(HEARD))
    assert made.revision == "chat-1"
    assert "10.0.0.5" not in str(made)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "hunch-audition-1"}', "[" * 100_000, "\0"])
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"rows\.json"):
        submission.read(path)


def test_a_dry_run_counts_the_blank_prompts_as_well(tmp_path, capsys):
    file = tmp_path / "rows.json"
    asked = ["--lm", "scripted:judge", "--roles", "judge", "writer", "--questions", "20"]
    main(["audition", *asked, "--submit", str(file), "--dry-run"])
    usual, _, blank = capsys.readouterr().out.partition("dry run, blank prompts")
    assert "writer" in usual
    assert "judge" in usual
    assert "judge" in blank
    assert "writer" not in blank.partition("Questions that follow")[0], "it has no blank prompt"
    assert not file.exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--lm", "minilm", "bag-of-words"],
        ["--lm", "minilm", "--questions", "5"],
        ["--lm", "minilm", "--env", "hunch/FrozenLake-v0"],
        ["--lm", "minilm", "--blank"],
        ["--lm", "minilm", "--seed", str(10**16)],
        ["--lm", "uniform", "--roles", "prior", "--questions", "20"],
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, options, capsys):
    file = tmp_path / "rows.json"
    with pytest.raises(SystemExit) as end:
        main(["audition", *options, "--submit", str(file)])
    assert end.value.code == 2
    assert not file.exists()
