"""Hunch puts a language model into any role of a reinforcement-learning loop, and measures how much it helps.

    import hunch

    env = hunch.make("hunch/Household-Pick-v0", games=4)
    result = hunch.train("dqn-prior", env, steps=9_000, lm="minilm", k=5, out="runs/pick")
    print(result)

    trained = hunch.load("runs/pick")
    observation, info = env.reset(seed=0)
    print(trained.predict(observation, info))

An agent built in Python can be passed instead of a method's name:
``hunch.methods.DQNPrior(prior=hunch.roles.SimilarityPrior(hunch.lm.load("minilm")), k=5)``.

Read :mod:`hunch.core` first. Heavy libraries are imported where they are used.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from hunch import core, envs, lm, methods, roles
from hunch.envs import make

if TYPE_CHECKING:
    from hunch import sandbox
    from hunch.audition.hearing import audition
    from hunch.runs.callbacks import Callback, StopAt
    from hunch.runs.evaluations import Evaluation
    from hunch.runs.settings_file import read_config
    from hunch.runs.train import evaluate, train
    from hunch.runs.trained import Trained, load

__version__ = version("hunch-rl")

__all__ = [
    "Callback",
    "Evaluation",
    "StopAt",
    "Trained",
    "__version__",
    "audition",
    "core",
    "envs",
    "evaluate",
    "lm",
    "load",
    "make",
    "methods",
    "read_config",
    "roles",
    "sandbox",
    "train",
]

_FILES = {
    "callbacks": "Callback StopAt",
    "train": "evaluate train",
    "trained": "Trained load",
    "evaluations": "Evaluation",
    "settings_file": "read_config",
}
_HOMES = {name: f"{__name__}.runs.{file}" for file, named in _FILES.items() for name in named.split()}


def __getattr__(name: str) -> Any:
    if name in ("audition", "sandbox"):
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
