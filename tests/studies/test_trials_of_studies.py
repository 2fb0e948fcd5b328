"""The versions of the studies' design problems; see ``tests/envs/test_trial_versions.py``."""

import pytest

from hunch_studies.games.game_code import START, GameCode
from hunch_studies.worlds import cap_set
from hunch_studies.worlds.rewards import WORLDS
from hunch_studies.worlds.rewards.env import RewardDesign
from hunch_studies.worlds.strips.plan_code import PlanCode

FEW_CARS = """
def get_plan(objects, init, goal):
    start = {fact[1]: fact[2] for fact in init if fact[0] == "at"}
    ferry = [fact[1] for fact in init if fact[0] == "at-ferry"][0]
    plan = []
    assert len(goal) < 5
    for _, car, place in sorted(goal):
        if start[car] != ferry:
            plan.append(("sail", ferry, start[car]))
        plan += [("board", car, start[car]), ("sail", start[car], place), ("debark", car, place)]
        ferry = place
    return plan
"""

PROBLEMS = {
    "cap set": (cap_set.CapSet, {"n": 3}, [cap_set.START]),
    "plans": (PlanCode, {"problems": 6}, [FEW_CARS]),
    "game, open": (GameCode, {"episodes": 2}, [START]),
    "game, closed": (GameCode, {"episodes": 2, "deck": "closed"}, [START]),
    **{
        world: (
            RewardDesign,
            {"world": world, "generations": 2, "metric": "degree"},
            [made.sparse, made.dense],
        )
        for world, made in WORLDS.items()
    },
}
KNOWN = {
    "cap set": ("61b5959d3e483320", [(8.0, [8.0], {}, False)]),
    "plans": ("1", [(0.333, [0.0, 0.0, 1.0, 0.0, 1.0, 0.0], {"crashed": 0.333}, False)]),
    "game, open": (
        "12b33a47f71b75f5",
        [
            (
                0.042,
                [],
                {"held_out_exact": 0.0, "legal_precision": 0.0, "legal_recall": 0.0, "consistent": 0.0},
                False,
            )
        ],
    ),
    "game, closed": (
        "12b33a47f71b75f5",
        [
            (
                0.0,
                [],
                {"held_out_exact": 0.0, "legal_precision": 0.0, "legal_recall": 0.0, "consistent": 0.0},
                False,
            )
        ],
    ),
    "point-maze": (
        "7865372c0ac0a6dd",
        [
            (0.454, [], {"final": 0.454, "max": 0.428, "success": 0.062}, False),
            (0.369, [], {"final": 0.369, "max": 0.347, "success": 0.016}, False),
        ],
    ),
    "mountain-car": (
        "ef30bc0319b80718",
        [
            (0.019, [], {"final": 0.019, "max": 0.023, "success": 0.0}, False),
            (0.017, [], {"final": 0.017, "max": 0.019, "success": 0.0}, False),
        ],
    ),
    "docking": (
        "2f802d3d9a74b757",
        [
            (0.078, [], {"final": 0.078, "max": 0.173, "success": 0.0}, False),
            (0.627, [], {"final": 0.627, "max": 0.58, "success": 0.219}, False),
        ],
    ),
    "reacher": (
        "ea9d1a031802cf16",
        [
            (0.088, [], {"final": 0.088, "max": 0.227, "success": 0.0}, False),
            (0.353, [], {"final": 0.353, "max": 0.345, "success": 0.0}, False),
        ],
    ),
    "crane": (
        "6253428f703236b1",
        [
            (0.312, [], {"final": 0.312, "max": 0.32, "success": 0.0}, False),
            (0.358, [], {"final": 0.358, "max": 0.333, "success": 0.0}, False),
        ],
    ),
}


def trials(name):
    """Return the version, and fitness, scores and components of each program."""
    problem, options, programs = PROBLEMS[name]
    env = problem(**options, trials="")
    found = []
    for program in programs:
        env.reset(seed=0)
        trial = env.step(program)[-1]["raw"]
        components = {key: round(value, 3) for key, value in trial.components.items()}
        fitness = None if trial.fitness is None else round(trial.fitness, 3)
        found.append((fitness, [round(score, 3) for score in trial.scores], components, bool(trial.error)))
    version = env.world.version if name in WORLDS else env.version
    return version, found


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_version_of_a_problem_is_that_of_its_trials(name):
    found = trials(name)
    assert KNOWN.get(name) == found, f"Programs are scored differently; if that is meant: {name!r}: {found!r}"
