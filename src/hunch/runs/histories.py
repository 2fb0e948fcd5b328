"""Records learning histories: the episodes that a method plays while it learns one task."""

from __future__ import annotations

import multiprocessing as mp
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain, repeat

import numpy as np

from hunch.core import Agent, Episode, Transition, UsageError
from hunch.envs import History
from hunch.ranges import NonNegativeInt, PositiveInt, check_settings, stated
from hunch.rl.dataset import Dataset
from hunch.rl.recording import Recording
from hunch.rl.rollout import Rollout, episode_seed, lifetime_seed
from hunch.rl.workers import without_main
from hunch.rl.world import advance, world_of
from hunch.runs.config import RunConfig
from hunch.runs.environments import require_fit
from hunch.runs.processes import end_with_parent
from hunch.runs.resolve import Resolved, resolve


@dataclass(frozen=True, kw_only=True)
class Lives:
    """Options of learning histories: how many to record, and which episodes."""

    tasks: PositiveInt = 36
    """Number of tasks, drawn by the seed; several may be equal (ours)."""
    copies: PositiveInt = 10
    """Learners per task, each with a different seed (ours)."""
    episodes: PositiveInt = 400
    """Episodes that each learner plays (ours)."""
    every: PositiveInt = 20
    """Record every n-th episode, starting with a random one per learner (ours)."""
    skip: NonNegativeInt = 0
    """Record only episodes from this number on; late episodes with --every 1 are expert data."""


def histories(config: RunConfig, lives: Lives, workers: int = 1) -> Dataset:
    """Record learning histories; the episodes of one learner have the same ``lifetime``.

    Args:
        config: Method, environment and seed; ``steps`` is not used.
        lives: How many histories to record, and which episodes of each.
        workers: Number of parallel processes; it does not change the result.

    Raises:
        UsageError: if a setting is wrong, the method needs recorded data or cannot act in the environment.
    """
    resolved = resolve(config)
    check_settings(lives)
    if lives.skip > lives.episodes - lives.every:
        raise UsageError(
            f"A learner plays {max(0, lives.episodes - lives.skip)} episodes after the first {lives.skip}, "
            f"fewer than --every {lives.every}: set more --episodes."
        )
    if resolved.method:
        require_fit(resolved.method, *resolved.environments())
    numbers = range(lives.tasks * lives.copies)
    if workers == 1:
        recorded = [_life(resolved, lives, number) for number in numbers]
    else:
        context = mp.get_context("spawn")
        with without_main(), ProcessPoolExecutor(workers, context, end_with_parent) as pool:
            size = -(-len(numbers) // (4 * workers))
            recorded = list(pool.map(_life, repeat(resolved), repeat(lives), numbers, chunksize=size))
    provenance = {
        "method": config.method,
        "options": stated(config.options) if config.options else {},
        "lives": asdict(lives),
        "seed": config.seed,
        "version": version("hunch-rl"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    episodes = tuple(chain.from_iterable(recorded))
    return Dataset(config.env, dict(config.env_options), episodes, provenance)


def _life(resolved: Resolved, lives: Lives, number: int) -> list[Recording]:
    """Let one learner live, and return the episodes to keep."""
    config = resolved.config
    seed = episode_seed(config.seed, 0, number)
    (env,) = resolved.environments()
    task = lifetime_seed(config.seed, 0, number // lives.copies)
    agent, _ = resolved.build()
    rollout = Rollout([env], seed, task_seed=task, raw=True)
    agent.begin(world_of(rollout, env, 0, ()), seed)
    shown = env.n if isinstance(env, History) else 0  # length of the history that the learner is shown
    first = int(np.random.default_rng(seed).integers(min(lives.every, lives.episodes)))
    return [
        Recording.of(Episode(tuple(steps), number, n), config.method, episode_seed(seed, 0, n), shown)
        for n, steps in enumerate(_episodes(agent, rollout, lives.episodes))
        if n >= lives.skip and n % lives.every == first
    ]


def _episodes(agent: Agent, rollout: Rollout, n: int) -> Iterator[Sequence[Transition]]:
    """Play and learn for n episodes."""
    for _ in range(n):
        steps: list[Transition] = []
        while not (steps and steps[-1].done):
            steps += advance(rollout, agent)
            agent.learn()
        yield steps
