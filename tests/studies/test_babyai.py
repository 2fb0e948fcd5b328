"""BabyAI in words: hand-worked views, the rules of minigrid, rewards, the prompt, the way to the end."""

import copy
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from minigrid.core.world_object import Ball, Box, Key
from minigrid.envs.babyai.core.verifier import ObjDesc, PickupInstr, PutNextInstr

import hunch.envs
from hunch.core import UsageError
from hunch.extras import install
from hunch_studies.worlds.babyai.env import GoToLocal, GoToRedBall, OneRoomS8, PickupDist, PutNextLocal
from hunch_studies.worlds.babyai.words import ACTIONS, describe, prompt

RIGHT, DOWN, LEFT, UP = range(4)
KINDS = {"ball": Ball, "box": Box, "key": Key}
IDS = [id for id in hunch.envs.names() if id.startswith("hunch/BabyAI")]

every_level = pytest.mark.parametrize("id", IDS)
any_level = st.sampled_from(IDS)
seeds = st.integers(0, 2**31)
choices = st.lists(st.integers(0, 5), max_size=25)


def arranged(env, agent, heading, *things, mission=None):
    """An episode in an emptied room, with the agent and these things, "colour kind" and cell, put in it."""
    env.reset(seed=0)
    level = env.level
    for x in range(1, level.width - 1):
        for y in range(1, level.height - 1):
            level.grid.set(x, y, None)
    for name, cell in things:
        colour, kind = name.split()
        level.put_obj(KINDS[kind](colour), *cell)
    level.agent_pos, level.agent_dir, level.carrying = agent, heading, None
    level.instrs = mission or level.instrs
    level.instrs.reset_verifier(level)
    return env


def what(env, *cells):
    """What stands in these cells."""
    things = [env.level.grid.get(*cell) for cell in cells]
    return [thing and f"{thing.color} {thing.type}" for thing in things]


def played(env, choices):
    """Play until the end; return what the steps led to."""
    steps = []
    for choice in choices:
        steps.append(env.step(choice))
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


# What is seen. The room's floor is (1, 1) to (6, 6), cells are (x, y) from the upper left.


@pytest.mark.parametrize(
    ("agent", "heading", "things", "lines"),
    [
        ((1, 1), RIGHT, [], ["You see a wall 6 steps forward", "You see a wall 1 step left"]),
        ((4, 4), UP, [], ["You see a wall 4 steps forward", "You see a wall 3 steps right"]),
        ((6, 5), DOWN, [], ["You see a wall 2 steps forward", "You see a wall 1 step left"]),
        ((3, 3), LEFT, [], ["You see a wall 3 steps forward", "You see a wall 3 steps right"]),
        (  # things hide the wall behind them, but no other thing
            *((4, 4), UP, [("red ball", (4, 2)), ("grey key", (4, 1)), ("blue box", (6, 4))]),
            [
                "You see a grey key 3 steps forward",
                "You see a red ball 2 steps forward",
                "You see a blue box 2 steps right",
            ],
        ),
        (  # by columns from left to right, each from far to near; nothing behind
            *((4, 4), LEFT),
            [
                *(("red ball", (3, 4)), ("blue key", (4, 3)), ("green box", (4, 6)), ("grey ball", (2, 5))),
                *(("yellow key", (1, 1)), ("red ball", (1, 5)), ("purple box", (5, 4))),
            ],
            [
                "You see a green box 2 steps left",
                "You see a red ball 1 step left and 3 steps forward",
                "You see a grey ball 1 step left and 2 steps forward",
                "You see a red ball 1 step forward",
                "You see a blue key 1 step right",
                "You see a yellow key 3 steps right and 3 steps forward",
            ],
        ),
        (  # three cells to the side are seen, four are not
            *((2, 6), UP, [("red ball", (5, 6)), ("red box", (6, 6)), ("red key", (6, 2))]),
            [
                "You see a wall 6 steps forward",
                "You see a wall 2 steps left",
                "You see a red ball 3 steps right",
            ],
        ),
    ],
)
def test_hand_worked_views(agent, heading, things, lines):
    assert describe(arranged(GoToRedBall(), agent, heading, *things).level) == tuple(lines)


def test_what_is_carried_comes_first():
    env = arranged(OneRoomS8(), (1, 1), RIGHT, ("green key", (2, 1)))
    observation, *_, info = env.step("pick up")
    lines = ("You carry a green key", "You see a wall 6 steps forward", "You see a wall 1 step left")
    assert info["descriptions"] == lines
    assert observation == "\n".join(lines)


