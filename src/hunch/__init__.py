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

from hunch import beginning

beginning.prepare()  # before anything else is loaded, which takes time and may not fit

from importlib.metadata import version  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402

from hunch import core, envs, lazy, lm, methods, roles  # noqa: E402, F401 - of the package
from hunch.envs import make as make  # noqa: E402

if TYPE_CHECKING:
    from hunch.names import *  # noqa: F403 - a stub, for type checkers

__version__ = version("hunch-rl")

_HOMES = lazy.homes(
    {
        "runs.callbacks": "Callback StopAt Watch",
        "runs.config": "Saving Streams",
        "runs.train": "evaluate train",
        "runs.trained": "Trained load",
        "runs.evaluations": "Evaluation",
        "runs.settings_file": "read_config",
    }
)
_MODULES = ("audition", "sandbox")
_OURS = ("__version__", "core", "envs", "lm", "make", "methods", "roles", *_MODULES)
__all__ = sorted((*_OURS, *_HOMES))

if not TYPE_CHECKING:  # so that a wrong name is an error of types
    __getattr__ = lazy.importer(__name__, _HOMES, _MODULES)


def __dir__() -> list[str]:
    return __all__
