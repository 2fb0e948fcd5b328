"""Whoever asks a model is counted: models that environments ask, and models that are trained."""

import copy
import json
from dataclasses import replace

import gymnasium
import pytest

import hunch
from hunch import Evaluation, lm
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.frozen_lake_rule import frozenlake
from hunch.lm import Budget, BudgetError, Cached
from hunch.lm.answers.rehearsal import Rehearsal
from hunch.lm.backends.scripted import ScriptedModel
from hunch.lm.usage import Metered
from hunch.rl import dataset
from hunch.runs.config import RunConfig
from hunch.runs.estimate import assumptions, estimate
from hunch.runs.models import Asked
from hunch.runs.record import collect, parse_mix

ID = "Judged-v0"
CHOICES = ("yes", "no")


class Judged(TextEnv):
    """A judge rewards every action; it is asked something new each time."""

    def __init__(self, name="judge", spec="scripted:frozenlake", max_steps=4, render_mode=None):
        super().__init__(max_steps, render_mode)
        self.models = {name: lm.load(spec)}

    def _judge(self, what):
        [model] = self.models.values()
        [[verdict]] = model.generate([f"{what} {self.np_random.random()}\n- yes\n- no\nAnswer:"])
        return verdict

    def _begin(self, options):
        self.task = "convince the judge"
        self._judge("first")
        return Outcome("Say something.", CHOICES)

    def _move(self, action):
        return Outcome("Go on.", CHOICES, float(self._judge(action) == "yes"))


if ID not in gymnasium.registry:
    gymnasium.register(ID, Judged, disable_env_checker=True, order_enforce=False)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    monkeypatch.chdir(tmp_path)


def test_calls_of_an_environment_are_the_runs(tmp_path):
    """Eight steps and two resets, and then the reset of the third episode."""
    result = hunch.train("q-learning", Judged(), steps=8, out="r")
    assert result.models["judge"]["calls"] == result.usage["calls"] == 8 + 3
    assert result.evidence == "L0"
    summary, config = (
        json.loads((tmp_path / "r" / f"{name}.json").read_text()) for name in ("summary", "config")
    )
    assert summary["models"]["judge"]["calls"] == 11
    assert (summary["evidence"], config["evidence"]) == ("L0", "L0")
    assert config["models"]["judge"]["name"] == "scripted:frozenlake"


def test_the_command_counts_them_in_training_and_in_evaluations(tmp_path, capsys):
    main(
        [
            "run",
            "q-learning",
            "--env",
            ID,
            "--steps",
            "8",
            "--eval-every",
            "4",
            "--eval-episodes",
            "2",
            "--out",
            "r",
        ]
    )
    capsys.readouterr()
    usage = json.loads((tmp_path / "r" / "summary.json").read_text())["models"]["judge"]
    # 11, and in two evaluations of the same episodes 2 x (1 + 4) each
    assert usage["calls"] + usage["cache_hits"] == 31
    main(["evaluate", "r", "--episodes", "3"])
    said = capsys.readouterr().out
    assert "15 model calls" in said
    assert "evidence level L0" in said


def test_environments_side_by_side_share_a_line(tmp_path):
    envs = [Judged(), Judged()]
    result = hunch.train("q-learning", envs, steps=8, evaluation=Evaluation(Judged(spec="uniform"), 8, 1))
    assert {name: figures["calls"] for name, figures in result.models.items()} == {
        "judge": 8 + 4,
        "env.judge": 5,  # the evaluation's own judge
    }


def test_a_name_that_the_agent_has_too_gets_a_label():
    env = Judged(name="lm")
    result = hunch.train("zero-shot", env, steps=4, lm="scripted:frozenlake")
    assert {name: figures["calls"] for name, figures in result.models.items()} == {"lm": 4, "env.lm": 6}
    same = Judged(name="other")
    agent = hunch.methods.ZeroShot(hunch.roles.MappedPrior(same.models["other"]))
    assert [name for name, _ in Asked(agent, {}, [same])] == ["lm"]


def test_evidence_is_that_of_the_weakest(tmp_path):
    real = Cached(ScriptedModel(frozenlake))
    real.evidence = "L3"
    agent = hunch.methods.ZeroShot(hunch.roles.MappedPrior(real))
    assert hunch.train(agent, "hunch/FrozenLake-v0", steps=2).evidence == "L3"
    assert hunch.train(agent, Judged(), steps=2).evidence == "L0"


def test_a_budget_holds_for_them(tmp_path):
    stopped = hunch.train("q-learning", Judged(), steps=8, out="r", budget=Budget(calls=6))
    assert "budget of 6 calls is reached" in stopped.stopped
    assert stopped.usage["calls"] <= 6
    assert hunch.train("q-learning", Judged(), steps=8, out="r", budget=Budget(calls=100)).complete
    with pytest.raises(BudgetError, match="budget of 0 calls is reached"):
        hunch.train("q-learning", Judged(), steps=8, budget=Budget(calls=0))