def parsed(line):
    """Colour, kind, steps to the right and steps forward of a line about a thing."""
    colour, kind = line.split()[3:5]
    steps = {way: int(number) for number, way in re.findall(r"(\d) steps? (\w+)", line)}
    return colour, kind, steps.get("right", 0) - steps.get("left", 0), steps.get("forward", 0)


@settings(max_examples=60)
@given(id=any_level, seed=seeds, choices=choices)
def test_what_is_seen_is_what_minigrid_shows(id, seed, choices):
    env = hunch.envs.make(id, history=0)
    env.reset(seed=seed)
    played(env, choices)
    view, _ = env.level.gen_obs_grid()
    cells = [(i, j, view.get(i, j)) for i in range(7) for j in range(7) if (i, j) != (3, 6)]
    shown = [(c.color, c.type, i - 3, 6 - j) for i, j, c in cells if c and c.type != "wall"]
    lines = describe(env.level)
    assert [parsed(line) for line in lines if line.startswith("You see") and "wall" not in line] == shown
    rays = {
        "forward": [view.get(3, j) for j in range(5, -1, -1)],
        "left": [view.get(i, 6) for i in range(2, -1, -1)],
        "right": [view.get(i, 6) for i in range(4, 7)],
    }
    for way, ray in rays.items():
        first = next(((n, cell) for n, cell in enumerate(ray, 1) if cell), None)
        walled = [line for line in lines if "wall" in line and line.endswith(way)]
        assert bool(walled) == (first is not None and first[1].type == "wall")
        assert not walled or str(first[0]) in walled[0].split()


# What actions do.


@pytest.mark.parametrize("action", ["drop", "toggle", "pick up"])
def test_any_action_that_ends_before_a_red_ball_is_success(action):
    """Even the one that picks it up: what counts is where it was before the last drop."""
    env = arranged(GoToRedBall(), (3, 3), UP, ("red ball", (3, 2)))
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)


@pytest.mark.parametrize(
    ("agent", "action", "success"),
    [
        ((2, 3), "turn right", True),
        ((3, 5), "go forward", False),
        ((3, 5), "turn right", False),
        ((4, 3), "turn left", True),
        ((4, 3), "turn right", False),
    ],
)
def test_success_is_to_face_it_next_to_it(agent, action, success):
    env = arranged(GoToRedBall(), agent, UP, ("red ball", (3, 3)), ("grey ball", (3, 4)))
    assert env.step(action)[-1]["success"] is success


def test_any_of_several_red_balls_will_do():
    for ball in ((1, 1), (3, 2)):
        env = arranged(GoToRedBall(), (3, 4), UP, ("red ball", ball), ("red ball", (6, 6)))
        assert env.step("go forward")[2] is (ball == (3, 2))


def test_hands():
    env = arranged(OneRoomS8(), (3, 3), UP, ("red key", (3, 2)), ("grey box", (4, 3)))
    assert env.step("go forward")[-1]["descriptions"][-1] == "You see a grey box 1 step right"
    assert tuple(env.level.agent_pos) == (3, 3)  # a thing is in the way
    env.step("pick up")
    assert what(env, (3, 2), (4, 3)) == [None, "grey box"]
    env.step("turn right")
    env.step("pick up")  # the hand is full
    env.step("drop")  # and the cell is not free
    assert what(env, (3, 2), (4, 3)) == [None, "grey box"]
    env.step("turn right")
    env.step("drop")
    assert what(env, (3, 4), (4, 3)) == ["red key", "grey box"]
    env.step("toggle")
    assert what(env, (3, 4)) == ["red key"]
    env.step("turn left")
    *_, info = env.step("toggle")
    assert what(env, (3, 4), (4, 3)) == ["red key", None]
    assert not info["success"]


def test_walls_stop_and_cannot_be_taken_or_opened():
    env = arranged(OneRoomS8(), (1, 1), UP, ("red key", (5, 5)))
    for action in ("go forward", "pick up", "drop", "toggle"):
        env.step(action)
    assert tuple(env.level.agent_pos) == (1, 1)
    assert what(env, (1, 0)) == ["grey wall"]


@settings(max_examples=60)
@given(seed=seeds)
def test_layouts(seed):
    env = GoToRedBall()
    _, info = env.reset(seed=seed)
    level = env.level
    things = [(x, y) for x in range(1, 7) for y in range(1, 7) if level.grid.get(x, y)]
    assert (level.width, level.height, len(things)) == (8, 8, 8)
    x, y = level.agent_pos
    assert all(abs(x - i) + abs(y - j) >= 2 for i, j in things)
    red_balls = what(env, *things).count("red ball")
    assert info["task"] == ("go to the red ball" if red_balls == 1 else "go to a red ball")
    assert env.oracle()


