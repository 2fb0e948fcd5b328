"""Budgets, and the estimate before a run: nothing beyond the limit, nothing lost, nothing asked."""

import json
from dataclasses import asdict, replace

import pytest
from tests.runs.test_runs import CONFIG as UNCACHED
from tests.runs.test_runs import assert_same_run

import hunch
from hunch import methods, train
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.envs.frozen_lake_rule import frozenlake
from hunch.lm import Budget, BudgetError, Cached, Usage
from hunch.lm.backends.scripted import ScriptedModel
from hunch.lm.budget import Ledger
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.methods.program.eureka import EurekaConfig
from hunch.roles import MappedPrior
from hunch.runs.compare import SPENT, SharedBudget, _spent
from hunch.runs.estimate import assumptions, estimate, estimates
from hunch.runs.execute import RunConfig, execute
from hunch.runs.folder import JOURNAL

LAKE = "hunch/FrozenLake-v0"
COMMAND = ["run", "zero-shot", "--env", LAKE, "--lm", "scripted:frozenlake?error=0.5", "--steps", "100"]
CONFIG = replace(UNCACHED, options=replace(UNCACHED.options, encoder="minilm"))
"""With a model whose answers are kept."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))


class Priced(ScriptedModel):
    """A rule that takes money: 10 tokens read and 2 written an answer."""

    price_in, price_out = 1000.0, 5000.0

    def __init__(self, **dials):
        super().__init__(frozenlake, **dials)
        self.tokens_read = self.tokens_written = self.retries = 0

    def _answer(self, prompt, sampling, index):
        self.tokens_read += 10
        self.tokens_written += 2
        return super()._answer(prompt, sampling, index)


def played(budget, steps=200, **dials):
    agent = hunch.methods.ZeroShot(MappedPrior(Cached(Priced(**dials))))
    return train(agent, hunch.make(LAKE), steps, budget=budget)


def test_stopped_by_budgets_and_resumed_equals_uninterrupted(tmp_path):
    """Answers on disk make the steps after the last checkpoint free; what they cost stays on the books."""
    config = replace(CONFIG, steps=150)
    whole = execute(config, tmp_path / "whole")
    calls = int(whole.usage["calls"])
    (tmp_path / "answers.sqlite").unlink()
    for limit in (calls // 3, calls - 1):
        result = execute(config, tmp_path / "part", budget=Budget(calls=limit))
        assert not result.complete
        assert f"budget of {limit:,} calls is reached" in result.stopped
        assert result.usage["calls"] <= limit
        summary = json.loads((tmp_path / "part" / "summary.json").read_text())
        assert summary["stopped"] == result.stopped
    last = execute(config, tmp_path / "part", budget=Budget(calls=calls))
    assert last.complete
    assert last.usage["calls"] == calls
    assert_same_run(tmp_path / "whole", tmp_path / "part")


def test_an_uncached_run_goes_on_too(tmp_path, monkeypatch):
    """A rule's answers are on no disk: at most one line of metrics is done twice."""
    monkeypatch.chdir(tmp_path)
    main([*COMMAND, "--out", "whole"])
    for limit in ("30", "60", "200"):
        code = 0
        try:
            main([*COMMAND, "--out", "part", "--budget.calls", limit])
        except SystemExit as stopped:
            code = stopped.code
        assert code == (0 if limit == "200" else 1)
    episodes = [(tmp_path / name / "episodes.jsonl").read_bytes() for name in ("whole", "part")]
    assert episodes[0] == episodes[1]


