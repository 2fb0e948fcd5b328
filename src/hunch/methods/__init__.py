"""The published systems, one file each, grouped by the role that the language model fills.

A method is one file with a dataclass of settings, an agent class and a :class:`Method`, ``METHOD``. The file
has the name of the method. No file loads torch when it is imported, so lists of methods and help are quick.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hunch.core import Agent, UsageError
from hunch.methods.method import Method as Method

if TYPE_CHECKING:
    from hunch.methods.checker import AgentError, check
    from hunch.methods.classes import *  # noqa: F403 - a stub, for type checkers

    METHODS: dict[str, Method]

__all__ = ["METHODS", "AgentError", "Method", "check", "find", "names", "of", "reads_raw", "registered"]
_FOLDERS = (
    ("prior", "dqn dqn_prior dqn_prior_released zero_shot cql_prior cql bc bc_lm"),
    ("policy", "ppo glam twosome gflan_prior instruct_ppo"),
    ("decode", "best_of_n rain"),
    ("prompt", "tempera rlprompt prompt_oirl"),
    ("tune", "sft rlhf offline_rlhf grpo rloo gigpo ppo_text a2c_text trpo_text nlpo"),
    ("tune", "compress constitutional red_team syndicom rest"),
    ("prior", "instruct_q likelihood_value"),
    ("in_context", "icpi icpi_no_argmax matching tabular_q"),
    ("in_context", "algorithm_distillation nearest_history in_context_lm decision_transformer"),
    ("planner", "saycan inner_monologue planner_actor_reporter plan4mc spring"),
    ("program", "funsearch eureka text2reward song gif_mcts worldcoder code_policy"),
    ("", "q_learning"),
    ("reward", "rewarded kwon motif vlm_rm rl_vlm_f"),
    ("goal", "ellm task_explore rl_adapter"),
    ("reward", "count_bonus rnd"),
    ("solver", "alpha_proof"),
)
OURS = {
    file.replace("_", "-"): f"{__name__}.{folder}.{file}".replace("..", ".")
    for folder, files in _FOLDERS
    for file in files.split()
}
"""The module of each built-in method."""


@cache
def registered() -> dict[str, Method]:
    """Return all methods by name: built-in ones and those of the entry-point group ``hunch.methods``.

    An entry point names a :class:`Method`, as ``mine = "mypackage:METHOD"`` does in a ``pyproject.toml``.

    Raises:
        HunchError: if a method of another package cannot be imported, or is not a :class:`Method`.
    """
    return {name: _ours(name) for name in OURS} | _added()


def names() -> tuple[str, ...]:
    """Return the names of all methods; does not import the files of built-in methods."""
    return (*OURS, *_added())


def _ours(name: str) -> Method:
    found: Method = import_module(OURS[name]).METHOD
    return found


def _added() -> dict[str, Method]:
    from hunch.methods.others import added

    return added()


def find(name: str) -> Method:
    """Return the method with this name, or the one at ``module:NAME``, which becomes the method's name.

    Raises:
        UsageError: if there is no such method; the message suggests similar names.
        HunchError: if a package that provides methods cannot be imported.
    """
    if name in OURS:
        return _ours(name)
    if ":" in name:
        from hunch.methods.others import read

        found = read(name, UsageError)
        return found if found.name == name else replace(found, name=name)
    if name in _added():
        return _added()[name]
    from hunch.suggest import suggest

    raise UsageError(f"There is no method called {name!r}; {suggest(name, names(), where='hunch methods')}")


def of(agent: Agent) -> Method | None:
    """Return the method of exactly this agent's class; None if there is none.

    The method comes from the file of the class, or from the entry-point group ``hunch.methods``.
    """
    kind = type(agent)
    found = getattr(sys.modules.get(kind.__module__), "METHOD", None)
    if isinstance(found, Method) and found.agent_class is kind and OURS.get(found.name) == kind.__module__:
        return found
    return next((method for method in _added().values() if method.agent_class is kind), None)


def reads_raw(agent: Agent) -> bool:
    """Return whether an agent gets ``State.raw``: its method reads it, or the agent belongs to no method."""
    method = of(agent)
    return method is None or "raw" in method.reads


def __dir__() -> list[str]:
    from hunch.methods.by_name import classes

    return sorted({*__all__, *(cls.__name__ for cls in classes(*OURS))})


if not TYPE_CHECKING:  # so that a wrong name is an error of types

    def __getattr__(name: str) -> Any:
        from hunch.methods.by_name import named

        return named(name)
