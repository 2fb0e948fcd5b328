"""What every environment of ours promises."""

import copy
import pickle
import re
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import hunch.envs
from hunch.core import InadmissibleActionError, State, UsageError

FREE = (
    "hunch/GameCode",
    "hunch/Heuristic",
    "hunch/PlanCode",
    "hunch/PolicyCode",
    "hunch/RewardDesign",
    "hunch/WorldModelCode",
    "hunch/Transitions",
    "hunch/TextCraft",
    "hunch/Recipes",
    "hunch/Prompt",
    "hunch/Compression",
    "hunch/Constraints",
    "hunch/Reviews",
    "hunch/Rudeness",
    "hunch/Simplicity",
    "hunch/Attack",
    "hunch/Repair",
)
# These are tested in test_design_problems, test_transition_file, test_prompting, test_requests,
# methods/test_tune and the tests of the studies.
# They need an extra and have tests of their own.
EXTRA = (
    "hunch/Crafter-v0",
    "hunch/Bargaining-v0",
    "hunch/TinyHanabi-v0",
    "hunch/MiniGrid-v0",
    "hunch/TextWorldExpress-v0",
)
LISTED = [id for id in hunch.envs.names() if not id.startswith((*FREE, *EXTRA))]
ALIKE = re.compile(
    r"hunch/(BabyAI-(GoToObj|GoToRedBall|GoToRedBallGrey|GoToRedBallNoDists|GoToRedBlueBall|OneRoomS8|Pickup\w+)|"
    r"Household-(Heat|Cool)|Overcooked-Tomato)-v0"
)
"""Environments that differ from others here only in the task or the size of a room."""


def each(ids):
    """One test for each environment; of environments that are alike, the quick suite has one."""
    marked = [pytest.param(id, marks=pytest.mark.thorough if ALIKE.fullmatch(id) else ()) for id in ids]
    return pytest.mark.parametrize("id", marked)


every_env = each(LISTED)
ONE_MOVE = ("hunch/MatrixGame-v0", "hunch/Ultimatum-v0")  # tests/envs/test_games
lasting_env = each([id for id in LISTED if id not in ONE_MOVE])
FIXED = ("hunch/DarkRoom-v0", "hunch/DarkKeyToDoor-v0", "hunch/Bandit-v0")  # their length is part of the task
# The others have rewards on the way, or limits of their own besides max_steps.
PLAIN = [
    id
    for id in hunch.envs.names()
    if id.split("/")[1].startswith(
        ("FrozenLake", "Household", "Chain", "Distractor", "Maze", "MiniCatch", "Point")
    )
]
seeds = st.integers(0, 2**31)
choices = st.lists(st.integers(0, 999), max_size=60)


def play(env, seed, choices):
    """Reset and play the choices, each modulo the number of admissible actions; return all that was seen."""
    seen = [env.reset(seed=seed)]
    info = seen[0][1]
    for choice in choices:
        seen.append(env.step(choice % len(info["actions"])))
        info = seen[-1][-1]
        if seen[-1][2] or seen[-1][3]:
            break
    return seen


@pytest.mark.parametrize("id", LISTED)
def test_the_checker_finds_nothing(id):
    hunch.envs.check(hunch.envs.make(id))


@pytest.mark.parametrize(
    "id", [pytest.param(id, marks=() if id in PLAIN[:3] else pytest.mark.thorough) for id in LISTED]
)
def test_the_checker_finds_nothing_where_observations_hold_a_history(id):
    hunch.envs.check(hunch.envs.make(id, history=2))


def lasting(env, steps):
    """Indices of so many actions that do not end the episode of seed 0 before the last of them."""
    for attempt in range(200):
        drawn = np.random.default_rng(attempt).integers(1000, size=steps).tolist()
        seen = play(env, 0, drawn)
        if len(seen) == steps + 1:
            return [choice % len(step[-1]["actions"]) for choice, step in zip(drawn, seen, strict=False)]
    raise AssertionError("every episode ends at once")


@every_env
@settings(max_examples=25)
@given(seed=seeds, choices=choices)
def test_the_same_seed_gives_the_same_episode(id, seed, choices):
    env = hunch.envs.make(id)
    assert play(env, seed, choices) == play(env, seed, choices) == play(hunch.envs.make(id), seed, choices)


