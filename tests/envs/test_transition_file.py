"""Dynamics as code from a file of recorded transitions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import hunch  # noqa: F401
from hunch.core import UsageError
from hunch.envs.design.transition_file import Transitions, ceiling
from hunch.envs.design.world_model import score
from hunch.rl.world_model import Prediction, Step
from hunch.roles.writer.plain import plain_prompt


def recorded(base: str, episodes: int, seed: int = 0) -> list[dict[str, Any]]:
    """Play episodes at random and return their transitions."""
    env = gym.make(base)
    env.action_space.seed(seed)
    rows = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        start, over = True, False
        while not over:
            action = env.action_space.sample()
            after, reward, terminated, truncated, _ = env.step(action)
            plain = [np.asarray(value).tolist() for value in (observation, action, after)]
            fields = ("obs", "action", "next_obs")
            row = dict(zip(fields, plain, strict=True)) | {"reward": float(reward), "done": bool(terminated)}
            rows.append(row | {"start": start})
            observation, start, over = after, False, terminated or truncated
    return rows


def written(path: Path, rows: list[Any]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def trial(env: Transitions, program: str) -> Any:
    env.reset(seed=0)
    return env.step(program)[-1]["raw"]


CART_POLE = """
import numpy as np


def step(state, action):
    x, v, a, w = state
    force = 10.0 if action == 1 else -10.0
    inner = (force + 0.05 * w**2 * np.sin(a)) / 1.1
    turn = (9.8 * np.sin(a) - np.cos(a) * inner) / (0.5 * (4.0 / 3.0 - 0.1 * np.cos(a) ** 2 / 1.1))
    push = inner - 0.05 * turn * np.cos(a) / 1.1
    after = np.array([x + 0.02 * v, v + 0.02 * push, a + 0.02 * w, w + 0.02 * turn])
    done = bool(abs(after[0]) > 2.4 or abs(after[2]) > 12 * np.pi / 180)
    return after, 1.0, done
"""


STATIC = """
    @staticmethod
    def set_state(state):
        Environment.state = state
"""
CART_POLE_CLASS = f"""
import numpy as np


class Environment:
    def __init__(self):
        self.state = None

    def set_state(self, state):
        self.state = state

    def step(self, action):
        self.state, reward, done = _step(self.state, action)
        return self.state, reward, done

