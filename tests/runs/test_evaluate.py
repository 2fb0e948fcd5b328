"""A trained agent with something else in its role: what it plays, what it must not use, what it leaves."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import HunchError, UsageError
from hunch.methods.prior.dqn_prior import DQNConfig, DQNPrior, DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.rl import dataset
from hunch.rl.episodes import replay
from hunch.rl.rollout import Finished
from hunch.roles import TextTable
from hunch.roles.prior.base import UniformPrior
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.checkpoints import read_checkpoint
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent, refill
from hunch.runs.record import collect, parse_mix

LAKE = "hunch/FrozenLake-v0"
RULE = "scripted:frozenlake"
SMALL = {"hidden": 16, "warmup": 50, "batch_size": 16}
CONFIG = RunConfig(
    method="dqn-prior",
    env=LAKE,
    lm=f"{RULE}?error=0.6",
    steps=300,
    eval_every=300,
    eval_episodes=12,
    seed=3,
    options=DQNPriorConfig(k=2, proposals="kept", **SMALL),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was evaluated once, at its end."""
    out = tmp_path_factory.mktemp("run")
    assert execute(CONFIG, out).complete
    return out


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    """A run of a method without a role."""
    out = tmp_path_factory.mktemp("baseline")
    config = RunConfig(method="dqn", env=LAKE, steps=60, options=DQNConfig(**SMALL))
    execute(config, out)
    return out


