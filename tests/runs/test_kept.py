"""Checkpoints of single steps: which there are, what they hold, and what a kill leaves."""

import shutil
from copy import deepcopy

import pytest
from benchmarks.kills import same

import hunch
from hunch.core import HunchError, UsageError
from hunch.runs.checkpoints import CHECKPOINT, file_of, kept_steps, read_checkpoint
from hunch.runs.cluster import pack, unpack

LAKE = "hunch/FrozenLake-v0"
SMALL = {"hidden": 8, "encoder": "bag-of-words", "warmup": 20, "batch_size": 8}


def train(out, steps=100, last=None, **options):
    saving = hunch.Saving(every=20, last=last)
    return hunch.train("dqn", LAKE, steps, saving=saving, out=out, **options, **SMALL)


def states(folder):
    return {step: read_checkpoint(folder, file_of(step)) for step in kept_steps(folder)}


def test_every_multiple_is_kept_and_is_the_agent_of_that_step(tmp_path):
    seen = {}

    class Look(hunch.Callback):
        def on_step(self, run, transitions):
            if run.steps % 20 == 0:
                seen[run.steps] = deepcopy(run.agent.state_dict())

    train(tmp_path, watch=hunch.Watch(callbacks=[Look()]))
    assert kept_steps(tmp_path) == [20, 40, 60, 80, 100] == list(seen)
    for step, state in seen.items():
        assert same(state, hunch.load(tmp_path, step=step).agent.state_dict())
    assert not same(seen[40], seen[100])


def test_of_several_streams_the_step_after_the_multiple_is_kept(tmp_path):
    train(tmp_path, streams=hunch.Streams(envs=3), steps=60)
    assert kept_steps(tmp_path) == [21, 42, 60]


def test_only_the_last_ones_stay(tmp_path):
    train(tmp_path, last=2)
    assert kept_steps(tmp_path) == [80, 100]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["100", "80"]


@pytest.mark.parametrize("last", [None, 1, 2])
def test_killed_and_resumed_leaves_the_same_set(tmp_path, last):
    """The moment of the kill: the last save is of the first step, and what was kept later is there."""
    train(tmp_path / "whole", last=last)
    train(tmp_path / "killed", last=last, steps=100, watch=hunch.Watch(stop=lambda: True))
    early = kept_steps(tmp_path / "killed")
    old = (tmp_path / "killed" / CHECKPOINT).read_bytes()
    train(tmp_path / "killed", last=last)
    (tmp_path / "killed" / CHECKPOINT).write_bytes(old)
    (tmp_path / "killed" / "summary.json").unlink()
    train(tmp_path / "killed", last=last)
    assert early != kept_steps(tmp_path / "killed")
    assert same(states(tmp_path / "whole"), states(tmp_path / "killed"))


def test_without_a_checkpoint_to_go_on_from_nothing_stays(tmp_path):
    """The folder is free then, also for another run."""
    train(tmp_path)
    (tmp_path / CHECKPOINT).unlink()
    (tmp_path / "summary.json").unlink()
    hunch.train("dqn", LAKE, 50, out=tmp_path, **SMALL)
    assert kept_steps(tmp_path) == []


def test_a_step_that_was_not_kept_is_one_sentence(tmp_path, hunch_command):
    train(tmp_path / "run", last=2)
    with pytest.raises(UsageError, match=r"keeps no checkpoint of step 20; it keeps 80, 100\."):
        hunch.load(tmp_path / "run", step=20)
    with pytest.raises(UsageError, match="step must be a whole number"):
        hunch.load(tmp_path / "run", step="80")
    code, _, errors = hunch_command("evaluate", "run", "--step", "30")
    assert (code, errors.count("\n")) == (2, 1)
    assert "it keeps 80, 100" in errors
    hunch.train("dqn", LAKE, 20, out=tmp_path / "none", **SMALL)
    with pytest.raises(UsageError, match="it keeps none"):
        hunch.load(tmp_path / "none", step=20)
    (tmp_path / "run" / file_of(80)).write_bytes(b"x")
    with pytest.raises(HunchError, match="damaged"):
        hunch.load(tmp_path / "run", step=80)


def test_evaluate_plays_the_agent_of_a_step(tmp_path, hunch_command):
    train(tmp_path / "run")
    shutil.copyfile(tmp_path / "run" / file_of(40), tmp_path / "at-40")
    code, at, _ = hunch_command("evaluate", "run", "--step", "40", "--episodes", "3", "--out", "e")
    assert code == 0
    shutil.copyfile(tmp_path / "at-40", tmp_path / "run" / CHECKPOINT)
    assert hunch_command("evaluate", "run", "--episodes", "3")[1].split(";")[0] == at.split(";")[0]


def test_settings_are_part_of_the_run_only_if_they_are_given(tmp_path):
    train(tmp_path / "kept")
    hunch.train("dqn", LAKE, 20, out=tmp_path / "plain", **SMALL)
    assert '"keep_every": 20' in (tmp_path / "kept" / "config.json").read_text()
    assert "keep_" not in (tmp_path / "plain" / "config.json").read_text()


def test_a_cluster_carries_the_same_set(tmp_path):
    train(tmp_path / "there", last=2)
    train(tmp_path / "home", steps=60)
    unpack(tmp_path / "home", pack(tmp_path / "there"))
    assert same(states(tmp_path / "there"), states(tmp_path / "home"))
