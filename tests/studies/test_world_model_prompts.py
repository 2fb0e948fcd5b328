"""Prompts of ICPI's policy in the domains of its study."""

from functools import partial

from tests.roles.test_world_model import Parrot, choose, experience, policy_of, query

from hunch.roles.world_model.experience import Example
from hunch_studies.worlds.mini_catch import MiniCatchTexts
from hunch_studies.worlds.mini_invaders import MiniInvadersTexts


def test_policy_prompts_of_the_other_kind_by_hand():
    start = "assert paddle == C(2, 0) and ball == C(2, 0)\n"
    step = Example(start, "stay", 1.0, True, start)
    model = Parrot("reward = paddle.stay()")
    policy = policy_of(model)
    assert choose(policy, [query(start)], experience([step]), MiniCatchTexts()) == ["stay"]
    assert model.prompts == [[
        "\npaddle, ball = reset()\n"
        "assert paddle == C(2, 0) and ball == C(2, 0)\nreward = paddle.stay()\nball.descend()\n"
        "assert reward == 1\nassert done\nassert paddle == C(2, 0) and ball == C(2, 0)\n"
        "\npaddle, ball = reset()\nassert paddle == C(2, 0) and ball == C(2, 0)\n"
    ]]  # fmt: skip
    assert model.samplings[0][0].stop == ("\nball.descend()\n",)


def test_the_successful_policy_is_shown_what_exceeds_the_threshold():
    ship = "assert ship == C(0, 0) and aliens == [None, None]\n"
    hit, late = Example(ship, "shoot", 1.0, False, ship), Example(ship, "left", 0.0, False, ship)
    model = Parrot("ship.left()")
    policy = partial(policy_of(model), successful=True)
    choose(policy, [query(ship)], experience([late, hit, hit, late]), MiniInvadersTexts())
    assert model.prompts[0][0].count("reset()") - 1 == 4, "those that hold both hits"
