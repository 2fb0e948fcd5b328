"""A dark room of 3 x 3 cells, and lives of a learner in it."""

from typing import Any

import hunch
from hunch.methods.q_learning import QLearningConfig
from hunch.runs.execute import RunConfig
from hunch.runs.histories import Lives, histories

OPTIONS = {"size": 3, "length": 4, "goals": "all"}


def room(**options: Any) -> Any:
    return hunch.make("hunch/DarkRoom-v0", **OPTIONS, **options)


def lives() -> Any:
    """Return histories of Q-learning."""
    learner = QLearningConfig(epsilon=(1.0, 0.02, 40))
    config = RunConfig(method="q-learning", env="hunch/DarkRoom-v0", env_options=OPTIONS, options=learner)
    return histories(config, Lives(tasks=6, copies=2, episodes=20, every=2))
