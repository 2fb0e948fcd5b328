"""Plays, replays and evaluates whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hunch.core import Player, State, Transition, UsageError
from hunch.rl.rollout import Finished, Rollout, TextEnvironment, episode_seed
from hunch.rl.world import advance


def play(
    env: TextEnvironment, act: Callable[[State], str], seed: int, number: int = 0
) -> Iterator[Transition]:
    """Play one episode, transition by transition.

    Args:
        env: A text environment.
        act: Chooses the action of a state.
        seed: Seed of the episode.
        number: Number of the episode in its environment.
    """
    rollout = Rollout([env], seeds=[seed], numbers=[number])
    while rollout.states:
        yield from rollout.step([act(state) for state in rollout.states])


def replay(env: TextEnvironment, episode: Finished) -> Iterator[Transition]:
    """Replay an episode from its seed, number and actions; ends after the last action."""
    coming = iter(episode.actions)
    rollout = Rollout([env], seeds=[episode.seed], numbers=[episode.number], task_seed=episode.task_seed)
    while rollout.states and (action := next(coming, None)) is not None:
        yield from rollout.step([action])


def evaluate(
    player: Callable[[int], Player],
    envs: Sequence[TextEnvironment],
    episodes: int,
    seed: int,
    *,
    episodes_per_player: int | None = None,
    lifetime: int = 1,
    task_seed: int | None = None,
    raw: bool = True,
) -> list[Finished]:
    """Play whole episodes with players that do not learn.

    The seeds, numbers and tasks of the episodes do not depend on the number of environments. What a player
    that draws its actions plays does: it draws in the order in which states come.

    Args:
        player: Makes a player from a seed, such as ``agent.player``.
        envs: Text environments for parallel episodes.
        episodes: Number of episodes.
        seed: Seed of the episodes and the players.
        episodes_per_player: Episodes after which a new player with an empty memory begins. Default: never.
        lifetime: Number of episodes that share a task; then the players forget; see :class:`Rollout`.
        task_seed: Fixes the task over all episodes.
        raw: Whether states have ``State.raw``.

    Returns:
        The episodes in the order of their numbers.
    """
    if episodes < 1 or (episodes_per_player is not None and episodes_per_player < 1):
        raise UsageError(
            f"An evaluation needs at least one episode, and at least one per player, not {episodes} and "
            f"{episodes_per_player}."
        )
    seeds = [episode_seed(seed, 0, number) for number in range(episodes)]
    size = episodes_per_player or episodes
    played: list[Finished] = []
    for start in range(0, episodes, size):
        part = range(start, min(start + size, episodes))
        places = (
            envs if episodes_per_player is None else envs[:1]
        )  # so that a player's episodes are in sequence
        how: dict[str, Any] = {"lifetime": lifetime, "task_seed": task_seed, "raw": raw}
        rollout = Rollout(places, seed, seeds=[seeds[n] for n in part], numbers=part, **how)
        mine = player(seed + start)
        while rollout.states:
            advance(rollout, mine)
        played += rollout.take_finished()
    return sorted(played, key=lambda episode: episode.number)
