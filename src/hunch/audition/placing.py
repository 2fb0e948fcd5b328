"""Questions in an environment of the user's choice, and reasons why a role cannot be tested there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.audition.formaliser import FORMALISER
from hunch.audition.frontier import frontiers
from hunch.audition.goal import GOAL
from hunch.audition.judge import JUDGE
from hunch.audition.planner import PLANNER
from hunch.audition.playing import PLAYING
from hunch.audition.preference import PREFERENCE
from hunch.audition.prior import POLICY, PRIOR
from hunch.audition.question import SEARCHED, Bed, Role, won_by_search
from hunch.audition.reader import READER
from hunch.audition.text_judge import TEXT_JUDGE
from hunch.audition.world_model import WORLD_MODEL
from hunch.audition.writer import WRITER
from hunch.core import Episode, UsageError
from hunch.envs import make, names
from hunch.envs.design.problem import DesignProblem
from hunch.envs.offers import declared
from hunch.rl import dataset
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import name_of


def placed_in(
    role: Role, env: str | TextEnvironment | None, options: Mapping[str, Any], data: Sequence[Episode]
) -> tuple[Role, tuple[Bed, ...], str]:
    """Return a role with the environment of its questions, or the reason why there is none.

    In an environment without a stored frontier, a policy plays episodes instead of answering questions.

    Args:
        role: The role.
        env: Id of an environment, or an environment; None for the role's default environments.
        options: Options of the environment.
        data: Recorded episodes of the environment.
    """
    if env is None:
        there = tuple(bed for bed in role.beds if bed.stored or bed.env in names())
        return role, there, "" if there else f"{role.beds[0].env} comes with the studies"
    bed = _bed(role, env, options, data)
    changed = bool(options or data or bed.given)
    known = () if changed else tuple(bed_of_role for bed_of_role in role.beds if bed_of_role.env == env)
    if role is POLICY and (changed or env not in {f.bed for f in frontiers() if f.role == role.name}):
        role = PLAYING
    why = "" if known and role is not PLAYING else _lacking(role, bed)
    return role, *(((), why) if why else (known or (bed,), ""))


def _lacking(role: Role, bed: Bed) -> str:
    """Return why a role cannot be judged in an environment; empty if it can."""
    try:
        return _LACKS[role.name](bed)
    except Exception as error:  # an environment of the user's may raise anything
        return f"it cannot be copied or played ({type(error).__name__}: {error})"


def read_data(data: Any) -> Sequence[Episode]:
    """Return recorded episodes, which are given as such or as a folder."""
    if data is None:
        return ()
    recorded = dataset.load(data) if isinstance(data, (str, Path)) else data
    return dataset.as_episodes(recorded)


def _bed(role: Role, env: str | TextEnvironment, options: Mapping[str, Any], data: Sequence[Episode]) -> Bed:
    """Return an environment as the user set it up; its texts are those of the role's own, if it is one."""
    name = env if isinstance(env, str) else name_of(env)
    given = None if isinstance(env, str) else env
    for known in role.beds:
        if known.env == name:
            return Bed(name, options, given=given, data=data, needs=known.needs, manual=known.manual)
    return Bed(name, options, given=given, data=data, manual=None)


ANY_TEXT: Final = "yes"
"""An action to try where any text is one."""


def _no_success(bed: Bed) -> str:
    """Return why no episode can be played and judged in an environment; empty if one can."""
    env, rng = bed.make(0), np.random.default_rng(0)
    _, info = env.reset(seed=0)
    for _ in range(SEARCHED):
        if "success" in info:
            return ""
        # Where no actions are listed, any text is one.
        action = str(rng.choice(info["actions"])) if info.get("actions") else ANY_TEXT
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    return "" if "success" in info else "it does not tell success"


def _no_way(bed: Bed) -> str:
    """Return why no right action is known in an environment; empty if one is."""
    if bed.data:
        won = any(episode[-1].success for episode in bed.data)
        return "" if won else "no recorded episode is successful"
    try:
        env = bed.make(0)
        if hasattr(env.unwrapped, "oracle"):
            return ""
        if env.reset(seed=0)[1].get("actions") is None:
            return "any text is an action there, so no list says which ones are right"
        winning = won_by_search(env, seed=0)
    except Exception as error:  # an environment of the user's may raise anything
        return f"there is no solver, no data, and it cannot be searched ({type(error).__name__}: {error})"
    return (
        ""
        if winning
        else f"there is no solver, no data, and a search of {SEARCHED:,} states finds no success"
    )


def _no_solver(bed: Bed) -> str:
    return "" if hasattr(bed.make(0).unwrapped, "oracle") else "there is no solver (oracle)"


def _no_captions(bed: Bed) -> str:
    env = bed.make(0)
    if "events" not in (declared(env) or ()):
        return "it tells no events"
    return _no_solver(bed)


def _no_wording(bed: Bed) -> str:
    return "" if getattr(bed.make(0).unwrapped, "wording", None) else "it has no wording for prompts"


def _no_programs(bed: Bed) -> str:
    env = bed.make(0).unwrapped
    ready = isinstance(env, DesignProblem) and env.problem.start
    return "" if ready else "it is not a design problem with a first program"


def _only(role: Role) -> Callable[[Bed], str]:
    return lambda bed: f"the truth is known in {', '.join(bed_of_role.env for bed_of_role in role.beds)} only"


_LACKS: Final[Mapping[str, Callable[[Bed], str]]] = {
    PRIOR.name: _no_way,
    POLICY.name: _no_success,
    JUDGE.name: _no_solver,
    PREFERENCE.name: _no_captions,
    GOAL.name: _only(GOAL),
    PLANNER.name: _only(PLANNER),
    WORLD_MODEL.name: _no_wording,
    WRITER.name: _no_programs,
    READER.name: _only(READER),
    FORMALISER.name: _only(FORMALISER),
    TEXT_JUDGE.name: _only(TEXT_JUDGE),
}


def check_env(env: str | TextEnvironment | None, options: Mapping[str, Any], data: Any) -> None:
    """Check that an environment exists, before a model is loaded.

    Raises:
        UsageError: if it does not exist, or options or data are given without an environment.
    """
    if isinstance(env, str):
        make(env, **options)
    elif options:
        raise UsageError("Options of an environment need its id: --env ID.")
    elif env is None and data is not None:
        raise UsageError("Recorded episodes need their environment: --env ID.")
