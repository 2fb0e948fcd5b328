"""Real runs, small ones, to report on."""

from __future__ import annotations

import pytest
from tests.report import hostile

import hunch
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.runs.execute import RunConfig, execute

LAKE = {"env": "hunch/FrozenLake-v0", "lm": "uniform", "steps": 400}
OPTIONS = DQNPriorConfig(k=2, hidden=16, warmup=50, batch_size=16)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Two arms with two seeds each on a lake, and one run of a hostile environment."""
    out = tmp_path_factory.mktemp("runs")
    for seed in range(2):
        learner = RunConfig(method="dqn-prior", seed=seed, options=OPTIONS, **LAKE)
        execute(learner, out / "dqn-prior" / f"seed-{seed}")
        idler = RunConfig(method="zero-shot", seed=seed, options=ZeroShotConfig(), eval_every=200, **LAKE)
        execute(idler, out / "zero-shot" / f"seed-{seed}")
    evil = RunConfig(method="zero-shot", env=hostile.ID, lm="uniform", steps=60, options=ZeroShotConfig())
    execute(evil, out / "hostile")
    return out


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """A search for programs, and an agent that writes down hostile things."""
    out = tmp_path_factory.mktemp("programs")
    small = {
        "env": "hunch/Heuristic-BinPacking-v0",
        "env_options": {"items": 10, "instances": 2},
        "lm": "scripted:mutator",
    }
    execute(RunConfig(method="funsearch", steps=12, options=FunSearchConfig(), **small), out / "funsearch")

    class Diary(hunch.methods.ZeroShot):
        """An agent that keeps a diary."""

        def records(self):
            return [
                {
                    "task": hostile.EVIL,
                    "plan": [hostile.EVIL, "go"],
                    "worked": [True, False],
                    "told": f"{hostile.EVIL}\n{hostile.EVIL}",
                }
            ]

    hunch.train(Diary(hunch.roles.UniformPrior()), "hunch/FrozenLake-v0", 50, out=out / "diary")
    return out
