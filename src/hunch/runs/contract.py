"""Checks environments of other packages before a run, in a copy, so that no run trains on a faulty one."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence

from hunch import envs as known
from hunch.core import HunchWarning, UsageError
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import name_of
from hunch.runs.models import asked_by, layers

SECONDS = 5.0
"""Approximate maximum duration of the check of one environment, in seconds."""
NEEDED = ("shape", "observation", "actions", "event", "reward", "end", "admissible", "seed", "copy")
"""Rules whose violation would make a run wrong; the other rules are for :func:`hunch.envs.check`."""


def examine(envs: Sequence[TextEnvironment]) -> None:
    """Check the contract of environments in a copy of each kind.

    Built-in environments are tested elsewhere. An environment that asks a model, or that cannot be copied,
    is only checked during its steps.

    Raises:
        UsageError: if a rule is broken; the message names it.

    Warns:
        HunchWarning: if ``metadata["reproducible"]`` is False, which makes resuming inexact.
    """
    for env in _kinds(envs):
        if not env.metadata.get("reproducible", True):
            said = f"{name_of(env)} does not repeat its episodes: rules of seeds and copies are not checked."
            warnings.warn(said, HunchWarning, stacklevel=2)
        try:
            twin = copy.deepcopy(env)
        except Exception:
            continue
        try:
            known.check(twin, episodes=1, seconds=SECONDS)
        except known.ContractError as broken:
            if broken.rule in NEEDED:
                raise UsageError(f"{name_of(env)} cannot be used. {broken}") from broken


def _kinds(envs: Iterable[TextEnvironment]) -> list[TextEnvironment]:
    """Return one environment of each kind that asks no model."""
    own = [env for env in envs if not asked_by(env)]
    return list({tuple(map(type, layers(env))): env for env in own}.values())
