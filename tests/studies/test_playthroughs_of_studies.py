"""Recorded playthroughs of the worlds of the studies; see ``tests/envs/test_playthroughs.py``.

``python -m tests.studies.test_playthroughs_of_studies`` records them anew.
"""

import pytest
from tests.envs.test_playthroughs import known, macros, playthrough, record, said, wander


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
    "secret_condition": ("hunch/SecretProperty-v0", {}, examine),
    "secret_search": ("hunch/SecretProperty-v0", {"question": "search"}, examine),
    "secret_skill": ("hunch/SecretSkill-v0", {"verb": "pick up", "max_steps": 5}, macros(3, 3, 0)),
    "distractor_chain": ("hunch/DistractorChain-v0", {}, macros(0, 1)),
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
    "pendulum": ("hunch/Pendulum-v0", {"max_steps": 8}, macros(0, 0, 1, 3, 4)),
    # Into a wall first.
    "sokoban": ("hunch/Sokoban-v0", {}, wander(6)),
    "door_key": ("hunch/DoorKey-v0", {}, macros(1, 3, 4, 3, 2, 2, 1, 5, 2, 2, 1, 2, 2)),
    "key_corridor": ("hunch/KeyCorridor-v0", {"max_steps": 4}, macros(2, 5, 2)),
    # A convention of its own, and the sign to stop.
    "say_select": (
        "hunch/SaySelect-v0",
        {"words": True},
        said("say 1", "select four", "say 1", "select two", "say 4", "quit"),
    ),
    "home_grid": ("hunch/HomeGrid-v0", {"goal": "!sofa U mug"}, wander(3)),
}


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_playthrough(name):
    assert playthrough(*PLAYTHROUGHS[name]) == known(name)


if __name__ == "__main__":
    record(PLAYTHROUGHS)