def test_the_command_says_which_limit_and_fails(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main([*COMMAND, "--out", "r", "--budget.calls", "30"])
    errors = capsys.readouterr().err
    assert stopped.value.code == 1
    assert "The budget of 30 calls is reached" in errors
    assert "same command with a larger budget continues" in errors
    assert (tmp_path / "r" / "checkpoint" / "state.pt").exists()


def test_money_tokens_and_the_ledger():
    result = played(None)
    usage = result.usage
    assert usage["calls"] == 200
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (2000, 400)
    assert usage["cost"] == pytest.approx(200 * (10 * 1000 + 2 * 5000) / 1e6)
    assert "cost 4.0000" in str(result)
    paid = played(Budget(money=1.0))
    assert "budget of 1.0 money is reached" in paid.stopped
    assert 1.0 <= paid.usage["cost"] <= 1.02
    read = played(Budget(tokens=120))
    assert "budget of 120 tokens" in read.stopped
    assert read.usage["calls"] == 10
    assert played(Budget(seconds=0)).usage["calls"] == 0
    assert played(Budget(calls=200)).complete


def test_refusals_and_fallbacks_are_counted():
    usage = played(None, refusal=0.3, malformed=0.2).usage
    assert 30 < usage["refusals"] < 90
    assert usage["fallbacks"] > usage["refusals"]
    assert usage["retries"] == 0


@pytest.mark.parametrize("limit", ["calls", "tokens", "money", "seconds"])
def test_a_limit_is_a_number_from_0_on(limit):
    with pytest.raises(UsageError, match=f"budget of {limit} must be at least 0"):
        Budget(**{limit: -1})
    assert Budget(**{limit: 0})
    assert not Budget()


def test_money_needs_a_price(tmp_path):
    config = RunConfig(method="zero-shot", env=LAKE, lm="uniform", options=ZeroShotConfig())
    with pytest.raises(UsageError, match=r"price.*uniform"):
        execute(config, tmp_path / "r", budget=Budget(money=1.0))
    Budget(money=1.0).check_prices([Cached(Priced())])
    Budget(calls=1).check_prices([])


def test_several_spend_one_budget():
    spent = [0.0] * (2 * len(SPENT))
    first, second = (SharedBudget(calls=10, spent=spent, row=row) for row in range(2))
    first.check(Usage(calls=6).as_dict(), 2)
    with pytest.raises(BudgetError, match="8 were made"):
        second.check(Usage().as_dict(), 5)
    second.settle(Usage().as_dict())
    first.settle(Usage(calls=6).as_dict())
    second.check(Usage(calls=1).as_dict(), 3)
    with pytest.raises(BudgetError):
        first.check(Usage(calls=6).as_dict(), 4)


def test_what_killed_runs_asked_is_in_their_journals(tmp_path):
    assert not any(_spent(tmp_path).values())
    line = {"usage": Usage(calls=3, cost=5.0).as_dict()}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    noted = {"lm": Usage(calls=7, cost=2.0).as_dict(), "judge": Usage(calls=1, cost=1.0).as_dict()}
    (tmp_path / JOURNAL).write_text(json.dumps(noted))
    assert (_spent(tmp_path)["calls"], _spent(tmp_path)["cost"]) == (8, 5.0)


def test_outside_its_block_a_budget_holds_nobody():
    model = Cached(ScriptedModel(frozenlake))
    ledger = Ledger({"lm": model}, Budget(calls=1))
    with ledger.enforced():
        model.generate(["- a\n- b"])
        with pytest.raises(BudgetError):
            model.generate(["- c\n- d"])
    model.generate(["- c\n- d"])
    assert ledger.total()["calls"] == 2


def test_requests_on_their_way_count_against_the_budget(tmp_path):
    """Several threads may ask at once: what the others ask is neither counted yet nor free."""
    model = Cached(ScriptedModel(frozenlake))
    model.in_flight = 3
    ledger = Ledger({"lm": model}, Budget(calls=4), tmp_path / "asked.json")
    with ledger.enforced():
        model.gate(1)
        assert json.loads((tmp_path / "asked.json").read_text())["lm"]["calls"] == 4
        with pytest.raises(BudgetError):
            model.gate(2)


def test_models_are_metered_by_name_and_budgeted_together():
    """Two roles, two meters; one model under two names is counted once."""
    judge, prior = Cached(ScriptedModel(frozenlake)), Cached(ScriptedModel(frozenlake, error=0.5))
    ledger = Ledger({"lm": prior, "judge": judge, "critic": judge}, Budget(calls=3))
    with ledger.enforced():
        prior.generate(["- a\n- b"], 2)
        judge.generate(["- a\n- b"])
        with pytest.raises(BudgetError, match="3 were made"):
            judge.generate(["- c\n- d"])
    assert {name: figures["calls"] for name, figures in ledger.by_name().items()} == {"lm": 2, "judge": 1}
    ledger.earlier = {"lm": {**Usage().as_dict(), "calls": 10}}
    assert ledger.total()["calls"] == 13


def test_a_comparison_shares_its_budget_and_goes_on(hunch_command, tmp_path):
    command = [
        *("compare", "zero-shot", "--env", LAKE, "--steps", "120"),
        *("--lm", "scripted:frozenlake", "--seeds", "2", "--workers", "1", "--out", "c", "--budget.calls"),
    ]

    def done(limit):
        ended = hunch_command(*command, limit)
        return ended, [json.loads(p.read_text()) for p in sorted(tmp_path.glob("c/*/seed-*/summary.json"))]

    (code, out, errors), summaries = done("150")
    assert code == 1
    assert "stopped: zero-shot, seed 1: The budget of 150 calls is reached" in out
    assert "1 of 2 runs were stopped by the budget" in errors
    assert [summary["complete"] for summary in summaries] == [True, False]
    assert sum(summary["usage"]["calls"] for summary in summaries) <= 150
    (code, _, errors), summaries = done("1000")
    assert code == 0, errors
    assert all(summary["complete"] for summary in summaries)


def test_an_estimate_asks_no_model_and_leaves_no_trace(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr("hunch.lm.backends.minilm.MiniLM.embed", lambda self, texts: asked.append(texts))
    main(["run", "dqn-prior", "--env", LAKE, "--steps", "100", "--k", "2", "--hidden", "16", "--dry-run"])
    out = capsys.readouterr().out
    assert "expected" in out
    assert "at most" in out
    assert "no model was asked" in out
    assert asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("default::hunch.core.HunchWarning")
@pytest.mark.parametrize(
    "spec", ["openai:m?base_url=http://127.0.0.1:9/v1&price_in=1&price_out=4", "anthropic:m?price_out=4"]
)
def test_an_estimate_needs_neither_server_nor_key(spec, tmp_path, monkeypatch, capsys):
    """One sentence says what is assumed; a run is refused as before."""
    monkeypatch.chdir(tmp_path)
    for name in ("HUNCH_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    command = ["run", "zero-shot", "--env", LAKE, "--steps", "20", "--lm"]
    main([*command, spec, "--dry-run"])
    out, said = capsys.readouterr()
    assert "cost" in out
    assert said.count("\n") == said.count("The server could not be asked, so the dry run treats it as") == 1
    assert "a chat model that only writes, with 2,048 tokens per answer" in said
    with pytest.raises(SystemExit):
        main([*command, spec])
    with pytest.raises(SystemExit) as refused:
        main([*command, spec.replace("price_out=4", "price_out=x"), "--dry-run"])
    assert refused.value.code == 2


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
def test_an_estimate_without_a_server_says_why_a_verb_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    spec = "openai:m?base_url=http://127.0.0.1:9/v1"
    with pytest.raises(SystemExit):
        main(["run", "zero-shot", "--env", LAKE, "--lm", spec, "--prior.way", "label", "--dry-run"])
    assert "its server was not reached" in capsys.readouterr().err


def test_what_is_in_the_cache_costs_nothing(tmp_path):
    """A run of no more steps than are played is estimated exactly, but for what its answers change."""
    config = replace(CONFIG, steps=100)
    before = estimates([config])[0]
    execute(config, tmp_path / "r")
    after = estimates([config])[0]
    assert before.expected["calls"] == before.sample["calls"] > 0
    assert after.expected["calls"] < before.expected["calls"]


def test_a_model_that_is_asked_every_step_is_estimated_exactly(tmp_path):
    spec = "scripted:frozenlake?error=0.3"
    config = RunConfig(method="zero-shot", env=LAKE, lm=spec, steps=400, options=ZeroShotConfig())
    found = estimates([config])[0]
    partly = estimate_of(config, 100)
    assert found.expected["calls"] == execute(config, tmp_path).usage["calls"] == 400
    assert partly.sampled == 100
    assert partly.expected["calls"] == partly.bound["calls"] == 400
    assert partly.expected["prompt_tokens"] == pytest.approx(found.expected["prompt_tokens"], rel=0.1)


def test_programs_that_stand_ins_do_not_write_end_no_estimate():
    config = RunConfig(
        method="eureka",
        env="hunch/RewardDesign-Gymnasium-v0",
        env_options={"base": "FrozenLake-v1", "steps": 200},
        lm="scripted:writer",
        steps=12,
        options=EurekaConfig(give_up=4, retries=1, max_tokens=300),
    )
    found = estimates([config])[0]
    assert found.sample["calls"] == 24, "each program is written again"
    assert found.sample["completion_tokens"] == 24 * 300, "an answer of many lines is as long as allowed"


def test_evaluations_that_come_after_the_sample_are_named(hunch_command):
    """A run on recorded data is evaluated at every tenth of its steps, also without eval_every."""
    hunch_command("data", "collect", "--env", LAKE, "--out", "d", "--steps", "30")
    options = methods.find("cql").config_class(encoder="bag-of-words", hidden=16)
    config = RunConfig(method="cql", env=LAKE, data="d", steps=1_000, options=options)
    for every, named in ((0, True), (10, False), (100, True)):
        own = replace(config, eval_every=every, eval_episodes=1)
        sentences = assumptions(estimate(own, 20), own)
        assert any("Evaluations are not counted" in sentence for sentence in sentences) == named


def estimate_of(config, sample):
    return estimates([config], sample)[0]


def test_runs_that_share_a_cache_are_estimated_together():
    first, second = estimates([replace(CONFIG, steps=100)] * 2)
    assert first.sample["calls"] > second.sample["calls"] == 0
    assert asdict(first)["bound"]["calls"] >= first.expected["calls"]


def test_estimates_refuse_what_runs_refuse():
    with pytest.raises(UsageError, match="envs must be from 1"):
        estimate(replace(CONFIG, envs=0))
    with pytest.raises(UsageError, match="steps must be at least 1"):
        estimate(replace(CONFIG, steps=0))
