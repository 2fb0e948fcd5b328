"""The policy in an environment without a frontier: how often does the model succeed when it plays alone?

Answers to single states do not show this: a model that is right in nine states of ten may be wrong in the one
through which every episode passes. So it plays whole episodes, as the method ``zero-shot`` does, and no
solver is needed. The gain of ``zero-shot`` is then the difference to the success of an uninformed player.

Where any text is an action, the model writes it, the uninformed player says nothing, and one that cannot
write has no score. The share of moves that the environment refused is a column.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hunch.audition.frontier import Frontier, Point
from hunch.audition.prior import POLICY
from hunch.audition.question import USUAL, Bed, Manner, Role, Scores
from hunch.core import UsageError
from hunch.lm.base import LanguageModel
from hunch.methods.prior.zero_shot import ZeroShot, ZeroShotConfig
from hunch.rl.rollout import Rollout, episode_seed
from hunch.rl.world import advance
from hunch.roles.prior.kinds import PriorConfig, build_prior

LENGTH = "steps per episode"
INVALID = "invalid moves"
SETTINGS = ZeroShotConfig(prior=PriorConfig(patience=None))
STREAMS = 5
"""Number of parallel episodes, which are all played to the end."""
STEPS = 5
"""Steps per question: the number of answers equals that for questions about single states."""
LONGER = 10
"""Factor by which the stand-ins play longer, because they cost nothing."""
WITH_ITS_TASK = "a model that plays is asked with its task; the role prior has a blank prompt"
STAND_INS = ("uniform", POLICY.lexical)


class Games(NamedTuple):
    """Environment, number of steps, and seed of the episodes, which are the same for all models."""

    bed: Bed
    steps: int
    seed: int


def games(bed: Bed, n: int, seed: int) -> Games:
    """Return environment, number of steps and seed of the episodes that replace n questions."""
    return Games(bed, STEPS * n, seed)


def success(lm: LanguageModel, drawn: Games, seed: int, manner: Manner = USUAL) -> Scores:
    """Return for each episode that the model plays whether it succeeds, as scores.

    An episode that exceeds the number of steps is a failure, of a stand-in as well: it plays more episodes,
    not longer ones. Answers that name no action count as unread; the environment then gets its last action.
    """
    if manner.blank:
        raise UsageError(f"{WITH_ITS_TASK}.")
    config = PriorConfig(way=manner.way, max_tokens=manner.max_tokens, patience=None)
    agent = ZeroShot(build_prior(config, lm), SETTINGS, lm=lm)
    player = agent.player(seed)
    steps = drawn.steps * (LONGER if lm.name in STAND_INS else 1)
    envs = [drawn.bed.make(drawn.seed) for _ in range(STREAMS)]
    won, made = list[float](), 0
    while made < steps:
        numbers = range(len(won), len(won) + STREAMS)
        seeds = [episode_seed(drawn.seed, 1, number) for number in numbers]
        rollout = Rollout(envs, drawn.seed, seeds=seeds, numbers=numbers)
        while rollout.states and rollout.steps < STREAMS * drawn.steps:
            advance(rollout, player)
        finished = {episode.number: episode.success for episode in rollout.take_finished()}
        won += [float(finished.get(number, False)) for number in numbers]
        made += rollout.steps
    columns = {LENGTH: made / len(won)}
    if player.invalid:
        columns[INVALID] = float(np.mean(player.invalid))
    unread = float(np.mean(player.fallbacks)) if player.fallbacks else 0.0
    return Scores(np.array(won), list(range(len(won))), columns, unread=unread)


PLAYING = Role(
    "policy", "success of the episodes that it plays", POLICY.verbs, (), games, success, ways=POLICY.ways
)


def frontier(env: str, chance: float, steps: int, options: Mapping[str, Any]) -> Frontier:
    """Return the frontier of ``zero-shot`` if ability means success: the difference to chance.

    Args:
        env: Id of the environment.
        chance: Success rate of an uninformed player.
        steps: Number of steps that were played.
        options: Options of the environment, which its command needs as well.
    """
    points = tuple(Point("", a, a - chance, a - chance, a - chance) for a in (0.0, 1.0))
    given = [f"--env.{name} {shlex.quote(_written(value))}" for name, value in options.items()]
    return Frontier(
        "zero-shot",
        "policy",
        env,
        env,
        "independent",
        "success of an episode",
        steps,
        1,
        "",
        points,
        place=" ".join([*given, "--lm"]),
    )


def _written(value: Any) -> str:
    """Return an option as it is written on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)