@every_env
@settings(max_examples=25)
@given(seed=seeds, choices=choices)
def test_random_play_keeps_the_contract(id, seed, choices):
    env = hunch.envs.make(id, history=0)
    seen = play(env, seed, choices)
    for observation, *_, info in seen:
        state = State.read(observation, info)
        assert isinstance(observation, str)
        assert observation
        assert state.task == seen[0][1]["task"]
        assert len(set(state.actions)) == len(state.actions)
        assert state.actions or (observation, state) == (seen[-1][0], State.read(seen[-1][0], seen[-1][-1]))
        assert all(isinstance(action, str) and action for action in state.actions)
        assert type(info["success"]) is bool
    for step, (_, reward, terminated, truncated, info) in enumerate(seen[1:], start=1):
        assert type(reward) is float
        assert not (terminated and truncated)
        assert terminated or truncated or step < env.unwrapped.max_steps
        assert terminated or not info["success"] or (truncated and id == "hunch/CartPole-v0")
        if id in PLAIN:
            assert terminated or truncated == (step == env.unwrapped.max_steps)
            assert terminated or reward == 0
            assert info["success"] == (reward == 1)


@every_env
@settings(max_examples=25)
@given(seed=seeds, choices=choices)
def test_an_index_means_its_string(id, seed, choices):
    by_string, by_index = hunch.envs.make(id), hunch.envs.make(id)
    _, info = by_string.reset(seed=seed)
    by_index.reset(seed=seed)
    for choice in choices:
        index = choice % len(info["actions"])
        result = by_string.step(info["actions"][index])
        assert result == by_index.step(np.int64(index))
        info = result[-1]
        if result[2] or result[3]:
            break


@lasting_env
def test_an_inadmissible_action_raises_and_changes_nothing(id):
    env, twin = hunch.envs.make(id), hunch.envs.make(id)
    actions = lasting(twin, 3)
    env.reset(seed=0)
    twin.reset(seed=0)
    for action in actions:
        for bad in ("", "sing a song", "GO LEFT", -1, 10_000, 1.0, None, True, ("look",), b"look"):
            with pytest.raises(InadmissibleActionError):
                env.step(bad)
        assert env.step(action) == twin.step(action)


@lasting_env
def test_no_step_outside_an_episode(id):
    env = hunch.envs.make(id, **{"length" if id in FIXED else "max_steps": 2})
    with pytest.raises(UsageError, match="reset"):
        env.step(0)
    _, info = env.reset(seed=0)
    for _ in range(2):
        *_, terminated, truncated, info = env.step(info["actions"][-1])
    assert truncated == (id not in FIXED)
    assert terminated == (id in FIXED)
    with pytest.raises(UsageError, match="reset"):
        env.step(0)
    env.reset()
    env.step(0)


@lasting_env
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_is_equal_and_independent(id, duplicate):
    env = hunch.envs.make(id)
    first, *rest = lasting(env, 3)
    env.reset(seed=0)
    env.step(first)
    twin = duplicate(env)
    expected = [env.step(action) for action in rest]
    assert [twin.step(action) for action in rest] == expected
    assert env.reset() == twin.reset()  # the generators are equal and apart, too
    assert env.reset() == twin.reset()


@every_env
@pytest.mark.filterwarnings("ignore:.*render_mode:UserWarning")
def test_rendering(id):
    with pytest.raises(UsageError, match="render_mode"):
        hunch.envs.make(id, render_mode="poster")
    env = hunch.envs.make(id, history=0)
    env.reset(seed=0)
    with pytest.raises(UsageError, match="render_mode"):
        env.render()
    for mode in set(env.metadata["render_modes"]) & {"ansi", "rgb_array"}:
        env = hunch.envs.make(id, history=0, render_mode=mode)
        with pytest.raises(UsageError, match="No episode has begun"):
            env.render()
        observation, info = env.reset(seed=0)
        before = env.render()
        if mode == "ansi":
            assert before.endswith(observation)
            observation, *_ = env.step(info["actions"][0])
            assert env.render().endswith(observation)
        else:
            assert before.dtype == np.uint8
            assert before.ndim == 3
            assert before.shape[2] == 3
            assert any(changed(env, before, seed) for seed in range(20))


