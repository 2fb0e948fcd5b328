"""Design problems of the studies: rewards that train, cap sets, rules of games."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from tests.envs.test_design_problems import keeps_the_contract, tried

import hunch
from hunch.core import UsageError
from hunch.roles.writer.plain import plain_prompt
from hunch_studies.worlds.cap_set import grow
from hunch_studies.worlds.rewards import WORLDS, MountainCar, Reacher
from hunch_studies.worlds.rewards.docking import Docking
from hunch_studies.worlds.rewards.env import RewardDesign


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_grown_set_is_a_cap_set_that_nothing_can_be_added_to(n):
    elements = np.array(list(itertools.product((0, 1, 2), repeat=n)))
    taken = elements[grow(elements, np.random.default_rng(n).normal(size=len(elements)))]
    lines = [(a + b + c) % 3 for a, b, c in itertools.combinations(taken, 3)]
    assert all(line.any() for line in lines)
    free = [e for e in elements if not (e == taken).all(axis=1).any()]
    for e in free:
        assert any(not ((a + b + e) % 3).any() for a, b in itertools.combinations(taken, 2))


def test_the_mountain_car_is_gymnasiums():
    env = gym.make("MountainCarContinuous-v0")
    env.reset(seed=1)
    world, rng = MountainCar(), np.random.default_rng(0)
    position, velocity = env.unwrapped.state
    state = {"position": np.array([position]), "velocity": np.array([velocity])}
    for _ in range(100):
        action = rng.uniform(-1, 1, (1, 1))
        observation = env.step(action[0])[0]
        state = world.step(state, action)
        np.testing.assert_allclose(observation, [state["position"][0], state["velocity"][0]], atol=1e-5)


def test_a_dense_reward_teaches_docking_and_the_sparse_one_does_not():
    env = RewardDesign(world="docking", trials="")
    dense, sparse = (
        [tried(env, r, seed).fitness for seed in range(5)] for r in (env.world.dense, env.world.sparse)
    )
    assert np.mean(dense) >= 0.8
    assert np.mean(sparse) < 0.2


def test_the_same_seed_gives_the_same_trial():
    env = RewardDesign(world="docking", generations=4, trials="")
    first = tried(env, env.world.dense, seed=1)
    assert "distance: " in first.feedback
    assert tried(RewardDesign(world="docking", generations=4, trials=""), env.world.dense, seed=1) == first


def test_the_degree_of_success_is_1_where_the_task_is_solved():
    rng = np.random.default_rng(0)
    for world in (made() for made in WORLDS.values()):
        state = world.begin(2_000, rng)
        state = {name: rng.uniform(-0.5, 0.5, values.shape) for name, values in state.items()}
        success, degree = world.success(state), world.degree(state)
        assert success.any()
        assert not success.all()
        assert ((degree == 1) == success).all() or isinstance(world, MountainCar)
        assert (degree[success] > 0.99).all()
        assert (degree >= 0).all()
        assert (degree <= 1).all()


def test_a_metric_with_degrees_tells_policies_apart_that_never_succeed():
    env = RewardDesign(world="docking", metric="degree", generations=3, trials="")
    near, away = (
        tried(env, env.world.dense.replace("distance = -", sign)) for sign in ("distance = -", "distance = ")
    )
    assert near.fitness > away.fitness
    assert near.components["success"] <= near.fitness
    assert near.feedback.splitlines()[3].startswith("degree of success: ")
    assert "degree of success" in env.task
    with pytest.raises(UsageError, match="degree"):
        RewardDesign(metric="reward")


def test_an_arm_reaches_as_far_as_its_links():
    """Two routes to the fingertip: the sum of the links, and the law of cosines."""
    world, rng = Reacher(), np.random.default_rng(0)
    state = world.begin(50, rng)
    for _ in range(5):
        state = world.step(state, rng.uniform(-1, 1, (50, 2)))
    reach = np.sqrt(0.5 + 0.5 * np.cos(state["angles"][:, 1]))
    np.testing.assert_allclose(np.linalg.norm(state["fingertip"], axis=1), reach)


@pytest.mark.parametrize("name", WORLDS)
def test_the_rewards_of_each_world_fit_its_interface(name):
    env = hunch.make("hunch/RewardDesign-v0", world=name, generations=1, trials="")
    for program in (env.unwrapped.world.sparse, env.unwrapped.world.dense):
        assert tried(env, program).error == ""


def test_a_reward_of_one_step_teaches_docking_as_one_of_many_steps_does():
    env = hunch.make("hunch/RewardDesign-v0", world="docking", generations=3, metric="degree", trials="")
    alone = (
        "import numpy as np\n\ndef reward(position, velocity, dock):\n"
        "    return -np.linalg.norm(position - dock) - 0.3 * np.linalg.norm(velocity)\n"
    )
    assert tried(env, alone).fitness == tried(env, env.unwrapped.world.dense).fitness
    request = plain_prompt(env.unwrapped.problem, (), "")
    assert "- dock: an array of 2 numbers, where it has to be, in metres" in request
    assert "action" not in request
    unknown = hunch.make("hunch/RewardDesign-v0", world="docking", blank=True, trials="")
    blank = plain_prompt(unknown.unwrapped.problem, (), "")
    assert request.partition("A reward is computed")[2] == blank.partition("A reward is computed")[2]
    assert env.unwrapped.world.task in request
    assert blank.startswith("A policy is to learn a task by a reward.\n\nA reward is computed")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return positin, {}", "NameError: name 'positin' is not defined (line 3: `return positin, {}`)"),
        ("return position[:, 0]", "tuple"),
        ("return position, {}", "total must be an array of shape (n,)"),
        ("return position[:, 0] * 1j, {}", "type complex128"),
        ("return position[:, 0], {'a': 'b'}", "a must be an array"),
        ("return position[:, 0] * np.nan, {}", "NaN"),
        ("return position[:, 0] * 1e300, {}", "total is as large as"),
        ("return 0.0, {str(i): 0.0 for i in range(51)}", "51 components"),
        ("global n; n += 1; return position[:, 0] + n, {}", "depends on earlier calls"),
    ],
)
def test_a_reward_that_fails_says_why(body, said):
    env = hunch.make("hunch/RewardDesign-v0", generations=1, trials="")
    program = f"import numpy as np; n = 0\ndef reward(position, velocity, goal, action):\n    {body}\n"
    trial = tried(env, program)
    assert trial.fitness is None
    assert said in trial.error


@pytest.mark.parametrize(
    ("id", "options"),
    [
        ("hunch/GameCode-v0", {"episodes": 2}),
        ("hunch/Heuristic-CapSet-v0", {"n": 2}),
        ("hunch/PlanCode-v0", {"problems": 2}),
        ("hunch/RewardDesign-v0", {"generations": 2, "trials": ""}),
    ],
)
def test_they_keep_the_contract(id, options):
    keeps_the_contract(id, options)


class Recorded(Docking):
    """Docking that notes from which states episodes began."""

    def __init__(self):
        self.noted = []

    def begin(self, n, rng):
        self.noted.append("task")
        return super().begin(n, rng)

    def begin_easily(self, n, rng):
        self.noted.append("easy")
        return super().begin_easily(n, rng)


def test_a_curriculum_begins_in_easy_states_and_ends_in_those_of_the_task():
    env = RewardDesign(world="docking", generations=4, curriculum=0.5, trials="")
    env.world = Recorded()
    assert tried(env, Docking.dense, seed=1).fitness is not None
    training = [noted for noted in env.world.noted if noted]
    assert training[:4] == ["easy", "easy", "task", "task"]
    assert set(training[4:]) == {"task"}, "it is judged in the task's own states"


def test_easy_states_are_at_rest_near_the_dock():
    begun = Docking().begin_easily(200, np.random.default_rng(0))
    assert np.linalg.norm(begun["position"] - begun["dock"], axis=1).max() <= 0.4
    assert not begun["velocity"].any()


def test_a_curriculum_is_another_problem_and_none_is_the_one_of_before():
    plain, easy = (RewardDesign(world="docking", curriculum=c, trials="") for c in (0.0, 0.5))
    assert easy.identity() == f"{plain.identity()} curriculum 0.5"
    with pytest.raises(UsageError, match="no easy states"):
        RewardDesign(world="crane", curriculum=0.5)
