"""Blocksworld: that of the domain in PDDL, its words, and plans of any length."""

import copy
import random

import pytest

import hunch.envs
from hunch.core import UsageError
from hunch_studies.worlds.strips import problems
from hunch_studies.worlds.strips.blocksworld import Blocksworld
from hunch_studies.worlds.strips.env import Generated
from hunch_studies.worlds.strips.wording import WORDINGS


class Defined(Generated):
    """The same draws, grounded from the file."""

    def _draw(self):
        return problems.blocksworld(self.task_random, **self.sizes)


@pytest.mark.parametrize(
    ("words", "wording"),
    [("plain", "blocksworld"), ("mystery", "blocksworld-mystery"), ("pddl", "pddl")],
)
@pytest.mark.parametrize("blocks", [2, 4, 5])
def test_it_is_the_domain_of_the_file(words, wording, blocks):
    rng = random.Random(blocks)
    env, defined = (
        Blocksworld(blocks=blocks, words=words),
        Defined(WORDINGS[wording], {"blocks": blocks}, 30, None),
    )
    env.max_steps = 30
    for seed in range(8):
        here, there = env.reset(seed=seed), defined.reset(seed=seed)
        done = False
        while not done:
            assert env.oracle() == defined.oracle()
            (*one, info), (*other, expected) = here, there
            assert one == other
            assert {**info, "raw": None} == {**expected, "raw": None}
            action = rng.choice(info["actions"])
            here, there = env.step(action), defined.step(action)
            done = here[2] or here[3]


@pytest.mark.parametrize("words", ["plain", "mystery", "pddl"])
def test_the_checker_finds_nothing(words):
    hunch.envs.check(Blocksworld(words=words))


@pytest.mark.parametrize("blocks", [4, 10, 30])
def test_the_oracle_reaches_the_goal_from_anywhere(blocks):
    env = Blocksworld(blocks=blocks, max_steps=1000)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        for step in range(3 * seed):
            *_, info = env.step(random.Random(step).choice(info["actions"]))
        plan = env.oracle()
        assert len(plan) <= 4 * blocks + 1
        for action in plan:
            _, reward, terminated, _, info = env.step(action)
        assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_a_copy_goes_its_own_way_and_a_state_can_be_placed():
    env = Blocksworld(blocks=5)
    before, info = env.reset(seed=0)
    twin = copy.deepcopy(env)
    after, *_, moved = twin.step(info["actions"][0])
    assert env.step(info["actions"][0])[0] == after != before
    assert env.place(list(info["raw"])) == (before, info)
    assert env.place(moved["raw"])[0] == after


def test_one_task_seed_gives_one_problem():
    env = Blocksworld()
    first, other = (env.reset(seed=seed, options={"task_seed": 3}) for seed in (0, 1))
    assert first == other
    with pytest.raises(UsageError, match="no reset option 'problem'"):
        env.reset(options={"problem": 2})


@pytest.mark.parametrize(
    ("options", "said"),
    [({"blocks": 1}, "blocks must be at least 2"), ({"words": "obscure"}, "plain or mystery or pddl")],
)
def test_bad_options(options, said):
    with pytest.raises(UsageError, match=said):
        Blocksworld(**options)
