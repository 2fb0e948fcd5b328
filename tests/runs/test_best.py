"""The agent of the best evaluation: written no more often than checkpoints, and right at every end."""

import time

import gymnasium as gym
import pytest

from hunch import Evaluation, train
from hunch.core import Agent, HunchError
from hunch.rl.comparison import difference
from hunch.runs import loop
from hunch.runs.checkpoints import BEST, CHECKPOINT, read_checkpoint
from hunch.runs.folder import RunFolder
from hunch.runs.loop import SAVING_SHARE

TOP, STEPS = 40, 60


class Ladder(gym.Env):
    """One step per episode; the reward is the number of the chosen rung."""

    def reset(self, *, seed=None, options=None):
        return "A ladder.", {"actions": tuple(str(rung) for rung in range(TOP + 1))}

    def step(self, action):
        return "Done.", float(action), True, False, {"actions": ("0",), "success": False}


class Climber(Agent):
    """It climbs a rung with every step, and from the top down again: its first 40 evaluations all improve."""

    def __init__(self, dies_at=None):
        self.dies_at = dies_at

    def begin(self, world, seed):
        self.steps = 0

    def act(self, states):
        return [str(TOP - abs(TOP - self.steps)) for _ in states]

    def observe(self, transitions):
        self.steps += len(transitions)
        if self.steps == self.dies_at:
            raise HunchError("killed")

    def player(self, seed):
        twin = Climber()
        twin.steps = self.steps
        return twin

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


class Folder(RunFolder):
    """A folder that notes when it is written, and may be slow, or the last thing that the process does."""

    def __init__(self, path, slow=0.0, dies_in=""):
        super().__init__(path)
        self.slow, self.dies_in = slow, dies_in
        self.bests, self.times = [], []

    def save_best(self, state):
        self._die("save_best")
        self.bests.append(state["step"])
        start = time.monotonic()
        time.sleep(self.slow)
        super().save_best(state)
        self.times.append((start, time.monotonic()))

    def save(self, state):
        self._die("save")
        super().save(state)

    def _die(self, where):
        if where == self.dies_in:
            raise HunchError("killed")


def climb(path, agent=None, **options):
    folder = Folder(path, **options)
    try:
        train(agent or Climber(), Ladder(), STEPS, out=folder, evaluation=Evaluation(Ladder(), 1, 1))
    finally:
        folder.close()
    return folder


def test_it_is_written_with_the_checkpoints_only(tmp_path):
    """Forty evaluations improve; the agents in between are never written, and at the end it is the best."""
    saves = []
    folder = Folder(tmp_path)
    folder.saved = lambda: saves.append(len(folder.bests))
    train(Climber(), Ladder(), STEPS, out=folder, evaluation=Evaluation(Ladder(), 1, 1))
    folder.close()
    assert len(folder.bests) <= len(saves)
    assert saves[-1] == len(folder.bests)
    assert read_checkpoint(tmp_path, BEST)["step"] == folder.bests[-1] == TOP
    assert read_checkpoint(tmp_path)["agent"]["steps"] == STEPS


def test_writing_it_counts_as_saving(tmp_path, monkeypatch):
    """After each write a run goes on for at least twenty times as long; the last one is at its end."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    folder = climb(tmp_path, slow=0.02)
    for (began, ended), (again, _) in zip(folder.times[:-1], folder.times[1:-1], strict=False):
        assert again - ended >= (ended - began) / SAVING_SHARE
    assert folder.bests[-1] == TOP


@pytest.mark.parametrize("dies_in", ["", "save_best", "save"])
@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_after_a_kill_it_is_that_of_the_uninterrupted_run(tmp_path, monkeypatch, dies_in, seconds):
    """Killed with the best agent in memory only, before it is written, or between it and the checkpoint."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", seconds)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1.0)
    with pytest.raises(HunchError, match="killed"):
        climb(tmp_path / "killed", Climber(None if dies_in else TOP + 5), dies_in=dies_in)
    last, best = (read_checkpoint(tmp_path / "killed", which) for which in (CHECKPOINT, BEST))
    assert last is None or best["step"] == min(TOP, last["agent"]["steps"])
    climb(tmp_path / "killed")
    climb(tmp_path / "whole")
    states = [read_checkpoint(tmp_path / name, BEST) for name in ("killed", "whole")]
    assert difference(*states) is None
    assert states[0]["step"] == TOP