def changed(env, picture, seed):
    """Whether something moves in the picture during some random steps."""
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        *_, terminated, truncated, info = env.step(int(rng.integers(len(info["actions"]))))
        if not np.array_equal(env.render(), picture):
            return True
        if terminated or truncated:
            break
    return False


SOMETIMES = re.compile(r"hunch/(Strips|Blocksworld|Logistics|Gripper|Ferry|Miconic|Game24|SaySelect)-v0")
"""Environments in which no action is admissible in every state."""


@every_env
def test_gymnasium_agrees(id):
    env = gymnasium.make(id)
    if SOMETIMES.fullmatch(id):
        pytest.skip("Gymnasium's checker repeats one action, and here none is always admissible.")
    assert env is env.unwrapped  # nothing of Gymnasium's stands between
    # The checker samples an action, resets, and expects the action to be admissible still.
    always = env.reset(seed=0)[1]["actions"][-1]
    env.action_space.sample = lambda *_: always
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(env, skip_render_check=True)


@every_env
def test_the_action_space_samples_admissible_actions(id):
    env = gymnasium.make(id)
    with pytest.raises(UsageError):
        env.action_space.sample()
    _, info = env.reset(seed=0)
    env.action_space.seed(0)
    assert {env.action_space.sample() for _ in range(300)} == set(info["actions"])
    assert "fly" not in env.action_space


@pytest.mark.parametrize("id", ["hunch/Constraints-v0", "hunch/Prompts-v0"])
def test_gymnasium_agrees_where_any_text_is_an_action(id):
    env = gymnasium.make(id)
    with pytest.raises(UsageError, match="call reset first"):
        env.action_space.sample()
    env.reset(seed=0)
    env.action_space.seed(0)
    assert env.action_space.sample() in env.action_space
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(env, skip_render_check=True)


def test_an_observation_in_any_letters_is_in_its_space(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "Was hei\u00dft \u6f22\u5b57?"}\n', encoding="utf-8")
    for env in (gymnasium.make("hunch/Prompts-v0", file=str(file)), gymnasium.make("hunch/PolicyCode-v0")):
        observation, _ = env.reset(seed=0)
        assert not observation.isascii()
        assert observation in env.observation_space
        assert observation in copy.deepcopy(env).observation_space
    assert 1 not in env.observation_space


@every_env
def test_batches_keep_whole_strings(id):
    envs = gymnasium.make_vec(id, num_envs=2, vectorization_mode="sync")
    observations, infos = envs.reset(seed=0)
    assert observations == tuple(gymnasium.make(id).reset(seed=seed)[0] for seed in (0, 1))
    assert len(infos["actions"]) == 2


def test_shared_memory_for_texts_is_refused():
    """Gymnasium never reads a text from there again, so that every observation would be "0000..."."""
    made = [lambda: hunch.envs.make("hunch/FrozenLake-v0")] * 2
    with pytest.raises(ValueError, match="shared_memory=False"):
        gymnasium.vector.AsyncVectorEnv(made)


@every_env
def test_max_steps_has_to_be_positive(id):
    with pytest.raises(UsageError, match="max_steps"):
        hunch.envs.make(id, max_steps=0)


@every_env
def test_unknown_reset_options_are_refused(id):
    with pytest.raises(UsageError, match="colour"):
        hunch.envs.make(id).reset(options={"colour": "red"})


@pytest.mark.parametrize(
    "option", [{"task_seed": -1}, {"task_seed": 1.5}, {"task_seed": "3"}, {"episode": None}, {"episode": -1}]
)
def test_a_wrong_reset_option_leaves_the_episode_as_it_is(option):
    env, twin = (hunch.envs.make("hunch/Household-Pick-v0", games=3) for _ in range(2))
    assert env.reset(seed=0) == twin.reset(seed=0)
    with pytest.raises(UsageError, match=f"option {next(iter(option))} must be a whole number"):
        env.reset(seed=1, options=option)
    assert env.step("look") == twin.step("look")
    assert env.reset() == twin.reset()
    env.reset(options={"task_seed": np.int64(3), "episode": np.int64(2)})
