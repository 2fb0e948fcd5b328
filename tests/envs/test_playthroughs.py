"""Recorded playthroughs: a changed rule or text shows as a readable diff.

``python tests/envs/test_playthroughs.py`` records them anew.
"""

import random
from pathlib import Path

import pytest

import hunch.envs

FOLDER = Path(__file__).parent.parent / "playthroughs"
SHORTEST = ("Go Down", "Go Down", "Go Right", "Go Right", "Go Down", "Go Right")
TO_YELLOW = (
    *("drive south", "drive south", "pick up the passenger", "drive north", "drive north"),
    *("drive west", "drive west", "drive west", "drive south", "drive south", "drop off the passenger"),
)


def wander(steps):
    """Random actions for some steps, then the oracle's."""

    def choose(env, info, step):
        if step < steps:
            return random.Random(step).choice(info["actions"])
        return env.oracle()[0]

    return choose


def macros(*indices):
    """These actions by index, and the last one of the list from then on."""
    return lambda env, info, step: info["actions"][indices[step] if step < len(indices) else -1]


def balance(env, info, step):
    """Push to the side to which the pole leans and swings."""
    _, _, angle, turning = env.env.unwrapped.state
    return "push right" if angle + turning > 0 else "push left"


def said(*actions):
    """These actions by name."""
    return lambda env, info, step: actions[step]


def walked(*actions):
    """These actions by name, and the last one from then on."""
    return lambda env, info, step: actions[min(step, len(actions) - 1)]


KITCHEN = walked("grasp the cup", "grasp the cup", "go west", "open", "open", "go east", "release", "done")


PLAYTHROUGHS = {
    "frozen_lake_goal": ("hunch/FrozenLake-v0", {}, lambda env, info, step: SHORTEST[step]),
    "frozen_lake_hole": (
        "hunch/FrozenLake-v0",
        {},
        lambda env, info, step: "Go Right" if step < 3 else "Go Down",
    ),
    "household_pick": ("hunch/Household-Pick-v0", {}, wander(15)),
    "household_pick_uniform": (
        "hunch/Household-Pick-v0",
        {"placement": "uniform", "split": "unseen"},
        wander(0),
    ),
    "household_pick_truncated": ("hunch/Household-Pick-v0", {"max_steps": 8}, wander(8)),
    "household_examine": ("hunch/Household-Examine-v0", {}, wander(15)),
    "household_clean": ("hunch/Household-Clean-v0", {}, wander(15)),
    "household_heat": ("hunch/Household-Heat-v0", {}, wander(15)),
    "household_cool": ("hunch/Household-Cool-v0", {}, wander(15)),
    "household_picktwo": ("hunch/Household-PickTwo-v0", {}, wander(15)),
    "household_mix": ("hunch/Household-v0", {"kinds": "heat,picktwo", "split": "unseen"}, wander(0)),
    # Seed 0: a grasp, a container, and too early a word.
    "kitchen": ("hunch/Kitchen-v0", {}, KITCHEN),
    "kitchen_disturbed": ("hunch/Kitchen-v0", {"disturbance": 0.5}, KITCHEN),
    "kitchen_talk": ("hunch/Kitchen-v0", {"asking": True, "changes": 1.0, "max_steps": 12}, macros(14)),
    "kitchen_skill": ("hunch/KitchenSkill-v0", {"verb": "reach"}, macros(1, 2, 1, 2)),
    "chain": ("hunch/Chain-v0", {}, macros(2, 0, 0, 1)),
    "chain_truncated": ("hunch/Chain-v0", {"hints": False}, macros()),
    # Into a wall, round it, and an action on the goal.
    "maze": ("hunch/Maze-v0", {}, macros(0, 0, 2, 0, 1, 3)),
    "cart_pole_balanced": ("hunch/CartPole-v0", {"max_steps": 12}, balance),
    "cart_pole_fallen": ("hunch/CartPole-v0", {}, macros(0)),
    # Into the wall in the west, and a passenger who is not there, first.
    "taxi": (
        "hunch/Taxi-v0",
        {},
        said("drive west", "pick up the passenger", "drive north", *["drive east"] * 3, *TO_YELLOW),
    ),
    "craft": (
        "hunch/Craft-v0",
        {"difficulty": "easy", "max_steps": 12},
        said(
            *("go to valley", "drink water", "collect flowers", "drink water", "hum quietly", "make moon"),
            *("go to shore", "go to forest", "collect wood", "collect wood", "make table", "eat berries"),
        ),
    ),
    "matrix_game": ("hunch/MatrixGame-v0", {"game": "stag", "concept": "rawlsian"}, macros(0)),
    "ultimatum": ("hunch/Ultimatum-v0", {}, macros(1)),
    "taxi_masked": (
        "hunch/Taxi-v0",
        {"masked": True},
        said("drive north", *["drive east"] * 3, *TO_YELLOW),
    ),
    "cliff_walking": (
        "hunch/CliffWalking-v0",
        {},
        said("go right", "go up", *["go right"] * 11, "go down"),
    ),
    "cliff_walking_truncated": ("hunch/CliffWalking-v0", {"max_steps": 3}, said("go left", "go up", "go up")),
    "blackjack_stick": ("hunch/Blackjack-v0", {}, said("hit", "stick")),
    "blackjack_bust": ("hunch/Blackjack-v0", {}, macros(1)),
}


def playthrough(id, options, choose):
    """Return all that is seen while an environment is played, from seed 0 on."""
    env = hunch.envs.make(id, history=0, **options)
    observation, info = env.reset(seed=0)
    lines = [f"{id} {options} seed 0", f"info: {others(info)}", "", observation, actions(info)]
    step, done = 0, False
    while not done:
        action = choose(env.unwrapped, info, step)
        observation, reward, terminated, truncated, info = env.step(action)
        step, done = step + 1, terminated or truncated
        lines += [
            "",
            f"> {action}",
            observation,
            actions(info),
            f"reward {reward:g}, success {info['success']}",
        ]
    lines += [f"terminated {terminated}, truncated {truncated}"]
    return "\n".join(lines) + "\n"


def actions(info):
    return f"[{' | '.join(info['actions'])}]"


def others(info):
    left_out = ("actions", "event", "raw")
    return ", ".join(f"{key}={value!r}" for key, value in info.items() if key not in left_out)


def known(name):
    """Return a recorded playthrough."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def record(playthroughs):
    """Play and write all of them."""
    for name, played in playthroughs.items():
        (FOLDER / f"{name}.txt").write_text(playthrough(*played), encoding="utf-8")


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_playthrough(name):
    assert playthrough(*PLAYTHROUGHS[name]) == known(name)


if __name__ == "__main__":
    record(PLAYTHROUGHS)
