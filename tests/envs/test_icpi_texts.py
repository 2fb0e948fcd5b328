"""The words of ICPI's domains: every text to the letter, and what is read of a model's answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunch.envs.icpi.chain import Chain
from hunch.envs.icpi.maze import Maze

DOMAINS = (Chain, Maze)
seeds = st.integers(0, 2**31)
choices = st.lists(st.integers(0, 11), max_size=10)


def test_texts_of_states(domain, state, plain, hint):
    options = {"state": state}
    assert domain().reset(options=options)[0] == f"{plain}{hint}\n"
    assert domain(hints=False).reset(options=options)[0] == f"{plain}\n"
    assert domain.wording.without_hint(f"{plain}{hint}\n") == f"{plain}\n"
    assert domain.wording.without_hint(f"{plain}\n") == f"{plain}\n"


def test_resets_and_actions(domains, reset, actions):
    for domain in domains:
        assert domain.wording.reset == reset
        assert domain.wording.actions == actions
        assert domain().reset(seed=0)[1]["actions"] == tuple(actions)


def test_numbers_and_stops(domain, gamma, log_gamma, steps, threshold, reward_stop, action_stop):
    texts = domain.wording
    assert (texts.gamma, texts.log_gamma) == (gamma, log_gamma)
    assert (texts.max_rollout_steps, texts.success_threshold) == (steps, threshold)
    assert (texts.reward_stop, texts.action_stop) == (reward_stop, action_stop)
    assert (texts.state_stop, texts.done_stop) == ("\n", "\n")


def test_rewards_and_ends(domain, reward, policy_reward):
    texts = domain.wording
    for number in (1, 1.0):
        assert (texts.reward(number), texts.policy_reward(number)) == (reward, policy_reward)
    assert texts.reward(0.0) == reward.replace("1", "0")
    assert texts.policy_reward(0) == policy_reward.replace("1", "0", 1)
    assert (texts.done(True), texts.done(False)) == ("assert done\n", "assert not done\n")


def test_transitions_of_policy_prompts(domain, action, going_on, last):
    assert domain.wording.transition("S\n", action, 0.0, False, "N\n") == going_on
    assert domain.wording.transition("S\n", action, 1.0, True, "N\n") == last


@settings(max_examples=30)
@given(seed=seeds, choices=choices)
def test_what_is_written_is_read(domain, seed, choices):
    """Completions end before the stop string; the pieces of real transitions are read as they are."""
    env, texts = domain(), domain.wording
    text, info = env.reset(seed=seed)
    for choice in choices:
        name = info["actions"][choice % len(info["actions"])]
        assert texts.read_state(" \n" + text.removesuffix(texts.state_stop)) == text
        assert texts.read_action(" " + texts.actions[name].removesuffix(texts.action_stop)) == name
        text, reward, terminated, truncated, info = env.step(name)
        assert texts.read_reward(texts.reward(reward).removesuffix(texts.reward_stop)) == reward
        assert texts.read_done(texts.done(terminated).removesuffix(texts.done_stop)) is terminated
        if terminated or truncated:
            break


def test_answers_that_are_no_answers(domain):
    texts = domain.wording
    for completion in ("", "left", "assert", "state", "reward == x", *texts.actions):
        assert texts.read_action(completion) is None
        assert texts.read_done(completion) is None
        assert texts.read_reward(completion) is None
        assert texts.read_state(completion) is None
    for action in texts.actions.values():
        assert texts.read_action(action.removesuffix(texts.action_stop) + " ") is None
        assert texts.read_action("x" + action.removesuffix(texts.action_stop)) is None


@pytest.mark.parametrize(
    ("completion", "done"),
    [
        ("assert done", True),
        ("  assert done and so on", True),
        ("assert not done", False),
        ("assert reward == 0 and not done", False),
        ("done", None),
        ("assert reward == 0", None),
    ],
)
def test_reading_the_end(completion, done):
    assert Chain.wording.read_done(completion) is done


@pytest.mark.parametrize(
    ("completion", "reward"),
    [
        ("assert reward == 0", 0.0),
        ("assert reward == 1.0", 1.0),
        ("reward == 12", 12.0),
        ("assert reward == 1 and reward == 1", 0.0),
        ("assert reward == one", None),
        ("assert reward=1", None),
    ],
)
def test_reading_rewards(completion, reward):
    assert Chain.wording.read_reward(completion) == reward


def test_reading_states(domain, beginning):
    assert domain.wording.read_state(f" {beginning}whatever") == f"{beginning}whatever\n"
    assert domain.wording.read_state(beginning[:-1]) is None
    assert domain.wording.read_state(f"x{beginning}") is None


ARGUMENTS = {
    "test_texts_of_states": ("domain", "state", "plain", "hint"),
    "test_resets_and_actions": ("domains", "reset", "actions"),
    "test_numbers_and_stops": (
        "domain",
        "gamma",
        "log_gamma",
        "steps",
        "threshold",
        "reward_stop",
        "action_stop",
    ),
    "test_rewards_and_ends": ("domain", "reward", "policy_reward"),
    "test_transitions_of_policy_prompts": ("domain", "action", "going_on", "last"),
    "test_reading_states": ("domain", "beginning"),
}
CASES = {
    "test_texts_of_states": [
        (Chain, [3], "assert state == [3]", " and state != [4]"),
        (Chain, [4], "assert state == [4]", " and state == [4]"),
        (Maze, [0, 2], "assert state == C(i=0, j=2)", " and state != C(i=1, j=0)"),
        (Maze, [1, 0], "assert state == C(i=1, j=0)", " and state == C(i=1, j=0)"),
    ],
    "test_resets_and_actions": [
        (
            (Maze,),
            "\nstate, reward = reset()\n",
            {
                "left": "state, reward = left()\n",
                "down": "state, reward = down()\n",
                "up": "state, reward = up()\n",
                "right": "state, reward = right()\n",
            },
        ),
    ],
    "test_numbers_and_stops": [
        (Chain, 0.8, 0.8, 6, 0, "\n", "\n"),
        (Maze, 0.8, 0.8, 6, 0, "\n", "\n"),
    ],
    "test_rewards_and_ends": [
        (Chain, "assert reward == 1\n", "assert reward == 1.0\n"),
        (Maze, "assert reward == 1\n", "assert reward == 1.0\n"),
    ],
    "test_transitions_of_policy_prompts": [
        (
            Chain,
            "left",
            "S\nstate = left()\nassert reward == 0.0\n",
            "S\nstate = left()\nassert reward == 1.0\n",
        ),
        (
            *(Maze, "up"),
            "S\nstate, reward = up()\nassert reward == 0.0\n",
            "S\nstate, reward = up()\nassert reward == 1.0\n",
        ),
    ],
    "test_reading_states": [
        (Chain, "assert state == "),
        (Maze, "assert state == "),
    ],
}


def pytest_generate_tests(metafunc):
    """Run a test with the cases of the module that holds or imports it: the studies have more domains."""
    if rows := metafunc.module.CASES.get(metafunc.function.__name__):
        metafunc.parametrize(ARGUMENTS[metafunc.function.__name__], rows)
    elif "domain" in metafunc.fixturenames:
        metafunc.parametrize("domain", metafunc.module.DOMAINS)
