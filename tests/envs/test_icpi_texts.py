"""The words of ICPI's domains: every text to the letter, and what is read of a model's answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunch.envs.icpi.chain import Chain
from hunch.envs.icpi.maze import Maze
from hunch_studies.worlds.bulbs import Bulbs
from hunch_studies.worlds.distractor_chain import DistractorChain
from hunch_studies.worlds.mini_catch import MiniCatch
from hunch_studies.worlds.mini_invaders import MiniInvaders
from hunch_studies.worlds.point_mass import PointMass
from hunch_studies.worlds.tug import Tug

DOMAINS = (Chain, DistractorChain, Maze, MiniCatch, MiniInvaders, PointMass, Tug, Bulbs)
every_domain = pytest.mark.parametrize("domain", DOMAINS)
seeds = st.integers(0, 2**31)
choices = st.lists(st.integers(0, 11), max_size=10)


def catch(paddle_x, ball_x, ball_y):
    return {"paddle_x": paddle_x, "ball_x": ball_x, "ball_y": ball_y}


def invasion(ship, *aliens):
    return {"ship": ship, "aliens": list(aliens)}


@pytest.mark.parametrize(
    ("domain", "state", "plain", "hint"),
    [
        (Chain, [3], "assert state == [3]", " and state != [4]"),
        (Chain, [4], "assert state == [4]", " and state == [4]"),
        (DistractorChain, [3, 7], "assert state == [3, 7]", " and state != [4, 7]"),
        (DistractorChain, [4, 0], "assert state == [4, 0]", " and state == [4, 0]"),
        (Maze, [0, 2], "assert state == C(i=0, j=2)", " and state != C(i=1, j=0)"),
        (Maze, [1, 0], "assert state == C(i=1, j=0)", " and state == C(i=1, j=0)"),
        (Tug, {"dock": 2, "barge": 1}, "assert tug == D(2, 1)", " and tug != D(3, 1)"),
        (Tug, {"dock": 3, "barge": 1}, "assert tug == D(3, 1)", " and tug == D(3, 1)"),
        (Bulbs, [1, 0, 1], "assert bulbs == [1, 0, 1]", " and bulbs != [1, 1, 1]"),
        (Bulbs, [1, 1, 1], "assert bulbs == [1, 1, 1]", " and bulbs == [1, 1, 1]"),
        (
            *(MiniCatch, catch(2, 0, 4), "assert paddle == C(2, 0) and ball == C(0, 4)"),
            " and paddle.x == 2 and ball.x == 0 and paddle.x > ball.x and ball.y == 4",
        ),
        (
            *(MiniCatch, catch(1, 1, 0), "assert paddle == C(1, 0) and ball == C(1, 0)"),
            " and paddle.x == 1 and ball.x == 1 and paddle.x == ball.x and ball.y == 0",
        ),
        (
            *(
                MiniInvaders,
                invasion(2, [3, 5], None),
                "assert ship == C(2, 0) and aliens == [C(3, 5), None]",
            ),
            " and (ship.x, aliens[0].x) == (2, 3) and ship.x < aliens[0].x",
        ),
        (
            *(
                MiniInvaders,
                invasion(2, None, [1, 0]),
                "assert ship == C(2, 0) and aliens == [None, C(1, 0)]",
            ),
            " and (ship.x, aliens[1].x) == (2, 1) and ship.x > aliens[1].x",
        ),
        (
            MiniInvaders,
            invasion(0, [0, 4], [3, 4]),
            "assert ship == C(0, 0) and aliens == [C(0, 4), C(3, 4)]",
            " and (ship.x, aliens[0].x, aliens[1].x) == (0, 0, 3)"
            " and ship.x == aliens[0].x and ship.x < aliens[1].x",
        ),
        (
            *(MiniInvaders, invasion(2, None, None), "assert ship == C(2, 0) and aliens == [None, None]"),
            " and (ship.x) == (2)",
        ),
        (PointMass, [-3.45, 1], "assert pos == -3.45 and vel == 1.00", " and pos < -2 and vel != 0"),
        (PointMass, [-2, 0], "assert pos == -2.00 and vel == 0.00", " and -2 <= pos <= 2 and vel == 0"),
        # The text is rounded, the hint is not.
        (PointMass, [2.001, -1], "assert pos == 2.00 and vel == -1.00", " and 2 < pos and vel != 0"),
        (PointMass, [-12.346, -10], "assert pos == -12.35 and vel == -10.00", " and pos < -2 and vel != 0"),
    ],
)
def test_texts_of_states(domain, state, plain, hint):
    options = {"state": state}
    assert domain().reset(options=options)[0] == f"{plain}{hint}\n"
    assert domain(hints=False).reset(options=options)[0] == f"{plain}\n"
    assert domain.wording.without_hint(f"{plain}{hint}\n") == f"{plain}\n"
    assert domain.wording.without_hint(f"{plain}\n") == f"{plain}\n"


def test_a_landed_alien_is_below_the_ship():
    env = MiniInvaders()
    env.reset(options={"state": invasion(2, [3, 0], [1, 4])})
    text, reward, terminated, _, info = env.step("left")
    assert text.startswith("assert ship == C(1, 0) and aliens == [C(3, -1), C(1, 3)] and ")
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert info["state"] == invasion(1, [3, -1], [1, 3])


@pytest.mark.parametrize(
    ("domains", "reset", "actions"),
    [
        (
            (Chain, DistractorChain),
            "\nstate, reward = reset()\n",
            {
                "left": "state = left()\n",
                "try_goal": "reward = try_goal(state)\n",
                "right": "state = right()\n",
            },
        ),
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
        (
            (MiniCatch,),
            "\npaddle, ball = reset()\n",
            {
                "left": "reward = paddle.left()\nball.descend()\n",
                "stay": "reward = paddle.stay()\nball.descend()\n",
                "right": "reward = paddle.right()\nball.descend()\n",
            },
        ),
        (
            (MiniInvaders,),
            "\nship, aliens = reset()\n",
            {
                "left": "ship.left()\n",
                "shoot": "reward = ship.shoot(aliens)\n",
                "right": "ship.right()\n",
            },
        ),
        (
            (PointMass,),
            "\npos, vel = reset()\n",
            {"decel": "pos, vel = decel(pos, vel)\n", "accel": "pos, vel = accel(pos, vel)\n"},
        ),
    ],
)
def test_resets_and_actions(domains, reset, actions):
    for domain in domains:
        assert domain.wording.reset == reset
        assert domain.wording.actions == actions
        assert domain().reset(seed=0)[1]["actions"] == tuple(actions)


@pytest.mark.parametrize(
    ("domain", "gamma", "log_gamma", "steps", "threshold", "reward_stop", "action_stop"),
    [
        (Chain, 0.8, 0.8, 6, 0, "\n", "\n"),
        (DistractorChain, 0.8, 0.8, 6, 0, "\n", "\n"),
        (Maze, 0.8, 0.8, 6, 0, "\n", "\n"),
        (MiniCatch, 1, 1, 5, 0, "\n", "\nball.descend()\n"),
        (MiniInvaders, 0.8, 1, 8, 1, "()\n", "\n"),
        (PointMass, 0.8, 0.8, 8, 0, "\n", "\n"),
    ],
)
def test_numbers_and_stops(domain, gamma, log_gamma, steps, threshold, reward_stop, action_stop):
    texts = domain.wording
    assert (texts.gamma, texts.log_gamma) == (gamma, log_gamma)
    assert (texts.max_rollout_steps, texts.success_threshold) == (steps, threshold)
    assert (texts.reward_stop, texts.action_stop) == (reward_stop, action_stop)
    assert (texts.state_stop, texts.done_stop) == ("\n", "\n")


DESCENT = "for a in aliens:\n    a.descend()\n"


@pytest.mark.parametrize(
    ("domain", "reward", "policy_reward"),
    [
        (Chain, "assert reward == 1\n", "assert reward == 1.0\n"),
        (DistractorChain, "assert reward == 1\n", "assert reward == 1.0\n"),
        (Maze, "assert reward == 1\n", "assert reward == 1.0\n"),
        (MiniCatch, "assert reward == 1\n", "assert reward == 1\n"),
        (MiniInvaders, f"assert reward == 1\n{DESCENT}", f"assert reward == 1\n{DESCENT}"),
        (PointMass, "assert reward == 1\n", "assert reward == 1.0\n"),
    ],
)
def test_rewards_and_ends(domain, reward, policy_reward):
    texts = domain.wording
    for number in (1, 1.0):
        assert (texts.reward(number), texts.policy_reward(number)) == (reward, policy_reward)
    assert texts.reward(0.0) == reward.replace("1", "0")
    assert texts.policy_reward(0) == policy_reward.replace("1", "0", 1)
    assert (texts.done(True), texts.done(False)) == ("assert done\n", "assert not done\n")


@pytest.mark.parametrize(
    ("domain", "action", "going_on", "last"),
    [
        (
            Chain,
            "left",
            "S\nstate = left()\nassert reward == 0.0\n",
            "S\nstate = left()\nassert reward == 1.0\n",
        ),
        (
            *(DistractorChain, "try_goal"),
            "S\nreward = try_goal(state)\nassert reward == 0.0\n",
            "S\nreward = try_goal(state)\nassert reward == 1.0\n",
        ),
        (
            *(Maze, "up"),
            "S\nstate, reward = up()\nassert reward == 0.0\n",
            "S\nstate, reward = up()\nassert reward == 1.0\n",
        ),
        (
            *(MiniCatch, "stay"),
            "S\nreward = paddle.stay()\nball.descend()\nassert reward == 0\nassert not done\n",
            "S\nreward = paddle.stay()\nball.descend()\nassert reward == 1\nassert done\nN\n",
        ),
        (
            *(MiniInvaders, "shoot"),
            f"S\nreward = ship.shoot(aliens)\nassert reward == 0\n{DESCENT}assert not done\n",
            f"S\nreward = ship.shoot(aliens)\nassert reward == 1\n{DESCENT}assert done\nN\n\n",
        ),
        (
            *(PointMass, "accel"),
            "S\npos, vel = accel(pos, vel)\nassert reward == 0.0\n",
            "S\npos, vel = accel(pos, vel)\nassert reward == 1.0\nN\n",
        ),
    ],
)
def test_transitions_of_policy_prompts(domain, action, going_on, last):
    assert domain.wording.transition("S\n", action, 0.0, False, "N\n") == going_on
    assert domain.wording.transition("S\n", action, 1.0, True, "N\n") == last


@every_domain
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


@every_domain
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


@pytest.mark.parametrize(
    ("domain", "beginning"),
    [
        (Chain, "assert state == "),
        (DistractorChain, "assert state == "),
        (Maze, "assert state == "),
        (MiniCatch, "assert paddle == C("),
        (MiniInvaders, "assert ship == C("),
        (PointMass, "assert pos == "),
    ],
)
def test_reading_states(domain, beginning):
    assert domain.wording.read_state(f" {beginning}whatever") == f"{beginning}whatever\n"
    assert domain.wording.read_state(beginning[:-1]) is None
    assert domain.wording.read_state(f"x{beginning}") is None