{CART_POLE.replace("def step(", "def _step(")}
"""


def test_a_class_may_be_asked_for_as_in_the_paper(tmp_path: Path) -> None:
    file = str(written(tmp_path / "steps.jsonl", recorded("CartPole-v1", 10)))
    env = Transitions(file=file, base="CartPole-v1", form="class")
    assert "the class `Environment`" in f"{env.problem.text()} {env.problem.requested_functions}"
    assert "class Environment" in plain_prompt(env.problem, (), "")
    true = trial(env, CART_POLE_CLASS)
    assert true.fitness == pytest.approx(1.0)
    assert true.components == {"held_out": 1.0, "held_out_exact": 1.0}
    as_function = Transitions(file=file, base="CartPole-v1")
    own_step = CART_POLE_CLASS.replace("_step(", "step(")
    assert trial(env, own_step).fitness == pytest.approx(1.0), "its function step is its own"
    static = CART_POLE_CLASS.replace("    def __init__(self):\n        self.state = None\n", "")
    static = static.replace("    def set_state(self, state):\n        self.state = state", STATIC)
    assert "staticmethod" in static
    assert trial(env, static).fitness == pytest.approx(1.0)
    nothing = [trial(one, one.problem.start).fitness for one in (env, as_function)]
    assert nothing[0] == nothing[1]
    assert trial(as_function, CART_POLE_CLASS).error == "it does not define the function step"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (CART_POLE, "it does not define the class Environment"),
        ("class Environment:\n    def step(self, action):\n        return 1", "the method set_state"),
        (
            CART_POLE_CLASS.replace("(self, action)", "(self)"),
            "step(self) cannot be called as step(self, action)",
        ),
        (CART_POLE_CLASS.replace("__init__(self)", "__init__(self, size)"), "made without arguments"),
        ("class Environment:\n    def step(self", "SyntaxError"),
    ],
)
def test_a_class_that_cannot_be_used_is_a_sentence(tmp_path: Path, program: str, why: str) -> None:
    env = Transitions(file=str(written(tmp_path / "steps.jsonl", recorded("CartPole-v1", 2))), form="class")
    failed = trial(env, program)
    assert failed.fitness is None
    assert why in failed.error


@pytest.mark.parametrize("name", ["steps.jsonl", "steps.jsonl.gz"])
def test_the_true_dynamics_of_vectors_are_right(tmp_path: Path, name: str) -> None:
    env = Transitions(file=str(written(tmp_path / name, recorded("CartPole-v1", 10))), base="CartPole-v1")
    true = trial(env, CART_POLE)
    assert true.fitness == pytest.approx(1.0)
    assert true.components == {"held_out": 1.0, "held_out_exact": 1.0}
    assert env.ceiling == pytest.approx(1.0)
    wrong = trial(env, CART_POLE.replace("0.02 * push", "0.03 * push"))
    assert wrong.fitness == pytest.approx(11 / 12, abs=0.01), "one of four numbers of a third"
    assert "next state" in wrong.feedback


def test_whole_episodes_are_held_out(tmp_path: Path) -> None:
    rows = recorded("CartPole-v1", 10)
    env = Transitions(file=str(written(tmp_path / "steps.jsonl", rows)), hold_out=0.3)
    starts = [number for number, row in enumerate(rows) if row["start"]]
    assert len(env.buffer) == starts[7]
    assert len(env.buffer) + len(env.held_out) == len(rows)
    everything = Transitions(file=str(tmp_path / "steps.jsonl"), hold_out=0)
    assert (len(everything.buffer), everything.held_out) == (len(rows), [])
    assert trial(everything, CART_POLE).components == {}


def test_numbers_are_states_and_contradictions_lower_the_ceiling(tmp_path: Path) -> None:
    step = {"obs": 3, "action": 1, "reward": 0.0, "next_obs": 4, "done": False, "start": True}
    rows = [step, step, {**step, "next_obs": 5}, {**step, "obs": 4}]
    env = Transitions(file=str(written(tmp_path / "steps.jsonl", rows)), hold_out=0)
    assert env.ceiling == pytest.approx(1 - 1 / 4 / 3)
    found = trial(env, "def step(state, action):\n    return 4, 0.0, False")
    assert found.fitness == pytest.approx(env.ceiling)
    env.reset(seed=0)
    assert env.step("def step(state, action):\n    return 4, 0.0, False")[-1]["success"]


def test_no_program_is_above_the_ceiling() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        draws = [tuple(int(i) for i in rng.integers(0, 3, size=4)) for _ in range(12)]
        steps = [Step(s, str(a), float(r), bool(n == 2), n) for s, a, r, n in draws]
        top = ceiling(steps)
        for _ in range(50):
            table = {}
            for step in steps:
                r, n = rng.integers(0, 3, size=2)
                table.setdefault((step.state, step.action), Prediction(bool(n == 2), float(r), int(n)))
            found = [table[step.state, step.action] for step in steps]
            assert score(found, steps) <= top + 1e-9


def test_the_plain_request_names_numbers_and_actions(tmp_path: Path) -> None:
    file = str(written(tmp_path / "steps.jsonl", recorded("CartPole-v1", 2)))
    request = plain_prompt(Transitions(file=file, base="CartPole-v1").problem, (), "")
    assert "state[2]: Pole Angle" in request
    assert "1: Push cart to the right" in request
    assert "step(state, action)" in request
    assert "observation" not in request
    bare = plain_prompt(Transitions(file=file, about="A pole on a cart.").problem, (), "")
    assert "A pole on a cart." in bare


GOOD = {"obs": [0.0, 1.0], "action": 0, "reward": 1.0, "next_obs": [1.0, 2.0], "done": False, "start": True}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("no json", "Line 2 .* is no transition"),
        ("[1, 2]", "it is no object"),
        (json.dumps({"obs": 1}), "it has no 'action'"),
        (json.dumps({**GOOD, "reward": "much"}), "'much' is no finite number"),
        (json.dumps({**GOOD, "reward": True}), "no finite number"),
        (json.dumps(GOOD).replace('1.0, "next', 'NaN, "next'), "no finite number"),
        (json.dumps({**GOOD, "done": 1}), "true or false"),
        (json.dumps({**GOOD, "obs": []}), "is empty"),
        (json.dumps({**GOOD, "obs": [[1.0], [2.0]]}), "no finite number"),
        (json.dumps({**GOOD, "next_obs": [1.0]}), "another form"),
        (json.dumps({**GOOD, "action": [1.0]}), "another form"),
        ("[" * 50_000, "Line 2 .* is no transition"),
    ],
)
def test_a_line_that_is_no_transition_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{line}\n")
    with pytest.raises(UsageError, match=says):
        Transitions(file=str(path))


def test_files_and_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "steps.jsonl", [GOOD, GOOD])
    half = tmp_path / "half.jsonl.gz"
    half.write_bytes(gzip.compress(json.dumps(GOOD).encode())[:-9])
    for options, says in (
        ({}, "--env.file"),
        ({"file": str(tmp_path / "none.jsonl")}, "cannot be read"),
        ({"file": str(tmp_path)}, "cannot be read"),
        ({"file": str(half)}, "cannot be read"),
        ({"file": str(written(tmp_path / "one.jsonl", [GOOD]))}, "holds 1 transitions"),
        ({"file": str(path), "hold_out": 1.0}, "below 1"),
        ({"file": str(path), "base": "Nowhere-v0"}, "cannot be made"),
    ):
        with pytest.raises(UsageError, match=says):
            Transitions(**options)
