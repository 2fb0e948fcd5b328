"""Red teaming: controls that mean something, and what is learnt from hits."""

from __future__ import annotations

import pytest

from hunch.cli.main import main
from hunch.methods.settings import configure
from hunch.runs.execute import RunConfig, execute

pytest.importorskip("torch")
pytest.importorskip("hunch_studies")

from hunch_contrib.tune.red_team import RedTeam

SCRATCH = "scratch?width=32&layers=1&vocabulary=64"


def test_shuffled_rewards_are_refused_in_a_sentence(capsys, tmp_path):
    """The hits are chosen by their true rewards, before any could be shuffled."""
    command = ["run", "red-team", "--env", "hunch/Attack-v0", "--lm", SCRATCH, "--shuffle", "--steps", "2000"]
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert "compare with --stage zero-shot" in " ".join(capsys.readouterr().err.split())


def test_a_control_without_a_hit_is_recorded(tmp_path):
    """The untrained model writes no request that the environment knows, so nothing is paid."""
    options = configure(RedTeam, None, {"stage": "zero-shot", "tries": 8, "max_tokens": 4})
    run = RunConfig(method="red-team", env="hunch/Attack-v0", lm=SCRATCH, envs=4, steps=24, options=options)
    result = execute(run, tmp_path / "run")
    assert result.steps == 24
    assert [episode.episode_return for episode in result.episodes] == [0.0] * 24
