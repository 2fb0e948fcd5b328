"""The words of ICPI's other domains."""

from tests.envs.test_icpi_texts import (  # noqa: F401 - the tests run here with the cases below
    pytest_generate_tests,
    test_answers_that_are_no_answers,
    test_numbers_and_stops,
    test_reading_states,
    test_resets_and_actions,
    test_rewards_and_ends,
    test_texts_of_states,
    test_transitions_of_policy_prompts,
    test_what_is_written_is_read,
)

from hunch.envs.icpi.chain import Chain
from hunch_studies.worlds.bulbs import Bulbs
from hunch_studies.worlds.distractor_chain import DistractorChain
from hunch_studies.worlds.mini_catch import MiniCatch
from hunch_studies.worlds.mini_invaders import MiniInvaders
from hunch_studies.worlds.point_mass import PointMass
from hunch_studies.worlds.tug import Tug

DOMAINS = (DistractorChain, MiniCatch, MiniInvaders, PointMass, Tug, Bulbs)


def catch(paddle_x, ball_x, ball_y):
    return {"paddle_x": paddle_x, "ball_x": ball_x, "ball_y": ball_y}


def invasion(ship, *aliens):
    return {"ship": ship, "aliens": list(aliens)}


DESCENT = "for a in aliens:\n    a.descend()\n"

CASES = {
    "test_texts_of_states": [
        (DistractorChain, [3, 7], "assert state == [3, 7]", " and state != [4, 7]"),
        (DistractorChain, [4, 0], "assert state == [4, 0]", " and state == [4, 0]"),
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
        (PointMass, [2.001, -1], "assert pos == 2.00 and vel == -1.00", " and 2 < pos and vel != 0"),
        (PointMass, [-12.346, -10], "assert pos == -12.35 and vel == -10.00", " and pos < -2 and vel != 0"),
    ],
    "test_resets_and_actions": [
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
    "test_numbers_and_stops": [
        (DistractorChain, 0.8, 0.8, 6, 0, "\n", "\n"),
        (MiniCatch, 1, 1, 5, 0, "\n", "\nball.descend()\n"),
        (MiniInvaders, 0.8, 1, 8, 1, "()\n", "\n"),
        (PointMass, 0.8, 0.8, 8, 0, "\n", "\n"),
    ],
    "test_rewards_and_ends": [
        (DistractorChain, "assert reward == 1\n", "assert reward == 1.0\n"),
        (MiniCatch, "assert reward == 1\n", "assert reward == 1\n"),
        (MiniInvaders, f"assert reward == 1\n{DESCENT}", f"assert reward == 1\n{DESCENT}"),
        (PointMass, "assert reward == 1\n", "assert reward == 1.0\n"),
    ],
    "test_transitions_of_policy_prompts": [
        (
            *(DistractorChain, "try_goal"),
            "S\nreward = try_goal(state)\nassert reward == 0.0\n",
            "S\nreward = try_goal(state)\nassert reward == 1.0\n",
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
    "test_reading_states": [
        (DistractorChain, "assert state == "),
        (MiniCatch, "assert paddle == C("),
        (MiniInvaders, "assert ship == C("),
        (PointMass, "assert pos == "),
    ],
}


def test_a_landed_alien_is_below_the_ship():
    env = MiniInvaders()
    env.reset(options={"state": invasion(2, [3, 0], [1, 4])})
    text, reward, terminated, _, info = env.step("left")
    assert text.startswith("assert ship == C(1, 0) and aliens == [C(3, -1), C(1, 3)] and ")
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert info["state"] == invasion(1, [3, -1], [1, 3])
