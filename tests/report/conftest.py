"""Real runs, small ones, to report on."""

from __future__ import annotations

import pytest
from tests.report import hostile

from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
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