@settings(max_examples=30)
@given(id=any_level, seed=seeds, choices=choices)
def test_the_dynamics_rewards_and_layouts_are_those_of_minigrid(id, seed, choices):
    env = hunch.envs.make(id, history=0, reward="babyai", max_steps=200)
    original = type(env.level)()
    original.reset(seed=seed)
    _, info = env.reset(seed=seed)
    assert info["task"] == original.mission
    actions = [*choices, *([2, 1, 3, 4] * 60)]
    for action in actions:
        _, reward, terminated, truncated, info = env.step(action)
        _, expected, *ends, _ = original.step(action)
        assert (reward, terminated, truncated) == (expected, ends[0], ends[1] and not ends[0])
        assert env.level.hash() == original.hash()
        if terminated or truncated:
            break
    assert truncated or info["success"]


# What it pays and when it ends.


@pytest.mark.parametrize(
    ("options", "reward"),
    [
        ({}, 1.0),
        ({"reward": "babyai"}, 1 - 0.9 * 2 / 64),
        ({"reward": "horizon"}, 1 - 0.9 * 2 / 30),
        ({"reward": "horizon", "max_steps": 10}, 1 - 0.9 * 2 / 10),
    ],
)
def test_rewards(options, reward):
    env = arranged(GoToRedBall(**options), (3, 5), UP, ("red ball", (3, 2)))
    assert [step[1] for step in played(env, ["go forward"] * 3)] == pytest.approx([0.0, reward])


@pytest.mark.parametrize(
    ("id", "options", "steps"),
    [
        ("GoToRedBall", {}, 30),
        ("GoToRedBall", {"max_steps": 100}, 64),
        ("PickupDist", {"max_steps": 100}, 49),
        ("PutNextLocal", {"max_steps": 200}, 128),
    ],
)
def test_limits(id, options, steps):
    env = hunch.envs.make(f"hunch/BabyAI-{id}-v0", **options)
    env.reset(seed=0)
    spun = played(env, ["turn left", "turn right"] * 100)
    assert len(spun) == steps
    assert spun[-1][2:4] == (False, True)


def test_success_at_the_last_step_is_success():
    env = arranged(GoToRedBall(max_steps=1), (3, 4), UP, ("red ball", (3, 2)))
    assert env.step("go forward")[1:4] == (1.0, True, False)


def test_unknown_rewards_are_refused():
    with pytest.raises(UsageError, match="sparse or babyai or horizon"):
        GoToRedBall(reward="dense")


# The prompt.


def test_the_prompt_is_that_of_the_paper():
    seen = [("You carry a red key", "You see a wall 1 step left"), ("You see a wall 2 steps left",)]
    head = (
        "Possible action of the agent: turn left, turn right, go forward, pick up, drop, toggle"
        " \n Goal of the agent: go to the red ball"
    )
    assert prompt("go to the red ball", seen[:1], ()) == (
        head + " \n Observation 0: You carry a red key, You see a wall 1 step left, \n Action 0: "
    )
    assert prompt("go to the red ball", seen, ("pick up",)) == (
        head
        + " \n Observation 0: You carry a red key, You see a wall 1 step left, \n Action 0: pick up"
        + " \n Observation 1: You see a wall 2 steps left, \n Action 1: "
    )


def test_the_prompt_remembers_three_observations_and_two_actions():
    env = hunch.make("hunch/BabyAI-GoToRedBall-v0", prompt=True)
    plain = hunch.make("hunch/BabyAI-GoToRedBall-v0", history=0)
    actions = ["turn left", "drop", "turn left", "toggle", "turn left"]
    seen = [plain.reset(seed=1)[1]["descriptions"]]
    text, info = env.reset(seed=1)
    assert text == prompt(info["task"], seen, ())
    for step, action in enumerate(actions, 1):
        seen.append(plain.step(action)[-1]["descriptions"])
        text = env.step(action)[0]
        assert text == prompt(info["task"], seen[-3:], actions[:step][-2:])
    text, info = env.reset(seed=2)
    assert text == prompt(info["task"], [plain.reset(seed=2)[1]["descriptions"]], ())


def test_plain_lines_come_with_the_same_memory():
    env = hunch.make("hunch/BabyAI-GoToRedBall-v0")
    env.reset(seed=1)
    for action in ("turn left", "turn right", "turn left"):
        info = env.step(action)[4]
    assert [action for _, action in info["history"]] == ["turn right", "turn left"]


# The way to the end.


