"""Runs side by side: the control, paired seeds, and a comparison that is killed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hunch import methods
from hunch.core import UsageError
from hunch.methods.prior.dqn_prior import DQNPriorConfig, QLearningConfig
from hunch.runs.compare import Arm, arms, compare, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.folder import read_json, read_lines

LAKE = "hunch/FrozenLake-v0"
COMMAND = [
    *(sys.executable, "-m", "hunch", "compare", "dqn-prior", "--env", LAKE, "--steps", "1500"),
    *("--seeds", "2", "--dqn-prior.k", "2", "--dqn-prior.hidden", "16", "--out"),
]


def test_the_control_differs_in_the_model_alone():
    config = RunConfig(method="dqn-prior", env=LAKE, options=DQNPriorConfig(k=3))
    informed, control = arms([config])
    assert control.config.lm == "uniform"
    assert {**vars(control.config), "lm": "minilm"} == vars(informed.config)
    assert arms([config], control=False)[0].config == config


def test_a_baseline_and_an_uninformed_method_need_no_control():
    dqn = RunConfig(method="dqn", env=LAKE, options=QLearningConfig())
    uninformed = RunConfig(method="dqn-prior", env=LAKE, lm="uniform", options=DQNPriorConfig())
    assert len(arms([dqn, uninformed])) == 2


def test_a_method_is_compared_once():
    config = RunConfig(method="dqn", env=LAKE, options=QLearningConfig())
    with pytest.raises(UsageError, match="once"):
        arms([config, config])


def test_seeds_are_paired(tmp_path):
    listed = arms([RunConfig(method="dqn-prior", env=LAKE, options=DQNPriorConfig())])
    todo = jobs(listed, 3, tmp_path)
    assert [job.seed for job in todo] == [0, 0, 1, 1, 2, 2]
    assert len({job.folder for job in todo}) == 6


def episodes(out: Path) -> dict[str, list]:
    return {str(path.relative_to(out)): read_lines(path) for path in sorted(out.rglob("episodes.jsonl"))}


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_comparison_goes_on(tmp_path, blow):
    """Nothing is doubled, nothing is missing, and no worker outlives the comparison."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*COMMAND, str(whole)], check=True, capture_output=True, timeout=300)
    process = subprocess.Popen([*COMMAND, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not any(len(lines) > 5 for lines in episodes(killed).values()):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, blow)
    assert process.wait(timeout=60) == (130 if blow != signal.SIGKILL else -signal.SIGKILL)
    done = subprocess.run([*COMMAND, str(killed)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert episodes(killed) == episodes(whole)


def test_a_process_has_a_seat():
    with pytest.raises(UsageError, match="at least one seat, not 0"):
        compare([], seats=0)


def test_runs_that_share_a_process_are_the_same_runs(tmp_path):
    config = RunConfig(method="icpi", env="hunch/Chain-v0", lm="scripted:icpi?error=0.2", steps=60)
    config = replace(config, options=methods.find("icpi").config_class())
    listed = [Arm("icpi", config)]
    apart, shared = jobs(listed, 3, tmp_path / "apart"), jobs(listed, 3, tmp_path / "shared")
    assert all(outcome.result for outcome in compare(apart, workers=2))
    assert all(outcome.result for outcome in compare(shared, workers=2, seats=2))
    assert episodes(tmp_path / "apart") == episodes(tmp_path / "shared")
    for one, other in zip(apart, shared, strict=True):
        usage = [read_json(job.folder / "summary.json")["usage"] for job in (one, other)]
        assert usage[0]["calls"] == usage[1]["calls"]