def test_an_estimate_counts_them_and_asks_none(monkeypatch):
    asked = []
    answer = ScriptedModel.generate
    monkeypatch.setattr(
        ScriptedModel, "generate", lambda self, *given: asked.append(given) or answer(self, *given)
    )
    config = RunConfig(method="q-learning", env=ID, steps=80)
    found = estimate(config, sample=8)
    assert found.sample["calls"] == 11
    assert found.expected["calls"] == pytest.approx(80 * 10 / 8, rel=0.1)
    assert not asked
    assert not found.trains


def test_a_stand_in_leaves_a_model_as_it_was():
    model = lm.load("uniform")
    before = vars(model).copy()
    with Rehearsal().replacing([model, model]):
        model.generate(["- a\n- b"])
        assert model.model is not before["model"]
    assert {name: value for name, value in vars(model).items() if name in before} == before
    assert model.usage.calls == 1


def test_workers_cannot_count():
    with pytest.raises(UsageError, match="leave processes out"):
        hunch.train("q-learning", [Judged(), Judged()], steps=4, streams=hunch.Streams(processes=2))


def test_a_model_of_an_environment_needs_a_meter():
    env = Judged()
    env.models = {"judge": ScriptedModel(frozenlake)}
    with pytest.raises(UsageError, match="The model judge of Judged has no meter: load it with"):
        hunch.train("q-learning", env, steps=4)


def test_models_of_wrappers_are_counted():
    class Asks(gymnasium.Wrapper):
        def __init__(self, env):
            super().__init__(env)
            self.models = {"reader": lm.load("uniform")}

        def step(self, action):
            self.models["reader"].generate([f"{self.np_random.random()}\n- a\n- b"])
            return self.env.step(action)

    result = hunch.train("q-learning", Asks(Judged()), steps=4)
    assert result.models["reader"]["calls"] == 4
    assert result.models["judge"]["calls"] == 6


def test_copies_share_the_meter():
    model = lm.load("uniform")
    assert copy.deepcopy({"model": model})["model"] is model


@pytest.mark.parametrize("method", ["glam", "twosome"])
def test_a_model_that_is_trained_is_counted(method, tmp_path):
    pytest.importorskip("torch")
    result = hunch.train(method, "hunch/FrozenLake-v0", steps=8, horizon=4, width=8, out="r")
    figures = result.models["lm"]
    assert figures["calls"] >= 8
    assert figures["prompt_tokens"] > figures["calls"]
    assert figures["seconds"] > 0
    assert json.loads((tmp_path / "r" / "config.json").read_text())["models"]["lm"]["name"].startswith(
        "pocket"
    )
    stopped = hunch.train(method, "hunch/FrozenLake-v0", steps=8, horizon=4, width=8, budget=Budget(calls=3))
    assert "budget of 3 calls" in stopped.stopped
    config = RunConfig(method=method, env="hunch/FrozenLake-v0", steps=8)
    found = estimate(config, sample=4)
    assert found.sample["calls"] >= 4
    assert any("was asked and trained" in sentence for sentence in assumptions(found, config))


def test_behaviour_cloning_counts_the_model_that_it_trains():
    pytest.importorskip("torch")
    data = collect("hunch/FrozenLake-v0", {}, parse_mix("random"), 3)
    figures = hunch.train("bc-lm", data=data, steps=2).models["lm"]
    assert figures["calls"] > 0
    assert figures["prompt_tokens"] > 0


def test_a_model_made_in_begin_is_counted():
    class Learns(hunch.methods.QLearning):
        def begin(self, world, seed):
            super().begin(world, seed)
            self.models = {"own": Metered()}

        def act(self, states):
            with self.models["own"].counted(len(states)):
                return super().act(states)

    own = Learns()
    Metered.name, Metered.evidence, Metered.revision = "own", "L1", "1"
    try:
        assert hunch.train(own, "hunch/FrozenLake-v0", steps=5).models["own"]["calls"] == 5
    finally:
        del Metered.name, Metered.evidence, Metered.revision


COMPARE = [
    "compare",
    "q-learning",
    "--env",
    f"{__name__}:{ID}",
    "--steps",
    "8",
    "--seeds",
    "2",
    "--workers",
    "1",
]


def test_a_comparison_asks_what_its_environment_asks(tmp_path, capsys):
    """Each run counts its own; a budget of money finds the price of the environment's model."""
    with pytest.raises(SystemExit):
        main([*COMPARE, "--budget.money", "1", "--out", "c"])
    assert "a model with a price, but scripted:frozenlake states none" in capsys.readouterr().err
    main([*COMPARE, "--out", "c"])
    for seed in range(2):
        summary = json.loads((tmp_path / "c" / "q-learning" / f"seed-{seed}" / "summary.json").read_text())
        assert summary["models"]["judge"]["calls"] == 11
    assert "L0" in capsys.readouterr().out


def test_an_estimate_of_a_model_trained_on_data_makes_few_of_its_updates(tmp_path):
    pytest.importorskip("torch")
    dataset.save(collect("hunch/FrozenLake-v0", {}, parse_mix("random"), 3), tmp_path / "data")
    long = RunConfig(method="bc-lm", env="hunch/FrozenLake-v0", data=str(tmp_path / "data"), steps=5_000)
    assert estimate(long).sampled == 100
    assert estimate(replace(long, steps=3)).sampled == 3
