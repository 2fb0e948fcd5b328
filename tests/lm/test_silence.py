"""A model that says nothing usable is warned of, ends the run, and is named below the figures."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.cli.main import main
from hunch.core import HunchError, HunchWarning, State, Transition, World
from hunch.lm.backends.scripted import REFUSAL
from hunch.lm.base import Model
from hunch.lm.budget import Ledger
from hunch.lm.hearing import PATIENCE, SILENT, count_fallbacks
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.roles import Judge, JudgeConfig, PriorConfig, build_prior
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines
from hunch.runs.resume import count_on

STATE = State("At the lake.", "reach the gift", ("go left", "go right"))


class Parrot(Model):
    """Always says the same."""

    verbs = frozenset({"generate"})
    name, revision = "parrot", "1"

    def __init__(self, text):
        self.text = text

    def generate(self, prompts, k=1, sampling=None, first=0):
        return [[self.text] * k for _ in prompts]


def prior(text, **options):
    return build_prior(PriorConfig(way="text", **options), lm.Cached(Parrot(text)))


def propose(own, k):
    return own.propose([STATE], k, np.random.default_rng(0))


def test_a_row_of_useless_answers_is_warned_of_once_with_an_example_and_a_remedy():
    own = prior("The lake is pretty.")
    propose(own, SILENT - 1)
    with pytest.warns(
        HunchWarning, match="20 answers of parrot in a row .* 'The lake is pretty.'.*--ask prior"
    ) as told:
        propose(own, SILENT)
    assert sum(issubclass(warning.category, HunchWarning) for warning in told) == 1
    assert own.lm.usage.silent == own.lm.usage.fallbacks == 2 * SILENT - 1
    with warnings.catch_warnings(action="error"):  # a second row is only counted
        count_fallbacks(own.lm, [("go left", True), *[("The sea.", False)] * SILENT])
    assert own.lm.usage.silent == 3 * SILENT - 1


def test_longer_rows_stop_the_run_unless_a_setting_says_otherwise():
    with (
        pytest.warns(HunchWarning),
        pytest.raises(HunchError, match=r"50 answers .* in a row .* empty, so the"),
    ):
        propose(prior(""), PATIENCE)
    with pytest.warns(HunchWarning):
        propose(prior("", patience=None), 3 * PATIENCE)
    with pytest.raises(HunchError, match="5 answers"):
        propose(prior("", patience=5), 6)


def test_one_usable_answer_ends_a_row():
    model = lm.Cached(Parrot(""))
    for _ in range(10):
        count_fallbacks(model, [("", False)] * (SILENT - 1) + [("go left", True)])
    assert model.usage.fallbacks == 10 * (SILENT - 1)
    assert model.usage.silent == 0


def test_a_model_that_often_has_a_usable_answer_may_err_in_long_rows():
    """But not say nothing."""
    model = lm.Cached(Parrot(""))
    count_fallbacks(model, [("go left", True)] * 30)
    with pytest.warns(HunchWarning):
        count_fallbacks(model, [("go up", False)] * 3 * PATIENCE)
    model = lm.Cached(Parrot(""))
    count_fallbacks(model, [("go left", True)] * 1000)
    with pytest.warns(HunchWarning), pytest.raises(HunchError, match="50 answers"):
        count_fallbacks(model, [(" ", False)] * PATIENCE)


def judged(text, n):
    s = State("A game.", "choose", ("a",))
    judge = Judge(lm.Cached(Parrot(text)), JudgeConfig())
    judge.begin(hunch.core.World(), 0)
    judge.rewards([Transition(s, "a", 0.0, s, True, False, event=f"{i}") for i in range(n)])
    return judge.lm.usage


def test_a_judge_may_abstain_in_words_but_not_in_silence():
    with pytest.warns(HunchWarning, match="abstained from all"):
        usage = judged("I cannot tell.", 60)
    assert (usage.fallbacks, usage.silent) == (60, 0)
    with (
        pytest.warns(HunchWarning, match="in a row"),
        pytest.raises(HunchError, match="empty, so the run stops"),
    ):
        judged("  ", 60)


def test_stand_ins_may_be_silent(tmp_path, capsys):
    model = lm.load("uniform")
    count_fallbacks(model, [("", False)] * 100)
    assert model.usage.silent == 0
    main(
        ["run", "spring", "--env", "hunch/Craft-v0", "--lm", "scripted:first", "--steps", "100", "--dry-run"]
    )


def test_a_silent_model_ends_a_run_in_a_sentence(tmp_path, capsys):
    command = ["run", "zero-shot", "--env", "hunch/FrozenLake-v0", "--lm", "scripted:first?refusal=1"]
    with warnings.catch_warnings(action="default"), pytest.raises(SystemExit, match="1"):
        main([*command, "--steps", "100", "--out", str(tmp_path / "run")])
    shown, warned, ended = capsys.readouterr().err.splitlines()
    assert "first answers" in shown
    assert "(read as nothing)" in shown
    assert REFUSAL in warned
    assert "so the run stops" in ended


def test_table_verdict_and_result_name_a_model_that_was_silent(tmp_path):
    out = tmp_path / "runs"
    command = ["compare", "zero-shot", "--env", "hunch/FrozenLake-v0", "--lm", "scripted:first?refusal=0.97"]
    command += ["--steps", "150", "--seeds", "1", "--workers", "1", "--prior.patience", "None"]
    whole = [sys.executable, "-m", "hunch", *command, "--out", str(out)]
    told = subprocess.run(whole, capture_output=True, text=True, check=True)
    assert "unusable answers in series of 20 or more" in told.stdout
    warned = [line for line in told.stderr.splitlines() if "in a row" in line]
    assert [line.partition(": ")[0] for line in warned] == ["hunch"]  # a sentence, of the run's own process
    assert "unusable answers in series of 20 or more" in (out / "verdict.txt").read_text()
    assert json.loads((out / "table.json").read_text())[0]["silent"] >= SILENT


class Stops:
    """Ends a sitting after so many lines of metrics."""

    def __init__(self, lines):
        self.left = lines

    def __call__(self):
        self.left -= 1
        return self.left <= 0


def sittings(out, lines):
    """Go on with a run until it ends in an error; return that, the steps, and the figures of answers."""
    config = RunConfig(
        method="zero-shot",
        env="hunch/FrozenLake-v0",
        lm="scripted:first?refusal=0.95",
        steps=2000,
        options=ZeroShotConfig(prior=PriorConfig(patience=35)),
    )
    ended = ""
    while not ended:
        with warnings.catch_warnings(action="ignore"):
            try:
                execute(config, out, watch=hunch.Watch(stop=Stops(lines)))
            except HunchError as error:
                ended = str(error)
    last = read_lines(out / "metrics.jsonl")[-1]
    return ended, last["step"], [last["usage"][name] for name in ("fallbacks", "silent")]


@pytest.mark.parametrize("lines", [1, 4])
def test_a_run_that_goes_on_counts_its_rows_on(tmp_path, lines):
    """It stops where the uninterrupted one does: a row that was cut by a kill is one row."""
    whole = sittings(tmp_path / "whole", 10_000)
    assert "35 answers" in whole[0]
    assert sittings(tmp_path / "parts", lines) == whole


def test_what_a_killed_run_asks_again_is_counted_once(tmp_path):
    model = lm.Cached(Parrot(""))
    ledger = Ledger({"lm": model}, journal=tmp_path / "asked.json")
    count_fallbacks(model, [("", False)] * 15)
    kept, before = ledger.answered(), ledger.total()
    with ledger.enforced(), pytest.warns(HunchWarning):
        count_fallbacks(model, [("", False)] * 10)
    model = lm.Cached(Parrot(""))
    again = Ledger({"lm": model}, journal=tmp_path / "asked.json")
    count_on(again, ledger.by_name(), kept)
    assert again.total() == before
    with pytest.warns(HunchWarning, match="20 answers"):
        count_fallbacks(model, [("", False)] * 10)
    assert again.total() == ledger.total()


def test_an_audition_counts_silence_and_does_not_stop():
    with pytest.warns(HunchWarning, match="20 answers"):
        heard = hunch.audition(lm.Cached(Parrot("")), ["prior"], "hunch/FrozenLake-v0", questions=PATIENCE)
    (line,) = {line.heard.env: line.heard for line in heard.lines}.values()
    assert np.isnan(line.ability)  # none was measured, which is no ability of 0
    assert (line.unread, line.why) == (1.0, "all answers were empty")
    assert heard.usage["parrot"]["fallbacks"] > PATIENCE


def test_the_remedy_is_that_of_the_role():
    judge = Judge(lm.Cached(Parrot("")), JudgeConfig())
    judge.begin(World(), 0)
    with pytest.warns(HunchWarning, match="has to say yes or no; 'hunch lm SPEC --ask judge --env ID'"):
        judge.read([""] * SILENT)
