"""Runs on a Ray cluster of two nodes, both on this machine; one worker is killed on the way."""

import os
import signal
import subprocess
import sys

import pytest
from benchmarks.kills import differences

from hunch.core import HunchError
from hunch.methods.prior.dqn_prior import DQNConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.runs import cluster
from hunch.runs.checkpoints import CHECKPOINT
from hunch.runs.compare import Arm, compare, jobs
from hunch.runs.execute import RunConfig

ray = pytest.importorskip("ray")
# In a process of their own (make test-ray): a driver of Ray ends with its cluster, and its process too.
pytestmark = pytest.mark.ray
LAKE = "hunch/FrozenLake-v0"
SLOW = "scripted:frozenlake?error=0.3"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")


@pytest.fixture
def two_nodes():
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100_000_000})
    nodes.add_node(num_cpus=1, object_store_memory=100_000_000)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "auto"])
def test_without_a_cluster_there_is_a_sentence(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(HunchError, match="ray start --head"):
        cluster.connect()


def test_workers_and_budgets_are_of_one_machine():
    command = [
        sys.executable,
        "-m",
        "hunch",
        "compare",
        "dqn",
        "--env",
        LAKE,
        "--on",
        "ray",
        "--workers",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--workers, --seats and --budget are counted on one machine" in done.stderr


def arms():
    small = DQNConfig(hidden=16, warmup=50, batch_size=16)
    return [
        Arm("dqn", RunConfig(method="dqn", env=LAKE, steps=6000, options=small)),
        Arm(
            "zero-shot", RunConfig(method="zero-shot", env=LAKE, lm=SLOW, steps=300, options=ZeroShotConfig())
        ),
        Arm("wrong", RunConfig(method="zero-shot", env=LAKE, lm="minilm", steps=0, options=ZeroShotConfig())),
    ]


@pytest.mark.slow
def test_a_killed_worker_goes_on_from_its_checkpoint(tmp_path, two_nodes):
    whole, far = jobs(arms(), 1, tmp_path / "whole"), jobs(arms(), 1, tmp_path / "far")
    compare(whole, workers=1)
    saved, killed = far[0].folder / CHECKPOINT, []

    def strike(lines):
        """Kill the process in which the first run is, once a checkpoint of it has come home."""
        if saved.exists() and not killed:
            killed.extend(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if named(pid))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    outcomes = cluster.compare(far, cluster.connect(), watch=strike)
    assert killed
    assert [bool(outcome.result) for outcome in outcomes] == [True, True, False]
    assert "at least one step" in outcomes[2].reason
    for job, other in zip(whole[:2], far[:2], strict=True):
        assert differences(job.folder, other.folder) == []


def named(pid):
    """Whether a process is a Ray worker in the middle of a run; Ray writes the task's name over its own."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().startswith(b"ray::_work")
    except OSError:
        return False
