"""Red teaming: controls that mean something, and what is learnt from hits."""

from __future__ import annotations

import numpy as np
import pytest

from hunch.cli.main import main
from hunch.core import State, Transition, World
from hunch.lm import trainable
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


ASKED = [State("ask :", stream=stream) for stream in range(32)]


def after_imitating(pays, cut_at):
    """Return an agent that imitated the requests of its own that are paid, and those requests."""
    lm = trainable("scratch?width=32&layers=1&vocabulary=32")
    lm.take(["ask : red tea blue cup green hat old shoe"])
    agent = RedTeam(lm=lm, stage="supervised", tries=64, updates=60, max_tokens=cut_at, rate=1e-2)
    agent.begin(World(steps=1_000, streams=32), 0)
    while agent.trying:
        texts = agent.act(ASKED)
        cut = [not agent.decided[state.stream].finished for state in ASKED]
        steps = zip(ASKED, texts, cut, strict=True)
        agent.observe([Transition(s, text, float(pays(c)), s, True, False) for s, text, c in steps])
        agent.learn()
    return agent


def ended(agent):
    """Return the share of texts that end within six tokens."""
    rngs = [np.random.default_rng(seed) for seed in range(200)]
    return np.mean([text.finished for text in agent.lm.write(["ask :"] * len(rngs), rngs, max_tokens=6)])


def test_hits_that_were_cut_are_not_learnt_as_if_they_had_ended():
    agent = after_imitating(pays=lambda cut: cut, cut_at=4)
    assert ended(agent) < 0.3


def test_hits_that_ended_are_learnt_with_their_end():
    agent = after_imitating(pays=lambda cut: not cut, cut_at=4)
    assert ended(agent) > 0.7


@pytest.mark.parametrize(("stage", "measured"), [("zero-shot", True), ("few-shot", False)])
def test_no_divergence_is_reported_of_requests_after_hits(stage, measured):
    """Their weights are those of the reference, after another prompt: 0 was said of whatever they were."""
    lm = trainable("scratch?width=32&layers=1&vocabulary=32")
    lm.take(["ask : red tea blue cup green hat old shoe"])
    agent = RedTeam(lm=lm, stage=stage, tries=32, max_tokens=4)
    agent.begin(World(steps=100, streams=32), 0)
    texts = agent.act(ASKED)
    agent.observe([Transition(s, text, 1.0, s, True, False) for s, text in zip(ASKED, texts, strict=True)])
    player = agent.player(0)
    player.act(ASKED)
    assert ("kl" in player.figures()) is measured
