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


def examine(env, info, step):
    """Walk to the vase, examine it, and pick it up."""
    row, column = env.room.away("vase")
    if row or column:
        return ("go south" if row > 0 else "go north") if row else "go east" if column > 0 else "go west"
    return "pick up" if env.room.last == ("examine", "vase") else "examine"


PLAYTHROUGHS = {
    "babyai_red_ball": ("hunch/BabyAI-GoToRedBall-v0", {"reward": "babyai"}, wander(6)),
    "babyai_prompt": ("hunch/BabyAI-GoToLocal-v0", {"prompt": True}, wander(0)),
    "babyai_truncated": ("hunch/BabyAI-PickupLoc-v0", {"max_steps": 5}, wander(5)),
    "babyai_put_next": ("hunch/BabyAI-PutNextLocal-v0", {}, wander(0)),
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
    "overcooked_tomato": ("hunch/Overcooked-Tomato-v0", {}, macros(0, 2, 4, 1, 0, 2, 1, 3)),
    # An empty bowl is sent back until the primitive steps are used up.
    "overcooked_tomato_truncated": ("hunch/Overcooked-Tomato-v0", {}, macros(*(1, 3) * 20)),
    "overcooked_salad": ("hunch/Overcooked-Salad-v0", {}, macros(0, 4, 7, 1, 5, 7, 3, 0, 1, 6)),
    # A dish with onion is sent back.
    "overcooked_salad_wrong": (
        "hunch/Overcooked-Salad-v0",
        {"closing": True, "max_steps": 20},
        macros(0, 4, 7, 1, 5, 7, 3, 0, 1, 4, 2, 5, 7, 2, 3, 0, 6, 0, 4, 7),
    ),
    # Seed 0: a grasp, a container, and too early a word.
    "kitchen": ("hunch/Kitchen-v0", {}, KITCHEN),
    "kitchen_disturbed": ("hunch/Kitchen-v0", {"disturbance": 0.5}, KITCHEN),
    "kitchen_talk": ("hunch/Kitchen-v0", {"asking": True, "changes": 1.0, "max_steps": 12}, macros(14)),
    "kitchen_skill": ("hunch/KitchenSkill-v0", {"verb": "reach"}, macros(1, 2, 1, 2)),
    "secret_condition": ("hunch/SecretProperty-v0", {}, examine),
    "secret_search": ("hunch/SecretProperty-v0", {"question": "search"}, examine),
    "secret_skill": ("hunch/SecretSkill-v0", {"verb": "pick up", "max_steps": 5}, macros(3, 3, 0)),
    "chain": ("hunch/Chain-v0", {}, macros(2, 0, 0, 1)),
    "chain_truncated": ("hunch/Chain-v0", {"hints": False}, macros()),
    "distractor_chain": ("hunch/DistractorChain-v0", {}, macros(0, 1)),
    # Into a wall, round it, and an action on the goal.
    "maze": ("hunch/Maze-v0", {}, macros(0, 0, 2, 0, 1, 3)),
    "mini_catch": ("hunch/MiniCatch-v0", {}, macros(0, 2, 1, 1, 0)),
    "mini_catch_missed": ("hunch/MiniCatch-v0", {"hints": False}, macros()),
    "mini_invaders": ("hunch/MiniInvaders-v0", {}, macros(0, 1, 2, 2, 1)),
    "mini_invaders_landed": ("hunch/MiniInvaders-v0", {}, macros(2, 1)),
    "point_mass": ("hunch/PointMass-v0", {}, macros(0, 0, 1, 1, 0)),
    "point_mass_truncated": ("hunch/PointMass-v0", {"hints": False}, macros()),
    "proof": ("hunch/Proof-v0", {"pool": "textbook", "max_steps": 4}, macros(0, 0, 0, 1)),
    "proof_by_hand": (
        "hunch/Proof-v0",
        {"statement": "p -> q | r, q -> s |- p -> s | r"},
        said("intro", "use h1", "cases h3", "left", "use h1", "right"),
    ),
    "tug": ("hunch/Tug-v0", {}, macros(0, 0, 1, 2, 2, 1)),
    "bulbs": ("hunch/Bulbs-v0", {"hints": False}, macros(0, 1, 2)),
    "cart_pole_balanced": ("hunch/CartPole-v0", {"max_steps": 12}, balance),
    "cart_pole_fallen": ("hunch/CartPole-v0", {}, macros(0)),
    "pendulum": ("hunch/Pendulum-v0", {"max_steps": 8}, macros(0, 0, 1, 3, 4)),
    # Into a wall first.
    "sokoban": ("hunch/Sokoban-v0", {}, wander(6)),
    # Into the wall in the west, and a passenger who is not there, first.
    "taxi": (
        "hunch/Taxi-v0",
        {},
        said("drive west", "pick up the passenger", "drive north", *["drive east"] * 3, *TO_YELLOW),
    ),
    "door_key": ("hunch/DoorKey-v0", {}, macros(1, 3, 4, 3, 2, 2, 1, 5, 2, 2, 1, 2, 2)),
    "key_corridor": ("hunch/KeyCorridor-v0", {"max_steps": 4}, macros(2, 5, 2)),
    "craft": (
        "hunch/Craft-v0",
        {"difficulty": "easy", "max_steps": 12},
        said(
            *("go to valley", "drink water", "collect flowers", "drink water", "hum quietly", "make moon"),
            *("go to shore", "go to forest", "collect wood", "collect wood", "make table", "eat berries"),
        ),
    ),
    "matrix_game": ("hunch/MatrixGame-v0", {"game": "stag", "concept": "rawlsian"}, macros(0)),
    # A convention of its own, and the sign to stop.
    "say_select": (
        "hunch/SaySelect-v0",
        {"words": True},
        said("say 1", "select four", "say 1", "select two", "say 4", "quit"),
    ),
    "home_grid": ("hunch/HomeGrid-v0", {"goal": "!sofa U mug"}, wander(3)),
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


def playthrough(name):
    id, options, choose = PLAYTHROUGHS[name]
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


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_playthrough(name):
    assert playthrough(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in PLAYTHROUGHS:
        (FOLDER / f"{name}.txt").write_text(playthrough(name), encoding="utf-8")
