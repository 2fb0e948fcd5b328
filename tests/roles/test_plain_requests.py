"""The plain request to a writer, and repairs before the search goes on."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest

import hunch  # noqa: F401 - registers the environments
from hunch.envs.design.gym_reward import PLAIN as PLAIN_STEP
from hunch.envs.design.gym_reward import GymRewardDesign
from hunch.envs.design.inner import STEP, Steps
from hunch.envs.design.plain import Plain, _ending
from hunch.envs.design.policy import PolicyCode
from hunch.envs.design.problem import Problem
from hunch.envs.design.reward import loaded
from hunch.roles.writer.plain import plain_prompt
from hunch.roles.writer.programs import Attempt
from hunch.roles.writer.search import BestOfN, HillClimbing, RepairFirst

BASES = (
    *("CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Pendulum-v1"),
    *("FrozenLake8x8-v1", "Taxi-v4", "CliffWalking-v1", "MountainCarContinuous-v0", "Blackjack-v1"),
)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_number_has_a_meaning_and_nothing_can_be_copied(base: str) -> None:
    problem = PolicyCode(base=base).problem
    request = plain_prompt(problem, (), "")
    assert "def act" not in request
    assert "memory" not in request
    assert "http" not in request
    assert "act(observation)" in request
    assert len(request.split()) < 400
    env = gym.make(base)
    if isinstance(env.observation_space, gym.spaces.Box):
        for i in range(env.observation_space.shape[0]):
            assert f"observation[{i}]: " in request
        assert "a number" not in request
    if isinstance(env.action_space, gym.spaces.Discrete) and base != "Blackjack-v1":
        assert f"({env.action_space.start}: " in request


@pytest.mark.parametrize(
    ("base", "end"),
    [
        ("Blackjack-v1", "the sum of hand exceeds 21."),
        ("MountainCarContinuous-v0", "The length of the episode is 999."),
        ("CartPole-v1", "(center of the cart reaches the edge of the display)"),
        # Recorded answers are found by these words, which lack the 200.
        ("MountainCar-v0", "The length of the episode is"),
    ],
)
def test_a_number_that_ends_a_rule_is_not_taken_for_that_of_an_item(base: str, end: str) -> None:
    request = plain_prompt(PolicyCode(base=base).problem, (), "")
    (rule,) = [line for line in request.splitlines() if line.startswith("Episode End: ")]
    assert rule.endswith(end)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("MountainCarContinuous-v0", "a positive reward of +100 is added"),
        ("CliffWalking-v1", "Each time step incurs -1 reward"),
        ("CartPole-v1", "a reward of `+1` is given for every step taken"),
    ],
)
def test_the_request_says_what_is_rewarded_under_any_heading(base: str, words: str) -> None:
    request = plain_prompt(PolicyCode(base=base).problem, (), "")
    (rule,) = [line for line in request.splitlines() if line.startswith(("Reward: ", "Rewards: "))]
    assert words in rule


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The game ends when the score is 9.", "The game ends when the score is 9."),
        ("A step has a reward of 0.", "A step has a reward of 0."),
        ("It ends: 1. The bag is full. 2. The day is over. 3. Night", "It ends: 1. The bag is full."),
        ("It ends: 1.", "It ends:"),
        ("It ends - ", "It ends"),
    ],
)
def test_an_item_that_did_not_fit_leaves_no_number(text: str, kept: str) -> None:
    assert _ending({"Episode End": text}) == f"Episode End: {kept}"


def test_observations_of_several_parts_are_called_a_tuple() -> None:
    assert "Discrete(2)), as a tuple." in PolicyCode(base="Blackjack-v1").problem.text()
    assert "as numpy array or int." in PolicyCode(base="CartPole-v1").problem.text()


def test_the_users_own_words() -> None:
    problem = PolicyCode(base="CartPole-v1", about="Keep the pole up. observation[2] is its angle.").problem
    request = plain_prompt(problem, (), "")
    assert request.startswith("Keep the pole up.")
    assert "from 0 to 1" in request


@pytest.mark.parametrize(
    ("program", "mean"),
    [
        ("def act(observation):\n    return int(observation[2] > 0)\n", 43.4),
        ("def act(observation, memory):\n    return int(observation[2] > 0), memory\n", 43.4),
    ],
)
def test_both_interfaces_are_scored_alike(program: str, mean: float) -> None:
    env = PolicyCode(base="CartPole-v1", episodes=5)
    env.reset(seed=0)
    _, reward, *_ = env.step(program)
    assert reward == pytest.approx(mean, abs=15)
    other = PolicyCode(base="CartPole-v1", episodes=5)
    other.reset(seed=0)
    again = "def act(observation):\n    # the same\n    return int(observation[2] > 0)\n"
    assert other.step(again)[1] == reward


@pytest.mark.parametrize("base", ["FrozenLake8x8-v1", "MountainCarContinuous-v0"])
def test_a_reward_of_one_step_is_asked_for_without_the_environments_own(base: str) -> None:
    problem = GymRewardDesign(base=base, trials="").problem
    request = plain_prompt(problem, (), "")
    assert "reward(observation, action)" in request
    assert "def reward" not in request
    assert "components" not in request
    assert not any(line.startswith("Rewards") for line in request.splitlines())
    assert len(request.split()) < 300


class Undescribed(gym.Env[int, int]):
    observation_space = gym.spaces.Discrete(9)
    action_space = gym.spaces.Discrete(2)


class Ferry(Undescribed):
    """A ferry has to reach pier 8.

    It starts at pier 0.

    Args:
        current: Speed of the river.
    """


def test_a_docstring_without_headings_and_the_users_own_words_say_what_the_task_is() -> None:
    gym.register("tests/Ferry-v0", Ferry, max_episode_steps=3)
    gym.register("tests/Undescribed-v0", Undescribed, max_episode_steps=3)
    kinds = (GymRewardDesign, PolicyCode)
    for kind in kinds:
        ferry = kind(base="tests/Ferry-v0").problem
        for request in (plain_prompt(ferry, (), ""), ferry.text()):
            assert "A ferry has to reach pier 8." in request
            assert "It starts at pier 0." in request
            assert "Speed of the river" not in request
        request = plain_prompt(kind(base="tests/Undescribed-v0").problem, (), "")
        assert "This is the environment tests/Undescribed-v0 of Gymnasium.\n" in request
        own = plain_prompt(kind(base="tests/Ferry-v0", about="Bring the ferry home.").problem, (), "")
        assert own.startswith("Bring the ferry home.\n")
        assert "pier 8" not in own


class Table(gym.Env[np.ndarray, np.ndarray]):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2, 3))
    action_space = gym.spaces.Box(-1.0, 1.0, (2, 3))

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.ndarray, dict[str, int]]:
        return np.zeros((2, 3), np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, int]]:
        return action, float(action[1, 0]), True, False, {}


def test_the_list_that_is_asked_for_is_an_action_in_a_table_too() -> None:
    gym.register("tests/Table-v0", Table)
    env = PolicyCode(base="tests/Table-v0", episodes=1)
    assert "It returns a list of 6 numbers" in plain_prompt(env.problem, (), "")
    env.reset(seed=0)
    assert env.step("def act(observation):\n    return [0, 0, 0, 0.5, 0, 0]\n")[1] == 0.5
    env.reset(seed=0)
    env.step("def act(observation):\n    return [0.5, 0.5]\n")
    assert "is no array of shape (2, 3)" in str(env.trial)


class Car(Table):
    action_space = gym.spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 50.0]), dtype=np.float64)


def test_each_number_of_an_action_has_its_own_limits_where_they_differ() -> None:
    gym.register("tests/Car-v0", Car)
    request = plain_prompt(PolicyCode(base="tests/Car-v0", episodes=1).problem, (), "")
    assert "It returns a list of 2 numbers, the action: [0] from -1 to 1, [1] from 0 to 50." in request


TOGETHER = "def reward(observation, action, next_observation):\n    return {}, {{}}\n"
ALONE = "def reward(observation, action):\n    return {}\n"


@pytest.mark.parametrize(
    ("base", "together", "alone"),
    [
        ("FrozenLake-v1", "1.0 * (next_observation == 15)", "1.0 if observation == 15 else 0"),
        (
            "Pendulum-v1",  # its episodes are short
            "abs(next_observation[:, 1]) - action[:, 0] ** 2",
            "abs(observation[1]) - action[0] ** 2",
        ),
    ],
)
def test_a_reward_of_one_step_teaches_what_one_of_many_does(base: str, together: str, alone: str) -> None:
    env = GymRewardDesign(base=base, steps=1_000, trials="")
    fitness = []
    for program in (TOGETHER.format(together), ALONE.format(alone)):
        env.reset(seed=0)
        fitness.append(env.step(program)[1])
    assert fitness[0] == fitness[1]
    trial = env.trial
    assert trial is not None
    assert "\nreward: " in trial.feedback


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("None", "reward returned NoneType, and not one number"),
        ("'1'", "reward returned str, and not one number"),
        ("(1.0, {})", "reward returned tuple, and not one number"),
        ("1j", "reward returned complex, and not one number"),
        ("10**400", "int too large to convert to float"),
        ("observation", "reward returned ndarray, and not one number"),
        ("float('nan')", "NaN"),
        ("observation[7]", "IndexError"),
    ],
)
def test_a_reward_of_one_step_that_is_no_number_fails_with_a_sentence(value: str, said: str) -> None:
    env = GymRewardDesign(base="CartPole-v1", steps=200, trials="")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(ALONE.format(value))
    assert math.isnan(reward)
    assert said in info["event"]


VECTORS = {
    "observation": np.zeros((4, 2), np.float32),
    "action": np.full((4, 1), 0.5, np.float32),
    "next_observation": np.ones((4, 2), np.float32),
}
NUMBERS = {"observation": np.zeros(4, int), "action": np.ones(4, int), "next_observation": np.full(4, 5)}
BYTES = {**NUMBERS, "next_observation": np.ones((4, 2), np.uint8)}


@pytest.mark.parametrize(
    ("steps", "value", "expected"),
    [
        (VECTORS, "-(action**2)", -0.25),
        (VECTORS, "observation[:1] > 0", 1.0),
        (VECTORS, "10**30", 1e30),
        (VECTORS, "Fraction(1, 4)", 0.25),
        (NUMBERS, "{True: 2.0}[isinstance(observation, int) and isinstance(action, int)]", 2.0),
        (NUMBERS, "-(observation == 5)", -1.0),
        (NUMBERS, "10**-action", 0.1),
        (BYTES, "observation[0] - 2", -1.0),
    ],
)
def test_one_number_may_be_of_any_type_and_whole_numbers_are_pythons(
    steps: Steps, value: str, expected: float
) -> None:
    program = f"from fractions import Fraction\n{ALONE.format(value)}"
    with loaded(program, STEP, PLAIN_STEP) as reward:
        total, components = reward(steps)
    assert total.tolist() == [expected] * 4
    assert components["reward"].tolist() == [expected] * 4


@pytest.mark.parametrize(
    ("parameters", "is_of_one_step"),
    [
        ("observation, action, weight=0.1", True),
        ("observation, action=None", True),
        ("observation, action, weight=0.1, *others, scale=1, **more", True),
        ("observation, action, next_observation=None", False),
        ("observation, action, next_observation, weight=0.1", False),
        ("*step", False),
    ],
)
def test_defaults_of_a_reward_are_its_own_unless_they_name_a_variable(
    parameters: str, is_of_one_step: bool
) -> None:
    returned = "0.5" if is_of_one_step else "(0.5, {})"
    with loaded(f"def reward({parameters}):\n    return {returned}\n", STEP, PLAIN_STEP) as reward:
        total, components = reward(NUMBERS)
    assert total.tolist() == [0.5] * 4
    assert ("reward" in components) == is_of_one_step


def test_a_program_with_another_interface_fails_with_a_sentence() -> None:
    env = PolicyCode(base="CartPole-v1", episodes=1)
    env.reset(seed=0)
    _, reward, _, _, info = env.step("def act(a, b, c):\n    return 0\n")
    assert math.isnan(reward)
    assert "cannot be called as act(observation, memory)" in info["event"]
    env.reset(seed=0)
    _, reward, _, _, info = env.step("def act(observation):\n    return 0, None\n")
    assert math.isnan(reward)
    assert "is no integer" in info["event"]


def test_a_problem_without_a_plain_form_keeps_its_interface_and_loses_its_code() -> None:
    problem = Problem(
        "Pack bins.",
        "priority(item, bins) scores bins.\n```python\nSECRET\n```",
        "",
        "priority",
        ("item", "bins"),
        "def priority(item, bins):\n    return bins",
    )
    request = plain_prompt(problem, (), "")
    assert "SECRET" not in request
    assert "priority(item, bins)" in request
    assert "return bins" not in request


def test_a_parent_and_its_end_are_shown_where_there_is_one() -> None:
    problem = Problem(
        "Act.", function="act", plain=Plain("Act well.", ("observation",), "It returns 0 or 1.")
    )
    parent = Attempt(3, "def act(observation):\n    return 7", None, error="7 is no action")
    request = plain_prompt(problem, (parent,), parent.outcome_text())
    assert "return 7" in request
    assert "7 is no action" in request
    assert "Write a better version" in request


def attempt(number: int, fitness: float | None, *parents: int) -> Attempt:
    error = "" if fitness is not None else "it broke (line 2)"
    return Attempt(number, f"program {number}", fitness, error=error, parents=parents)


def test_what_failed_is_repaired_first_and_at_most_so_often() -> None:
    rng = np.random.default_rng(0)
    search = RepairFirst(HillClimbing(), 2)
    assert [request.parents for request in search.ask(1, rng)] == [()]
    search.tell([attempt(0, 1.0)], rng)
    search.tell([attempt(1, None, 0)], rng)
    (request,) = search.ask(1, rng)
    assert request.parents[-1].number == 1
    search.tell([attempt(2, None, 1)], rng)
    assert search.ask(1, rng)[0].parents[-1].number == 2
    search.tell([attempt(3, None, 2)], rng)  # the second repair failed, too: the search goes on
    assert search.ask(1, rng)[0].parents[-1].number == 0
    search.tell([attempt(4, 5.0, 0)], rng)
    assert search.ask(1, rng)[0].parents[-1].number == 4


def test_several_streams_repair_several_programs_once_each() -> None:
    rng = np.random.default_rng(0)
    search = RepairFirst(BestOfN(), 1)
    search.tell([attempt(0, None), attempt(1, None), attempt(2, 3.0)], rng)
    asked = [tuple(p.number for p in request.parents) for request in search.ask(4, rng)]
    assert asked == [(0,), (1,), (), ()]
    search.tell([attempt(3, None, 0), attempt(4, 2.0, 1), attempt(5, 1.0), attempt(6, 1.0)], rng)
    assert [request.parents for request in search.ask(2, rng)] == [(), ()]
