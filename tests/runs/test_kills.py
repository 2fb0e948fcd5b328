"""Runs that are killed end as those that were left alone."""

import os
import random
import signal
import subprocess
import sys
import time
from copy import deepcopy
from math import isnan

import numpy as np
import pytest
import torch
from benchmarks.kills import COMPARISON, RUNS, children, differences, kill, same, sit

from hunch.cli.main import main
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.runs.execute import RunConfig, execute


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))


def test_a_failed_program_is_no_difference():
    """Its return is nan, which equals no other nan; every other difference is one."""
    nan = float("nan")
    state = {"best": nan, "scores": [1.0, nan], "weights": torch.tensor([nan, 1.0]), "row": np.array([nan])}
    assert same(state, deepcopy(state))
    assert not same(state, {**state, "best": 0.0})
    assert not same(state, {**state, "weights": torch.tensor([nan, 2.0])})
    assert not same(state, dict(reversed(state.items())))


def test_two_searches_with_failed_programs_are_one(tmp_path):
    config = RunConfig(
        method="funsearch",
        env="hunch/Heuristic-BinPacking-v0",
        env_options={"items": 10, "instances": 2},
        lm="scripted:mutator",
        steps=12,
        options=FunSearchConfig(),
    )
    results = [execute(config, tmp_path / name) for name in ("one", "other")]
    assert any(isnan(episode.episode_return) for episode in results[0].episodes)
    assert not differences(tmp_path / "one", tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kills"),
    [("dqn-prior", 2), pytest.param("dqn", 2, marks=pytest.mark.thorough), ("zero-shot", 1)],
)
def test_killed_runs_equal_the_uninterrupted_one(tmp_path, name, kills):
    """Five kills in all, at moments that the seed gives; ``benchmarks/kills.py`` makes a hundred."""
    _, seconds = sit(RUNS[name], tmp_path / "whole")
    struck = kill(RUNS[name], tmp_path / "whole", tmp_path / "killed", seed=7, seconds=seconds, most=kills)
    assert [next(struck) for _ in range(kills)] == [[]] * kills


def compare(folder):
    return [sys.executable, "-m", "hunch", "compare", *COMPARISON, "--out", str(folder)]


@pytest.mark.slow
def test_a_killed_worker_fails_alone_and_is_run_again_alone(tmp_path):
    main(compare(tmp_path / "whole")[3:])
    process = subprocess.Popen(
        compare(tmp_path / "c"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not list(tmp_path.glob("c/*/*/metrics.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    workers = [pid for child in children(process.pid) for pid in children(child)]
    os.kill(random.Random(0).choice(workers), signal.SIGKILL)
    out, errors = process.communicate()
    assert process.returncode == 1
    assert "its process was killed by SIGKILL" in out
    assert "1 of 4 runs failed; the same command retries them" in errors
    complete = {path: path.stat().st_mtime_ns for path in tmp_path.glob("c/*/*/summary.json")}
    assert len(complete) == 3
    main(compare(tmp_path / "c")[3:])
    assert all(path.stat().st_mtime_ns == before for path, before in complete.items())
    folders = [path.parent.relative_to(tmp_path / "c") for path in tmp_path.glob("c/*/*/summary.json")]
    assert len(folders) == 4
    assert [differences(tmp_path / "whole" / f, tmp_path / "c" / f) for f in folders] == [[]] * 4