@settings(max_examples=60)
@given(id=any_level, seed=seeds, choices=choices)
@example(id="hunch/BabyAI-PickupDist-v0", seed=3019308, choices=[])  # a grey object, in a room of grey walls
def test_the_oracle_solves_what_it_says_it_solves(id, seed, choices):
    env = hunch.envs.make(id, history=0, max_steps=100, reward="sparse")
    env.reset(seed=seed)
    before = played(env, choices)
    if not (before and (before[-1][2] or before[-1][3])):
        plan = env.oracle()
        if plan is not None:
            steps = [env.step(action) for action in plan]
            assert [step[2] for step in steps] == [False] * (len(plan) - 1) + [True]


def shortest_walk(env):
    """The least number of turns and steps that end the level, tried out."""
    frontier, met = [env], set()
    for length in itertools.count(1):
        walkers, frontier = frontier, []
        for walker in walkers:
            for action in ("turn left", "turn right", "go forward"):
                twin = copy.deepcopy(walker)
                if twin.step(action)[-1]["success"]:
                    return length
                pose = (*map(int, twin.level.agent_pos), int(twin.level.agent_dir))
                if pose not in met:
                    met.add(pose)
                    frontier.append(twin)


@pytest.mark.parametrize("env_class", [GoToRedBall, GoToLocal])
@pytest.mark.parametrize("seed", range(8))
def test_no_walk_is_shorter_than_the_oracles(env_class, seed):
    env = env_class()
    env.reset(seed=seed)
    assert len(env.oracle()) == shortest_walk(env)


def test_the_oracle_frees_its_hand_first():
    mission = PutNextInstr(ObjDesc("box", "grey"), ObjDesc("ball", "blue"))
    things = (("red key", (3, 2)), ("grey box", (1, 1)), ("blue ball", (6, 6)))
    env = arranged(PutNextLocal(), (3, 3), UP, *things, mission=mission)
    env.step("pick up")
    plan = env.oracle()
    assert plan.count("drop") == 2
    assert [env.step(action)[2] for action in plan].index(True) == len(plan) - 1


def test_the_oracle_gives_up_on_what_is_gone():
    mission = PickupInstr(ObjDesc("box", "red"))
    env = arranged(PickupDist(), (3, 3), UP, ("red box", (3, 2)), mission=mission)
    assert env.oracle() == ("pick up",)
    env.step("toggle")
    assert env.oracle() is None


def test_no_oracle_outside_an_episode():
    with pytest.raises(UsageError, match="reset"):
        GoToRedBall().oracle()


# The rest of the contract.


@settings(max_examples=60)
@given(id=any_level, seed=seeds, before=choices, after=choices)
def test_a_copy_goes_its_own_way(id, seed, before, after):
    env = hunch.envs.make(id, history=0, max_steps=100)
    env.reset(seed=seed)
    ends = played(env, before)
    if not (ends and (ends[-1][2] or ends[-1][3])):
        twin = copy.deepcopy(env)
        picture = env.level.hash()
        expected = played(twin, after)
        assert env.level.hash() == picture
        assert played(env, after) == expected


@every_level
def test_it_is_drawn_by_minigrid(id):
    env = hunch.envs.make(id, history=0, render_mode="rgb_array")
    with pytest.raises(UsageError, match="reset"):
        env.render()
    env.reset(seed=0)
    image = env.render()
    assert image.dtype == np.uint8
    assert image.shape == (32 * env.level.height, 32 * env.level.width, 3)
    env.step("turn left")
    assert (env.render() != image).any()


def test_the_map_stands_above_the_text():
    env = arranged(GoToRedBall(render_mode="ansi"), (3, 3), LEFT, ("red ball", (1, 1)), ("grey key", (3, 6)))
    text = env.step("turn right")[0]
    rows = env.render().split("\n")
    assert "\n".join(rows[8:]) == text
    assert rows[1] == "WGAR          WG"
    assert rows[3] == "WG    ^^      WG"
    assert rows[6] == "WG    KG      WG"


def test_minigrid_is_loaded_late_and_says_nothing():
    code = (
        "import sys, hunch.envs\n"
        f"texts = [hunch.envs.describe(id) for id in {IDS}]\n"
        "assert all(texts) and not {'minigrid', 'pygame'} & set(sys.modules)\n"
        "env = hunch.envs.make('hunch/BabyAI-GoToRedBlueBall-v0')\n"
        "for seed in range(20): env.reset(seed=seed)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


def test_a_missing_minigrid_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "minigrid.envs.babyai", None)
    with pytest.raises(UsageError, match=re.escape(install("minigrid"))):
        hunch.envs.make("hunch/BabyAI-GoToRedBall-v0")


def test_all_actions_always():
    env = GoToRedBall()
    assert env.reset(seed=0)[1]["actions"] == ACTIONS
    assert env.step(5)[-1]["actions"] == ACTIONS