def content(folder):
    """Every file below a folder, byte for byte."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def states(n=12):
    """States of the lake that were seen in training."""
    played = replay(hunch.make(LAKE), Finished(0, 0, 0.0, n, False, ("Go Left",) * n))
    return [transition.state for transition in played]


def test_as_it_is_it_plays_the_runs_own_evaluation(run):
    own = [record for record in read_lines(run / "episodes.jsonl") if record["evaluation"]]
    score = evaluate_run(Trial(run=run, episodes=12))
    assert score.tasks == "seen"
    assert score.success.value == pytest.approx(sum(record["success"] for record in own) / 12)
    assert score.episode_return == pytest.approx(sum(record["return"] for record in own) / 12)


def test_same_seed_same_score_and_another_seed_another(run):
    trial = Trial(run=run, lm=f"{RULE}?error=0.7", episodes=30)
    first, again, other = (evaluate_run(replace(trial, seed=seed)) for seed in (5, 5, 6))
    assert (first.success, first.episode_return) == (again.success, again.episode_return)
    assert first.usage["calls"] == again.usage["calls"]
    assert first.usage["calls"] != other.usage["calls"], "the lake has one start: the draws differ"


def test_a_better_model_makes_the_same_q_better(run):
    scores = [
        evaluate_run(Trial(run=run, lm=f"{RULE}?error={error}", options={"k": 1}, episodes=30)).success.value
        for error in (0.0, 1.0)
    ]
    assert scores == [1.0, 0.0], "k = 1 is the model alone"


def test_the_run_is_left_byte_for_byte(run, tmp_path):
    before = content(run)
    evaluate_run(Trial(run=run, lm="uniform", options={"k": 3}, episodes=3), tmp_path / "score")
    assert content(run) == before


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (RULE, {}),
        ("", {"k": 3}),
        ("", {"prior": PriorConfig(way="uniform")}),
    ],
)
def test_proposals_of_training_are_those_of_its_own_prior_and_k(run, model, options):
    """Each filling is of scripted models, so that what it draws can be told from what was kept."""
    assert load_agent(run)[0].proposals.kept
    agent, config = load_agent(run, model, options)
    assert not agent.proposals.kept
    for state in states():
        drawn = [agent.proposals.peek([state], np.random.default_rng(seed))[0] for seed in range(30)]
        if model == RULE:
            assert len({tuple(p.indices) for p in drawn}) == 1, "it never errs"
        else:
            assert max(len(p.indices) for p in drawn) > 1
        assert all(len(p.indices) <= config.options.k for p in drawn)


def test_alpha_leaves_the_proposals(run):
    agent, config = load_agent(run, options={"alpha": 1.0})
    assert agent.config.alpha == config.options.alpha == 1.0
    assert {s: p.indices.tolist() for s, p in agent.proposals.kept.items()} == {
        s: p.indices.tolist() for s, p in load_agent(run)[0].proposals.kept.items()
    }


def test_the_trained_q_is_the_same_under_any_prior(run):
    own, other = (load_agent(run, model)[0] for model in ("", "uniform"))
    for state in states(2):
        assert other.explain(state).columns["Q"] == pytest.approx(own.explain(state).columns["Q"])
    assert other.evidence == "L0"
    assert load_agent(run, "minilm")[0].evidence == "L3"


def test_unseen_tasks(run):
    score = evaluate_run(Trial(run=run, env_options={"max_steps": 3}, episodes=4))
    assert score.tasks == "unseen"
    assert score.success.value == 0, "three steps do not reach the goal"


def test_offline_runs_are_evaluated_where_their_data_come_from(tmp_path):
    data = tmp_path / "data"
    dataset.save(collect(LAKE, {"max_steps": 30}, parse_mix("oracle"), 60), data)
    options = DQNPriorConfig(k=2, hidden=16, batch_size=16)
    config = RunConfig(
        method="dqn-prior",
        env=LAKE,
        lm=RULE,
        data=str(data),
        steps=5,
        eval_episodes=2,
        options=options,
    )
    execute(config, tmp_path / "run")
    assert (
        evaluate_run(Trial(run=tmp_path / "run", env_options={"max_steps": 30}, episodes=2)).tasks == "seen"
    )
    for file in data.glob("*.hdf5"):
        file.unlink()  # the recorded episodes are not read
    score = evaluate_run(Trial(run=tmp_path / "run", lm=RULE, options={"k": 1}, episodes=2))
    assert (score.tasks, score.success.value) == ("seen", 1.0)


def test_a_method_without_q(tmp_path):
    config = RunConfig(method="zero-shot", env=LAKE, lm=f"{RULE}?error=1", steps=30, options=ZeroShotConfig())
    execute(config, tmp_path)
    assert evaluate_run(Trial(run=tmp_path, lm=RULE, episodes=3)).success.value == 1.0


def test_options_that_were_never_written_are_the_defaults(tmp_path):
    execute(RunConfig(method="zero-shot", env=LAKE, lm=RULE, steps=30), tmp_path)
    assert evaluate_run(Trial(run=tmp_path, episodes=3)).success.value == 1.0


def test_what_is_kept_is_read_again_and_never_overwritten(run, tmp_path):
    trial, out = Trial(run=run, options={"k": 1}, episodes=3), tmp_path / "score"
    score = evaluate_run(trial, out)
    before = content(out)
    assert {path.name for path in before} == {"evaluation.json"}
    assert evaluate_run(trial, out) == score, "the clock too: it was not played again"
    with pytest.raises(UsageError, match=r"another evaluation \(with.options.k: 1 there, 2 asked\)"):
        evaluate_run(replace(trial, options={"k": 2}), out)
    with pytest.raises(UsageError, match="another evaluation"):
        evaluate_run(replace(trial, episodes=4), out)
    assert content(out) == before
    (tmp_path / "evaluation.json").write_text(json.dumps({"mine": 1}))
    with pytest.raises(UsageError, match="is not an evaluation"):
        evaluate_run(trial, tmp_path)
    assert json.loads((tmp_path / "evaluation.json").read_text()) == {"mine": 1}


def test_no_run_is_written_into(run, baseline):
    before = content(run) | content(baseline)
    for out in (run, run / "checkpoint", run / "new" / "deep", baseline):
        with pytest.raises(UsageError, match="is the folder of a run"):
            evaluate_run(Trial(run=run, episodes=1), out)
    assert content(run) | content(baseline) == before
    assert not (run / "new").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"options": {"k": 0}}, "k must be at least 1"),
        ({"options": {"encoder": "hf:x"}}, "encoder affected what was learnt"),
        ({"options": {"horizon": 5}}, "dqn-prior has no horizon; .* can change k, proposals, prior, alpha"),
        (
            {"lm": "minilm", "options": {"prior": PriorConfig(way="text")}},
            "can generate as --lm; minilm cannot",
        ),
        ({"lm": "minilmm"}, "minilm"),
        ({"env_options": {"slipery": True}}, "no option 'slipery'"),
        ({"episodes": 0}, "episodes must be at least 1"),
        (
            {"options": {"env": "hunch/Keys-v0"}},
            r"--env.NAME VALUE changes its .* hunch.evaluate",
        ),
    ],
)
def test_wrong_use_is_said_and_nothing_is_written(run, tmp_path, changes, sentence):
    before = content(run)
    with pytest.raises(UsageError, match=sentence):
        evaluate_run(replace(Trial(run=run, episodes=2), **changes), tmp_path)
    assert content(run) == before
    assert not content(tmp_path)


def test_methods_without_role_or_k(baseline):
    with pytest.raises(UsageError, match="dqn has no k; an evaluation of dqn can change alpha"):
        evaluate_run(Trial(run=baseline, options={"k": 2}))
    with pytest.raises(UsageError, match="dqn uses no language model"):
        evaluate_run(Trial(run=baseline, lm="uniform"))
    assert evaluate_run(Trial(run=baseline, options={"alpha": 1.0}, episodes=2)).evidence is None


@pytest.mark.parametrize("name", ["best-of-n", "rain"])
def test_of_a_frozen_model_it_is_not_said_that_it_was_trained(name):
    with pytest.raises(UsageError, match=f"run of {name} keeps the model that it was made with, so uniform "):
        refill(RunConfig(method=name, env="hunch/Constraints-v0"), "uniform", {})


def test_a_model_that_was_trained_cannot_be_replaced(tmp_path):
    pytest.importorskip("transformers")
    method = methods.find("grpo")
    options = method.config_class(group=2, episodes=4, max_tokens=4)
    spec = "scratch?width=16&layers=1&heads=2&vocabulary=64"
    config = RunConfig(method="grpo", env="hunch/Constraints-v0", lm=spec, steps=4, envs=4, options=options)
    assert execute(config, tmp_path / "run").complete
    with pytest.raises(UsageError, match="run of grpo keeps the model that it was made with, so uniform "):
        evaluate_run(Trial(run=tmp_path / "run", lm="uniform"))


def test_folders_that_cannot_be_evaluated(run, tmp_path):
    with pytest.raises(HunchError, match="holds no run"):
        evaluate_run(Trial(run=tmp_path))
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(HunchError, match="no checkpoint yet"):
        evaluate_run(Trial(run=tmp_path))


class Renamed:
    """The same encoder under another name."""

    def __init__(self, name, dim=384):
        self.model, self.name, self.dim = lm.load("minilm"), name, dim

    def __getattr__(self, name):
        return getattr(self.model, name)

    def embed(self, texts):
        return self.model.embed(texts)[:, : self.dim]


@pytest.mark.parametrize(
    ("encoder", "options", "sentence"),
    [
        (("other",), {}, "trained on embeddings of minilm"),
        (("minilm", 100), {}, "another size"),
        (("minilm",), {"hidden": 8}, "another size"),
        (("minilm",), {"joint": True}, "another size"),
    ],
)
def test_a_q_of_another_encoder_is_refused_and_the_agent_left(run, encoder, options, sentence):
    table = TextTable(Renamed(*encoder))
    agent = begun(DQNPrior(UniformPrior(), table, k=2, **{**SMALL, **options}))
    before = {name: weights.clone() for name, weights in agent.learner.network.state_dict().items()}
    with pytest.raises(UsageError, match=sentence):
        agent.load_state_dict(read_checkpoint(run)["agent"])
    assert all(
        torch.equal(before[name], weights) for name, weights in agent.learner.network.state_dict().items()
    )
