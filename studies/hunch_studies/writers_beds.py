"""The beds of the study of writers, fixed before the first search.

The plain requests were written with FrozenLake8x8, Taxi and CliffWalking, which are none of these. Any other
environment of Gymnasium with numbers, or with texts and commands, is a bed, too: :func:`bed_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import gymnasium as gym
import numpy as np

from hunch.envs.design.policy import PolicyCode
from hunch.envs.design.problem import Problem, Trial

POLICIES: Final = "hunch/PolicyCode-v0"
EPISODES: Final = 10
"""Episodes by which a policy is scored."""
MOST_ACTIONS: Final = 10
"""Constant policies that are tried for the floor of a bed."""


@dataclass(frozen=True)
class Bed:
    """A problem for the searches.

    Attributes:
        env: Its environment.
        options: Options of the environment.
        unseen: Options of the environment in which the winner of a run is evaluated again.
        floor: Fitness that no program is below, for searches that need numbers from 0.
        component: What counts of the winner's components, where there is no environment with unseen inputs.
    """

    env: str
    options: Mapping[str, Any] = field(default_factory=dict)
    unseen: Mapping[str, Any] = field(default_factory=dict)
    floor: float = 0.0
    component: str = "held_out"


def bed_of(base: str) -> Bed:
    """Return the bed of any environment of Gymnasium for which a policy can be written.

    Its floor is the lowest fitness of some policies that always take the same action; with texts it is that
    of going through the list of commands.

    Raises:
        UsageError: if no policy can be written for the environment.
    """
    bed = control(base, EPISODES, 0.0)
    made = gym.make(bed.env, **bed.options).unwrapped
    assert isinstance(made, PolicyCode)
    if made.is_text:
        programs = [made.problem.start]
    else:
        programs = [constant(made.problem, action) for action in some_actions(base)]
    fitness = []
    for program in programs:
        made.reset(seed=0)
        trial: Trial = made.step(program)[-1]["raw"]
        if trial.fitness is not None:
            fitness.append(trial.fitness)
    return replace(bed, floor=min(fitness, default=0.0))


def constant(problem: Problem, action: Any) -> str:
    """Return the program of a policy that always takes one action, in the smallest interface."""
    assert problem.plain is not None
    parameters = ", ".join(problem.plain.parameters)
    return f"def {problem.function}({parameters}):\n    return {action}\n"


def some_actions(base: str) -> list[Any]:
    """Return actions of an environment: the first ten, or, of numbers, the least, greatest and stillest."""
    space = gym.make(base).action_space
    if isinstance(space, gym.spaces.Discrete):
        return [int(space.start + i) for i in range(min(int(space.n), MOST_ACTIONS))]
    assert isinstance(space, gym.spaces.Box)
    still = np.clip(np.zeros(space.shape), space.low, space.high)
    return [action.ravel().tolist() for action in (space.low, space.high, still)]


def first_program(bed: Bed, problem: Problem) -> str:
    """Return a program that runs: of a policy one that always takes the same action."""
    if bed.env != POLICIES or "commands" in problem.parameters:
        return str(problem.start)
    actions = some_actions(bed.options["base"])
    return constant(problem, actions[-1] if isinstance(actions[-1], list) else actions[0])


def control(base: str, episodes: int, floor: float) -> Bed:
    """Return the bed of policies for an environment whose floor is known."""
    unseen = {"base": base, "episodes": 30, "split": "test"}
    return Bed(POLICIES, {"base": base, "episodes": episodes}, unseen, floor)


BEDS: Final[Mapping[str, Bed]] = {
    "CartPole-v1": control("CartPole-v1", EPISODES, 0.0),
    "MountainCar-v0": control("MountainCar-v0", EPISODES, -200.0),
    "Acrobot-v1": control("Acrobot-v1", 5, -500.0),
    "Pendulum-v1": control("Pendulum-v1", EPISODES, -3300.0),
    "bin packing": Bed(
        "hunch/Heuristic-BinPacking-v0",
        {"items": 40, "instances": 10},
        {"items": 40, "split": "test"},
        -100.0,
    ),
    "FrozenLake's model": Bed("hunch/WorldModelCode-v0", {"base": "hunch/FrozenLake-v0"}),
}
