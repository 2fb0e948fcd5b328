"""The scripted writer of rewards, on the feedback of RewardDesign."""

import pytest

import hunch
from hunch import lm
from hunch.core import UsageError
from hunch.roles.writer.programs import Attempt, ModelWriter, chat_prompt

REWARD = hunch.make("hunch/RewardDesign-v0", trials="").unwrapped.problem


BAD = """import numpy as np


def reward(position, velocity, goal, action):
    part_0 = 1.0 * np.linalg.norm(position - goal, axis=1)
    part_1 = 0.1 * (velocity)[:, 0]
    return part_0 + part_1, {"part_0": part_0, "part_1": part_1}
"""


TOLD = """success rate: 0.1, 0.2, 0.5, 0.6; max 0.6, mean 0.3, min 0.1
part_0: 4, 3, 2, 1; max 4, mean 2.5, min 1
part_1: 0.1, 0.2, 0.3, 0.4; max 0.4, mean 0.2, min 0.1"""


def written(dials, feedback, program=BAD, n=40):
    writer = ModelWriter(lm.load(f"scripted:writer?{dials}", cache=None), chat_prompt)
    parents = [Attempt(0, program, 0.1)] if program else []
    return writer.write(REWARD, parents, feedback, n)


def test_it_repairs_only_what_the_feedback_shows():
    assert all("part_0 = -1.0 * np.linalg.norm(position - goal" in p for p in written("repair=1", TOLD))
    assert all("part_0 = 1.0 * np.linalg.norm(position - goal" in p for p in written("repair=1", ""))
    without = "\n".join(line for line in TOLD.splitlines() if not line.startswith("part_0"))
    assert all("part_0 = 1.0 * np.linalg" in p for p in written("repair=1", without))
    half = [p for p in written("repair=0.5", TOLD, n=200) if "part_0 = -1.0" in p]
    assert 60 < len(half) < 140


def test_it_mends_what_a_traceback_names():
    wrong = BAD.replace("position - goal", "positin - goal")
    told = "The program failed. NameError: name 'positin' is not defined (line 5)"
    assert all("(position - goal" in p for p in written("repair=1", told, wrong))
    assert all("(positin - goal" in p for p in written("repair=1", "The program failed.", wrong))


def test_its_dials_do_what_they_say():
    assert not [p for p in written("repair=0", TOLD, n=20) if "part_0 = 1.0 * np.linalg" not in p]
    damaged = [
        p for p in written("break=1", TOLD, n=40) if "part_0 = 1.0 * np.linalg.norm(position - goal" in p
    ]
    assert len(damaged) < 20
    assert all(REWARD.flaw(p) for p in written("malformed=1", "", None))
    assert not any(REWARD.flaw(p) for p in written("repair=0", "", None))
    env = hunch.make("hunch/RewardDesign-v0", generations=1, trials="")
    env.reset(seed=0)
    assert "NameError" in env.step(written("crash=1", "", None, n=1)[0])[-1]["event"]
    assert len(set(written("repair=1", "", None))) > 30
    with pytest.raises(UsageError, match="no option 'bite'"):
        lm.load("scripted:writer?bite=1")
    with pytest.raises(UsageError, match="must be from 0 to 1"):
        lm.load("scripted:writer?break=2")
    with pytest.raises(UsageError, match="no option 'crash'"):
        lm.load("scripted:frozenlake?crash=1")
