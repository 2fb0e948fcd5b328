"""The world of a rollout, as an agent may know it, and one pass of the loop."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import numpy as np

from hunch.core import Episode, Player, Telling, Transition, World
from hunch.rl.rollout import Rollout, TextEnvironment


def advance(rollout: Rollout, player: Player) -> list[Transition]:
    """Make one pass of the loop in :mod:`hunch.core` without learning: act, step, observe.

    At the end of a lifetime the player forgets the streams.
    """
    transitions = rollout.step(player.act(rollout.states))
    player.observe(transitions)
    if rollout.forgotten:
        player.forget(rollout.forgotten)
    return transitions


def world_of(
    rollout: Rollout | None,
    env: TextEnvironment | None,
    steps: int,
    data: Sequence[Episode],
    lifetime: int = 1,
) -> World:
    """Return the world of a rollout, or of recorded data and their environment.

    Without a rollout, ``lifetime`` is that of the evaluations.
    """
    if env is None:
        task = data[0][0].state.task if data else ""
        return World(task=task, streams=0, steps=steps, data=data, lifetime=lifetime)
    inner = env.unwrapped
    return World(
        env=name_of(env),
        task=rollout.states[0].task if rollout else "",
        streams=rollout.streams if rollout else 0,
        steps=steps,
        data=data,
        copy=partial(_copied, env, np.random.SeedSequence([rollout.seed if rollout else 0, 2**31])),
        lifetime=rollout.lifetime if rollout else lifetime,
        **{name: getattr(inner, name) for name in attributes_told(inner)},
    )


TOLD = ("code", "problem", "wording", "examples", "things", "manual", "tool_schemas", "prompts", "models")
"""What an environment may tell agents, as attributes; see :class:`hunch.core.World`."""


def attributes_told(env: TextEnvironment) -> tuple[str, ...]:
    """Return the names of the attributes that an environment tells agents: those that ``tells`` names.

    An environment that does not name them may mean something else by ``code`` or ``things``.
    """
    if not isinstance(env, Telling):
        return ()
    return tuple(name for name in TOLD if name in env.tells and hasattr(env, name))


def name_of(env: TextEnvironment) -> str:
    """Return the id of an environment, or the name of its class if it has no id."""
    return env.spec.id if env.spec else type(env.unwrapped).__name__


def _copied(env: TextEnvironment, seeds: np.random.SeedSequence) -> TextEnvironment:
    """Return a copy of an environment, with its own randomness."""
    twin = copy.deepcopy(env)
    twin.reset(seed=int(seeds.spawn(1)[0].generate_state(1)[0]))
    return twin
